//! What the client does about failures, as the repeat table says.

use std::time::Duration;

use sandboxer::{CallOptions, Create, Delivery, ErrorKind, ListOptions, Operation, Outcome};
use sandboxer_mock_server::{MockServer, Reply};

#[tokio::test(flavor = "multi_thread")]
async fn create_survives_two_failures_with_one_key() {
    let server = MockServer::start();
    server.on(Operation::Create).reply(Reply::status(503)).times(2);
    let sandbox = server.client().create(Create::new()).await.expect("the third try");
    let tries = server.requests_to(Operation::Create);
    assert_eq!(tries.len(), 3);
    assert!(tries.iter().all(|t| t.header("idempotency-key") == tries[0].header("idempotency-key")));
    assert!(tries[0].header("idempotency-key").is_some_and(|key| key.len() >= 32));
    assert_eq!(sandbox.exec("echo hi").await.expect("it runs").stdout_text(), "hi\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_that_was_cut_and_then_refused_stays_in_doubt_and_its_key_finds_the_sandbox() {
    let server = MockServer::start();
    let client = server.client();
    server.on(Operation::Create).reply(Reply::drop_answer()).times(1);
    server.on(Operation::Create).reply(Reply::code(402, "billing_required", "the wallet is empty")).times(1);
    let error = client.create(Create::new()).await.expect_err("refused");
    assert_eq!((error.kind(), error.code()), (ErrorKind::PaymentRequired, "billing_required"));
    assert_eq!((error.delivery(), error.attempts()), (Delivery::Unknown, 2), "{error}");
    let made = client.list(ListOptions::new()).collect().await.expect("a list");
    assert_eq!(made.len(), 1, "the first try had made it");
    let key = error.idempotency_key().expect("a create has one").to_owned();
    let found = client
        .with(CallOptions::new().idempotency_key(key))
        .create(Create::new())
        .await
        .expect("it is there");
    assert_eq!(found.id(), made[0].id());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_whose_answer_is_lost_has_stopped_the_command() {
    let server = MockServer::start();
    let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
    let command = sandbox.start("sleep 60").await.expect("it starts");
    server.on(Operation::StopCommand).reply(Reply::drop_answer()).times(1);
    let killed = command.kill().await.expect("the second try is answered");
    assert!(!killed.signaled, "the first try had ended it");
    assert_eq!(server.requests_to(Operation::StopCommand).len(), 2);
    assert_eq!(command.wait().await.expect("it has ended").outcome(), Outcome::Stopped);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_sent_again_only_on_proof_that_it_never_ran() {
    let server = MockServer::start();
    let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
    for (reply, tries) in [
        (Reply::status(500), 1),
        (Reply::status(502), 1),
        (Reply::code(409, "sandbox_starting", "still starting"), 2),
        (Reply::status(429).retry_after(Duration::ZERO), 2),
        (Reply::code(502, "sandbox_direct_failed", "relay failed"), 1),
    ] {
        server.clear_requests();
        server.on(Operation::Command).reply(reply).times(1);
        let result = sandbox.exec("true").await;
        assert_eq!(server.requests_to(Operation::Command).len(), tries, "{result:?}");
        assert_eq!(result.is_ok(), tries == 2, "{result:?}");
        if let Err(error) = result {
            assert_eq!((error.delivery(), error.attempts()), (Delivery::Answered, 1), "{error}");
        }
        server.clear_faults();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fail_fast_and_a_day_quota_are_not_tried_again() {
    let server = MockServer::start();
    for reply in [
        Reply::code(503, "no_ready_machine", "none is free"),
        Reply::code(429, "rate_limited", "come back tomorrow").detail("window", "day"),
    ] {
        server.clear_requests();
        server.on(Operation::Create).reply(reply).always();
        let error = server.client().create(Create::new()).await.expect_err("refused");
        assert_eq!(server.requests_to(Operation::Create).len(), 1, "{error}");
        assert!(!error.is_retryable(), "{error}");
        server.clear_faults();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_retry_after_fails_at_once_with_its_value() {
    let server = MockServer::start();
    server.on(Operation::Get).reply(Reply::status(429).retry_after(Duration::from_secs(90))).always();
    let client = server.client().with(CallOptions::new().total(Duration::from_secs(30)));
    let error = client.get("bx_22222222").await.expect_err("throttled");
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(90)));
    assert_eq!(server.requests_to(Operation::Get).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_answers_are_typed_errors_that_keep_status_and_request_id() {
    let server = MockServer::start();
    let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
    let client = server.client().with(CallOptions::new().retries(0));
    let html = Reply::body("<html>bad gateway</html>", "text/html")
        .with_status(502)
        .header("x-request-id", "req_odd");
    server.on(Operation::Get).reply(html).times(1);
    let error = client.get(sandbox.id()).await.expect_err("HTML");
    assert_eq!((error.status(), error.kind()), (Some(502), ErrorKind::Server));
    assert_eq!(error.request_id(), Some("req_odd"));
    assert!(error.message().contains("bad gateway"), "{error}");

    let half = Reply::body("{\"ok\":true,\"type\":\"sandbox.info\",\"sand", "application/json");
    let lie = Reply::json(serde_json::json!({ "ok": false, "type": "sandbox.error", "code": "odd" }));
    let page = Reply::body("<html>sign in</html>", "text/html");
    for (reply, delivery) in
        [(half, Delivery::Unknown), (lie, Delivery::Answered), (page, Delivery::Answered)]
    {
        server.on(Operation::Get).reply(reply.header("x-request-id", "req_odd")).times(1);
        let error = client.get(sandbox.id()).await.expect_err("not an answer");
        assert_eq!(error.status(), Some(200), "{error}");
        assert_eq!(error.request_id(), Some("req_odd"), "{error}");
        assert_eq!(error.delivery(), delivery, "{error}");
    }

    let future = serde_json::json!({ "ok": true, "type": "sandbox.info", "later": 1, "sandbox": {
        "id": sandbox.id(), "state": "hibernating", "vcpu": "four", "shiny": [1, 2],
    }});
    server.on(Operation::Get).reply(Reply::json(future)).times(1);
    let seen = client.get(sandbox.id()).await.expect("a service from the future");
    let seen = seen.info().expect("get has read it");
    assert_eq!(seen.state.as_str(), "hibernating");
    assert_eq!(seen.vcpu, None);
    assert_eq!(seen.unknown_fields["shiny"], serde_json::json!([1, 2]));
}
