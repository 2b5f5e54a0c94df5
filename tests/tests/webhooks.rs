//! Webhook signatures against the published Python client's, and the extractor for axum.
//!
//! `vectors/webhooks/from_python.json` is what `make.py` there prints. It is checked without Python; where the client can be
//! had, it is made again, and the client judges what is signed here and what the local server delivers.

use axum::{Router, body::Body, extract::DefaultBodyLimit, http, routing::post};
use bytes::Bytes;
use sandboxer::{
    Create, NewWebhook,
    clock::{Clock as _, ManualClock},
    webhooks::{
        MAX_WEBHOOK_BODY, MemoryReplayGuard, SignatureHeaders, Verified, Verifier, Webhook, WebhookError,
        WebhookEvent,
    },
};
use sandboxer_mock_server::MockServer;
use sandboxer_tests::python;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};
use tower_service::Service as _;

const MADE_BY_PYTHON: &str = include_str!("../vectors/webhooks/from_python.json");
const READY: &str =
    r#"{"id":"evt_1","type":"sandbox.ready","data":{"sandbox":{"id":"bx_23456789","name":"demo"}}}"#;

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors/webhooks").join(name)
}

fn vectors() -> Vec<Value> {
    serde_json::from_str(MADE_BY_PYTHON).unwrap()
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap())
}

fn time(seconds: &Value) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs_f64(seconds.as_f64().unwrap())
}

fn body(vector: &Value) -> Vec<u8> {
    match vector["body"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => {
            let digits = vector["body_hex"].as_str().unwrap().as_bytes().chunks(2);
            digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
        }
    }
}

fn verifier(vector: &Value) -> Result<Verifier, WebhookError> {
    let verifier = Verifier::any_of(texts(&vector["secrets"]))?;
    Ok(match vector["tolerance"].as_f64() {
        Some(seconds) => verifier.tolerance(Duration::from_secs_f64(seconds)),
        None => verifier.no_tolerance(),
    })
}

fn headers(vector: &Value) -> SignatureHeaders {
    let pairs = vector["headers"].as_array().unwrap();
    SignatureHeaders::from_pairs(
        pairs.iter().map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap())),
    )
}

fn verify(vector: &Value) -> Result<Verified, WebhookError> {
    verifier(vector)?.verify_at(headers(vector), &body(vector), time(&vector["now"]))
}

fn name(error: &WebhookError) -> String {
    format!("{error:?}").chars().take_while(char::is_ascii_alphabetic).collect()
}

