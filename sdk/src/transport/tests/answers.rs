use super::{
    builder, client, get,
    peer::{Peer, Step, answer, ok},
    post,
};
use crate::{
    CallOptions, Delivery, ErrorKind, Operation, RequestOptions,
    models::{CreateSandboxRequest, SandboxesParams},
};
use http::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn a_typed_call_sends_what_it_says_and_reads_what_comes() {
    let page = json!({"ok": true, "type": "sandbox.list", "sandboxes": [{"id": "bx_1", "state": "ready"}],
        "pageInfo": {"nextCursor": null, "hasMore": false, "limit": 5}});
    let peer = Peer::start(vec![ok(&page.to_string())]);
    let client = builder(&peer.url)
        .org("team_1")
        .default_header("X-One", "a")
        .user_agent_suffix("demo/1")
        .build()
        .unwrap();
    let view = client.with(CallOptions::new().header("x-ONE", "b"));
    let answer = view.api().sandboxes(SandboxesParams::new().limit(5)).await.unwrap();
    assert_eq!(answer.sandboxes[0].id, "bx_1");
    let request = &peer.requests()[0];
    assert!(request.head.starts_with("GET /api/v1/sandboxes?limit=5 HTTP/1.1\r\n"), "{}", request.head);
    for (name, expected) in [
        ("authorization", "Bearer sbx_live_very_secret"),
        ("x-sandboxer-org", "team_1"),
        ("x-one", "b"),
        ("accept", "application/json"),
        ("x-sandboxer-attempt", "1"),
    ] {
        assert_eq!(request.values(name), [expected], "{name}");
    }
    assert!(request.values("api-version").is_empty());
    assert!(request.values("user-agent")[0].starts_with("sandboxer-rust/"));
    assert!(request.values("user-agent")[0].ends_with(" demo/1"));
}

#[tokio::test]
async fn an_inner_organisation_replaces_the_clients() {
    let peer = Peer::start(vec![ok("{}")]);
    let client = builder(&peer.url).org("team_1").build().unwrap().with(CallOptions::new().org("personal"));
    get(&client).await.unwrap();
    assert_eq!(peer.requests()[0].values("x-sandboxer-org"), ["personal"]);
}

#[tokio::test]
async fn error_answers_of_any_shape_keep_what_they_say() {
    let enveloped = r#"{"ok":false,"code":"sandbox_not_ready","message":"archived","requestId":"req_1","state":"archived",
        "retryable":false,"error":{"code":"sandbox_not_ready","message":"archived","status":409}}"#;
    let broken = Step::Answer("HTTP/1.1 409 X\r\ncontent-length: 900\r\n\r\nplain".into());
    for (step, code, message, id) in [
        (answer(409, &[], enveloped), "sandbox_not_ready", "archived", Some("req_1")),
        (answer(409, &[("x-request-id", "req_2")], "<html>busy"), "http_409", "<html>busy", Some("req_2")),
        (broken, "http_409", "plain", None),
    ] {
        let peer = Peer::start(vec![step]);
        let error = client(&peer.url).api().get("bx_1").await.unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::Conflict, Some(409)));
        assert_eq!((error.code(), error.message(), error.request_id()), (code, message, id));
        assert_eq!((error.operation(), error.sandbox_id()), (Some(Operation::Get), Some("bx_1")));
        assert_eq!(error.delivery(), Delivery::Answered);
    }
}

#[tokio::test]
async fn display_is_one_line() {
    let body = r#"{"code":"invalid_request","message":"bad\nthing","requestId":"req_1"}"#;
    let peer = Peer::start(vec![answer(400, &[], body)]);
    let error = get(&client(&peer.url)).await.unwrap_err();
    assert_eq!(error.to_string(), "invalid_request: bad thing (status 400) [request_id=req_1]");
    assert_eq!(error.kind(), ErrorKind::BadRequest);
}

#[tokio::test]
async fn half_answers_of_reads_are_read_again() {
    for half in [
        "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"ok\":tr",
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"ok\":tr",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{\"ok\r\n0\r\n\r\n",
    ] {
        let peer = Peer::start(vec![Step::Answer(half.into()), ok(r#"{"ok":true}"#)]);
        assert_eq!(get(&client(&peer.url)).await.unwrap(), json!({"ok": true}));
        assert_eq!(peer.requests().len(), 2);
        let peer = Peer::start(vec![Step::Answer(half.into())]);
        let error = post(&client(&peer.url)).await.unwrap_err();
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connection, Delivery::Unknown));
        assert_eq!((error.status(), error.attempts(), error.is_retryable()), (Some(200), 1, false));
    }
}

#[tokio::test]
async fn redirects_are_errors() {
    let other = Peer::start(vec![ok("{}")]);
    for status in [301, 302, 307, 308] {
        let peer = Peer::start(vec![answer(status, &[("location", &other.url)], "")]);
        let error = get(&client(&peer.url)).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "unexpected_redirect"));
        assert_eq!((error.status(), error.attempts()), (Some(status), 1));
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn ok_false_under_a_success_is_an_error() {
    let body = r#"{"ok":false,"code":"odd","message":"m","requestId":"req_1"}"#;
    let peer = Peer::start(vec![ok(body)]);
    let raw = get(&client(&peer.url)).await.unwrap_err();
    let typed = client(&peer.url).api().get("bx_1").await.unwrap_err();
    for error in [raw, typed] {
        assert_eq!((error.kind(), error.status()), (ErrorKind::Unexpected, Some(200)));
        assert_eq!((error.code(), error.request_id()), ("odd", Some("req_1")));
    }
}

#[tokio::test]
async fn html_under_a_success_is_an_error_that_keeps_the_head() {
    let peer = Peer::start(vec![answer(200, &[("x-request-id", "req_3")], "<html>hello</html>")]);
    let raw = get(&client(&peer.url)).await.unwrap_err();
    let typed = client(&peer.url).api().me().await.unwrap_err();
    for error in [raw, typed] {
        assert_eq!((error.kind(), error.status()), (ErrorKind::Unexpected, Some(200)), "{error:?}");
        assert_eq!((error.request_id(), error.delivery()), (Some("req_3"), Delivery::Answered));
        assert_eq!(error.attempts(), 1);
    }
}

#[tokio::test]
async fn another_success_status_is_a_success() {
    let body = r#"{"ok":true,"type":"sandbox.created","status":"ready","id":"bx_1","sandbox":{"id":"bx_1","state":"ready"}}"#;
    let peer = Peer::start(vec![ok(body)]);
    let created = client(&peer.url).api().create(CreateSandboxRequest::new()).await.unwrap();
    assert_eq!(created.sandbox.id, "bx_1");
}

#[tokio::test]
async fn a_success_that_has_no_body_is_whole() {
    for status in [204, 205] {
        let peer = Peer::start(vec![answer(status, &[], "")]);
        let client = client(&peer.url);
        client.api().delete_webhook("wh_1").await.unwrap();
        assert_eq!(peer.requests().len(), 1, "it is not asked again");
        let error = client.api().get("bx_1").await.unwrap_err();
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::Unexpected, Delivery::Answered));
        assert_eq!(get(&client).await.unwrap(), Value::Null);
        assert_eq!(peer.requests().len(), 3);
    }
}

