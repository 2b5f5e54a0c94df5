//! Over server-sent events.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use serde_json::json;

use super::super::{EventMode, EventOptions, IDLE};
use super::script::*;
use crate::{
    clock::{Clock as _, ManualClock},
    error::{ErrorKind, Result},
};

fn streaming() -> EventOptions {
    EventOptions::new().mode(EventMode::Sse)
}

fn twenty() -> Vec<String> {
    (0..20).map(|number| format!("e{number} x")).collect()
}

/// What a connection brings that sends event `number` among control messages, and the beginning of one more.
fn one_among_others(number: usize) -> String {
    format!(
        ": welcome\n\nretry: {}\n\nevent: ping\ndata: {{}}\n\n{}id: {}\n\nevent: heartbeat\n\nevent: sync\nid: {}\ndata: 1\n\n\
         : bye\nid: {}\ndata: {{\"type\":\"resp",
        number * 10,
        message(number, "x"),
        cursor(number),
        cursor(number),
        cursor(number + 1),
    )
}

#[tokio::test]
async fn a_cut_after_each_of_twenty_events_loses_and_repeats_none() {
    for broken in [false, true] {
        let clock = ManualClock::new();
        let script = Script::streams(move |_, query| {
            let number = number_of(query.cursor.as_deref()).map_or(0, |number| number + 1);
            if number == 20 {
                return Err(answer(404));
            }
            let mut pieces = vec![Ok(Bytes::from(one_among_others(number)))];
            if broken {
                pieces.push(Err(reset()));
            }
            sse(pieces)
        });
        let (mut stream, log) = script.follow(&clock, streaming());
        assert_eq!(take(&clock, &mut stream, 20).await, twenty());
        assert_eq!(stream.cursor(), Some(&*cursor(19)));
        assert_eq!(run(&clock, stream.next()).await.unwrap().unwrap_err().status(), Some(404));
        assert!(run(&clock, stream.next()).await.is_none());
        let asked: Vec<_> = log.lock().unwrap().iter().map(|asked| number_of(asked.cursor())).collect();
        let expected: Vec<_> = std::iter::once(None).chain((0..20).map(Some)).collect();
        assert_eq!(asked, expected);
        // Each connection brought news, so each pause was a short one.
        assert!(clock.elapsed() <= Duration::from_millis(20 * 200), "{:?}", clock.elapsed());
    }
}

#[tokio::test]
async fn a_cut_at_any_byte_loses_and_repeats_none() {
    let whole: String = (0..4).map(one_among_others_whole).collect();
    for cut in 0..whole.len() {
        let clock = ManualClock::new();
        let script = Script::streams(move |number, query| {
            let from = number_of(query.cursor.as_deref()).map_or(0, |number| number + 1);
            let text: String = (from..4).map(one_among_others_whole).collect();
            match number {
                0 => brings(&text[..cut]),
                _ => stays_open(text),
            }
        });
        let (mut stream, log) = script.follow(&clock, streaming());
        assert_eq!(take(&clock, &mut stream, 4).await, twenty()[..4], "cut at {cut}");
        assert!(log.lock().unwrap().len() <= 2);
    }
}

fn one_among_others_whole(number: usize) -> String {
    format!(": hi\n\nevent: ping\ndata: 1\n\n{}id: {}\n\n", message(number, "x"), cursor(number))
}

#[tokio::test]
async fn a_service_that_repeats_everything_repeats_nothing_to_the_caller() {
    let clock = ManualClock::new();
    let script =
        Script::streams(|number, _| brings((0..=number).map(|n| message(n, "x")).collect::<String>()));
    let (mut stream, _) = script.follow(&clock, streaming());
    assert_eq!(take(&clock, &mut stream, 20).await, twenty());
}

