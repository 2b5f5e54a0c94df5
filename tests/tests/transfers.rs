//! Files of any size go in and out exactly, and are whole or not there.

use std::{
    io::{Read, Write as _},
    sync::{Arc, Mutex},
};

use sandboxer::{AsyncSandbox, Create, ErrorKind, Transfer};
use sandboxer_blocking::Sandboxer;
use sandboxer_mock_server::MockServer;
use sandboxer_tests::{noise, servers};

const MIB: usize = 1 << 20;

async fn shell(sandbox: &AsyncSandbox, line: &str) -> String {
    let output = sandbox.exec(line).await.and_then(sandboxer::Output::check).expect(line);
    output.stdout_text().trim().to_owned()
}

type Told = Arc<Mutex<Vec<(u64, Option<u64>)>>>;

fn logged(transfer: Transfer) -> (Transfer, Told) {
    let told = Told::default();
    let log = told.clone();
    (transfer.progress(move |at| log.lock().expect("the log").push((at.bytes, at.total))), told)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_size_comes_back_as_it_went() {
    for (runner, server) in servers() {
        let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
        let files = sandbox.files();
        for (size, path) in [
            (0, "zero"),
            (1, "/tmp/deep/er/one"),
            (8 * MIB - 1, "it's a file"),
            (8 * MIB, "/tmp/eight"),
            (8 * MIB + 1, "deep/er/-more"),
        ] {
            let content = noise(size, 7);
            let context = format!("{runner}, {size} bytes");
            let (up, told_up) = logged(Transfer::new().cap(size as u64).length(size as u64));
            let sent = files.upload_from(path, &content[..], up).await.expect(&context);
            assert_eq!(sent, size as u64, "{context}");
            let (down, told_down) = logged(Transfer::new().cap(size as u64));
            let download = files.download_with(path, down).await.expect(&context);
            let came = download.read_all(size).await.expect(&context);
            assert!(came == content, "{context}");
            for told in [told_up, told_down] {
                let told = told.lock().expect("the log");
                let total = Some(size as u64);
                assert_eq!((told[0], told[told.len() - 1]), ((0, total), (size as u64, total)), "{context}");
                assert!(told.windows(2).all(|two| two[0].0 < two[1].0), "{context}");
            }
        }
        assert_eq!(shell(&sandbox, "find . -name '.upload-*' | wc -l").await, "0", "{runner}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_big_upload_replaces_a_plain_file_and_nothing_else() {
    for (runner, server) in servers() {
        let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
        let files = sandbox.files();
        let content = noise(6 * MIB, 3);
        shell(&sandbox, "echo old > run; chmod 750 run; mkdir folder; ln -s run link; mkfifo pipe").await;
        files.upload_from("run", &content[..], Transfer::new()).await.expect("upload");
        let about = "wc -c < run; stat -c %a run";
        assert_eq!(shell(&sandbox, about).await, format!("{}\n750", content.len()), "{runner}");
        files.upload_from("new", &content[..], Transfer::new()).await.expect("upload");
        assert_eq!(
            shell(&sandbox, "stat -c %a new; cmp run new && echo same").await,
            "644\nsame",
            "{runner}"
        );
        for path in ["folder", "link", "pipe"] {
            let error = files.upload_from(path, &content[..], Transfer::new()).await.expect_err(path);
            assert_eq!(
                (error.kind(), error.code()),
                (ErrorKind::BadRequest, "invalid_path"),
                "{runner}: {path}"
            );
        }
        let error = files.upload_from("/etc/x", &content[..], Transfer::new()).await.expect_err("outside");
        assert_eq!(error.code(), "invalid_path", "{runner}");
        let left = shell(&sandbox, "ls -A | grep upload; readlink link; ls -d folder pipe").await;
        assert_eq!(left, "run\nfolder\npipe", "{runner}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_upload_leaves_the_old_file_and_no_parts() {
    let server = MockServer::start();
    let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
    let files = sandbox.files();
    files.write("kept", "old").await.expect("write");
    let content = noise(11 * MIB, 5);
    let error = files.upload_from("kept", &content[..], Transfer::new().cap(10 * MIB as u64)).await;
    assert_eq!(error.expect_err("over the cap").kind(), ErrorKind::TooLarge);
    let short = Transfer::new().length(12 * MIB as u64);
    let error = files.upload_from("kept", &content[..], short).await.expect_err("less than announced");
    assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, "wrong_length"));
    assert_eq!(files.read("kept").await.expect("read"), "old");
    assert_eq!(shell(&sandbox, "ls -A").await, "kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn local_files_go_up_and_come_down() {
    let server = MockServer::start();
    let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let content = noise(7 * MIB, 9);
    std::fs::write(&from, &content).expect("write");
    let (transfer, told) = logged(Transfer::new());
    assert_eq!(sandbox.files().upload_file("x", &from, transfer).await.expect("up"), content.len() as u64);
    let total = Some(content.len() as u64);
    assert_eq!(told.lock().expect("the log").last(), Some(&(content.len() as u64, total)));
    let came = sandbox.files().download_file("x", &to, Transfer::new()).await.expect("down");
    assert_eq!(came, content.len() as u64);
    assert!(std::fs::read(&to).expect("read") == content);
    let error = sandbox.files().download_file("none", &to, Transfer::new()).await.expect_err("no such file");
    assert_eq!(error.code(), "path_not_found");
    assert!(std::fs::read(&to).expect("read") == content, "what was there is there");
}

/// A reader of odd sizes that is interrupted, and fails where it is told to.
struct Odd {
    content: Vec<u8>,
    at: usize,
    calls: usize,
    fails_at: usize,
}

impl Read for Odd {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        if self.at >= self.fails_at {
            return Err(std::io::Error::other("worn out"));
        }
        let count = (self.content.len() - self.at).min(space.len()).min(7 + self.calls * 11);
        space[..count].copy_from_slice(&self.content[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[test]
fn the_blocking_twin_does_the_same() {
    let server = MockServer::start();
    let client = Sandboxer::from_async(server.client());
    let sandbox = client.create(Create::new()).expect("a sandbox");
    let files = sandbox.files();
    for size in [0, 1, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1] {
        let content = noise(size, 11);
        let odd = Odd { content: content.clone(), at: 0, calls: 0, fails_at: usize::MAX };
        let (transfer, told) = logged(Transfer::new());
        assert_eq!(files.upload_from("x", odd, transfer).expect("up"), size as u64);
        assert_eq!(told.lock().expect("the log").last(), Some(&(size as u64, None)));
        let download = files.download_with("x", Transfer::new()).expect("down");
        assert_eq!(download.total(), Some(size as u64));
        let mut copy = Vec::new();
        assert_eq!(download.copy_to(&mut copy).expect("copy"), size as u64);
        assert!(copy == content, "{size}");
    }
    let odd = Odd { content: noise(8 * MIB, 1), at: 0, calls: 0, fails_at: 6 * MIB };
    let error = files.upload_from("x", odd, Transfer::new()).expect_err("it fails");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "read_failed"));
    let pieces = noise(6 * MIB, 2);
    let mut chunks = pieces.chunks(100_000).map(|piece| std::io::Result::Ok(piece.to_vec().into()));
    assert_eq!(files.upload_stream("y", &mut chunks, Transfer::new()).expect("stream"), 6 * MIB as u64);
    let folder = tempfile::tempdir().expect("a folder");
    let local = folder.path().join("y");
    assert_eq!(files.download_file("y", &local, Transfer::new()).expect("save"), 6 * MIB as u64);
    assert!(std::fs::read(&local).expect("read") == pieces);
    std::fs::File::options().append(true).open(&local).and_then(|mut f| f.write_all(b"!")).expect("append");
    assert_eq!(files.upload_file("z", &local, Transfer::new()).expect("file"), 6 * MIB as u64 + 1);
    let refused = files.download_with("z", Transfer::new().cap(6 * MIB as u64)).expect_err("over the cap");
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn the_blocking_twin_uploads_inside_an_async_program_too() {
    let server = MockServer::start();
    let client = Sandboxer::from_async(server.client());
    let sandbox = client.create(Create::new()).expect("a sandbox");
    let sent = sandbox.files().upload_from("x", &noise(6 * MIB, 4)[..], Transfer::new());
    assert_eq!(sent.expect("up"), 6 * MIB as u64);
}
