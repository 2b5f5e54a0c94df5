//! Page by page.

use std::time::Duration;

use super::super::{EventMode, EventOptions, EventPage, PageQuery};
use super::script::*;
use crate::{
    clock::{Clock as _, ManualClock},
    error::{Error, ErrorKind, Result},
};

fn polling() -> EventOptions {
    EventOptions::new().mode(EventMode::Poll)
}

fn numbered(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("e{number} x")).collect()
}

#[tokio::test]
async fn twenty_events_that_come_one_by_one_come_once_each_and_in_order() {
    let clock = ManualClock::new();
    let script = Script::pages(|number, query| {
        // Every other question fails on its way.
        if number % 2 == 1 {
            return Err(Error::new(ErrorKind::Connection, "connection_error", "reset").with_retryable(true));
        }
        page_of(number / 2 + 1, 7, &query)
    });
    let (mut stream, log) = script.follow(&clock, polling());
    assert_eq!(take(&clock, &mut stream, 20).await, numbered(0..20));
    assert_eq!(stream.cursor(), Some(&*cursor(19)));
    assert!(
        log.lock().unwrap().iter().all(|asked| {
            matches!(asked, Asked::Page(query) if query.limit == 100 && !query.newest_first)
        })
    );
}

#[tokio::test]
async fn pages_follow_at_once_and_news_are_asked_for_every_second() {
    let clock = ManualClock::new();
    let script = Script::pages(|number, query| page_of(if number < 6 { 250 } else { 251 }, 100, &query));
    let (mut stream, log) = script.follow(&clock, polling());
    assert_eq!(take(&clock, &mut stream, 250).await, numbered(0..250));
    assert_eq!(clock.elapsed(), Duration::ZERO);
    assert_eq!(log.lock().unwrap().len(), 3);
    // The last page gave no cursor, so it is asked for again with the last good one.
    assert_eq!(take(&clock, &mut stream, 1).await, numbered(250..251));
    assert_eq!(clock.elapsed(), Duration::from_secs(4));
    let asked: Vec<_> = log.lock().unwrap().iter().map(|asked| number_of(asked.cursor())).collect();
    assert_eq!(asked, [None, Some(99), Some(199), Some(199), Some(199), Some(199), Some(199)]);
}

#[tokio::test]
async fn growing_contents_come_and_going_back_is_news_too() {
    let clock = ManualClock::new();
    let contents = ["A", "A", "B", "A", "A", "C"];
    let script = Script::pages(move |number, _| {
        page(vec![event(1, contents[number.min(5)]), event(2, "x")], None, false)
    });
    let (mut stream, _) = script.follow(&clock, polling());
    let seen = take(&clock, &mut stream, 5).await;
    assert_eq!(seen, ["e1 A", "e2 x", "e1 B", "e1 A", "e1 C"]);
    assert_eq!(stream.cursor(), Some(&*cursor(2)), "a new content of an older event leads no way back");
}

#[tokio::test]
async fn a_stored_cursor_goes_on_after_the_last_event_pulled() {
    for stop in 0..20 {
        let clock = ManualClock::new();
        let pages = || Script::pages(|_, query| page_of(20, 7, &query));
        let (mut stream, _) = pages().follow(&clock, polling().follow(false));
        assert_eq!(take(&clock, &mut stream, stop).await, numbered(0..stop));
        let options = match stream.cursor() {
            Some(cursor) => polling().cursor(cursor),
            None => polling(),
        };
        let (mut rest, _) = pages().follow(&clock, options.follow(false));
        assert_eq!(drain(&clock, &mut rest).await.unwrap(), numbered(stop..20), "stopped after {stop}");
    }
}

