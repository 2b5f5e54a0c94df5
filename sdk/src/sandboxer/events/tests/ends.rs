//! The end of a run, and what still grows then.

use std::time::Duration;

use serde_json::json;

use super::super::{Event, EventMode, EventOptions, EventPage, EventStream, Finish};
use super::script::*;
use crate::{
    clock::{Clock as _, ManualClock},
    error::{ErrorKind, Result},
};

/// The same stream, ended in this way when it is asked for the nth time.
fn ended(stream: EventStream, times: usize, finish: Finish) -> EventStream {
    let mut asked = 0;
    stream.until_over(move || {
        asked += 1;
        let answer = (asked >= times).then_some(finish);
        async move { Ok(answer) }
    })
}

/// A page after a cursor, of events 0 to 6, of which the fourth grows until `grown`.
fn page_with(grown: bool, after: Option<&str>) -> Result<EventPage> {
    let first = number_of(after).map_or(0, |number| number + 1);
    let of = |number| match number {
        4 if !grown => growing(4, "half"),
        5 | 6 => tools(number),
        _ => event(number, "x"),
    };
    page((first..7).map(of).collect(), None, false)
}

/// An event of a tool, which completes no response.
fn tools(number: usize) -> Event {
    let mut event = value(number, "");
    event["data"]["tools"] = json!([{"use": {"name": "bash"}}]);
    Event::read(event).unwrap()
}

fn polling() -> EventOptions {
    EventOptions::new().mode(EventMode::Poll)
}

const ALL: [&str; 7] = ["e0 x", "e1 x", "e2 x", "e3 x", "e4 half", "e5 ", "e6 "];

#[tokio::test]
async fn what_grows_at_the_end_is_seen_to_its_end() {
    for (grown_after, waited) in [(1, 500), (4, 2000)] {
        for finish in [Finish::Complete, Finish::Settled] {
            let clock = ManualClock::new();
            let script =
                Script::pages(move |number, query| page_with(number >= grown_after, query.cursor.as_deref()));
            let (stream, log) = script.follow(&clock, polling());
            let seen = drain(&clock, &mut ended(stream, 1, finish)).await.unwrap();
            assert_eq!((&seen[..7], &seen[7..]), (&ALL.map(str::to_owned)[..], &["e4 x".to_owned()][..]));
            assert_eq!(clock.elapsed(), Duration::from_millis(waited));
            assert_eq!(log.lock().unwrap().len(), grown_after + 1);
        }
    }
}

#[tokio::test]
async fn a_connection_that_never_tells_the_end_of_a_response_is_left_for_pages_from_before_it() {
    let clock = ManualClock::new();
    let half = serde_json::to_string(&growing(4, "half")).unwrap();
    let text: String = (0..4).map(|number| message(number, "x")).collect();
    let text = format!("{text}id: {}\ndata: {half}\n\n{}", cursor(4), message(5, ""));
    let script = Script::new(
        move |_, _| stays_open(&*text),
        |number, query| page_with(number >= 1, query.cursor.as_deref()),
    );
    let (stream, log) = script.follow(&clock, EventOptions::new());
    let seen = drain(&clock, &mut ended(stream, 3, Finish::Complete)).await.unwrap();
    assert_eq!(seen.iter().filter(|seen| seen.starts_with("e4")).collect::<Vec<_>>(), ["e4 half", "e4 x"]);
    assert_eq!(clock.elapsed(), Duration::from_millis(2500), "two seconds to the end, and a pause");
    let asked: Vec<_> = log.lock().unwrap().iter().map(|asked| number_of(asked.cursor())).collect();
    assert_eq!(asked, [None, Some(3), Some(3)]);
}

