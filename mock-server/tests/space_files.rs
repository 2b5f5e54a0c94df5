//! Reading, writing and resolving paths inside the folders of a sandbox.
#![cfg(unix)]
#![allow(clippy::print_stdout, reason = "says what a run could not check")]

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::PathBuf,
};

use bytes::Bytes;
use futures_util::StreamExt;
use sandboxer_mock_server::space::{ARTIFACT_LIMIT, FILE_LIMIT, FileError, Files, LocatedKind, Owner};

struct Space {
    folder: tempfile::TempDir,
    files: Files,
}

impl Space {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("root/home/user")).unwrap();
        fs::create_dir_all(folder.path().join("root/tmp")).unwrap();
        fs::write(folder.path().join("secret"), "of the host").unwrap();
        let files = Files::open(&folder.path().join("root"), Owner::current()).unwrap();
        Self { folder, files }
    }

    fn host(&self, path: &str) -> PathBuf {
        self.folder.path().join("root").join(path)
    }

    fn read(&self, path: &str) -> Result<Bytes, FileError> {
        self.files.read_blocking(path, FILE_LIMIT)
    }

    fn write(&self, path: &str, text: &str) -> Result<String, FileError> {
        let written = self.files.write_blocking(path, text.as_bytes(), FILE_LIMIT)?;
        assert_eq!(written.size, text.len() as u64);
        Ok(written.path.into_string().unwrap())
    }
}

fn is_invalid<T: std::fmt::Debug>(result: Result<T, FileError>) -> bool {
    matches!(result, Err(FileError::InvalidPath { .. }))
}

fn is_missing<T: std::fmt::Debug>(result: Result<T, FileError>) -> bool {
    matches!(result, Err(FileError::NotFound))
}