#[tokio::test]
async fn each_new_content_comes_and_going_back_is_news_too() {
    let clock = ManualClock::new();
    let contents = ["A", "A", "B", "A", "A", "C"];
    let text: String = contents.iter().map(|content| message(1, content)).collect();
    let (mut stream, _) = Script::streams(move |_, _| brings(text.clone())).follow(&clock, streaming());
    assert_eq!(take(&clock, &mut stream, 4).await, ["e1 A", "e1 B", "e1 A", "e1 C"]);
}

#[tokio::test]
async fn three_hundred_growing_contents_all_come() {
    let clock = ManualClock::new();
    let content = |step: usize| "word ".repeat(step + 1);
    let script = Script::streams(move |_, query| {
        let from = number_of(query.cursor.as_deref()).map_or(0, |number| number + 1);
        // Forty a connection, each under the one id of the event.
        let grown = |step: usize| {
            let mut event = value(7, &content(step));
            event["timestamp"] = json!(1000 + step);
            format!("id: {}\ndata: {event}\n\n", cursor(step))
        };
        brings((from..300.min(from + 40)).map(grown).collect::<String>())
    });
    let (mut stream, _) = script.follow(&clock, streaming());
    let seen = take(&clock, &mut stream, 300).await;
    assert!(seen.iter().enumerate().all(|(step, text)| *text == format!("e7 {}", content(step))));
}

#[tokio::test]
async fn ids_move_without_events_and_can_be_taken_back() {
    let clock = ManualClock::new();
    let script = Script::streams(|number, _| match number {
        0 => brings(message(0, "x") + "id: far\n\n"),
        1 => brings("id: further\n: half\n"),
        2 => brings("event: ping\nid: f4\n\nid:\n\n"),
        3 => brings("event: sync\nid: f5\ndata: 1\n\nid: f6\ndata: {\"type\":"),
        _ => Err(answer(404)),
    });
    let (mut stream, log) = script.follow(&clock, streaming());
    assert_eq!(take(&clock, &mut stream, 1).await, ["e0 x"]);
    assert_eq!(run(&clock, stream.next()).await.unwrap().unwrap_err().status(), Some(404));
    let asked: Vec<Option<String>> =
        log.lock().unwrap().iter().map(|asked| asked.cursor().map(str::to_owned)).collect();
    assert_eq!(asked, [None, Some("far".into()), Some("far".into()), None, Some("f5".into())]);
    assert_eq!(stream.cursor(), Some("f5"));
}

#[tokio::test]
async fn an_id_alone_moves_the_cursor_while_the_connection_stays_open() {
    let clock = ManualClock::new();
    let (mut stream, _) =
        Script::streams(|_, _| stays_open(message(0, "x") + "id: far\n\n")).follow(&clock, streaming());
    take(&clock, &mut stream, 1).await;
    assert_eq!(stream.cursor(), Some(&*cursor(0)));
    assert!(run_to(&clock, Duration::from_secs(1), stream.next()).await.is_none());
    assert_eq!(stream.cursor(), Some("far"));
}

#[tokio::test]
async fn without_ids_cursors_are_made_of_the_events() {
    let clock = ManualClock::new();
    let script = Script::streams(|_, query| {
        let from = number_of(query.cursor.as_deref()).map_or(0, |number| number + 1);
        brings((from..from + 3).map(|n| format!("data: {}\n\n", value(n, "x"))).collect::<String>())
    });
    let (mut stream, log) = script.follow(&clock, streaming());
    assert_eq!(take(&clock, &mut stream, 2).await, twenty()[..2]);
    assert_eq!(stream.cursor(), Some(&*cursor(1)));
    assert_eq!(take(&clock, &mut stream, 18).await, twenty()[2..]);
    let asked: Vec<_> = log.lock().unwrap().iter().map(|asked| number_of(asked.cursor())).collect();
    assert_eq!(asked, [None, Some(2), Some(5), Some(8), Some(11), Some(14), Some(17)]);
}

