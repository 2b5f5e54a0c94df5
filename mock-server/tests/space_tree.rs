//! Copying, measuring and removing the tree of a sandbox.
#![cfg(unix)]
#![allow(clippy::print_stdout, reason = "says what a run could not check")]

use std::{
    ffi::OsStr,
    fs::{self, FileTimes},
    os::unix::{
        ffi::OsStrExt,
        fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink},
    },
    path::Path,
    process::Command,
    time::{Duration, SystemTime},
};

use sandboxer_mock_server::space::{
    copy_tree, copy_tree_blocking, remove_tree_blocking, tree_size, tree_size_blocking,
};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_copy_looks_like_its_source_and_is_independent_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (source, copy) = (folder.path().join("source"), folder.path().join("copy"));
    fs::create_dir_all(source.join("home/user/sub")).unwrap();
    fs::create_dir_all(source.join("tmp")).unwrap();
    let home = source.join("home/user");
    fs::write(home.join("file"), "content").unwrap();
    fs::hard_link(home.join("file"), home.join("sub/same")).unwrap();
    fs::write(home.join("tool"), "#!/bin/sh").unwrap();
    chmod(&home.join("tool"), 0o751);
    symlink("/etc/passwd", home.join("out")).unwrap();
    symlink("nowhere", home.join("dangling")).unwrap();
    fs::hard_link(home.join("dangling"), home.join("dangling2")).unwrap();
    let odd = [b"new\nline".as_slice(), b"not utf8 \xff\xfe", b"-rf *", b" "];
    for name in odd {
        fs::write(home.join(OsStr::from_bytes(name)), name).unwrap();
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, home.join("pipe"), rustix::fs::Mode::from_raw_mode(0o640)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(home.join("socket")).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    let times = FileTimes::new().set_modified(old).set_accessed(old);
    fs::File::open(home.join("file")).unwrap().set_times(times).unwrap();
    chmod(&home.join("sub"), 0o705);
    fs::File::open(home.join("sub")).unwrap().set_times(times).unwrap();

    let report = copy_tree(source.clone(), copy.clone()).await.unwrap();
    assert_eq!((report.folders, report.files, report.skipped, report.vanished), (5, 11, 1, 0));

    let made = copy.join("home/user");
    assert_eq!(fs::read_to_string(made.join("file")).unwrap(), "content");
    let (first, second) =
        (fs::metadata(made.join("file")).unwrap(), fs::metadata(made.join("sub/same")).unwrap());
    assert_eq!((first.ino(), first.nlink()), (second.ino(), 2));
    assert_ne!(first.ino(), fs::metadata(home.join("file")).unwrap().ino());
    assert_eq!(first.modified().unwrap(), old);
    assert_eq!(
        fs::metadata(home.join("file")).unwrap().accessed().unwrap(),
        old,
        "the source was not even touched"
    );
    assert_eq!(mode(&made.join("tool")), 0o751);
    assert_eq!(mode(&made.join("sub")), 0o705);
    assert_eq!(fs::metadata(made.join("sub")).unwrap().modified().unwrap(), old);
    assert_eq!(fs::read_link(made.join("out")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(fs::symlink_metadata(made.join("dangling2")).unwrap().nlink(), 2);
    for name in odd {
        assert_eq!(fs::read(made.join(OsStr::from_bytes(name))).unwrap(), name);
    }
    assert!(fs::symlink_metadata(made.join("pipe")).unwrap().file_type().is_fifo());
    assert_eq!(mode(&made.join("pipe")), 0o640);
    assert!(!made.join("socket").exists());

    // Writing in place on either side changes that side alone.
    fs::OpenOptions::new()
        .write(true)
        .open(home.join("sub/same"))
        .unwrap()
        .write_all_at(b"SOURCE!", 0)
        .unwrap();
    assert_eq!(fs::read_to_string(made.join("file")).unwrap(), "content");
    fs::OpenOptions::new()
        .write(true)
        .open(made.join("sub/same"))
        .unwrap()
        .write_all_at(b"copied!", 0)
        .unwrap();
    assert_eq!(fs::read_to_string(made.join("file")).unwrap(), "copied!");
    assert_eq!(fs::read_to_string(home.join("file")).unwrap(), "SOURCE!");

    let size = tree_size(copy.clone()).await.unwrap();
    let content: u64 = odd.iter().map(|name| name.len() as u64).sum::<u64>() + 7 + 9;
    assert_eq!((size.bytes, size.files, size.folders), (content, 11, 5));
    remove_tree_blocking(&copy).unwrap();
    assert!(!copy.exists());
    assert_eq!(fs::read_to_string(home.join("file")).unwrap(), "SOURCE!");
}

#[test]
fn holes_stay_holes() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    let file = fs::File::create(source.join("sparse")).unwrap();
    file.set_len(64 << 20).unwrap();
    file.write_all_at(b"middle", 20 << 20).unwrap();
    fs::File::create(source.join("hollow")).unwrap().set_len(8 << 20).unwrap();
    let copy = folder.path().join("copy");
    copy_tree_blocking(&source, &copy).unwrap();
    let meta = fs::metadata(copy.join("sparse")).unwrap();
    assert_eq!(meta.len(), 64 << 20);
    assert!(meta.blocks() * 512 < 1 << 20, "{} blocks", meta.blocks());
    let mut middle = [0; 8];
    fs::File::open(copy.join("sparse")).unwrap().read_exact_at(&mut middle, (20 << 20) - 1).unwrap();
    assert_eq!(&middle, b"\0middle\0");
    assert_eq!(fs::metadata(copy.join("hollow")).unwrap().len(), 8 << 20);
    let size = tree_size_blocking(&copy).unwrap();
    assert_eq!(size.bytes, 72 << 20);
    assert!(size.allocated < 1 << 20);
}

#[test]
fn folders_and_files_without_permissions_are_copied_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (source, copy) = (folder.path().join("source"), folder.path().join("copy"));
    fs::create_dir_all(source.join("closed/inner")).unwrap();
    fs::write(source.join("closed/inner/file"), "kept").unwrap();
    fs::write(source.join("closed/unreadable"), "kept too").unwrap();
    chmod(&source.join("closed/unreadable"), 0o000);
    chmod(&source.join("closed/inner"), 0o500);
    chmod(&source.join("closed"), 0o000);
    copy_tree_blocking(&source, &copy).unwrap();
    for tree in [&source, &copy] {
        assert_eq!(mode(&tree.join("closed")), 0o000);
        chmod(&tree.join("closed"), 0o500);
        assert_eq!(mode(&tree.join("closed/inner")), 0o500);
        assert_eq!(mode(&tree.join("closed/unreadable")), 0o000);
        assert_eq!(fs::read_to_string(tree.join("closed/inner/file")).unwrap(), "kept");
        chmod(&tree.join("closed/unreadable"), 0o400);
        assert_eq!(fs::read_to_string(tree.join("closed/unreadable")).unwrap(), "kept too");
        chmod(&tree.join("closed"), 0o000);
        remove_tree_blocking(tree).unwrap();
        assert!(!tree.exists());
    }
}