#[tokio::test]
async fn a_response_that_stays_incomplete_is_an_error_of_a_run_that_finished() {
    for (finish, waited) in [(Finish::Complete, 2000), (Finish::Settled, 2000), (Finish::AsItIs, 0)] {
        let clock = ManualClock::new();
        let script = Script::pages(|_, query| page_with(false, query.cursor.as_deref()));
        let (stream, log) = script.follow(&clock, polling().task("p1"));
        let mut stream = ended(stream, 1, finish);
        assert_eq!(take(&clock, &mut stream, 7).await, ALL);
        let end = run(&clock, stream.next()).await;
        if finish == Finish::Complete {
            let error = end.unwrap().unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::StreamCut, "answer_incomplete"));
            assert_eq!(error.details(), Some(&json!({"promptId": "p1", "eventId": "e4"})));
            assert_eq!(error.sandbox_id(), Some("bx_1"));
            assert!(run(&clock, stream.next()).await.is_none());
        } else {
            assert!(end.is_none());
        }
        assert_eq!(clock.elapsed(), Duration::from_millis(waited), "{finish:?}");
        assert_eq!(log.lock().unwrap().len(), if waited == 0 { 1 } else { 5 });
        assert_eq!(stream.cursor(), Some(&*cursor(3)), "another stream can see its end");
    }
}

#[tokio::test]
async fn what_grows_for_another_task_or_was_overtaken_is_not_waited_for() {
    let other = || {
        let mut event = value(5, "ha");
        event["taskId"] = "p2".into();
        event["data"]["is_streaming"] = true.into();
        Event::read(event).unwrap()
    };
    for events in [|other| vec![event(4, "x"), other], |other| vec![growing(3, "ha"), event(4, "x"), other]] {
        let clock = ManualClock::new();
        let script = Script::pages(move |_, _| page(events(other()), None, false));
        let (stream, log) = script.follow(&clock, polling().task("p1"));
        let seen = drain(&clock, &mut ended(stream, 1, Finish::Complete)).await.unwrap();
        assert_eq!(seen.last().unwrap(), "e4 x");
        assert_eq!((clock.elapsed(), log.lock().unwrap().len()), (Duration::ZERO, 1));
    }
}

#[tokio::test]
async fn many_pages_after_what_grows_are_not_walked_again() {
    let clock = ManualClock::new();
    let script = Script::pages(|number, query| {
        let mut page = page_of(250, 100, &query)?;
        for event in page.events.iter_mut().filter(|event| number < 5 && event.id() == Some("e4")) {
            *event = growing(4, "half");
        }
        for event in &mut page.events {
            let number = event.timestamp().map(|time| (time - 1000) as usize).filter(|number| *number > 4);
            *event = number.map_or_else(|| event.clone(), tools);
        }
        Ok(page)
    });
    let (stream, log) = script.follow(&clock, polling());
    let seen = drain(&clock, &mut ended(stream, 1, Finish::Complete)).await.unwrap();
    assert_eq!((seen.len(), &*seen[4], &*seen[250]), (251, "e4 half", "e4 x"));
    let asked: Vec<_> = log.lock().unwrap().iter().map(|asked| number_of(asked.cursor())).collect();
    assert_eq!(asked, [None, Some(99), Some(199), None, Some(199), None, Some(199)]);
    assert_eq!(clock.elapsed(), Duration::from_secs(1), "two pauses, and none on the way");
}

#[tokio::test]
async fn a_response_that_stays_incomplete_is_waited_for_as_long_whatever_follows_it() {
    for (total, pages) in [(90, 1 + 4), (900, 9 + 4 * 2), (1500, 15 + 4 * 2)] {
        let clock = ManualClock::new();
        let script = Script::pages(move |_, query| {
            let mut page = page_of(total, 100, &query)?;
            for event in &mut page.events {
                let number = event.timestamp().map(|time| (time - 1000) as usize);
                *event = match number {
                    Some(4) => growing(4, "half"),
                    Some(number) if number > 4 => tools(number),
                    _ => continue,
                };
            }
            Ok(page)
        });
        let (stream, log) = script.follow(&clock, polling().task("p1"));
        let mut stream = ended(stream, 1, Finish::Complete);
        assert_eq!(take(&clock, &mut stream, total).await.len(), total);
        let error = run(&clock, stream.next()).await.unwrap().unwrap_err();
        assert_eq!((error.code(), &error.details().unwrap()["eventId"]), ("answer_incomplete", &json!("e4")));
        assert_eq!((clock.elapsed(), log.lock().unwrap().len()), (Duration::from_secs(2), pages), "{total}");
    }
}

