//! The main job, through the public SDK, on every runner that works here.

use std::time::Duration;

use sandboxer::{
    Command, Create, ErrorKind, Fork, ListOptions, Outcome, Resume,
    models::{CommandStatusParams, SandboxState},
    stream::Chunk,
};
use sandboxer_mock_server::MockServer;
use sandboxer_tests::servers;

#[tokio::test(flavor = "multi_thread")]
async fn from_create_to_delete() {
    for (runner, server) in servers() {
        let client = server.client();
        let sandbox = client
            .create(Create::new().kind("small").name("demo").env("COLOUR", "blue"))
            .await
            .expect("create");
        let info = sandbox.info().expect("create has read it");
        assert_eq!((&info.state, info.name.as_deref()), (&SandboxState::Ready, Some("demo")), "{runner}");

        let output = sandbox.exec(["printf", "%s|", "two words", "$COLOUR", "it's"]).await.expect("argv");
        assert_eq!(
            output.stdout_text(),
            "two words|$COLOUR|it's|",
            "{runner}: words are not touched by the shell"
        );
        let output = sandbox
            .exec(
                Command::shell("pwd; echo $COLOUR $SIZE; echo oops >&2; exit 3")
                    .cwd("/tmp")
                    .env("SIZE", "big"),
            )
            .await
            .expect("shell");
        assert_eq!(output.stderr_text(), "oops\n");
        assert_eq!(output.outcome(), Outcome::Exited(3));
        assert!(output.stdout_text().ends_with("tmp\nblue big\n"), "{runner}: {output:?}");
        let error = output.check().expect_err("it exited with 3");
        assert_eq!(error.kind(), ErrorKind::CommandFailed);

        let output = sandbox.exec("kill -9 $$").await.expect("an answer");
        assert_eq!(output.exit_code(), None);
        assert_eq!(output.outcome().to_string(), "ended by SIGKILL", "{runner}");

        let mut stream =
            sandbox.exec_stream("echo one; echo two >&2; sleep 0.1; echo three").await.expect("stream");
        let (mut out, mut err) = (String::new(), String::new());
        while let Some(chunk) = stream.next().await {
            match chunk.expect("a chunk") {
                Chunk::Stdout(bytes) => out += std::str::from_utf8(&bytes).expect("text"),
                Chunk::Stderr(bytes) => err += std::str::from_utf8(&bytes).expect("text"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((out.as_str(), err.as_str()), ("one\nthree\n", "two\n"), "{runner}");
        assert_eq!(stream.wait().await.expect("its end").outcome(), Outcome::Exited(0));

        sandbox.files().write("app/deep/main.txt", "hello\n").await.expect("write");
        assert_eq!(sandbox.files().read("/home/user/app/deep/main.txt").await.expect("read"), "hello\n");
        assert_eq!(sandbox.exec("cat app/deep/main.txt").await.expect("cat").stdout_text(), "hello\n");

        let command =
            sandbox.start("for i in 1 2 3; do echo tick $i; sleep 0.1; done; exit 7").await.expect("start");
        let output = command.attach().await.expect("attach").keep_output(1024).wait().await.expect("its end");
        assert_eq!(
            (output.stdout_text().as_ref(), output.exit_code()),
            ("tick 1\ntick 2\ntick 3\n", Some(7))
        );
        let again = sandbox
            .command(command.process_id())
            .status(CommandStatusParams::new())
            .await
            .expect("status by process id");
        assert_eq!((again.exit_code, again.stdout.as_str()), (Some(7), "tick 1\ntick 2\ntick 3\n"));

        sandbox.stop().await.expect("stop");
        assert_eq!(sandbox.refresh().await.expect("refresh").state, SandboxState::Archived);
        let error = sandbox.exec("true").await.expect_err("a stopped sandbox runs nothing");
        assert_eq!((error.status(), error.kind()), (Some(409), ErrorKind::Conflict), "{error}");
        sandbox.stop().await.expect("stopping what is stopped is fine");

        sandbox.resume(Resume::new()).await.expect("resume");
        assert_eq!(sandbox.files().read("app/deep/main.txt").await.expect("still there"), "hello\n");

        let copy = sandbox.fork(Fork::new()).await.expect("fork");
        assert_ne!(copy.id(), sandbox.id());
        copy.files().write("app/deep/main.txt", "changed\n").await.expect("write");
        assert_eq!(
            sandbox.files().read("app/deep/main.txt").await.expect("untouched"),
            "hello\n",
            "{runner}"
        );
        assert_eq!(copy.exec("echo $COLOUR").await.expect("inherited").stdout_text(), "blue\n");

        sandbox.delete().await.expect("delete");
        assert_eq!(client.get(sandbox.id()).await.expect_err("it is gone").kind(), ErrorKind::NotFound);
        sandbox.delete().await.expect("deleting what is gone is fine");
        let left = client.list(ListOptions::new()).collect().await.expect("list");
        assert_eq!(left.iter().map(|one| one.id().to_owned()).collect::<Vec<_>>(), [copy.id()]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sandboxes_each_serve_port_8000() {
    for (runner, server) in servers() {
        if runner != sandboxer_mock_server::RunnerKind::Isolated {
            continue;
        }
        let client = server.client();
        let mut both = Vec::new();
        for word in ["first", "second"] {
            let sandbox = client.create(Create::new()).await.expect("create");
            sandbox.files().write("www/word", word).await.expect("write");
            sandbox
                .start(Command::shell("exec python3 -m http.server 8000").cwd("www"))
                .await
                .expect("start");
            both.push((word, sandbox));
        }
        for (word, sandbox) in &both {
            let fetch = "for try in $(seq 100); do python3 -c \"import urllib.request as r; print(r.urlopen('http://127.0.0.1:8000/word').read().decode())\" 2>/dev/null && exit; sleep 0.1; done; exit 1";
            let output = sandbox.exec(fetch).await.expect("fetch");
            assert_eq!(output.stdout_text().trim(), *word, "{output:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_auto_stop_is_extended_and_usage_is_told() {
    let server = MockServer::start();
    let sandbox = server.client().create(Create::new().ttl(Duration::from_secs(60))).await.expect("create");
    let before = sandbox.info().expect("read").archive_after.clone().expect("a deadline");
    let after = sandbox.extend(Duration::from_secs(3600)).await.expect("extend");
    assert!(after.archive_after.as_ref().expect("a deadline").as_str() > before.as_str());
    let usage = sandbox.usage(Default::default()).await.expect("usage");
    assert_eq!(usage.sandbox_id, sandbox.id());
    assert!(usage.running);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_walks_all_pages() {
    let server = MockServer::start();
    let client = server.client();
    let mut made = Vec::new();
    for _ in 0..105 {
        made.push(client.create(Create::new().wait(false)).await.expect("create").id().to_owned());
    }
    let listed = client.list(ListOptions::new()).collect().await.expect("list");
    let mut ids = listed.iter().map(|one| one.id().to_owned()).collect::<Vec<_>>();
    ids.sort();
    made.sort();
    assert_eq!(ids, made);
    assert_eq!(server.requests_to(sandboxer::Operation::Sandboxes).len(), 2, "a hundred a page");
}

#[tokio::test(flavor = "multi_thread")]
async fn scoped_deletes_whatever_happens() {
    let server = MockServer::start();
    let client = server.client();
    let count = async || client.list(ListOptions::new()).collect().await.expect("list").len();

    let output = client
        .scoped(Create::new(), |sandbox| async move { sandbox.exec("echo in").await?.check() })
        .await
        .expect("it runs");
    assert_eq!(output.stdout_text(), "in\n");
    assert_eq!(count().await, 0, "after success");

    let error = client
        .scoped(Create::new(), |sandbox| async move { sandbox.exec("exit 4").await?.check() })
        .await
        .expect_err("check fails");
    assert_eq!(error.kind(), ErrorKind::CommandFailed);
    assert_eq!(count().await, 0, "after an error");

    let task = {
        let client = client.clone();
        tokio::spawn(async move {
            client
                .scoped(Create::new(), |_| async move { panic!("on purpose") as sandboxer::Result<()> })
                .await
        })
    };
    assert!(task.await.expect_err("the panic goes on").is_panic());
    assert_eq!(count().await, 0, "after a panic");

    let (started, running) = tokio::sync::oneshot::channel();
    let task = {
        let client = client.clone();
        tokio::spawn(async move {
            client
                .scoped(Create::new(), |sandbox| async move {
                    let _ = started.send(());
                    sandbox.exec("sleep 60").await
                })
                .await
        })
    };
    running.await.expect("the body began");
    task.abort();
    let _ = task.await;
    client.close().await;
    let left = server.client().list(ListOptions::new()).collect().await.expect("list").len();
    assert_eq!(left, 0, "after a cancellation, once the reaper was drained");
}
