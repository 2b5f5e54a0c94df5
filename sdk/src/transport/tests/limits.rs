use super::{
    builder, get,
    peer::{Peer, Step, ok},
    post,
    repeats::ROOT,
};
use crate::{
    AsyncSandboxer, CallOptions, Delivery, Error, ErrorKind, Limit,
    clock::{Clock as _, ManualClock},
};
use serde_json::Value;
use std::{future::Future, net::TcpListener, time::Duration};

const SECOND: Duration = Duration::from_secs(1);

async fn while_running<T>(call: impl Future<Output = T>, script: impl Future<Output = ()>) -> T {
    let script = async {
        script.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        result = call => result,
        () = script => unreachable!(),
    }
}

fn on_clock(url: &str, clock: &ManualClock) -> AsyncSandboxer {
    builder(url).clock(clock.shared()).retries(0).build().unwrap()
}

#[tokio::test]
async fn a_silent_service_is_given_one_attempt_limit() {
    for write in [false, true] {
        let (peer, clock) = (Peer::start(vec![Step::Stall(String::new())]), ManualClock::new());
        let client = on_clock(&peer.url, &clock);
        let script = async {
            peer.arrived(1).await;
            clock.advance(60 * SECOND);
        };
        let call = async { if write { post(&client).await } else { get(&client).await } };
        let error = while_running(call, script).await.unwrap_err();
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::Timeout, Delivery::Unknown), "{error}");
        assert!(error.message().contains("`attempt`") && error.message().contains("60s"), "{error}");
        assert_eq!(error.is_retryable(), !write);
        peer.left(1).await;
    }
}

#[tokio::test]
async fn a_read_that_timed_out_is_repeated_within_the_total() {
    let stall = Step::Stall("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{".into());
    let (peer, clock) = (Peer::start(vec![stall, ok(r#"{"n":2}"#)]), ManualClock::new());
    let client = builder(&peer.url).clock(clock.shared()).build().unwrap();
    let script = async {
        peer.arrived(1).await;
        clock.advance(60 * SECOND);
        while peer.requests().len() < 2 {
            // The first back-off is random, and at most half a second.
            if let Some(due) = clock.next_due().filter(|due| *due < SECOND) {
                clock.advance(due);
            }
            tokio::task::yield_now().await;
        }
    };
    let value = while_running(get(&client), script).await.unwrap();
    assert_eq!((value["n"].clone(), peer.requests().len()), (Value::from(2), 2));
}

#[tokio::test]
async fn the_total_limit_names_itself() {
    let (peer, clock) = (Peer::start(vec![Step::Stall(String::new())]), ManualClock::new());
    let client = on_clock(&peer.url, &clock).with(CallOptions::new().total(5 * SECOND).retries(3));
    let script = async {
        peer.arrived(1).await;
        clock.advance(5 * SECOND);
    };
    let error = while_running(get(&client), script).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Timeout, 1));
    assert!(error.message().contains("`total`") && error.message().contains("5s"), "{error}");
}

/// A server that accepts connections and never says a word, not even of TLS.
fn mute() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    (listener, url)
}

async fn connecting(options: CallOptions, waits: &[u32]) -> (Error, ManualClock) {
    let ((_listener, url), clock) = (mute(), ManualClock::new());
    let client =
        builder(&url).clock(clock.shared()).add_root_certificate(ROOT).build().unwrap().with(options);
    let script = async {
        for wait in waits {
            clock.wait_for_sleepers(2).await; // the connection's and the try's
            clock.wait_for_sleep_of(*wait * SECOND).await;
            clock.advance(*wait * SECOND);
        }
    };
    let error = while_running(post(&client), script).await.unwrap_err();
    (error, clock.clone())
}

#[tokio::test]
async fn a_connection_that_is_not_made_in_time_was_not_sent() {
    let (error, clock) = connecting(CallOptions::new().retries(0), &[10]).await;
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Timeout, Delivery::NotSent), "{error}");
    assert!(error.message().contains("`connect`"), "{error}");
    assert_eq!(clock.elapsed(), 10 * SECOND);
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_total_that_runs_out_while_connecting_was_not_sent() {
    let (error, _) = connecting(CallOptions::new().total(5 * SECOND), &[5]).await;
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Timeout, Delivery::NotSent), "{error}");
    assert!(error.message().contains("`total`"), "{error}");
}

#[tokio::test]
async fn limits_that_are_off_do_not_fire() {
    let (peer, clock) = (Peer::start(vec![Step::Stall(String::new())]), ManualClock::new());
    let client = on_clock(&peer.url, &clock).with(CallOptions::new().total(Limit::Off).attempt(Limit::Off));
    let waiting = async {
        peer.arrived(1).await;
        clock.advance(1_000_000 * SECOND);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        result = get(&client) => panic!("{result:?}"),
        () = waiting => {}
    }
}

#[tokio::test]
async fn a_dropped_call_closes_its_connection() {
    let (peer, clock) = (Peer::start(vec![Step::Stall(String::new())]), ManualClock::new());
    let client = on_clock(&peer.url, &clock);
    tokio::select! {
        result = get(&client) => panic!("{result:?}"),
        () = peer.arrived(1) => {}
    }
    peer.left(1).await;
    assert_eq!(clock.sleepers(), 0);
}

#[tokio::test]
async fn a_storm_ends_with_the_budget() {
    let (peer, clock) = (Peer::start(vec![super::peer::answer(500, &[], "")]), ManualClock::new());
    let client = builder(&peer.url).clock(clock.shared()).build().unwrap();
    let script = async {
        loop {
            // Back-off only: the other sleeps are limits of 10 s and more.
            if let Some(due) = clock.next_due().filter(|due| *due <= 8 * SECOND) {
                clock.advance(due);
            }
            tokio::task::yield_now().await;
        }
    };
    let calls = futures_util::future::join_all((0..100).map(|_| async { get(&client).await.unwrap_err() }));
    while_running(calls, script).await;
    let repeats = peer.requests().len() - 100;
    let refilled = 10.0 * clock.elapsed().as_secs_f64();
    assert!(repeats as f64 <= 101.0 + refilled, "{repeats} repeats in {:?}", clock.elapsed());
}

#[tokio::test]
async fn a_refusal_whose_body_stalls_is_a_refusal() {
    let head =
        "HTTP/1.1 429 X\r\nretry-after: 7\r\nx-request-id: req_1\r\ncontent-length: 99\r\n\r\n{\"code\":";
    let peer = Peer::start(vec![Step::Stall(head.to_owned())]);
    // On the machine's clock: nothing outside tells when the head has been read. A busy machine gets more time.
    let mut error = None;
    for limit in [SECOND / 2, 4 * SECOND, 30 * SECOND] {
        let client = builder(&peer.url).attempt(limit).retries(0).build().unwrap();
        let failure = post(&client).await.unwrap_err();
        let in_time = failure.kind() != ErrorKind::Timeout;
        error = Some(failure);
        if in_time {
            break;
        }
    }
    let error = error.unwrap();
    assert_eq!((error.kind(), error.code(), error.status()), (ErrorKind::RateLimited, "http_429", Some(429)));
    assert_eq!((error.delivery(), error.retry_after()), (Delivery::Answered, Some(7 * SECOND)));
    assert_eq!((error.request_id(), error.attempts()), (Some("req_1"), 1));
}
