//! Scripted replies, and the recorder that sees every request.

mod faults_support;

use std::time::Duration;

use faults_support::{Service, body_of, get, keep, post, within};
use sandboxer::{Operation, clock::Clock};
use sandboxer_mock_server::faults::{End, Reply};
use serde_json::{Value, json};

const REAL: &str = "the real answer";

#[tokio::test]
async fn replies_come_in_their_order_and_then_the_real_world() {
    let service = Service::start().await;
    let script = service
        .faults
        .on(Operation::Create)
        .reply(Reply::status(503).retry_after(Duration::from_millis(1500)))
        .times(2)
        .reply(Reply::pass().header("x-note", "third"))
        .reply(Reply::json(json!({"ok": true})));
    for _ in 0..2 {
        let (answer, end) = service.ask(&get("/create")).await;
        assert!(end.is_ok());
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("retry-after: 2\r\n"), "{answer}");
        assert_eq!(body_of(&answer), "");
    }
    // Another operation is not concerned.
    assert_eq!(body_of(&service.ask(&get("/get")).await.0), REAL);
    assert_eq!(service.runs(), 1);
    let (third, _) = service.ask(&get("/create")).await;
    assert!(third.contains("x-note: third\r\n"));
    assert_eq!(body_of(&third), REAL);
    let (fourth, _) = service.ask(&get("/create")).await;
    assert!(fourth.contains("content-type: application/json\r\n"));
    assert_eq!(body_of(&fourth), r#"{"ok":true}"#);
    assert_eq!(body_of(&service.ask(&get("/create")).await.0), REAL);
    assert_eq!((script.hits(), service.runs()), (4, 3));
    let statuses: Vec<_> =
        service.recorder.requests_to(Operation::Create).iter().map(|request| request.status()).collect();
    assert_eq!(statuses, [Some(503), Some(503), Some(200), Some(200), Some(200)]);
}

