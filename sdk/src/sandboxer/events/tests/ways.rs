//! From one way to the other, and conditions that end a stream.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::super::{EventMode, EventOptions, EventStream, Opened};
use super::script::*;
use crate::{
    clock::{Clock as _, ManualClock},
    error::{ErrorKind, Result},
    stream::frames::scripted,
};

fn numbered(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("e{number} x")).collect()
}

#[tokio::test]
async fn a_service_without_server_sent_events_is_polled() {
    let answers: [fn() -> Result<Opened>; 4] = [
        || Err(answer(406)),
        || Err(answer(415)),
        || Err(answer(501)),
        || opened("application/json; charset=utf-8", scripted(vec![])),
    ];
    for no_events in answers {
        let clock = ManualClock::new();
        let script = Script::new(move |_, _| no_events(), |_, query| page_of(20, 7, &query));
        let (mut stream, log) = script.follow(&clock, EventOptions::new());
        assert_eq!(take(&clock, &mut stream, 20).await, numbered(0..20));
        let streams = log.lock().unwrap().iter().filter(|asked| matches!(asked, Asked::Stream(_))).count();
        assert_eq!((streams, clock.elapsed()), (1, Duration::ZERO));

        let script = Script::streams(move |_, _| no_events());
        let (mut stream, _) = script.follow(&clock, EventOptions::new().mode(EventMode::Sse));
        let error = run(&clock, stream.next()).await.unwrap().unwrap_err();
        assert!(error.code() == "sse_unsupported" || matches!(error.status(), Some(406 | 415 | 501)));
    }
}

#[tokio::test]
async fn another_answer_is_an_error_in_every_mode() {
    for mode in [EventMode::Auto, EventMode::Sse] {
        let clock = ManualClock::new();
        let script = Script::streams(|_, _| opened("text/html", scripted(vec![])));
        let (mut stream, _) = script.follow(&clock, EventOptions::new().mode(mode));
        let error = run(&clock, stream.next()).await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "unexpected_response"));
    }
}

#[tokio::test]
async fn a_service_that_stops_streaming_is_polled_from_where_it_was() {
    let clock = ManualClock::new();
    let script = Script::new(
        |number, _| match number {
            0 => brings((0..5).map(|n| message(n, "x")).collect::<String>()),
            _ => Err(answer(406)),
        },
        |_, query| page_of(20, 7, &query),
    );
    let (mut stream, log) = script.follow(&clock, EventOptions::new());
    assert_eq!(take(&clock, &mut stream, 20).await, numbered(0..20));
    let asked: Vec<_> = log.lock().unwrap().iter().map(|asked| number_of(asked.cursor())).collect();
    assert_eq!(asked, [None, Some(4), Some(4), Some(11), Some(18)]);
}

#[tokio::test]
async fn now_is_looked_up_once_and_never_gone_back_to() {
    let clock = ManualClock::new();
    let script = Script::new(
        |_, query| {
            let number = number_of(query.cursor.as_deref()).unwrap() + 1;
            brings(message(number, "x"))
        },
        |_, query| page_of(5000, 100, &query),
    );
    let (mut stream, log) = script.follow(&clock, EventOptions::new().from_start(false));
    assert_eq!(take(&clock, &mut stream, 5).await, numbered(5000..5005));
    let asked: Vec<_> = log.lock().unwrap().iter().map(|asked| number_of(asked.cursor())).collect();
    assert_eq!(asked, [None, Some(4999), Some(5000), Some(5001), Some(5002), Some(5003)]);
}

#[tokio::test]
async fn an_id_taken_back_leads_to_where_the_stream_began() {
    let clock = ManualClock::new();
    let script = Script::streams(|number, _| match number {
        0 => brings(message(8, "x") + "id:\n\n"),
        _ => Err(answer(404)),
    });
    let (mut stream, log) = script.follow(&clock, EventOptions::new().cursor(cursor(7)));
    assert_eq!(take(&clock, &mut stream, 1).await, numbered(8..9));
    assert!(run(&clock, stream.next()).await.unwrap().is_err());
    let asked: Vec<_> = log.lock().unwrap().iter().map(|asked| number_of(asked.cursor())).collect();
    assert_eq!(asked, [Some(7), Some(7)]);
}

