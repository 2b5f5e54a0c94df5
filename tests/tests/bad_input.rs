//! Bad input gets a typed error that names what is wrong and what is allowed; what can be refused here is never sent.

use std::time::Duration;

use sandboxer::{AsyncSandboxer, Command, Create, Delivery, Error, ErrorKind};
use sandboxer_mock_server::MockServer;

fn refused(error: &Error, words: &[&str]) {
    assert!(
        matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Config),
        "{:?}: {error}",
        error.kind()
    );
    assert_eq!(error.delivery(), Delivery::NotSent, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{word:?} is not in {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_that_cannot_be_right() {
    let server = MockServer::start();
    let client = server.client();
    let sandbox = client.create(Create::new()).await.expect("a sandbox");
    let before = server.requests().len();

    for id in ["", ".", "..", "a\nb"] {
        refused(&client.get(id).await.expect_err("a bad id"), &["sandboxId"]);
    }
    for seconds in [0, 601] {
        let command = Command::shell("true").timeout(Duration::from_secs(seconds));
        refused(&sandbox.exec(command.clone()).await.expect_err("a bad limit"), &["1", "600"]);
        refused(&sandbox.exec_stream(command).await.expect_err("a bad limit"), &["1", "600"]);
    }
    refused(
        &sandbox.exec(Command::shell("true").env("A=B", "secret")).await.expect_err("a bad name"),
        &["A=B"],
    );
    refused(&sandbox.exec(Vec::<String>::new()).await.expect_err("no argv"), &[]);
    refused(&sandbox.exec(["echo", "a\0b"]).await.expect_err("NUL"), &["NUL"]);
    refused(&sandbox.exec("echo a\0b").await.expect_err("NUL"), &["NUL"]);
    refused(&sandbox.files().read("a\0b").await.expect_err("NUL"), &["NUL"]);
    refused(&sandbox.files().write("big", vec![0; (5 << 20) + 1]).await.expect_err("too big"), &["5"]);
    refused(&client.create(Create::new().ttl(Duration::ZERO)).await.expect_err("no ttl"), &["ttl"]);

    let error =
        client.api().request(http::Method::GET, "https://example.com/api/v1/me", Default::default()).await;
    refused(&error.expect_err("another origin"), &[]);
    assert_eq!(server.requests().len(), before, "something was sent");
}

#[test]
fn a_client_is_not_built_from_nonsense() {
    let build = |url: &str| AsyncSandboxer::builder().api_key("key").base_url(url).build();
    for url in
        ["not a url", "ftp://127.0.0.1/", "http://sandboxer.com/api/v1", "https://user:pass@sandboxer.com/"]
    {
        refused(&build(url).expect_err(url), &[]);
    }
    assert!(build("http://127.0.0.1:9/api/v1").is_ok());
    refused(&AsyncSandboxer::builder().api_key("").build().expect_err("an empty key"), &["key"]);
    refused(&AsyncSandboxer::builder().api_key("a\nb").build().expect_err("a broken key"), &["key"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_refuses_and_changes_nothing() {
    let server = MockServer::start();
    let client = server.client();
    let sandbox = client.create(Create::new()).await.expect("a sandbox");
    let code = |error: &Error| (error.status(), error.code().to_owned());
    let is = |status: u16, code: &str| (Some(status), code.to_owned());

    sandbox.exec("ln -s /etc/passwd out; ln -s /tmp/in in; echo ok >/tmp/in || true").await.expect("links");
    for path in ["/etc/passwd", "../../etc/passwd", "/home/other", "out"] {
        let error = sandbox.files().read(path).await.expect_err(path);
        assert_eq!(code(&error), is(400, "invalid_path"), "{path}");
        let error = sandbox.files().write(path, "x").await.expect_err(path);
        assert_eq!(code(&error), is(400, "invalid_path"), "{path}");
    }
    sandbox.exec("head -c 5242881 /dev/zero >big").await.expect("big");
    let error = sandbox.files().read_bytes("big").await.expect_err("over 5 MiB");
    assert_eq!(code(&error), is(400, "file_too_large"));
    let details = error.details().expect("details");
    assert_eq!((details["limit"].as_u64(), details["size"].as_u64()), (Some(5_242_880), Some(5_242_881)));

    assert_eq!(code(&client.get("bx_22222222").await.expect_err("unknown")), is(404, "not_found"));
    let stranger =
        AsyncSandboxer::builder().api_key("wrong").base_url(server.url()).build().expect("a client");
    let error = stranger.get(sandbox.id()).await.expect_err("a wrong key");
    assert_eq!((code(&error), error.kind()), (is(401, "unauthorized"), ErrorKind::Authentication));

    sandbox.stop().await.expect("stop");
    let error = sandbox.exec("touch ran").await.expect_err("stopped");
    assert_eq!(error.status(), Some(409));
    sandbox.resume(Default::default()).await.expect("resume");
    assert_eq!(sandbox.exec("test -e ran").await.expect("test").exit_code(), Some(1));
    assert!(error.request_id().is_some_and(|id| id.starts_with("req_")));
}
