//! Characters and bytes arrive as they were written, whichever way they are read.

use sandboxer::{
    Command, Create,
    stream::{Chunk, OutputStream},
};
use sandboxer_mock_server::MockServer;
use sandboxer_tests::servers;

/// Writes U+1F980 to standard output with a pause after its first `cut` bytes.
fn cut_character(cut: usize) -> String {
    let bytes = ["\\360", "\\237", "\\246", "\\200"];
    format!("printf '{}'; sleep 0.1; printf '{}'", bytes[..cut].concat(), bytes[cut..].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_character_cut_by_a_pause_arrives_whole() {
    for (runner, server) in servers() {
        let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
        for cut in 1..=3 {
            let line = cut_character(cut);
            let context = format!("{runner}, cut after {cut} bytes");

            let output = sandbox.exec(line.as_str()).await.expect("sync");
            assert_eq!(output.stdout_text(), "🦀", "{context}: sync");
            assert!(!output.lossy(), "{context}: sync");

            let mut stream = sandbox.exec_stream(line.as_str()).await.expect("stream");
            while let Some(chunk) = stream.next().await {
                assert_eq!(chunk.expect("a chunk"), Chunk::Stdout("🦀".into()), "{context}: stream");
            }

            let command = sandbox.start(line.as_str()).await.expect("start");
            let mut attach = command.attach().await.expect("attach");
            while let Some(chunk) = attach.next().await {
                assert_eq!(chunk.expect("a chunk"), Chunk::Stdout("🦀".into()), "{context}: attach");
            }
            assert!(!attach.lossy(), "{context}: attach");
            let logs = command.logs(OutputStream::Stdout).collect(1 << 20).await.expect("logs");
            assert_eq!(logs.as_ref(), "🦀".as_bytes(), "{context}: logs");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_bytes_survive_a_file_round_trip_and_the_logs() {
    for (runner, server) in servers() {
        let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
        sandbox
            .exec("head -c 100000 /dev/urandom >noise && cp noise copy")
            .await
            .and_then(sandboxer::Output::check)
            .expect("noise is made");

        let bytes = sandbox.files().read_bytes("noise").await.expect("read");
        assert_eq!(bytes.len(), 100_000, "{runner}");
        sandbox.files().write("back", bytes.clone()).await.expect("write");
        let same = sandbox.exec("cmp back copy").await.expect("cmp");
        assert_eq!(same.exit_code(), Some(0), "{runner}: {same:?}");

        let command = sandbox.start("cat noise; cat noise >&2").await.expect("start");
        command.wait().await.and_then(sandboxer::Output::check).expect("it ends well");
        assert_eq!(
            command.logs(OutputStream::Stdout).collect(1 << 20).await.expect("logs"),
            bytes,
            "{runner}: standard output"
        );
        assert_eq!(
            command.logs(OutputStream::Stderr).collect(1 << 20).await.expect("logs"),
            bytes,
            "{runner}: standard error"
        );

        // Text frames cannot carry such bytes, and the client says so instead of pretending.
        let attached = command.attach().await.expect("attach").wait().await.expect("its end");
        assert!(attached.lossy(), "{runner}: bytes were translated and nobody said so");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_read_page_by_page_and_after_a_stop() {
    let server = MockServer::start();
    let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
    let command =
        sandbox.start(Command::shell("head -c 3000000 /dev/urandom | tee kept")).await.expect("start");
    command.wait().await.and_then(sandboxer::Output::check).expect("it ends well");
    let kept = sandbox.files().read_bytes("kept").await.expect("kept");
    sandbox.stop().await.expect("stop");
    let logs = command.logs(OutputStream::Stdout).collect(4 << 20).await.expect("logs of a stopped sandbox");
    assert_eq!(logs.len(), 3_000_000);
    assert_eq!(logs, kept);
}