#[tokio::test]
async fn scripts_can_be_for_all_on_a_condition_for_ever_and_taken_back() {
    let service = Service::start().await;
    service.faults.on_any().when(|request| request.query() == Some("bad")).reply(Reply::status(418)).always();
    service.faults.on(Operation::Get).reply(Reply::status(500)).times(0).reply(Reply::status(404));
    for _ in 0..3 {
        assert!(service.ask(&get("/create?bad")).await.0.starts_with("HTTP/1.1 418 "));
    }
    assert!(service.ask(&get("/get?bad")).await.0.starts_with("HTTP/1.1 418 "));
    assert!(service.ask(&get("/get")).await.0.starts_with("HTTP/1.1 404 "));
    assert!(service.ask(&get("/get")).await.0.starts_with("HTTP/1.1 200 "));
    service.faults.clear();
    assert!(service.ask(&get("/create?bad")).await.0.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn the_error_envelope_is_the_services() {
    let service = Service::start().await;
    let reply = Reply::code(409, "sandbox_starting", "not up yet")
        .detail("retryable", true)
        .detail("state", "provisioning");
    service.faults.on(Operation::Get).reply(reply).times(2);
    let (answer, _) = service.ask(&get("/get")).await;
    assert!(answer.starts_with("HTTP/1.1 409 "));
    let body: Value = serde_json::from_str(body_of(&answer)).unwrap();
    let id = body["requestId"].as_str().unwrap();
    assert!(answer.contains(&format!("x-request-id: {id}\r\n")));
    assert_eq!(id.len(), "req_".len() + 32);
    assert_eq!(
        body,
        json!({
            "ok": false, "type": "sandbox.error", "status": 409, "code": "sandbox_starting", "message": "not up yet",
            "requestId": id, "retryable": true, "state": "provisioning",
            "error": {
                "code": "sandbox_starting", "message": "not up yet", "status": 409,
                "details": {
                    "error": "sandbox_starting", "message": "not up yet", "retryable": true, "state": "provisioning",
                },
            },
        })
    );
    let (second, _) = service.ask(&get("/get")).await;
    assert!(!second.contains(id), "each answer has an id of its own");
}

#[tokio::test]
async fn bodies_of_any_kind() {
    let service = Service::start().await;
    service
        .faults
        .on(Operation::Get)
        .reply(Reply::body("<html>", "text/html").with_status(502))
        .reply(Reply::ndjson([r#"{"type":"started"}"#, "{half"]));
    let (html, _) = service.ask(&get("/get")).await;
    assert!(html.starts_with("HTTP/1.1 502 ") && html.contains("content-type: text/html\r\n"));
    assert_eq!(body_of(&html), "<html>");
    let (lines, _) = service.ask(&get("/get")).await;
    assert!(lines.contains("content-type: application/x-ndjson\r\n"));
    assert_eq!(body_of(&lines), "{\"type\":\"started\"}\n{half\n");
}

#[tokio::test]
async fn a_delay_is_slept_on_the_clock() {
    let service = Service::start().await;
    service.faults.on(Operation::Get).reply(Reply::delay(Duration::from_secs(90)));
    let mut client = service.connect().await;
    client.send(&get("/get")).await;
    within(service.clock.wait_for_sleep_of(Duration::from_secs(90))).await;
    service.clock.advance(Duration::from_secs(89));
    assert!(client.is_silent().await);
    assert_eq!(service.runs(), 0);
    service.clock.advance(Duration::from_secs(1));
    assert_eq!(body_of(&client.rest().await.0), REAL);
}

#[tokio::test]
async fn an_answer_is_dropped_after_the_work_or_before_it() {
    let service = Service::start().await;
    service
        .faults
        .on(Operation::Create)
        .reply(Reply::drop_answer())
        .reply(Reply::drop_answer().ending(End::Reset));
    let (answer, end) = service.ask(&get("/create")).await;
    assert_eq!(answer, "");
    assert!(end.is_ok(), "a clean end: {end:?}");
    assert_eq!(service.runs(), 1);
    let (answer, end) = service.ask(&get("/create")).await;
    assert_eq!(answer, "");
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(service.runs(), 2);

    service.faults.on(Operation::Create).reply(Reply::hang_up()).reply(Reply::hang_up().ending(End::Stall));
    let (answer, end) = service.ask(&get("/create")).await;
    assert!(answer.is_empty() && end.is_ok());
    let mut client = service.connect().await;
    client.send(&get("/create")).await;
    assert!(client.is_silent().await);
    assert_eq!(service.runs(), 2);
    let statuses = service.recorder.requests().iter().filter_map(|request| request.status()).count();
    assert_eq!(statuses, 0);
}

#[tokio::test]
async fn garbage_comes_instead_of_http() {
    let service = Service::start().await;
    service.faults.on(Operation::Get).reply(Reply::garbage("SSH-2.0-nothing\r\n"));
    let (answer, end) = service.ask(&get("/get")).await;
    assert_eq!(answer, "SSH-2.0-nothing\r\n");
    assert!(end.is_ok());
    assert_eq!(service.runs(), 0);
}

#[tokio::test]
async fn a_body_ends_after_the_bytes_it_was_given() {
    let service = Service::start().await;
    // "piece 0..\n" is ten bytes, a chunk of its own in chunked framing.
    for (end, clean) in [(End::Cut, true), (End::Reset, false)] {
        service.faults.on(Operation::AttachCommand).reply(Reply::pass().end_body_after(25, end));
        let (answer, ended) = service.ask(&get("/attach")).await;
        let body = body_of(&answer);
        assert_eq!(body, "A\r\npiece 0..\n\r\nA\r\npiece 1..\n\r\n5\r\npiece\r\n", "{end:?}");
        assert_eq!(ended.is_ok(), clean, "{end:?}: {ended:?}");
    }
    // Exactly its length: whole, but without the chunk that says so.
    service.faults.on(Operation::AttachCommand).reply(Reply::pass().end_body_after(100, End::Cut));
    let (answer, _) = service.ask(&get("/attach")).await;
    assert!(answer.ends_with("piece 9..\n\r\n"), "{answer}");
    // Longer: untouched.
    service.faults.on(Operation::AttachCommand).reply(Reply::pass().end_body_after(101, End::Cut));
    assert!(service.ask(&get("/attach")).await.0.ends_with("\r\n0\r\n\r\n"));

    // A body of known length keeps its announced length.
    service
        .faults
        .on(Operation::Get)
        .reply(Reply::pass().end_body_after(3, End::Cut))
        .reply(Reply::pass().end_body_after(0, End::Cut));
    let (answer, ended) = service.ask(&get("/get")).await;
    assert!(answer.contains("content-length: 15\r\n") && ended.is_ok());
    assert_eq!(body_of(&answer), "the");
    let (answer, _) = service.ask(&get("/get")).await;
    assert!(answer.ends_with("\r\n\r\n") && answer.contains("content-length: 15\r\n"), "{answer}");

    service.faults.on(Operation::Get).reply(Reply::pass().end_body_after(3, End::Stall));
    let mut client = service.connect().await;
    client.send(&keep("/get")).await;
    client.read_to("\r\n\r\nthe").await;
    assert!(client.is_silent().await);
}

#[tokio::test]
async fn an_answer_ends_after_any_number_of_bytes() {
    let service = Service::start().await;
    let (whole, _) = service.ask(&get("/get")).await;
    for bytes in 0..whole.len() {
        let (answer, ended) = {
            service.faults.on(Operation::Get).reply(Reply::pass().end_answer_after(bytes as u64, End::Cut));
            service.ask(&get("/get")).await
        };
        assert_eq!(answer, whole[..bytes], "after {bytes}");
        assert!(ended.is_ok());
    }
}

#[tokio::test]
async fn going_away_closes_the_connection_after_the_answer() {
    let service = Service::start().await;
    service.faults.on(Operation::Get).reply(Reply::pass().go_away());
    let mut client = service.connect().await;
    client.send(&keep("/create")).await;
    client.read_to(REAL).await;
    client.send(&keep("/get")).await;
    let (answer, ended) = client.rest().await;
    assert_eq!(body_of(&answer), REAL);
    assert!(ended.is_ok());
    let connections: Vec<_> =
        service.recorder.requests().iter().map(|request| request.connection()).collect();
    assert_eq!(connections, [Some(1), Some(1)]);
}

#[tokio::test]
async fn the_recorder_keeps_what_was_asked_and_hides_secrets() {
    let service = Service::start().await;
    let streamed = post("/command", r#"{"command":"ls","stream":true}"#);
    let request = streamed
        .replace("host: x", "host: x\r\nauthorization: Bearer sbx_live_secret\r\nidempotency-key: k1")
        .replace("/command", "/command?access_token=sbx_live_secret&a=b");
    let _ = service.ask(&request).await;
    let _ = service.ask(&post("/command", r#"{"command":"ls"}"#)).await;
    let _ = service.ask(&post("/nowhere", &"x".repeat(70_000))).await;
    let all = service.recorder.requests();
    let operations: Vec<_> = all.iter().map(|request| request.operation()).collect();
    assert_eq!(operations, [Some(Operation::CommandStream), Some(Operation::Command), None]);
    let first = &all[0];
    assert_eq!(first.method(), "POST");
    assert_eq!(first.path(), "/command");
    assert_eq!(first.query(), Some("access_token=sbx_live_secret&a=b"));
    assert_eq!(first.header("Idempotency-Key"), Some("k1"));
    assert_eq!(first.header("authorization"), Some("Bearer sbx_live_secret"));
    assert_eq!(first.json().unwrap()["command"], "ls");
    assert_eq!(first.at(), service.clock.now());
    assert_eq!(first.status(), Some(200));
    let shown = format!("{first:?}");
    assert!(!shown.contains("secret") && shown.contains("[redacted]") && shown.contains("a=b"), "{shown}");
    assert_eq!((all[2].body().len(), all[2].body_size(), all[2].json()), (65_536, 70_000, None));
    assert_eq!(service.recorder.requests_to(Operation::Command).len(), 1);
}

#[tokio::test]
async fn the_recorder_keeps_the_last_ten_thousand() {
    let service = Service::start().await;
    let (head, ()) = http::Request::get("/x").body(()).unwrap().into_parts();
    for number in 0..10_010 {
        service.recorder.record(None, &head, b"", Some(number));
    }
    let kept = service.recorder.requests();
    assert_eq!(
        (kept.len(), kept[0].connection(), kept[9_999].connection()),
        (10_000, Some(10), Some(10_009))
    );
    service.recorder.clear();
    assert!(service.recorder.requests().is_empty());
}
