use super::{
    builder, client, get,
    peer::{Peer, Step, answer, ok},
    post,
};
use crate::{
    CallOptions, Delivery, Error, ErrorKind, RequestOptions,
    clock::{Clock as _, ManualClock},
    models::{CommandRequest, CreateSandboxRequest},
};
use http::Method;
use std::{future::Future, time::Duration};

/// Runs a call on a clock that jumps to its next sleep whenever the call waits for one of `waits`.
async fn on(
    clock: &ManualClock,
    waits: &[Duration],
    call: impl Future<Output = Result<serde_json::Value, Error>>,
) -> Result<serde_json::Value, Error> {
    let drive = async {
        for wait in waits {
            clock.wait_for_sleep_of(*wait).await;
            clock.advance(*wait);
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        result = call => result,
        () = drive => unreachable!(),
    }
}

const CREATED: &str = r#"{"ok":true,"type":"sandbox.created","status":"provisioning","id":"bx_1",
    "sandbox":{"id":"bx_1","state":"provisioning"}}"#;

#[tokio::test]
async fn a_read_is_repeated_after_faults_and_counts_its_tries() {
    let peer = Peer::start(vec![answer(503, &[("retry-after", "0")], ""), Step::Drop, ok(r#"{"ok":true}"#)]);
    let value = get(&client(&peer.url)).await.unwrap();
    assert_eq!(value["ok"], true);
    let attempts: Vec<_> =
        peer.requests().iter().map(|r| r.values("x-sandboxer-attempt")[0].to_owned()).collect();
    assert_eq!(attempts, ["1", "2", "3"]);
}

#[tokio::test]
async fn three_retries_by_default_and_as_many_as_asked_for() {
    let peer = Peer::start(vec![answer(500, &[("retry-after", "0")], "")]);
    let error = get(&client(&peer.url)).await.unwrap_err();
    assert_eq!((error.attempts(), peer.requests().len()), (4, 4));
    assert_eq!(
        (error.kind(), error.delivery(), error.is_retryable()),
        (ErrorKind::Server, Delivery::Answered, true)
    );
    let error = get(&client(&peer.url).with(CallOptions::new().retries(1))).await.unwrap_err();
    assert_eq!((error.attempts(), peer.requests().len()), (2, 6));
    let error = get(&client(&peer.url).with(CallOptions::new().retries(0))).await.unwrap_err();
    assert_eq!((error.attempts(), peer.requests().len()), (1, 7));
}

#[tokio::test]
async fn a_write_is_not_repeated_when_it_may_have_worked() {
    for step in [Step::Drop, answer(500, &[], ""), answer(503, &[("retry-after", "0")], "")] {
        let peer = Peer::start(vec![step.clone()]);
        let error = post(&client(&peer.url)).await.unwrap_err();
        assert_eq!((error.attempts(), peer.requests().len()), (1, 1), "{step:?}");
        assert!(!error.is_retryable());
        let expected = if matches!(step, Step::Drop) { Delivery::Unknown } else { Delivery::Answered };
        assert_eq!(error.delivery(), expected);
    }
}

#[tokio::test]
async fn a_command_whose_answer_is_lost_runs_once() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"ok\":true";
    for step in [Step::Drop, Step::Answer(half.into()), answer(502, &[], "<html>")] {
        let peer = Peer::start(vec![step]);
        let api = client(&peer.url);
        let error = api.api().command("bx_1", CommandRequest::new("true")).await.unwrap_err();
        assert_eq!((error.attempts(), peer.requests().len()), (1, 1));
        assert_eq!(error.sandbox_id(), Some("bx_1"));
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn one_key_goes_with_all_tries_of_a_create() {
    let peer =
        Peer::start(vec![answer(503, &[("retry-after", "0")], ""), Step::Drop, answer(202, &[], CREATED)]);
    let client = client(&peer.url);
    client.api().create(CreateSandboxRequest::new()).await.unwrap();
    client.api().create(CreateSandboxRequest::new()).await.unwrap();
    let keys: Vec<_> = peer.requests().iter().map(|r| r.values("idempotency-key").join("|")).collect();
    assert_eq!(keys.len(), 4);
    assert!(uuid::Uuid::parse_str(&keys[0]).is_ok());
    assert!(keys[0] == keys[1] && keys[1] == keys[2] && keys[2] != keys[3]);
    let own = client.with(CallOptions::new().idempotency_key("mine"));
    own.api().create(CreateSandboxRequest::new()).await.unwrap();
    assert_eq!(peer.requests()[4].values("idempotency-key"), ["mine"]);
    get(&own).await.unwrap();
    assert!(peer.requests()[5].values("idempotency-key").is_empty());
}

#[tokio::test]
async fn a_failed_create_tells_its_key() {
    let peer = Peer::start(vec![Step::Drop]);
    let client = client(&peer.url).with(CallOptions::new().retries(0));
    let error = client.api().create(CreateSandboxRequest::new()).await.unwrap_err();
    assert_eq!(error.idempotency_key(), Some(peer.requests()[0].values("idempotency-key")[0]));
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_hint_is_waited_for_in_full() {
    let clock = ManualClock::new();
    for (text, wait) in [("90", 90), ("Thu, 01 Jan 2026 00:01:40 GMT", 100)] {
        let clock = if wait == 100 { ManualClock::new() } else { clock.clone() };
        let peer = Peer::start(vec![answer(429, &[("retry-after", text)], ""), ok("{}")]);
        let client =
            builder(&peer.url).clock(clock.shared()).total(Duration::from_secs(200)).build().unwrap();
        on(&clock, &[Duration::from_secs(wait)], get(&client)).await.unwrap();
        assert_eq!((peer.requests().len(), clock.elapsed()), (2, Duration::from_secs(wait)));
    }
}

#[tokio::test]
async fn a_hint_beyond_the_deadline_fails_at_once_with_its_value() {
    for (text, value) in [("90", 90), ("1000000000", 1_000_000_000)] {
        let clock = ManualClock::new();
        let peer = Peer::start(vec![answer(429, &[("retry-after", text)], "")]);
        let client = builder(&peer.url).clock(clock.shared()).total(Duration::from_secs(30)).build().unwrap();
        let error = get(&client).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RateLimited);
        assert_eq!(error.retry_after(), Some(Duration::from_secs(value)));
        assert_eq!((error.attempts(), clock.elapsed()), (1, Duration::ZERO));
    }
}

#[tokio::test]
async fn junk_hints_are_as_none() {
    for text in ["-5", "soon", "1.5"] {
        let peer = Peer::start(vec![answer(429, &[("retry-after", text)], "")]);
        let error = get(&client(&peer.url)).await.unwrap_err();
        assert_eq!((error.attempts(), error.retry_after()), (1, None));
    }
}

#[tokio::test]
async fn a_starting_sandbox_is_given_two_seconds() {
    let clock = ManualClock::new();
    let starting = r#"{"ok":false,"code":"sandbox_starting","message":"m","retryable":true}"#;
    let finished =
        r#"{"ok":true,"type":"command.finished","success":true,"exitCode":0,"stdout":"","stderr":""}"#;
    let peer = Peer::start(vec![answer(409, &[], starting), ok(finished)]);
    let client = builder(&peer.url).clock(clock.shared()).build().unwrap();
    let call = async {
        client.api().command("bx_1", CommandRequest::new("true")).await.map(|_| serde_json::Value::Null)
    };
    on(&clock, &[Duration::from_secs(2)], call).await.unwrap();
    assert_eq!(peer.requests().len(), 2);
}

#[tokio::test]
async fn a_key_in_use_is_waited_for_beyond_the_number_of_tries() {
    let in_use =
        answer(409, &[("retry-after", "1")], r#"{"error":{"code":"idempotency_in_progress","message":"m"}}"#);
    let mut steps = vec![in_use; 10];
    steps.push(answer(202, &[], CREATED));
    let (peer, clock) = (Peer::start(steps), ManualClock::new());
    let client = builder(&peer.url).clock(clock.shared()).build().unwrap();
    let call =
        async { client.api().create(CreateSandboxRequest::new()).await.map(|_| serde_json::Value::Null) };
    on(&clock, &[Duration::from_secs(1); 10], call).await.unwrap();
    assert_eq!(peer.requests().len(), 11);
}

#[tokio::test]
async fn final_refusals_are_not_repeated() {
    for (status, body) in [
        (503, r#"{"error":{"code":"no_ready_machine","message":"m"}}"#),
        (429, r#"{"error":{"code":"rate_limited","message":"m","details":{"window":"day"}}}"#),
        (429, r#"{"code":"limit_reached","message":"m","retryable":false}"#),
        (401, r#"{"code":"unauthorized","message":"m"}"#),
        (404, ""),
    ] {
        let peer = Peer::start(vec![answer(status, &[("retry-after", "0")], body)]);
        let error = client(&peer.url).api().create(CreateSandboxRequest::new()).await.unwrap_err();
        assert_eq!((error.attempts(), peer.requests().len()), (1, 1), "{body}");
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn nothing_listening_is_not_sent_for_any_call() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let client = client(&url).with(CallOptions::new().retries(1));
    for error in [get(&client).await.unwrap_err(), post(&client).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Connection);
        assert_eq!((error.delivery(), error.attempts()), (Delivery::NotSent, 2));
        assert!(error.is_retryable());
        assert!(std::error::Error::source(&error).is_some());
    }
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_not_sent() {
    let client = builder("https://nowhere.invalid").add_root_certificate(ROOT).retries(0).build().unwrap();
    let error = post(&client).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connection, Delivery::NotSent));
}

#[tokio::test]
async fn a_proxy_that_refuses_was_not_passed() {
    let proxy = Peer::start(vec![answer(403, &[], "no")]);
    let http = reqwest::Client::builder()
        .proxy(reqwest::Proxy::all(&proxy.url).unwrap())
        .tls_certs_only(reqwest::Certificate::from_pem_bundle(ROOT.as_bytes()).unwrap())
        .build()
        .unwrap();
    let client = builder("https://sandboxer.invalid").http_client(http).retries(0).build().unwrap();
    let error = post(&client).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connection, Delivery::NotSent), "{error}");
    assert!(proxy.requests()[0].head.starts_with("CONNECT sandboxer.invalid:443"));
    assert!(!proxy.requests()[0].head.contains(super::KEY));
}

#[tokio::test]
async fn an_earlier_try_in_doubt_keeps_the_call_in_doubt() {
    let peer = Peer::start(vec![Step::Drop]);
    let address = peer.url.clone();
    let client = client(&address).with(CallOptions::new().retries(1));
    let error = client.api().request(Method::GET, "/me", RequestOptions::new()).await.unwrap_err();
    assert_eq!((error.delivery(), error.attempts()), (Delivery::Unknown, 2));
}

#[tokio::test]
async fn a_refusal_does_not_settle_what_an_earlier_try_may_have_done() {
    let refused = || answer(402, &[], r#"{"error":{"code":"billing_required","message":"m"}}"#);
    let throttled = || answer(429, &[("retry-after", "0")], "");
    let fault = || answer(503, &[("retry-after", "0")], "");
    for (steps, expected) in [
        (vec![Step::Drop, refused()], Delivery::Unknown),
        (vec![fault(), refused()], Delivery::Unknown),
        (vec![Step::Drop, throttled(), refused()], Delivery::Unknown),
        (vec![throttled(), refused()], Delivery::Answered),
        (vec![refused()], Delivery::Answered),
    ] {
        let (peer, tries) = (Peer::start(steps.clone()), steps.len());
        let error = client(&peer.url).api().create(CreateSandboxRequest::new()).await.unwrap_err();
        assert_eq!((error.delivery(), error.attempts() as usize), (expected, tries), "{steps:?}");
        assert_eq!((error.kind(), error.status()), (ErrorKind::PaymentRequired, Some(402)), "{steps:?}");
        assert_eq!((error.code(), error.is_retryable()), ("billing_required", false), "{steps:?}");
    }
    // A read did nothing, however often it was sent.
    let peer = Peer::start(vec![Step::Drop, answer(404, &[], "")]);
    let error = get(&client(&peer.url)).await.unwrap_err();
    assert_eq!((error.delivery(), error.attempts()), (Delivery::Answered, 2));
    // A success that cannot be read settles nothing either.
    for doubt in [Step::Drop, fault()] {
        for unusable in ["<html>", r#"{"ok":false,"code":"x","message":"m"}"#] {
            let peer = Peer::start(vec![doubt.clone(), answer(202, &[], unusable)]);
            let error = client(&peer.url).api().create(CreateSandboxRequest::new()).await.unwrap_err();
            assert_eq!(
                (error.kind(), error.delivery()),
                (ErrorKind::Unexpected, Delivery::Unknown),
                "{doubt:?}"
            );
        }
    }
    // What an earlier try began may be what the key is in use for.
    let clock = ManualClock::new();
    let in_use = answer(
        409,
        &[("retry-after", "60")],
        r#"{"error":{"code":"idempotency_in_progress","message":"m"}}"#,
    );
    let peer = Peer::start(vec![answer(503, &[("retry-after", "1")], ""), in_use]);
    let client = builder(&peer.url).clock(clock.shared()).total(Duration::from_secs(30)).build().unwrap();
    let create =
        async { client.api().create(CreateSandboxRequest::new()).await.map(|_| serde_json::Value::Null) };
    let error = on(&clock, &[Duration::from_secs(1)], create).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Conflict, "idempotency_in_progress"));
    assert_eq!((error.delivery(), error.attempts()), (Delivery::Unknown, 2));
}

/// A self-signed certificate, so that a client for https can be built on a machine without trusted roots.
pub(super) const ROOT: &str = include_str!("root.pem");