/// A stream that ends when its condition was asked `times` times, and the counter of that.
fn until_asked(stream: EventStream, times: usize) -> (EventStream, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let stream = stream.until(move || {
        let number = counter.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok(number >= times) }
    });
    (stream, asked)
}

#[tokio::test]
async fn a_condition_is_looked_at_while_a_connection_stays_open() {
    let clock = ManualClock::new();
    // The connection never tells of the last events: the end is read from pages.
    let script = Script::new(
        |_, _| stays_open((0..5).map(|n| message(n, "x")).collect::<String>()),
        |_, query| page_of(8, 7, &query),
    );
    let (stream, log) = script.follow(&clock, EventOptions::new());
    let (mut stream, asked) = until_asked(stream, 4);
    assert_eq!(drain(&clock, &mut stream).await.unwrap(), numbered(0..8));
    assert_eq!(asked.load(Ordering::Relaxed), 4);
    assert_eq!(clock.elapsed(), Duration::from_secs(3));
    let asked: Vec<_> = log.lock().unwrap().iter().map(|asked| number_of(asked.cursor())).collect();
    assert_eq!(asked, [None, Some(4)]);
}

#[tokio::test]
async fn a_condition_that_holds_from_the_beginning_gives_all_there_is() {
    for mode in [EventMode::Poll, EventMode::Auto] {
        let clock = ManualClock::new();
        let script = Script::new(|_, _| stays_open(""), |_, query| page_of(20, 7, &query));
        let (stream, _) = script.follow(&clock, EventOptions::new().mode(mode));
        let (mut stream, _) = until_asked(stream, 1);
        assert_eq!(drain(&clock, &mut stream).await.unwrap(), numbered(0..20));
        assert_eq!(clock.elapsed(), Duration::ZERO);
    }
}

#[tokio::test]
async fn polling_ends_with_one_more_page_after_the_condition() {
    let clock = ManualClock::new();
    let options = EventOptions::new().mode(EventMode::Poll).poll_interval(Duration::from_secs(2));
    let script = Script::pages(|number, query| page_of(number + 1, 7, &query));
    let (stream, log) = script.follow(&clock, options);
    let (mut stream, _) = until_asked(stream, 3);
    let seen = drain(&clock, &mut stream).await.unwrap();
    assert_eq!(seen.len(), log.lock().unwrap().len(), "each page had one more event");
    assert_eq!(clock.elapsed(), Duration::from_secs(4));
}

#[tokio::test]
async fn a_condition_that_cannot_be_asked_for_a_while_ends_nothing() {
    let failing = |times: usize, retryable: bool| {
        let asked = AtomicUsize::new(0);
        move || {
            let number = asked.fetch_add(1, Ordering::Relaxed);
            let answer: Result<bool> = match number < times {
                true => Err(answer(503).with_retryable(retryable)),
                false => Ok(true),
            };
            async move { answer }
        }
    };
    for (times, retryable, ends_well) in [(10, true, true), (11, true, false), (1, false, false)] {
        let clock = ManualClock::new();
        let script = Script::new(|_, _| stays_open(": hi\n"), |_, query| page_of(2, 7, &query));
        let (stream, _) = script.follow(&clock, EventOptions::new());
        let mut stream = stream.until(failing(times, retryable));
        let seen = drain(&clock, &mut stream).await;
        if ends_well {
            assert_eq!(seen.unwrap(), numbered(0..2));
        } else {
            assert_eq!(seen.unwrap_err().status(), Some(503));
        }
        assert!(run(&clock, stream.next()).await.is_none());
    }
}

#[test]
fn a_stream_can_go_to_another_task() {
    fn assert_fits<T: Send + Unpin + 'static>() {}
    assert_fits::<EventStream>();
}

#[tokio::test]
async fn what_is_refused_is_refused_before_anything_is_asked() {
    let clock = ManualClock::new();
    let script = Script::new(|_, _| panic!("asked"), |_, _| panic!("asked"));
    let options = EventOptions::new().cursor("");
    let error = EventStream::new(script, options, None, clock.shared()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}