#[tokio::test]
async fn an_answer_over_the_cap_is_refused() {
    let announced = Step::Stall("HTTP/1.1 200 OK\r\ncontent-length: 67108865\r\n\r\n".into());
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_owned();
    let unannounced = Step::Answer(head + &" ".repeat((64 << 20) + 1));
    for step in [announced, unannounced] {
        let peer = Peer::start(vec![step]);
        let error = get(&client(&peer.url)).await.unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::TooLarge, 1));
        assert_eq!((error.status(), error.delivery()), (Some(200), Delivery::Answered));
    }
}

#[tokio::test]
async fn the_escape_hatch_sends_query_body_and_headers() {
    let peer = Peer::start(vec![ok("")]);
    let options = RequestOptions::new().query("a b", "c&d").query("n", 5).json(json!({"x": null}));
    let options = options.header("Idempotency-Key", "k").header("X-Other", "v");
    let value = client(&peer.url).api().request(Method::PATCH, "/things/1", options).await.unwrap();
    assert_eq!(value, Value::Null);
    let request = &peer.requests()[0];
    assert!(
        request.head.starts_with("PATCH /api/v1/things/1?a+b=c%26d&n=5 HTTP/1.1\r\n"),
        "{}",
        request.head
    );
    assert_eq!(request.body, br#"{"x":null}"#);
    for (name, value) in [("idempotency-key", "k"), ("x-other", "v"), ("content-type", "application/json")] {
        assert_eq!(request.values(name), [value]);
    }
}

#[tokio::test]
async fn the_key_goes_to_no_other_origin() {
    let (own, other) = (Peer::start(vec![ok("{}")]), Peer::start(vec![ok("{}")]));
    let client = client(&own.url);
    for path in [other.url.as_str(), "https://example.com/", "//example.com/x", "/../me"] {
        let error = client.api().request(Method::GET, path, RequestOptions::new()).await.unwrap_err();
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::InvalidInput, Delivery::NotSent), "{path}");
    }
    assert!(own.requests().is_empty() && other.requests().is_empty());
    let absolute = format!("{}/me", own.url);
    client.api().request(Method::GET, &absolute, RequestOptions::new()).await.unwrap();
}

#[tokio::test]
async fn bad_ids_and_headers_are_refused_before_sending() {
    let peer = Peer::start(vec![ok("{}")]);
    let client = client(&peer.url);
    for id in ["", ".", "..", "a\u{0}", "..\\.."] {
        let error = client.api().get(id).await.unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::InvalidInput, 0));
        assert_eq!((error.delivery(), error.operation()), (Delivery::NotSent, Some(Operation::Get)));
        assert!(error.message().contains("sandboxId"));
    }
    for options in [
        CallOptions::new().header("Authorization", "x"),
        CallOptions::new().header("bad name", "x"),
        CallOptions::new().org(""),
    ] {
        assert_eq!(get(&client.with(options.clone())).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(client.with(options).api().me().await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    let bad_key = client.with(CallOptions::new().idempotency_key("k".repeat(256)));
    let error = bad_key.api().create(CreateSandboxRequest::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(peer.requests().is_empty());
}

#[tokio::test]
async fn odd_ids_are_encoded() {
    let peer = Peer::start(vec![answer(404, &[], "")]);
    let error = client(&peer.url).api().get("a/../b?c#d %2e").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(peer.requests()[0].head.starts_with("GET /api/v1/sandboxes/a%2F..%2Fb%3Fc%23d%20%252e HTTP/1.1"));
}

#[tokio::test]
async fn a_closed_client_refuses_calls() {
    let peer = Peer::start(vec![ok("{}")]);
    let client = client(&peer.url);
    client.api().shared().close();
    assert_eq!(get(&client).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(client.with(CallOptions::new()).api().me().await.unwrap_err().kind(), ErrorKind::Closed);
    assert!(peer.requests().is_empty());
}