#[tokio::test]
async fn now_is_found_with_one_question() {
    let clock = ManualClock::new();
    let script = Script::pages(|number, query| page_of(if number < 3 { 5000 } else { 5002 }, 100, &query));
    let (mut stream, log) =
        script.follow(&clock, polling().from_start(false).kind("response").conversation("c1"));
    assert_eq!(take(&clock, &mut stream, 2).await, numbered(5000..5002));
    let log = log.lock().unwrap();
    let newest: Vec<bool> =
        log.iter().map(|asked| matches!(asked, Asked::Page(query) if query.newest_first)).collect();
    assert_eq!(newest, [true, false, false, false]);
    assert!(log[1..].iter().all(|asked| number_of(asked.cursor()) == Some(4999)));
    assert!(log.iter().all(|asked| matches!(asked, Asked::Page(query)
        if query.filters.kinds.as_deref() == Some("response")
            && query.filters.conversations.as_deref() == Some("c1"))));
}

#[tokio::test]
async fn now_in_an_empty_list_is_its_beginning() {
    let clock = ManualClock::new();
    let script = Script::pages(|number, query| page_of(if number < 3 { 0 } else { 2 }, 100, &query));
    let (mut stream, _) = script.follow(&clock, polling().from_start(false));
    assert_eq!(take(&clock, &mut stream, 2).await, numbered(0..2));
    let nowhere = |_, _| page(vec![serde_json::from_str(r#"{"type":"x"}"#).unwrap()], None, false);
    let (mut stream, _) = Script::pages(nowhere).follow(&clock, polling().from_start(false));
    assert_eq!(run(&clock, stream.next()).await.unwrap().unwrap_err().code(), "no_cursor");
}

#[tokio::test]
async fn more_without_a_way_to_it_is_an_error_and_no_endless_loop() {
    let cases: [(&[Option<&str>], usize); 4] = [
        (&[None], 1),
        (&[Some("")], 1),
        (&[Some("a"), Some("a")], 2),
        (&[Some("a"), Some("b"), Some("c"), Some("a"), Some("b"), Some("c")], 10),
    ];
    for (cursors, most) in cases {
        let clock = ManualClock::new();
        let script = Script::pages(move |number, _| {
            let next = cursors[number % cursors.len()].map(str::to_owned);
            page(vec![event(number, "x")], next, true)
        });
        let (mut stream, log) = script.follow(&clock, polling());
        let mut came = 0;
        let error = loop {
            match run(&clock, stream.next()).await.unwrap() {
                Ok(_) => came += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "repeated_cursor"));
        let asked = log.lock().unwrap().len();
        assert!(asked <= most, "{asked} questions for {cursors:?}");
        assert_eq!(came, asked, "what came is given out first");
        assert!(run(&clock, stream.next()).await.is_none());
    }
}

#[tokio::test]
async fn endless_empty_pages_are_backed_off() {
    let clock = ManualClock::new();
    let script = Script::pages(|number, _| page(vec![event(0, "x")], Some(format!("c{number}")), true));
    let (mut stream, log) = script.follow(&clock, polling());
    assert_eq!(take(&clock, &mut stream, 1).await, numbered(0..1));
    assert!(run_to(&clock, Duration::from_secs(2), stream.next()).await.is_none());
    let asked = log.lock().unwrap().len();
    assert!((4..=7).contains(&asked), "{asked} questions in 2 s");
}

#[tokio::test]
async fn failures_are_repeated_within_a_budget_and_refusals_are_not() {
    let clock = ManualClock::new();
    let busy = || answer(503).with_retryable(true);
    let (mut stream, log) = Script::pages(move |_, _| Err(busy())).follow(&clock, polling());
    let error = run(&clock, stream.next()).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::StreamCut, Some(503)));
    assert_eq!(log.lock().unwrap().len(), 11);

    let hint = move |seconds| {
        move |number, query| match number {
            0 => Err(answer(429).with_retryable(true).with_retry_after(Duration::from_secs(seconds))),
            _ => page_of(1, 7, &query),
        }
    };
    let start = clock.elapsed();
    let (mut stream, _) = Script::pages(hint(90)).follow(&clock, polling());
    assert_eq!(take(&clock, &mut stream, 1).await, numbered(0..1));
    assert_eq!(clock.elapsed() - start, Duration::from_secs(90));
    let (mut stream, _) = Script::pages(hint(301)).follow(&clock, polling());
    assert_eq!(run(&clock, stream.next()).await.unwrap().unwrap_err().status(), Some(429));

    let (mut stream, log) = Script::pages(|_, _| Err(answer(404))).follow(&clock, polling());
    assert_eq!(run(&clock, stream.next()).await.unwrap().unwrap_err().status(), Some(404));
    assert_eq!(log.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn without_following_it_ends_with_the_last_event_there_is() {
    let clock = ManualClock::new();
    for mode in [EventMode::Poll, EventMode::Auto, EventMode::Sse] {
        let options = EventOptions::new().mode(mode).follow(false);
        let (mut stream, _) = Script::pages(|_, query| page_of(20, 7, &query)).follow(&clock, options);
        assert_eq!(drain(&clock, &mut stream).await.unwrap(), numbered(0..20));
    }
    assert_eq!(clock.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn events_without_ids_come_once_each() {
    let clock = ManualClock::new();
    let tick = || serde_json::from_str(r#"{"type":"tick"}"#).unwrap();
    let script = Script::pages(move |number, query| match query.cursor.as_deref() {
        None if number < 3 => page(vec![tick(), tick()], None, false),
        None => page(vec![tick(), tick()], Some("c1".into()), true),
        _ => page(vec![tick(), event(1, "x")], None, false),
    });
    let (mut stream, _) = script.follow(&clock, polling());
    assert_eq!(take(&clock, &mut stream, 4).await, ["- ", "- ", "- ", "e1 x"]);
}

#[tokio::test]
async fn only_one_tasks_events_are_given_out_where_asked_for() {
    let clock = ManualClock::new();
    let script = Script::pages(|_, _| {
        let of = |id: &str, task: &str| {
            serde_json::from_value(serde_json::json!({"id": id, "type": "response", "taskId": task})).unwrap()
        };
        page(
            vec![of("p1", "p0"), of("r1", "p1"), of("r2", "p2"), of("r3", "p1"), of("r4", "p2")],
            None,
            false,
        )
    });
    let (mut stream, _) = script.follow(&clock, polling().task("p1").follow(false));
    assert_eq!(drain(&clock, &mut stream).await.unwrap(), ["p1 ", "r1 ", "r3 "]);
}

/// A page of what comes after a cursor in a list whose event 5 grows until `grown`.
fn page_of_growing(grown: bool, query: &PageQuery) -> Result<EventPage> {
    let mut page = page_of(if grown { 8 } else { 6 }, 100, query)?;
    for event in page.events.iter_mut().filter(|event| !grown && event.id() == Some("e5")) {
        *event = growing(5, "half");
    }
    Ok(page)
}

#[tokio::test]
async fn what_grows_when_now_is_looked_up_is_seen_to_its_end() {
    let clock = ManualClock::new();
    let script = Script::pages(|number, query| page_of_growing(number >= 3, &query));
    let (mut stream, _) = script.follow(&clock, polling().from_start(false));
    assert_eq!(take(&clock, &mut stream, 3).await, numbered(5..8));
}

#[tokio::test]
async fn a_cursor_stored_while_an_event_grows_leads_to_its_end() {
    let clock = ManualClock::new();
    let script = Script::pages(|_, query| page_of_growing(false, &query));
    let (mut stream, _) = script.follow(&clock, polling().follow(false));
    assert_eq!(drain(&clock, &mut stream).await.unwrap().last().unwrap(), "e5 half");
    let cursor = stream.cursor().unwrap().to_owned();
    let script = Script::pages(|_, query| page_of_growing(true, &query));
    let (mut rest, _) = script.follow(&clock, polling().cursor(cursor).follow(false));
    assert_eq!(drain(&clock, &mut rest).await.unwrap(), numbered(5..8));
}

#[tokio::test]
async fn a_last_page_with_a_cursor_hides_nothing_that_grows() {
    let clock = ManualClock::new();
    let script = Script::pages(|number, query| {
        let page = page_of_growing(number >= 3, &query)?;
        let next = page.events.last().and_then(super::super::position::cursor_after);
        Ok(EventPage { next_cursor: next, ..page })
    });
    let (mut stream, _) = script.follow(&clock, polling());
    assert_eq!(take(&clock, &mut stream, 9).await[5..], ["e5 half", "e5 x", "e6 x", "e7 x"]);
}