#[tokio::test]
async fn a_batch_under_one_id_is_left_where_the_caller_is() {
    let clock = ManualClock::new();
    let events: Vec<_> = (0..3).map(|n| value(n, "x")).collect();
    let batch = format!("id: batch\ndata: {}\n\n", json!({"events": events}));
    let (mut stream, _) = Script::streams(move |_, _| stays_open(batch.clone())).follow(&clock, streaming());
    assert_eq!(stream.cursor(), None);
    take(&clock, &mut stream, 1).await;
    assert_eq!(stream.cursor(), Some(&*cursor(0)));
    take(&clock, &mut stream, 2).await;
    assert_eq!(stream.cursor(), Some("batch"));
}

#[tokio::test]
async fn events_without_ids_come_once_over_reconnects() {
    let clock = ManualClock::new();
    let tick = "data: {\"type\":\"tick\"}\n\n";
    let script = Script::streams(move |number, query| match number {
        0 => brings(format!("{}{tick}{tick}", message(0, "x"))),
        _ => {
            assert_eq!(number_of(query.cursor.as_deref()), Some(0));
            brings(format!("{tick}{tick}{tick}{}", message(1, "x")))
        }
    });
    let (mut stream, _) = script.follow(&clock, streaming());
    assert_eq!(take(&clock, &mut stream, 5).await, ["e0 x", "- ", "- ", "- ", "e1 x"]);
}

