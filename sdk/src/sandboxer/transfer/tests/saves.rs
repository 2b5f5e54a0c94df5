//! Downloads into files of this machine: whole or not there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    Transfer, noise,
    peer::{Peer, bytes},
};
use crate::{AsyncFiles, Dialect, ErrorKind};

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("transfer-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn files(announced: usize, sent: usize) -> (Peer, AsyncFiles) {
    let peer = Peer::start(move |_, _| bytes(200, &[], announced, &noise(sent)));
    let files = peer.client(Dialect::Sandboxer).sandbox("bx_1").files();
    (peer, files)
}

#[tokio::test]
async fn a_file_appears_whole_and_replaces_the_old_one() {
    for size in [0, 1, (8 << 20) + 1] {
        let folder = Folder::new();
        let (target, (_peer, files)) = (folder.0.join("copy"), files(size, size));
        for _ in 0..2 {
            assert_eq!(files.download_file("x", &target, Transfer::new()).await.unwrap(), size as u64);
            assert!(fs::read(&target).unwrap() == noise(size));
            assert_eq!(folder.names(), ["copy"]);
        }
    }
}

#[tokio::test]
async fn after_a_failure_the_old_file_is_there_and_nothing_else() {
    let folder = Folder::new();
    let target = folder.0.join("copy");
    fs::write(&target, "old").unwrap();
    let (_peer, files) = files(2000, 1000);
    let error = files.download_file("x", &target, Transfer::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StreamCut);
    let error = files.download_file("x", &target, Transfer::new().cap(1999)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    for bad in [folder.0.join("none/copy"), folder.0.clone(), PathBuf::from("/")] {
        let error = files.download_file("x", &bad, Transfer::new()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::Unexpected, "write_failed"),
            "{}",
            bad.display()
        );
        assert!(std::error::Error::source(&error).is_some());
    }
    assert_eq!(folder.names(), ["copy"]);
    assert_eq!(fs::read_to_string(&target).unwrap(), "old");
    assert!(!Path::new(&folder.0.with_extension("part")).exists());
}

#[tokio::test]
async fn a_dropped_save_leaves_nothing() {
    let folder = Folder::new();
    let (_peer, files) = files(4 << 20, 4 << 20);
    let target = folder.0.join("copy");
    let download = files.download_with("x", Transfer::new()).await.unwrap();
    let mut saving = Box::pin(download.save(&target));
    while folder.names().is_empty() {
        assert!(futures_util::poll!(&mut saving).is_pending());
        tokio::task::yield_now().await;
    }
    drop(saving);
    // What is being made at that very moment goes as soon as it is there.
    while !folder.names().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(folder.names(), [""; 0]);
}

#[cfg(unix)]
#[tokio::test]
async fn permissions_of_the_old_file_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let (target, (_peer, files)) = (folder.0.join("run"), files(3, 3));
    fs::write(&target, "old").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
    files.download_file("x", &target, Transfer::new()).await.unwrap();
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o700);
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_stays_one_and_what_is_no_plain_file_is_refused() {
    let folder = Folder::new();
    let (target, link) = (folder.0.join("copy"), folder.0.join("link"));
    let (_peer, files) = files(3, 3);
    fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink("copy", &link).unwrap();
    files.download_file("x", &link, Transfer::new()).await.unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read(&target).unwrap() == noise(3));

    let socket = folder.0.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = files.download_file("x", &socket, Transfer::new()).await.unwrap_err();
    assert_eq!(error.code(), "write_failed");
    assert!(!fs::symlink_metadata(&socket).unwrap().is_file());
    assert_eq!(folder.names().len(), 3);
}