#[test]
fn what_the_python_client_signed_is_judged_as_its_vectors_say() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 140);
    let mut wrong = Vec::new();
    for vector in &vectors {
        let found = verify(vector).map_or_else(|error| name(&error), |_| "ok".into());
        if vector["ours"] != found.as_str() {
            wrong.push(format!("{}: {found}, not {}", vector["name"], vector["ours"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(vectors.iter().filter(|vector| vector["python"] == true).count() > 50);
}

#[test]
fn the_clients_differ_only_where_a_reason_is_given() {
    for vector in vectors() {
        let agree = (vector["ours"] == "ok") == (vector["python"] == true);
        assert_eq!(agree, vector["why"].is_null(), "{}", vector["name"]);
    }
}

#[test]
fn events_read_as_the_python_client_reads_them() {
    let mut read = 0;
    for vector in vectors().iter().filter(|vector| vector["ours"] == "ok" && vector["python"] == true) {
        let event = verifier(vector).unwrap().parse_at(headers(vector), &body(vector), time(&vector["now"]));
        match (&vector["event"], event) {
            (Value::Null, event) => {
                assert!(matches!(event, Err(WebhookError::BadPayload { .. })), "{}", vector["name"]);
            }
            (expected, event) => {
                let event = event.unwrap();
                let (id, sandbox) = (&event.id, &event.data.sandbox);
                let found =
                    json!({"id": id, "type": event.kind, "sandbox": sandbox.id, "name": sandbox.name});
                assert_eq!(&found, expected, "{}", vector["name"]);
                read += 1;
            }
        }
    }
    assert!(read > 40, "{read}");
}

#[test]
fn signing_gives_the_clients_very_signature() {
    let vector = vectors().into_iter().find(|vector| vector["name"] == "plain").unwrap();
    let signed = verifier(&vector).unwrap().sign(time(&vector["now"]), &body(&vector)).unwrap();
    assert_eq!(signed["sandboxer-signature"].to_str().unwrap(), vector["headers"][0][1].as_str().unwrap());
}

/// Signed here: each body with one secret and with two, in both schemes, and each of them spoilt.
fn signed_here() -> Vec<Value> {
    let bodies = vectors();
    let bodies =
        bodies.iter().filter(|vector| vector["body"].as_str().is_some_and(|text| text.contains("evt_")));
    let mut signed = Vec::new();
    for (number, vector) in bodies.enumerate() {
        let (body, at) =
            (body(vector), SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + number as u64));
        for secrets in [vec!["whsec_a"], vec!["whsec_b", "whsec_a"]] {
            let signer = Verifier::any_of(secrets).unwrap();
            let single = signer.sign(at, &body).unwrap();
            let separate = signer.sign_delivery(&format!("evt_{number}"), at, &body).unwrap();
            for headers in [single, separate] {
                let headers: Vec<_> = headers
                    .iter()
                    .map(|(name, value)| json!([name.as_str(), value.to_str().unwrap()]))
                    .collect();
                for (secret, offset, expected) in [
                    ("whsec_a", 0, true),
                    ("whsec_a", 300, true),
                    ("whsec_a", -301, false),
                    ("whsec_c", 0, false),
                ] {
                    signed.push(json!({
                        "secrets": [secret],
                        "headers": headers,
                        "body": vector["body"],
                        "now": 1_800_000_000 + number as i64 + offset,
                        "tolerance": 300,
                        "expected": expected,
                    }));
                }
            }
        }
    }
    signed
}

#[test]
fn what_is_signed_here_is_judged_here_as_expected() {
    let signed = signed_here();
    assert!(signed.len() > 1000, "{}", signed.len());
    for vector in signed {
        assert_eq!(verify(&vector).is_ok(), vector["expected"] == true, "{vector}");
    }
}

#[test]
fn the_python_client_accepts_what_is_signed_here_and_makes_the_vectors_again() {
    let Some(python) = python::client() else { return };
    let made = String::from_utf8(python.run(&script("make.py"), b"")).unwrap();
    for (made, committed) in made.lines().zip(MADE_BY_PYTHON.lines()) {
        assert_eq!(made, committed);
    }
    assert_eq!(made.len(), MADE_BY_PYTHON.len());

    let signed = signed_here();
    let verdicts = python.run(&script("check.py"), Value::from(signed.clone()).to_string().as_bytes());
    let verdicts: Vec<bool> = serde_json::from_slice(&verdicts).unwrap();
    assert_eq!(verdicts.len(), signed.len());
    for (vector, verdict) in signed.iter().zip(verdicts) {
        assert_eq!(vector["expected"], verdict, "{vector}");
    }
}

/// What a receiver on this machine was sent: the headers and the body.
type Received = tokio::sync::mpsc::Receiver<(http::HeaderMap, Bytes)>;

/// Starts one, and tells its address.
async fn receiver() -> (String, Received) {
    let (sender, received) = tokio::sync::mpsc::channel(8);
    let take = async move |headers: http::HeaderMap, body: Bytes| {
        sender.send((headers, body)).await.unwrap();
        http::StatusCode::NO_CONTENT
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/in", post(take))).await });
    (url, received)
}

#[tokio::test]
async fn what_the_local_server_delivers_is_accepted_here_and_by_the_python_client() {
    let (url, mut received) = receiver().await;
    let server = MockServer::builder().allow_loopback_targets().start().unwrap();
    let client = server.client();
    let webhook = NewWebhook::new(url).event("sandbox.ready").event("sandbox.archived");
    let secret = client.webhook_endpoints().create(webhook).await.unwrap().secret;
    let sandbox = client.create(Create::new().name("d\u{e9}mo \u{1f980}")).await.unwrap();
    sandbox.stop().await.unwrap();
    let verifier = Verifier::new(secret.expose()).unwrap();
    let mut delivered = Vec::new();
    for kind in ["sandbox.ready", "sandbox.archived"] {
        let (headers, body) = received.recv().await.unwrap();
        let event: WebhookEvent = verifier.parse(&headers, &body).unwrap();
        assert_eq!((event.kind.as_str(), event.data.sandbox.id.as_str()), (kind, sandbox.id()));
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        let all: Vec<_> = headers.iter().map(|(name, value)| json!([name.as_str(), text(value)])).collect();
        let separate: Vec<_> =
            all.iter().filter(|pair| pair[0].as_str().unwrap().starts_with("x-")).cloned().collect();
        let seconds = server.clock().now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        for headers in [all, separate] {
            for (secret, expected) in [(secret.expose(), true), ("whsec_other", false)] {
                delivered.push(json!({
                    "secrets": [secret],
                    "headers": headers,
                    "body": std::str::from_utf8(&body).unwrap(),
                    "now": seconds,
                    "tolerance": 300,
                    "expected": expected,
                }));
            }
        }
    }
    let Some(python) = python::client() else { return };
    let verdicts = python.run(&script("check.py"), Value::from(delivered.clone()).to_string().as_bytes());
    let verdicts: Vec<bool> = serde_json::from_slice(&verdicts).unwrap();
    let expected: Vec<bool> = delivered.iter().map(|delivery| delivery["expected"] == true).collect();
    assert_eq!(verdicts, expected);
}

#[derive(Clone)]
struct AppState {
    verifier: Verifier,
}

impl axum::extract::FromRef<AppState> for Verifier {
    fn from_ref(state: &AppState) -> Self {
        state.verifier.clone()
    }
}

struct App {
    clock: ManualClock,
    verifier: Verifier,
    router: Router,
}

impl App {
    fn new() -> Self {
        let clock = ManualClock::new();
        let verifier = Verifier::new("whsec_a").unwrap().clock(clock.shared());
        let verifier = verifier.replay_guard(MemoryReplayGuard::default());
        let router = Router::new()
            .route("/events", post(async |Webhook(event): Webhook<WebhookEvent>| event.data.sandbox.id))
            .route("/bytes", post(async |Webhook(body): Webhook<Bytes>| body))
            .with_state(AppState { verifier: verifier.clone() });
        Self { clock, verifier, router }
    }

    fn signed(&self, body: &str) -> http::HeaderMap {
        self.verifier.sign(self.clock.now(), body.as_bytes()).unwrap()
    }

    async fn send(&mut self, path: &str, headers: http::HeaderMap, body: impl Into<Body>) -> (u16, String) {
        let mut request = http::Request::post(path).body(body.into()).unwrap();
        *request.headers_mut() = headers;
        let response = self.router.call(request).await.unwrap();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

#[tokio::test]
async fn the_extractor_takes_the_bytes_as_they_came() {
    let mut app = App::new();
    let headers = app.signed(READY);
    assert_eq!(app.send("/events", headers, READY).await, (200, "bx_23456789".into()));
    let spaced = READY.replace(':', " : ").replace("demo", "d\\u00e9mo");
    let headers = app.signed(&spaced);
    assert_eq!(app.send("/bytes", headers.clone(), spaced.clone()).await, (200, spaced));
    assert_eq!(app.send("/bytes", headers, READY).await.0, 401);
}

#[tokio::test]
async fn the_extractor_refuses_with_a_status_that_says_why() {
    let mut app = App::new();
    let empty = http::HeaderMap::new;
    assert_eq!(
        app.send("/events", empty(), READY).await,
        (400, "the header `Sandboxer-Signature` is missing".into())
    );
    let mut garbage = empty();
    garbage.insert("sandboxer-signature", "t=NaN,v1=00".parse().unwrap());
    assert_eq!(app.send("/events", garbage, READY).await.0, 400);
    let mut twice = app.signed(READY);
    twice.append("sandboxer-signature", "t=1,v1=00".parse().unwrap());
    assert_eq!(app.send("/events", twice, READY).await.0, 400);
    let headers = app.signed("not JSON");
    assert_eq!(app.send("/events", headers, "not JSON").await.0, 400);

    let headers = app.signed(READY);
    assert_eq!(
        app.send("/events", headers.clone(), "{}").await,
        (401, "no signature matches the body and a secret".into())
    );
    assert_eq!(app.send("/events", headers.clone(), READY).await.0, 200);
    assert_eq!(
        app.send("/events", headers.clone(), READY).await,
        (401, "exactly this delivery was accepted before".into())
    );
    app.clock.advance(Duration::from_secs(301));
    assert_eq!(app.send("/events", headers, READY).await, (401, "signed 301 s ago, too long".into()));
}

#[tokio::test]
async fn the_extractor_bounds_the_body() {
    let mut app = App::new();
    let most = "x".repeat(MAX_WEBHOOK_BODY);
    let headers = app.signed(&most);
    assert_eq!(app.send("/bytes", headers.clone(), most.clone()).await.0, 200);
    assert_eq!(app.send("/bytes", headers.clone(), format!("{most}x")).await.0, 413);

    let mut announced = headers.clone();
    announced.insert("content-length", (MAX_WEBHOOK_BODY + 1).into());
    let endless = Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
    assert_eq!(app.send("/bytes", announced, endless).await.0, 413, "refused before the body comes");

    let endless =
        futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[0; 4096])));
    assert_eq!(app.send("/bytes", headers.clone(), Body::from_stream(endless)).await.0, 413);

    let broken =
        futures_util::stream::iter([Ok(Bytes::from_static(b"{")), Err(std::io::Error::other("cut"))]);
    let refused = app.send("/bytes", headers.clone(), Body::from_stream(broken)).await;
    assert_eq!(refused, (400, "the body broke off".into()));

    app.router = app.router.layer(DefaultBodyLimit::max(10));
    assert_eq!(app.send("/bytes", headers, most).await.0, 413, "axum's own limit holds too");
}