#[tokio::test]
async fn a_slow_caller_loses_nothing() {
    let clock = ManualClock::new();
    let pulled = Arc::new(Mutex::new(0));
    let counter = pulled.clone();
    let script = Script::streams(move |_, _| {
        let counter = counter.clone();
        let pieces = (0..20).map(move |number| {
            *counter.lock().unwrap() += 1;
            Ok(Bytes::from(message(number, "x")))
        });
        opened("text/event-stream", Box::pin(futures_util::stream::iter(pieces)))
    });
    let (mut stream, log) = script.follow(&clock, streaming());
    for number in 0..20 {
        assert_eq!(take(&clock, &mut stream, 1).await, [format!("e{number} x")]);
        assert_eq!(*pulled.lock().unwrap(), number + 1, "nothing is read ahead");
        clock.advance(Duration::from_secs(30));
    }
    assert_eq!(log.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_silent_connection_is_made_again_and_heartbeats_are_life() {
    let clock = ManualClock::new();
    let ticking = clock.clone();
    let script = Script::streams(move |number, _| match number {
        0 => stays_open(message(0, "x")),
        1 => {
            // A comment every 15 s for ten minutes, then an event.
            let beats = futures_util::stream::unfold((ticking.clone(), 0), |(clock, beat)| async move {
                clock.sleep(Duration::from_secs(15)).await;
                let bytes = match beat {
                    0..40 => Bytes::from_static(b":\n"),
                    _ => Bytes::from("\n".to_owned() + &message(1, "x")),
                };
                Some((Ok(bytes), (clock, beat + 1)))
            });
            opened("text/event-stream", Box::pin(beats))
        }
        _ => stays_open(""),
    });
    let (mut stream, log) = script.follow(&clock, streaming());
    assert_eq!(take(&clock, &mut stream, 1).await, ["e0 x"]);
    assert_eq!(take(&clock, &mut stream, 1).await, ["e1 x"]);
    assert_eq!(log.lock().unwrap().len(), 2);
    let least = IDLE + Duration::from_secs(615);
    assert!((least..=least + Duration::from_millis(200)).contains(&clock.elapsed()), "{:?}", clock.elapsed());
}

#[tokio::test]
async fn endless_empty_answers_are_backed_off_and_given_up() {
    let clock = ManualClock::new();
    let (mut stream, log) = Script::streams(|_, _| brings("")).follow(&clock, streaming().cursor("c7"));
    assert!(run_to(&clock, Duration::from_secs(2), stream.next()).await.is_none());
    let connects = log.lock().unwrap().len();
    assert!((4..=6).contains(&connects), "{connects} connections in 2 s");
    let error = run(&clock, stream.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StreamCut);
    assert_eq!(log.lock().unwrap().len(), 11);
    assert_eq!(stream.cursor(), Some("c7"));
    assert!(run(&clock, stream.next()).await.is_none());
}

#[tokio::test]
async fn a_storm_of_short_connections_is_slow_even_if_they_beat() {
    let clock = ManualClock::new();
    let (mut stream, log) = Script::streams(|_, _| brings(": hi\n\n")).follow(&clock, streaming());
    assert!(run_to(&clock, Duration::from_secs(100), stream.next()).await.is_none());
    let connects = log.lock().unwrap().len();
    assert!((13..=26).contains(&connects), "{connects} connections in 100 s");
}

#[tokio::test]
async fn the_services_retry_is_the_least_pause() {
    let clock = ManualClock::new();
    let script = Script::streams(|number, _| match number {
        0 => brings("retry: 7000\n\n".to_owned() + &message(0, "x")),
        1 => brings("retry: 1\n\n".to_owned() + &message(1, "x")),
        number => brings(message(number, "x")),
    });
    let (mut stream, _) = script.follow(&clock, streaming());
    take(&clock, &mut stream, 2).await;
    assert_eq!(clock.elapsed(), Duration::from_secs(7));
    take(&clock, &mut stream, 1).await;
    let pause = clock.elapsed() - Duration::from_secs(7);
    assert!((Duration::from_millis(100)..=Duration::from_millis(200)).contains(&pause), "{pause:?}");
}

#[tokio::test]
async fn an_error_message_or_one_that_cannot_be_read_ends_it_and_its_id_is_not_taken() {
    for (text, code) in [
        ("event: error\nid: bad\ndata: {\"code\":\"agent_gone\",\"message\":\"m\"}\n\n", "agent_gone"),
        ("id: bad\ndata: {\"type\":\"resp\n\n", "malformed_event"),
        ("id: bad\ndata: {\"no\":\"type\"}\n\n", "malformed_event"),
    ] {
        let clock = ManualClock::new();
        let script = Script::streams(move |_, _| brings(message(0, "x") + text + &message(1, "x")));
        let (mut stream, log) = script.follow(&clock, streaming());
        assert_eq!(take(&clock, &mut stream, 1).await, ["e0 x"]);
        assert_eq!(run(&clock, stream.next()).await.unwrap().unwrap_err().code(), code);
        assert_eq!(stream.cursor(), Some(&*cursor(0)));
        assert!(run(&clock, stream.next()).await.is_none());
        assert_eq!(log.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn odd_ids_and_bytes_end_it_or_are_passed_over() {
    let long = format!("id: {}\n\n", "x".repeat(5000));
    let cases: [(Vec<Result<Bytes>>, &str); 2] = [
        (vec![Ok(long.into())], "cursor_too_long"),
        (vec![Ok(Bytes::from_static(b"\xFF\xFE{\0\n\ndata: \xFF\n\n"))], "malformed_event"),
    ];
    for (pieces, code) in cases {
        let clock = ManualClock::new();
        let mut pieces = Some(pieces);
        let script = Script::streams(move |_, _| sse(pieces.take().expect("one connection")));
        let (mut stream, _) = script.follow(&clock, streaming());
        assert_eq!(run(&clock, stream.next()).await.unwrap().unwrap_err().code(), code);
    }
}

#[tokio::test]
async fn five_thousand_events_and_a_replay_of_the_last_four_thousand() {
    let clock = ManualClock::new();
    let script = Script::streams(|number, _| {
        let from = if number == 0 { 0 } else { 1000 };
        brings((from..5000 + number).map(|n| message(n, "x")).collect::<String>())
    });
    let (mut stream, _) = script.follow(&clock, streaming());
    let seen = take(&clock, &mut stream, 5001).await;
    assert!(seen.iter().enumerate().all(|(number, text)| *text == format!("e{number} x")));
}
