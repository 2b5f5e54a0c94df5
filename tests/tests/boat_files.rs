//! The file verbs of the boat dialect against the local server, in both clients.

use std::{
    io::Read,
    sync::{Arc, Mutex},
    time::Duration,
};

use sandboxer::{Create, Dialect, Error, ErrorKind, Operation, Transfer};
use sandboxer_blocking::Sandboxer;
use sandboxer_mock_server::{MockServer, faults::End};
use sandboxer_tests::{noise, servers};

const MIB: usize = 1 << 20;

fn boat(server: &MockServer) -> sandboxer::AsyncSandboxer {
    server.client_builder().dialect(Dialect::Boat).build().expect("a client")
}

#[track_caller]
fn refused<T>(result: Result<T, Error>, code: &str) {
    let Err(error) = result else { panic!("{code}: it is not refused") };
    assert_eq!((error.code(), error.operation().is_some()), (code, true), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_links_and_permissions_are_as_the_sandbox_has_them() {
    for (runner, server) in servers() {
        let client = boat(&server);
        let sandbox = client.create(Create::new()).await.expect("a sandbox");
        let files = sandbox.files();
        let made = files.create_folder("app/sub", Some(0o750)).await.expect("a folder");
        assert_eq!((made.path.as_str(), made.mode.as_str()), ("/home/user/app/sub", "0750"), "{runner}");
        files.write("app/a.txt", "one TODO\ntwo\n").await.expect("write");
        files.write("app/sub/b.txt", "TODO TODO").await.expect("write");
        sandbox.exec("ln -s /etc app/out").await.and_then(sandboxer::Output::check).expect("a link");

        let listed = files.list("app").await.expect("list");
        let names: Vec<_> =
            listed.files.iter().map(|file| (file.name.as_str(), file.is_dir, file.is_symlink)).collect();
        assert_eq!(names, [("a.txt", false, false), ("out", false, true), ("sub", true, false)], "{runner}");
        assert!(files.info("app/out").await.expect("info").is_symlink);
        let set = files.set_permissions("app/a.txt", 0o600).await.expect("permissions");
        assert_eq!((set.mode.as_str(), set.size), ("0600", 13));

        let found = files.search("/home/user", "*.txt").await.expect("search").files;
        assert_eq!(found, ["/home/user/app/a.txt", "/home/user/app/sub/b.txt"]);
        let lines = files.find(".", "^T.*O$", true).await.expect("find").matches;
        assert_eq!((lines.len(), lines[0].line, lines[0].content.as_str()), (1, 1, "TODO TODO"));
        let replaced =
            files.replace(["app/a.txt", "app/sub/b.txt", "none"], "TODO", "done").await.expect("replace");
        let counts: Vec<_> = replaced.results.iter().map(|one| (one.success, one.replacements)).collect();
        assert_eq!(counts, [(true, Some(1)), (true, Some(2)), (false, None)]);
        assert_eq!(files.read("app/sub/b.txt").await.expect("read"), "done done");

        refused(files.move_to("app/a.txt", "app/sub", false).await, "already_exists");
        files.move_to("app/a.txt", "/tmp/deep/a.txt", false).await.expect("move");
        assert_eq!(files.read("/tmp/deep/a.txt").await.expect("read"), "one done\ntwo\n");
        refused(files.delete("app", false).await, "folder_not_empty");
        files.delete("app", true).await.expect("delete");
        refused(files.list("app").await, "path_not_found");
        refused(files.list("/etc").await, "invalid_path");
        refused(files.search(".", "[").await, "invalid_pattern");
        // The dialect's own name for the header that confirms it.
        sandbox.delete().await.expect("deleted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_size_goes_through_addresses_and_comes_back() {
    for (runner, server) in servers() {
        let sandbox = boat(&server).create(Create::new()).await.expect("a sandbox");
        let files = sandbox.files();
        for size in [0, 1, 5 * MIB, 5 * MIB + 1, 9 * MIB] {
            let content = noise(size, 3);
            for length in [Some(size as u64), None] {
                let told: Arc<Mutex<Vec<u64>>> = Arc::default();
                let log = told.clone();
                let mut up = Transfer::new();
                if let Some(length) = length {
                    up = up.length(length);
                }
                let sent = files.upload_from("deep/er/it's", &content[..], up).await;
                assert_eq!(sent.expect("up"), size as u64, "{runner}: {size}");
                let down = Transfer::new().progress(move |at| log.lock().expect("the log").push(at.bytes));
                let download = files.download_with("deep/er/it's", down).await.expect("down");
                assert_eq!(download.total(), Some(size as u64));
                assert!(download.read_all(size).await.expect("all of it") == content, "{runner}: {size}");
                let told = told.lock().expect("the log");
                assert_eq!((told[0], told[told.len() - 1]), (0, size as u64));
            }
        }
        let output = sandbox.exec("find . -mindepth 1 | sort").await.expect("exec");
        assert_eq!(output.stdout_text(), "./deep\n./deep/er\n./deep/er/it's\n", "{runner}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_upload_leaves_the_old_file() {
    let server = MockServer::start();
    let sandbox = boat(&server).create(Create::new()).await.expect("a sandbox");
    let files = sandbox.files();
    files.write("kept", "old").await.expect("write");
    let content = noise(11 * MIB, 5);
    let short = files.upload_from("kept", &content[..], Transfer::new().length(12 * MIB as u64)).await;
    refused(short, "wrong_length");
    let cap = files.upload_from("kept", &content[..], Transfer::new().cap(10 * MIB as u64)).await;
    assert_eq!(cap.expect_err("over the cap").kind(), ErrorKind::TooLarge);
    refused(files.upload_from("/etc/x", &content[..], Transfer::new()).await, "invalid_path");
    refused(files.download_with("none", Transfer::new()).await.map(drop), "path_not_found");
    assert_eq!(files.read("kept").await.expect("read"), "old");
    assert_eq!(files.list(".").await.expect("list").files.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_goes_on_after_a_cut() {
    let server = MockServer::start();
    let sandbox = boat(&server).create(Create::new()).await.expect("a sandbox");
    let files = sandbox.files();
    // More than what sockets hold.
    let content = noise(24 * MIB, 9);
    files.upload_from("big", &content[..], Transfer::new()).await.expect("up");
    // Until the disk's clock has moved on, nothing proves that it is the same content.
    let url = files.download_url("big", Some(Duration::from_secs(60))).await.expect("an address");
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    loop {
        let answer = http.get(url.url.expose()).send().await.expect("an answer");
        let tag = answer.headers()["etag"].to_str().expect("a tag").to_owned();
        if tag.starts_with('"') {
            break;
        }
    }
    server.clear_requests();
    let mut download = files.download_with("big", Transfer::new()).await.expect("down");
    let (mut came, mut is_cut) = (Vec::new(), false);
    while let Some(piece) = download.next().await {
        came.extend_from_slice(&piece.expect("a piece"));
        if came.len() > 3 * MIB && !is_cut {
            is_cut = true;
            server.wire().end_all(End::Reset);
        }
    }
    assert!(came == content);
    assert_eq!(server.requests_to(Operation::CreateDownloadUrl).len(), 2);
    let parts = server.requests().into_iter().filter(|request| request.header("range").is_some());
    assert_eq!(parts.filter(|request| request.status() == Some(206)).count(), 1);
}

/// Zeros that are made as they are read.
struct Zeros(usize);

impl Read for Zeros {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        let count = space.len().min(self.0);
        space[..count].fill(0);
        self.0 -= count;
        Ok(count)
    }
}

#[test]
fn the_blocking_twin_does_the_same() {
    let server = MockServer::start();
    let client = Sandboxer::from_async(boat(&server));
    let sandbox = client.create(Create::new()).expect("a sandbox");
    let files = sandbox.files();
    assert!(files.create_folder("app", None).expect("a folder").is_dir);
    let sent = files.upload_from("app/zeros", Zeros(6 * MIB), Transfer::new()).expect("up");
    assert_eq!(sent, 6 * MIB as u64);
    assert_eq!(files.info("app/zeros").expect("info").size, 6 * MIB as i64);
    let moved = files.move_to("app/zeros", "/tmp/z", false).expect("move");
    assert_eq!((moved.path.as_str(), moved.destination.as_str()), ("/home/user/app/zeros", "/tmp/z"));
    let download = files.download_with("/tmp/z", Transfer::new()).expect("down");
    let mut copy = Vec::new();
    assert_eq!(download.copy_to(&mut copy).expect("copy"), 6 * MIB as u64);
    assert!(copy.iter().all(|byte| *byte == 0));
    files.write("app/t", "a b a").expect("write");
    assert_eq!(files.replace(["app/t"], "a", "c").expect("replace").results[0].replacements, Some(2));
    assert_eq!(files.find("app", "c b c", false).expect("find").matches[0].file, "/home/user/app/t");
    assert_eq!(files.search("app", "?").expect("search").files, ["/home/user/app/t"]);
    assert_eq!(files.list("app").expect("list").files.len(), 1);
    assert_eq!(files.set_permissions("app/t", 0o640).expect("permissions").mode, "0640");
    refused(files.delete("app", false), "folder_not_empty");
    assert_eq!(files.delete("app", true).expect("delete").path, "/home/user/app");
    let url = files.upload_url("app/new", Some(Duration::from_secs(5))).expect("an address");
    assert_eq!((url.method.as_str(), url.path.as_str()), ("PUT", "/home/user/app/new"));
    refused(files.download_url("app/new", None), "path_not_found");
}
