//! Connections that are cut in the middle: attach goes on where it was, an exec stream says what it knows.

use std::time::Duration;

use sandboxer::{
    AsyncSandboxer, Create, Delivery, ErrorKind, Offsets, Outcome,
    clock::{Clock as _, SystemClock},
};
use sandboxer_mock_server::MockServer;
use sandboxer_tests::{cutter::Cutter, numbered_lines};

fn through(cutter: &Cutter, server: &MockServer) -> AsyncSandboxer {
    AsyncSandboxer::builder()
        .api_key(server.api_key())
        .base_url(format!("http://{}/api/v1", cutter.address()))
        .build()
        .expect("a client")
}

#[tokio::test(flavor = "multi_thread")]
async fn attach_cut_twice_loses_and_repeats_nothing() {
    const LENGTH: usize = 1 << 20;
    let expected = numbered_lines(LENGTH);
    for cuts in [[Some(200_000), Some(500_000)], [Some(700_001), Some(3)], [Some(150), Some(999_983)]] {
        let server = MockServer::start();
        let cutter = Cutter::start(server.address(), "/stream", cuts).expect("a proxy");
        let sandbox = through(&cutter, &server).create(Create::new()).await.expect("a sandbox");
        sandbox.files().write("lines", expected.as_str()).await.expect("write");
        let command = sandbox
            .start("head -c 400000 lines; sleep 0.2; tail -c +400001 lines; printf done >&2")
            .await
            .expect("start");
        let output =
            command.attach().await.expect("attach").keep_output(4 << 20).wait().await.expect("its end");
        assert_eq!(cutter.cuts(), 2, "{cuts:?}: the connection was not cut as planned");
        assert_eq!(output.outcome(), Outcome::Exited(0), "{cuts:?}");
        assert_eq!(output.stdout().len(), LENGTH, "{cuts:?}");
        assert!(output.stdout_text() == expected, "{cuts:?}: the bytes differ");
        assert_eq!(output.stderr_text(), "done", "{cuts:?}");
        assert!(!output.lossy() && !output.truncated(), "{cuts:?}: {output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_of_a_longer_run_are_an_error_that_leads_to_the_beginning() {
    let server = MockServer::start();
    let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
    let command =
        sandbox.start("printf 0123456789; until test -e go; do sleep 0.02; done; printf more").await;
    let command = command.expect("start");
    let attach = command.attach_from(Offsets::new(100, 0)).await.expect("attach");
    sandbox.files().write("go", "").await.expect("write");
    let error = attach.wait().await.expect_err("the log has 14 bytes");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "log_replaced"), "{error}");
    let offsets = error.resume_offsets().expect("where to go on");
    let output = command.attach_from(offsets).await.expect("attach").wait().await.expect("its end");
    assert_eq!((output.outcome(), &*output.stdout_text()), (Outcome::Exited(0), "0123456789more"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_exec_stream_is_an_error_with_what_came_and_the_command_id() {
    let server = MockServer::start();
    let cutter = Cutter::start(server.address(), "/commands", [Some(60_000)]).expect("a proxy");
    let sandbox = through(&cutter, &server).create(Create::new()).await.expect("a sandbox");
    // The rest comes once the first line has been seen, or one event could be longer than what is let through.
    let line = "echo line 0; until test -e seen; do sleep 0.02; done
        for i in $(seq 20000); do echo line $i; done; echo over >finished";
    let mut stream = sandbox.exec_stream(line).await.expect("the stream opens");
    let first = stream.next().await.expect("an item").expect("the first line");
    assert_eq!(first.bytes(), b"line 0\n");
    sandbox.files().write("seen", "").await.expect("write");
    let mut seen = first.bytes().to_vec();
    let error = loop {
        match stream.next().await.expect("a stream that is cut does not just end") {
            Ok(chunk) => seen.extend_from_slice(chunk.bytes()),
            Err(error) => break error,
        }
    };
    assert!(stream.next().await.is_none(), "nothing comes after the error");
    assert_eq!(stream.outcome(), None, "nobody knows how the command ended");
    assert_eq!(error.kind(), ErrorKind::StreamCut, "{error}");
    assert_eq!(error.delivery(), Delivery::Unknown, "{error}");
    assert!(!error.is_retryable(), "running it again could run it twice");
    let command_id = error.command_id().expect("the command's id").to_owned();
    let partial = error.partial_output().expect("what came");
    assert!(seen.ends_with(&partial.stdout), "the partial output is the end of what came");

    // The command runs on, and its record is there under that id.
    let record = loop {
        let answer = sandbox.api().get_command(sandbox.id(), &command_id).await.expect("its record");
        if answer.command.finished_at.is_some() {
            break answer.command;
        }
        SystemClock::new().sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(record.exit_code, Some(0));
    assert_eq!(sandbox.files().read("finished").await.expect("it ran to its end"), "over\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_answer_is_lost_runs_once() {
    let server = MockServer::start();
    let cutter = Cutter::start(server.address(), "/commands", [Some(0)]).expect("a proxy");
    let sandbox = through(&cutter, &server).create(Create::new()).await.expect("a sandbox");
    let error = sandbox.exec("echo ran >>runs").await.expect_err("the answer was lost");
    assert_eq!(error.delivery(), Delivery::Unknown, "{error}");
    assert!(!error.is_retryable(), "{error}");
    assert_eq!(error.attempts(), 1);
    assert_eq!(sandbox.files().read("runs").await.expect("it ran"), "ran\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_whose_answer_is_lost_makes_one_sandbox() {
    let server = MockServer::start();
    let cutter =
        Cutter::start(server.address(), "POST /api/v1/sandboxes ", [Some(0), Some(40)]).expect("a proxy");
    let client = through(&cutter, &server);
    let sandbox = client.create(Create::new()).await.expect("the third try is answered");
    assert_eq!(cutter.cuts(), 2);
    let all = client.list(Default::default()).collect().await.expect("the list");
    assert_eq!(all.iter().map(|one| one.id().to_owned()).collect::<Vec<_>>(), [sandbox.id()]);
}
