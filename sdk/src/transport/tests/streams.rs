use super::{
    builder,
    peer::{Peer, Step, answer},
};
use crate::{
    AsyncSandboxer, Delivery, ErrorKind, Operation,
    clock::ManualClock,
    models::{ArtifactParams, CommandRequest},
};
use std::time::Duration;

fn on_clock(peer: &Peer) -> (AsyncSandboxer, ManualClock) {
    let clock = ManualClock::new();
    (builder(&peer.url).clock(clock.shared()).build().unwrap(), clock)
}

#[tokio::test]
async fn a_body_is_read_to_its_end() {
    let peer = Peer::start(vec![answer(200, &[("content-type", "application/octet-stream")], "bytes")]);
    let (client, _) = on_clock(&peer);
    let body = client.api().artifact("bx_1", ArtifactParams::new("/tmp/x")).await.unwrap();
    assert_eq!((body.content_length(), body.content_type()), (Some(5), Some("application/octet-stream")));
    assert_eq!(body.collect(5).await.unwrap(), "bytes");
    let body = client.api().artifact("bx_1", ArtifactParams::new("/tmp/x")).await.unwrap();
    assert_eq!(body.collect(4).await.unwrap_err().kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn a_broken_stream_is_cut_and_not_opened_again() {
    let peer = Peer::start(vec![Step::Answer("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf".into())]);
    let (client, _) = on_clock(&peer);
    let mut body = client.api().command_stream("bx_1", CommandRequest::new("true")).await.unwrap();
    assert_eq!(body.next().await.unwrap().unwrap(), "half");
    let error = body.next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::StreamCut, Delivery::Unknown));
    assert_eq!((error.operation(), error.sandbox_id()), (Some(Operation::CommandStream), Some("bx_1")));
    assert_eq!((error.status(), error.attempts()), (Some(200), 1));
    assert!(body.next().await.is_none());
    assert_eq!((peer.requests().len(), body.received()), (1, 4));
    let request = &peer.requests()[0];
    let sent: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(sent["stream"], true);
    assert!(request.values("accept")[0].starts_with("application/x-ndjson"));
}

#[tokio::test]
async fn silence_beyond_the_idle_limit_is_a_timeout() {
    let peer = Peer::start(vec![Step::Stall("HTTP/1.1 200 OK\r\n\r\nfirst".into())]);
    let (client, clock) = on_clock(&peer);
    let mut request = CommandRequest::new("true");
    request.timeout_seconds = Some(10);
    let mut body = client.api().command_stream("bx_1", request).await.unwrap();
    assert_eq!(body.next().await.unwrap().unwrap(), "first");
    clock.advance(Duration::from_secs(1000)); // a slow reader is not silence
    let limit = Duration::from_secs(60 + 10 + 30);
    let error = tokio::select! {
        next = body.next() => next.unwrap().unwrap_err(),
        () = async { clock.wait_for_sleep_of(limit).await; clock.advance(limit); std::future::pending().await } => unreachable!(),
    };
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Timeout, Delivery::Unknown));
    assert!(error.message().contains("`idle`") && error.message().contains("100s"), "{error}");
    assert!(body.next().await.is_none());
    peer.left(1).await;
}

#[tokio::test]
async fn dropping_a_body_closes_its_connection() {
    let peer = Peer::start(vec![Step::Stall("HTTP/1.1 200 OK\r\n\r\nfirst".into())]);
    let (client, _) = on_clock(&peer);
    let mut body = client.api().command_stream("bx_1", CommandRequest::new("true")).await.unwrap();
    body.next().await.unwrap().unwrap();
    drop(body);
    peer.left(1).await;
}

#[tokio::test]
async fn a_refused_stream_is_an_ordinary_error() {
    let peer = Peer::start(vec![answer(409, &[], r#"{"code":"machine_not_running","message":"m"}"#)]);
    let (client, _) = on_clock(&peer);
    let error = client.api().command_stream("bx_1", CommandRequest::new("true")).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Conflict, "machine_not_running"));
}