#[test]
fn a_very_deep_tree_is_copied_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (source, copy) = (folder.path().join("source"), folder.path().join("copy"));
    let depth = 500;
    let mut at = fs::create_dir(&source)
        .map(|()| {
            rustix::fs::open(&source, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap()
        })
        .unwrap();
    for _ in 0..depth {
        rustix::fs::mkdirat(&at, "deeper", rustix::fs::Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, "deeper", rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty())
            .unwrap();
    }
    drop(at);
    let report = copy_tree_blocking(&source, &copy).unwrap();
    assert_eq!(report.folders, depth + 1);
    assert_eq!(tree_size_blocking(&copy).unwrap().folders, depth + 1);
    remove_tree_blocking(&copy).unwrap();
    remove_tree_blocking(&source).unwrap();
    assert!(!copy.exists() && !source.exists());
}

#[test]
fn a_target_in_use_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (source, copy) = (folder.path().join("source"), folder.path().join("copy"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("a"), "new").unwrap();
    fs::create_dir(&copy).unwrap();
    copy_tree_blocking(&source, &copy).unwrap();
    fs::write(copy.join("a"), "precious").unwrap();
    let refused = copy_tree_blocking(&source, &copy).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(copy.join("a")).unwrap(), "precious");
    let missing = copy_tree_blocking(&folder.path().join("none"), &folder.path().join("new")).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    assert!(!folder.path().join("new").exists());
    // Copying a tree into itself ends.
    let report = copy_tree_blocking(folder.path(), &folder.path().join("inside")).unwrap();
    assert_eq!(report.folders, 3);
}

#[test]
fn a_tree_that_changes_is_copied_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("steady"), "here").unwrap();
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do mkdir -p a/b; echo x > a/b/c; echo y > d; rm -rf a d; done"])
        .current_dir(&source)
        .spawn()
        .unwrap();
    let results: Vec<_> = (0..150)
        .map(|n| {
            let copy = folder.path().join(format!("copy{n}"));
            copy_tree_blocking(&source, &copy).map(|_| fs::read_to_string(copy.join("steady")).unwrap())
        })
        .collect();
    let kill = busy.kill();
    let _ = busy.wait();
    kill.unwrap();
    for result in results {
        assert_eq!(result.unwrap(), "here");
    }
}

#[test]
fn removing_a_link_leaves_what_it_leads_to() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("real")).unwrap();
    fs::write(folder.path().join("real/file"), "x").unwrap();
    symlink(folder.path().join("real"), folder.path().join("link")).unwrap();
    fs::create_dir(folder.path().join("tree")).unwrap();
    symlink(folder.path().join("real"), folder.path().join("tree/link")).unwrap();
    remove_tree_blocking(&folder.path().join("link")).unwrap();
    remove_tree_blocking(&folder.path().join("tree")).unwrap();
    remove_tree_blocking(&folder.path().join("tree")).unwrap();
    assert!(folder.path().join("real/file").exists());
    assert!(!folder.path().join("tree").exists());
    assert!(fs::symlink_metadata(folder.path().join("link")).is_err());
}

#[test]
fn root_copies_owners_and_attributes() {
    let folder = tempfile::tempdir().unwrap();
    let (source, copy) = (folder.path().join("source"), folder.path().join("copy"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("file"), "x").unwrap();
    symlink("file", source.join("link")).unwrap();
    let attributes =
        rustix::fs::setxattr(source.join("file"), "user.note", b"kept", rustix::fs::XattrFlags::empty())
            .is_ok();
    let root = rustix::process::geteuid().is_root();
    if root {
        for name in ["file", "link"] {
            std::os::unix::fs::lchown(source.join(name), Some(11111), Some(22222)).unwrap();
        }
    }
    copy_tree_blocking(&source, &copy).unwrap();
    if attributes {
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(copy.join("file"), "user.note", &mut value).unwrap();
        assert_eq!(&value[..length], b"kept");
    }
    for name in ["file", "link"] {
        let (from, to) = (
            fs::symlink_metadata(source.join(name)).unwrap(),
            fs::symlink_metadata(copy.join(name)).unwrap(),
        );
        assert_eq!((from.uid(), from.gid()), (to.uid(), to.gid()), "{name}");
    }
    println!(
        "owners checked as {}, attributes: {attributes}",
        if root { "root" } else { "an ordinary user" }
    );
}
