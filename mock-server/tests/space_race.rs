//! A sandbox that swaps files, links and folders under the server's hands.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "real threads race here for a real while")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use sandboxer_mock_server::space::{
    FILE_LIMIT, FileError, Files, Owner, copy_tree_blocking, remove_tree_blocking, tree_size_blocking,
};

const WHILE: Duration = Duration::from_millis(1500);

/// Swaps `x` between a good file and a link to a host file, and `d` between a good folder and a link to a host folder.
fn flip(home: &Path, host: &Path, stop: &AtomicBool) {
    let staging = home.join("staging");
    while !stop.load(Ordering::Relaxed) {
        let _ = fs::write(&staging, "good").and_then(|()| fs::rename(&staging, home.join("x")));
        let _ = symlink("../../../host/secret", &staging).and_then(|()| fs::rename(&staging, home.join("x")));
        let _ = fs::remove_file(home.join("d"));
        let _ = fs::create_dir(home.join("d")).and_then(|()| fs::write(home.join("d/secret"), "good"));
        let _ = fs::rename(home.join("d"), home.join("elsewhere"));
        let _ = symlink(host, home.join("d")).and_then(|()| fs::remove_file(home.join("d")));
        let _ = symlink("../../../host", home.join("d"));
        let _ = fs::remove_dir_all(home.join("elsewhere"));
    }
}

/// Ends the flipper also when an assertion fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn nothing_outside_is_read_written_copied_or_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (root, host) = (folder.path().join("root"), folder.path().join("host"));
    let home = root.join("home/user");
    fs::create_dir_all(&home).unwrap();
    fs::create_dir_all(root.join("tmp")).unwrap();
    fs::create_dir_all(&host).unwrap();
    fs::write(host.join("secret"), "SECRET").unwrap();
    let files = Files::open(&root, Owner::current()).unwrap();
    let stop = AtomicBool::new(false);
    let (mut reads, mut writes, mut refused, mut copies) = (0, 0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| flip(&home, &host, &stop));
        let stopper = StopOnDrop(&stop);
        let start = Instant::now();
        while start.elapsed() < WHILE {
            for path in ["x", "d/secret"] {
                match files.read_blocking(path, FILE_LIMIT) {
                    Ok(bytes) => {
                        assert!(!bytes.windows(6).any(|part| part == b"SECRET"), "{path}: {bytes:?}");
                        reads += 1;
                    }
                    Err(FileError::InvalidPath { .. }) => refused += 1,
                    Err(FileError::NotFound) => {}
                    Err(other) => panic!("{path}: {other:?}"),
                }
                match files.write_blocking(path, b"mine", FILE_LIMIT) {
                    Ok(_) => writes += 1,
                    Err(FileError::InvalidPath { .. }) => refused += 1,
                    Err(FileError::NotFound | FileError::IsDirectory) => {}
                    Err(FileError::Io(error)) => panic!("{path}: {error:?}"),
                    Err(other) => panic!("{path}: {other:?}"),
                }
                let _ = files.append_log_blocking(path, b"log", FILE_LIMIT);
                let _ = files.locate_blocking(path);
            }
            if copies % 4 == 0 {
                let copy = folder.path().join(format!("copy{copies}"));
                copy_tree_blocking(&root, &copy).unwrap();
                assert_no_secret(&copy);
                tree_size_blocking(&root).unwrap();
                remove_tree_blocking(&copy).unwrap();
                assert!(!copy.exists());
            }
            copies += 1;
        }
        // Removing the tree under the flipper's hands must not reach the host's folder either.
        let _ = remove_tree_blocking(&home.join("d"));
        drop(stopper);
    });
    assert!(reads > 0 && writes > 0 && refused > 0, "{reads} reads, {writes} writes, {refused} refused");
    assert_eq!(fs::read_to_string(host.join("secret")).unwrap(), "SECRET");
    let names: Vec<_> = fs::read_dir(&host).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["secret"]);
    remove_tree_blocking(&root).unwrap();
    assert_eq!(fs::read_to_string(host.join("secret")).unwrap(), "SECRET");
}

fn assert_no_secret(copy: &Path) {
    for entry in fs::read_dir(copy).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            assert_no_secret(&entry.path());
        } else if kind.is_file() {
            assert_ne!(fs::read_to_string(entry.path()).unwrap(), "SECRET", "{:?}", entry.path());
        }
    }
}