#[test]
fn writes_where_it_is_told_and_reads_back() {
    let space = Space::new();
    assert_eq!(space.write("a/b/c.txt", "one").unwrap(), "/home/user/a/b/c.txt");
    assert_eq!(space.write("/tmp/x", "two").unwrap(), "/tmp/x");
    assert_eq!(space.write("/home/user/a/../../user/./d", "three").unwrap(), "/home/user/d");
    assert_eq!(space.write("../../tmp/y", "four").unwrap(), "/tmp/y");
    assert_eq!(space.read("/home/user/a/b/c.txt").unwrap(), "one");
    assert_eq!(space.read("d").unwrap(), "three");
    assert_eq!(space.read("//tmp//x").unwrap(), "two");
    assert_eq!(fs::read_to_string(space.host("tmp/y")).unwrap(), "four");
    let meta = fs::metadata(space.host("home/user/a/b/c.txt")).unwrap();
    assert_eq!(meta.mode() & 0o7777, 0o644);
    assert_eq!(fs::metadata(space.host("home/user/a")).unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn a_path_outside_is_refused_and_nothing_is_made() {
    let space = Space::new();
    for path in [
        "",
        "\0",
        "/",
        "/etc/passwd",
        "/home",
        "/home/other/x",
        "/tmpx",
        "../x",
        "../../etc/passwd",
        "/home/user/../x",
        "/tmp/../../../etc/passwd",
        "nowhere/../../../etc/passwd",
        "/home/user/../../proc/self/environ",
        "/proc/1/root",
    ] {
        assert!(is_invalid(space.read(path)), "read {path:?}: {:?}", space.read(path));
        assert!(is_invalid(space.write(path, "x")), "write {path:?}");
    }
    let long = "a".repeat(256);
    assert!(is_invalid(space.write(&format!("new/{long}"), "x")));
    assert!(is_invalid(space.read(&"a/".repeat(3000))));
    assert_eq!(fs::read_dir(space.host("home/user")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(space.host("home")).unwrap().count(), 1);
}

#[test]
fn missing_folders_and_odd_kinds_have_their_own_errors() {
    let space = Space::new();
    space.write("file", "x").unwrap();
    fs::create_dir(space.host("home/user/dir")).unwrap();
    assert!(is_missing(space.read("nowhere")));
    assert!(is_missing(space.read("nowhere/deep")));
    assert!(is_missing(space.read("file/")));
    assert!(is_missing(space.read("file/x")));
    assert!(is_missing(space.write("file/x", "x")));
    for folder in ["dir", "dir/", ".", "/tmp", "/home/user/"] {
        assert!(matches!(space.read(folder), Err(FileError::IsDirectory)), "{folder}");
        assert!(matches!(space.write(folder, "x"), Err(FileError::IsDirectory)), "{folder}");
    }
    assert!(is_invalid(space.write("new/", "x")));
    assert!(!space.host("home/user/new").exists());

    let pipe = rustix::fs::CWD;
    rustix::fs::mkfifoat(pipe, space.host("home/user/pipe"), rustix::fs::Mode::from_raw_mode(0o644)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(space.host("tmp/socket")).unwrap();
    for odd in ["pipe", "/tmp/socket"] {
        assert!(matches!(space.read(odd), Err(FileError::NotRegular)), "{odd}");
        assert!(matches!(space.write(odd, "x"), Err(FileError::NotRegular)), "{odd}");
        assert!(
            matches!(space.files.append_log_blocking(odd, b"x", 10), Err(FileError::NotRegular)),
            "{odd}"
        );
    }
}

#[test]
fn links_are_followed_inside_only() {
    let space = Space::new();
    space.write("/tmp/real", "inside").unwrap();
    let host_secret = space.folder.path().join("secret");
    symlink("/tmp/real", space.host("home/user/absolute")).unwrap();
    symlink("../../tmp/real", space.host("home/user/relative")).unwrap();
    symlink("/tmp", space.host("home/user/folder")).unwrap();
    symlink("/tmp/new", space.host("home/user/dangling")).unwrap();
    symlink("/etc/hostname", space.host("home/user/etc")).unwrap();
    symlink("/etc/not/there", space.host("home/user/nothing")).unwrap();
    symlink(&host_secret, space.host("home/user/secret")).unwrap();
    symlink("../../../secret", space.host("home/user/up")).unwrap();
    symlink("/", space.host("home/user/top")).unwrap();
    symlink("loop", space.host("home/user/loop")).unwrap();
    symlink("/proc/self/fd/0", space.host("home/user/magic")).unwrap();

    for path in ["absolute", "relative", "folder/real", "top/tmp/real", "top/home/user/folder/real"] {
        assert_eq!(space.read(path).unwrap(), "inside", "{path}");
    }
    assert!(is_missing(space.read("dangling")));
    // The host's temporary folder is not the sandbox's.
    let secret = space.read("secret");
    assert!(is_missing(space.read("secret")) || is_invalid(space.read("secret")), "{secret:?}");
    for path in ["etc", "nothing", "up", "top", "top/etc/passwd", "loop", "loop/x", "magic", "etc/x"] {
        assert!(is_invalid(space.read(path)), "read {path}: {:?}", space.read(path));
        assert!(is_invalid(space.write(path, "bad")), "write {path}");
        assert!(is_invalid(space.files.locate_blocking(path)), "locate {path}");
    }
    assert_eq!(fs::read_to_string(host_secret).unwrap(), "of the host");

    assert_eq!(space.write("dangling", "made").unwrap(), "/tmp/new");
    assert_eq!(space.write("relative", "changed").unwrap(), "/tmp/real");
    assert!(fs::symlink_metadata(space.host("home/user/relative")).unwrap().is_symlink());
    assert_eq!(space.read("absolute").unwrap(), "changed");
}

#[test]
fn locating_tells_what_is_there() {
    let space = Space::new();
    space.write("file", "12345").unwrap();
    symlink("/tmp", space.host("home/user/folder")).unwrap();
    let located = |path: &str| {
        let found = space.files.locate_blocking(path).unwrap();
        (found.path.into_string().unwrap(), found.kind)
    };
    assert_eq!(located("file"), ("/home/user/file".into(), LocatedKind::File(5)));
    assert_eq!(located("folder"), ("/tmp".into(), LocatedKind::Folder));
    assert_eq!(located("folder/new"), ("/tmp/new".into(), LocatedKind::Missing));
    assert_eq!(located("no/such/path").1, LocatedKind::Missing);
}

#[test]
fn the_limit_is_exact() {
    let space = Space::new();
    let exact = vec![7u8; FILE_LIMIT as usize];
    space.files.write_blocking("exact", &exact, FILE_LIMIT).unwrap();
    assert_eq!(space.read("exact").unwrap(), exact);
    let over = vec![7u8; FILE_LIMIT as usize + 1];
    let refused = space.files.write_blocking("new/over", &over, FILE_LIMIT);
    assert!(
        matches!(refused, Err(FileError::TooLarge { limit: FILE_LIMIT, size }) if size == FILE_LIMIT + 1)
    );
    assert!(!space.host("home/user/new").exists());
    fs::write(space.host("tmp/over"), &over).unwrap();
    let refused = space.read("/tmp/over");
    assert!(
        matches!(refused, Err(FileError::TooLarge { limit: FILE_LIMIT, size }) if size == FILE_LIMIT + 1)
    );
}

#[test]
fn an_existing_file_keeps_its_mode_and_a_failure_leaves_nothing() {
    let space = Space::new();
    space.write("script", "old").unwrap();
    fs::set_permissions(space.host("home/user/script"), fs::Permissions::from_mode(0o750)).unwrap();
    space.write("script", "new").unwrap();
    assert_eq!(fs::metadata(space.host("home/user/script")).unwrap().mode() & 0o7777, 0o750);
    assert_eq!(space.read("script").unwrap(), "new");
    fs::create_dir(space.host("home/user/dir")).unwrap();
    assert!(space.write("dir", "x").is_err());
    let mut names: Vec<_> =
        fs::read_dir(space.host("home/user")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["dir", "script"]);
}

#[test]
fn new_files_and_folders_belong_to_the_sandbox() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can give files away");
        return;
    }
    let space = Space::new();
    let files = Files::open(&space.host(""), Owner { uid: 12345, gid: 23456 }).unwrap();
    files.write_blocking("made/file", b"x", FILE_LIMIT).unwrap();
    files.append_log_blocking(".sandboxer/processes/7.log", b"x", 100).unwrap();
    for path in ["made", "made/file", ".sandboxer", ".sandboxer/processes", ".sandboxer/processes/7.log"] {
        let meta = fs::metadata(space.host("home/user").join(path)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (12345, 23456), "{path}");
    }
    std::os::unix::fs::chown(space.host("home/user/made/file"), Some(77), Some(88)).unwrap();
    files.write_blocking("made/file", b"y", FILE_LIMIT).unwrap();
    let meta = fs::metadata(space.host("home/user/made/file")).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (77, 88));
    assert_eq!(Owner::of(&space.host("home/user/made")).unwrap(), Owner { uid: 12345, gid: 23456 });
}

#[test]
fn a_log_grows_to_its_limit_and_never_through_a_link() {
    let space = Space::new();
    let append =
        |text: &str| space.files.append_log_blocking(".sandboxer/processes/1.log", text.as_bytes(), 10);
    assert_eq!(append("12345678").unwrap(), 8);
    assert_eq!(append("9abcdef").unwrap(), 2);
    assert_eq!(append("more").unwrap(), 0);
    assert_eq!(space.read(".sandboxer/processes/1.log").unwrap(), "123456789a");
    for path in [".sandboxer/processes/1.log", ".sandboxer/processes/2.log"] {
        space.files.begin_log_blocking(path).unwrap();
        assert_eq!(space.read(path).unwrap(), "");
    }
    assert_eq!(append("more").unwrap(), 4);
    symlink("/tmp", space.host("home/user/away")).unwrap();
    symlink("/tmp/log", space.host("home/user/log")).unwrap();
    assert!(is_invalid(space.files.begin_log_blocking("away/1.log")));
    assert!(is_invalid(space.files.begin_log_blocking("log")));
    assert!(is_invalid(space.files.append_log_blocking("away/1.log", b"x", 10)));
    assert!(is_invalid(space.files.append_log_blocking("log", b"x", 10)));
    assert_eq!(fs::read_dir(space.host("tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_stream_gives_what_was_there_when_it_was_opened() {
    let space = Space::new();
    let content: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    fs::write(space.host("tmp/big"), &content).unwrap();
    let mut stream = space.files.stream("/tmp/big", ARTIFACT_LIMIT).await.unwrap();
    assert_eq!(stream.size(), 300_000);
    let mut read = stream.next().await.unwrap().unwrap().to_vec();
    assert_eq!(read.len(), 65_536);
    // It grows meanwhile.
    fs::OpenOptions::new()
        .append(true)
        .open(space.host("tmp/big"))
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"more"))
        .unwrap();
    while let Some(chunk) = stream.next().await {
        read.extend_from_slice(&chunk.unwrap());
    }
    assert_eq!(read, content);

    // It shrinks meanwhile.
    let mut stream = space.files.stream("/tmp/big", ARTIFACT_LIMIT).await.unwrap();
    stream.next().await.unwrap().unwrap();
    fs::write(space.host("tmp/big"), "short").unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), std::io::ErrorKind::UnexpectedEof);
    assert!(stream.next().await.is_none());

    let refused = space.files.stream("/tmp/big", 4).await;
    assert!(matches!(refused, Err(FileError::TooLarge { limit: 4, size: 5 })));
}