#[tokio::test]
async fn tools_that_stay_incomplete_after_a_whole_answer_are_no_error() {
    let clock = ManualClock::new();
    let script = Script::pages(|_, _| {
        let mut batch = value(5, "");
        batch["data"] = json!({"content": "", "tools": [{"use": {"name": "bash"}}], "is_streaming": true});
        page(vec![event(4, "all"), Event::read(batch).unwrap()], None, false)
    });
    let (stream, _) = script.follow(&clock, polling().task("p1"));
    let seen = drain(&clock, &mut ended(stream, 1, Finish::Complete)).await.unwrap();
    assert_eq!(seen, ["e4 all", "e5 "]);
    assert_eq!(clock.elapsed(), Duration::from_secs(2), "they had their while to be complete");
}

#[tokio::test]
async fn what_grows_is_found_where_it_was_moved_to() {
    // The fourth event is changed while the pages are read, and stands behind the 150th then, or nowhere.
    for (moved, looks) in [(Some(150), 3), (None, 3)] {
        let clock = ManualClock::new();
        let script = Script::pages(move |number, query| {
            let mut page = page_of(250, 100, &query)?;
            for event in &mut page.events {
                let place = event.timestamp().map(|time| (time - 1000) as usize);
                *event = match place {
                    Some(4) if number < 3 => growing(4, "half"),
                    Some(4) => tools(3),
                    Some(place) if number >= 3 && moved == Some(place) => super::script::event(4, "x"),
                    Some(place) if place > 4 => tools(place),
                    _ => continue,
                };
            }
            Ok(page)
        });
        let (stream, log) = script.follow(&clock, polling());
        let seen = drain(&clock, &mut ended(stream, 1, Finish::Complete)).await.unwrap();
        assert_eq!(seen.iter().filter(|seen| *seen == "e4 x").count(), usize::from(moved.is_some()));
        let asked: Vec<_> = log.lock().unwrap().iter().map(|asked| number_of(asked.cursor())).collect();
        assert_eq!(asked[3..looks + 2], [None, Some(99)], "{moved:?}");
        assert_eq!((asked[looks + 2], asked.len()), (Some(199), looks + 3), "{moved:?}");
        assert_eq!(clock.elapsed(), Duration::from_millis(500), "no pause on the way");
    }
}

#[tokio::test]
async fn what_was_moved_far_is_looked_for_a_part_of_the_way_at_a_time() {
    // Pages without an end to them and without what is looked for.
    let clock = ManualClock::new();
    let script = Script::pages(|number, query| match (number, query.cursor.as_deref()) {
        (0, _) => page(vec![growing(4, "half")], Some(cursor(4)), true),
        (_, Some(after)) if after == cursor(9000) => page(vec![tools(9001)], None, false),
        (1, _) => page(vec![tools(5)], Some(cursor(9000)), true),
        _ => page(vec![tools(5)], Some(cursor(5 + number)), true),
    });
    let (stream, log) = script.follow(&clock, polling());
    let mut stream = ended(stream, 1, Finish::Complete);
    assert_eq!(take(&clock, &mut stream, 3).await, ["e4 half", "e5 ", "e9001 "]);
    assert_eq!(run(&clock, stream.next()).await.unwrap().unwrap_err().code(), "answer_incomplete");
    assert_eq!((clock.elapsed(), log.lock().unwrap().len()), (Duration::from_secs(2), 3 + 4 * 21));
}
