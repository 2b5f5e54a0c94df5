//! Events over connections that are cut, mode by mode.

use std::{
    sync::{Mutex, mpsc},
    thread,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sandboxer::{ErrorKind, EventMode, EventOptions, clock::Clock as _};
use serde_json::{Value, json};

use super::{
    leaping::Leaping,
    service::{Reply, Request, Service},
    twins::{Events, on_both},
};

const MILLISECOND: Duration = Duration::from_millis(1);

fn value(number: usize, content: &str) -> Value {
    json!({"id": format!("e{number}"), "type": "response", "timestamp": 1000 + number, "taskId": "p1",
        "data": {"content": content}})
}

/// The cursor after event `number`, as the service makes them.
fn cursor(number: usize) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}:e{number}", 1000 + number))
}

/// The number of the first event after a cursor.
fn first_after(cursor: Option<&str>) -> usize {
    let Some(cursor) = cursor else { return 0 };
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).unwrap()).unwrap();
    text.split_once(":e").unwrap().1.parse::<usize>().unwrap() + 1
}

fn message(number: usize, content: &str) -> String {
    format!("id: {}\ndata: {}\n\n", cursor(number), value(number, content))
}

/// Event `number` among a comment, a `retry:`, named control messages and blocks with nothing but an id, and the
/// beginning of the next event, at which the connection is cut.
fn one_among_others(number: usize) -> String {
    format!(
        ": welcome\n\nretry: {}\n\nevent: ping\ndata: {{}}\n\n{}id: {}\n\nevent: heartbeat\n\nevent: sync\nid: {}\n\
         data: 1\n\n: bye\nid: {}\ndata: {{\"type\":\"resp",
        retry(number).as_millis(),
        message(number, "x"),
        cursor(number),
        cursor(number),
        cursor(number + 1),
    )
}

/// What the connection of event `number` asks for: longer than any pause after news would be.
fn retry(number: usize) -> Duration {
    Duration::from_millis(250) + 100 * MILLISECOND * u32::try_from(number).unwrap()
}

fn page(first: usize, end: usize, total: usize) -> Reply {
    let events: Vec<Value> = (first..end).map(|number| value(number, "x")).collect();
    let more = end < total;
    let info = json!({"nextCursor": more.then(|| cursor(end - 1)), "hasMore": more, "limit": 100});
    Reply::json(
        200,
        &json!({"ok": true, "type": "events.list", "id": "bx_1", "events": events, "pageInfo": info}),
    )
}

fn take(events: &mut Events, count: usize) -> Vec<String> {
    let next = |events: &mut Events| {
        let event = events.next().expect("the stream goes on").unwrap();
        let content = event.as_response().map(|response| response.content.to_owned()).unwrap_or_default();
        format!("{} {content}", event.id().unwrap_or("-"))
    };
    (0..count).map(|_| next(events)).collect()
}

fn numbered(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("e{number} x")).collect()
}

fn options(mode: EventMode) -> EventOptions {
    EventOptions::new().mode(mode)
}

/// Every connection for events asks with the cursor both ways.
fn asks_alike(request: &Request) {
    assert_eq!(request.header("last-event-id"), request.param("cursor"), "{request:?}");
}

#[test]
fn a_cut_after_each_of_twenty_events_loses_and_repeats_none() {
    on_both(|client| {
        for mode in [EventMode::Sse, EventMode::Auto] {
            let service = Service::start(|request, _| {
                assert!(request.wants_events());
                match first_after(request.param("cursor")) {
                    20 => Reply::failure(404, "not_found"),
                    number => Reply::events(one_among_others(number)),
                }
            });
            let clock = Leaping::new();
            let mut events = client(&service, &clock).sandbox().events(options(mode));
            assert_eq!(take(&mut events, 20), numbered(0..20));
            assert_eq!(events.cursor(), Some(cursor(19)));
            assert_eq!(events.next().unwrap().unwrap_err().status(), Some(404));
            assert!(events.next().is_none());

            let asked: Vec<Option<String>> =
                std::iter::once(None).chain((0..20).map(|n| Some(cursor(n)))).collect();
            assert_eq!(service.params("cursor"), asked);
            service.requests().iter().for_each(asks_alike);
            // Each pause is what the service asked for on the connection before it.
            assert_eq!(clock.pauses(), (0..20).map(retry).collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_cut_after_each_of_twenty_polled_events_loses_and_repeats_none() {
    on_both(|client| {
        // Every question is answered with one event more than the one before, and every other answer breaks off.
        let service = Service::start(|request, before| {
            assert!(!request.wants_events() && request.header("last-event-id").is_none());
            let total = 1 + before / 2;
            let first = first_after(request.param("cursor")).min(total);
            match before % 2 {
                0 => page(first, total, total),
                _ => Reply::json(
                    200,
                    &json!({"ok": true, "type": "events.list", "events": [value(99, "half")]}),
                )
                .cut(),
            }
        });
        let clock = Leaping::new();
        let mut events = client(&service, &clock).sandbox().events(options(EventMode::Poll));
        assert_eq!(take(&mut events, 20), numbered(0..20));
        assert_eq!(events.cursor(), Some(cursor(19)));
        assert_eq!(service.count(), 39);
        let seconds = clock.pauses().iter().filter(|pause| **pause == Duration::from_secs(1)).count();
        // One after each answer, besides those before a failed question is asked again.
        assert_eq!(seconds, 20, "{:?}", clock.pauses());
    });
}

#[test]
fn a_service_that_has_or_keeps_no_stream_is_polled_from_where_it_was() {
    on_both(|client| {
        for streamed in [0, 7] {
            for no_stream in [406, 415, 501, 200] {
                let service = Service::start(move |request, _| {
                    let first = first_after(request.param("cursor"));
                    match request.wants_events() {
                        true if first < streamed => Reply::events(one_among_others(first)),
                        true if no_stream == 200 => page(0, 20, 20),
                        true => Reply::failure(no_stream, "not_acceptable"),
                        false => page(first, 20.min(first + 6), 20),
                    }
                });
                let clock = Leaping::new();
                let mut events = client(&service, &clock).sandbox().events(options(EventMode::Auto));
                assert_eq!(take(&mut events, 20), numbered(0..20), "{streamed} {no_stream}");
                let requests = service.requests();
                let streams = requests.iter().take_while(|request| request.wants_events()).count();
                // A 501 is a fault of the service as any other: it is asked three times more.
                let tries = if no_stream == 501 { 4 } else { 1 };
                assert_eq!(streams, streamed + tries);
                assert!(
                    requests[streams..].iter().all(|request| !request.wants_events()),
                    "it is not asked again"
                );
                let pages: Vec<usize> =
                    requests[streams..].iter().map(|request| first_after(request.param("cursor"))).collect();
                let expected: Vec<usize> = (streamed..20).step_by(6).collect();
                assert_eq!(pages, expected);
                // What the service asked for, and a second that has begun after the last page.
                let mut pauses = clock.pauses();
                pauses.drain(streamed..streamed + tries - 1);
                let expected: Vec<Duration> = (0..streamed).map(retry).chain([1000 * MILLISECOND]).collect();
                assert_eq!(pauses, expected);

                let mut events =
                    client(&service, &clock).sandbox().events(options(EventMode::Sse).cursor(cursor(19)));
                let error = events.next().unwrap().unwrap_err();
                let by_status = error.status() == Some(no_stream) && no_stream != 200;
                assert!(by_status || error.code() == "sse_unsupported", "{error}");
            }
        }
    });
}

#[test]
fn a_stored_cursor_goes_on_in_another_client_after_the_last_event_pulled() {
    on_both(|client| {
        for mode in [EventMode::Sse, EventMode::Auto, EventMode::Poll] {
            let service = Service::start(|request, _| {
                let first = first_after(request.param("cursor"));
                match request.wants_events() {
                    true => Reply::events((first..30).map(|number| message(number, "x")).collect::<String>()),
                    false => page(first, 30.min(first + 4), 30),
                }
            });
            let mut stored = None::<String>;
            for stop in [5, 6, 12, 20] {
                // A client of its own each time: nothing but the cursor goes over.
                let (clock, begun) = (Leaping::new(), service.count());
                let from = first_after(stored.as_deref());
                let options = stored.iter().fold(options(mode), |options, cursor| options.cursor(cursor));
                let mut events = client(&service, &clock).sandbox().events(options);
                assert_eq!(events.cursor(), stored);
                assert_eq!(take(&mut events, stop - from), numbered(from..stop), "{mode:?}");
                assert_eq!(service.requests()[begun].param("cursor"), stored.as_deref());
                stored = events.cursor();
                assert_eq!(stored, Some(cursor(stop - 1)));
            }
        }
    });
}

#[test]
fn the_latest_content_is_never_suppressed() {
    on_both(|client| {
        let contents = ["A", "A", "B", "A", "A", "C"];
        for mode in [EventMode::Sse, EventMode::Poll] {
            let service = Service::start(move |request, before| {
                let content = contents[before.min(5)];
                match request.wants_events() {
                    true => Reply::events(message(1, content)),
                    false => Reply::json(
                        200,
                        &json!({"ok": true, "type": "events.list", "id": "bx_1", "events": [value(1, content)],
                            "pageInfo": {"nextCursor": null, "hasMore": false, "limit": 100}}),
                    ),
                }
            });
            let clock = Leaping::new();
            let mut events = client(&service, &clock).sandbox().events(options(mode));
            assert_eq!(take(&mut events, 4), ["e1 A", "e1 B", "e1 A", "e1 C"], "{mode:?}");
        }
    });
}

#[test]
fn the_last_4096_events_are_remembered_and_no_more() {
    on_both(|client| {
        let service = Service::start(|_, before| match before {
            0 => Reply::events((0..5000).map(|number| message(number, "x")).collect::<String>()),
            // The last 4,096 again: none of them is news. Then one that is forgotten, and a new one.
            1 => Reply::events(
                (904..5000).chain([903, 5000]).map(|number| message(number, "x")).collect::<String>(),
            ),
            _ => Reply::failure(404, "not_found"),
        });
        let clock = Leaping::new();
        let mut events = client(&service, &clock).sandbox().events(options(EventMode::Sse));
        assert_eq!(take(&mut events, 5000), numbered(0..5000));
        assert_eq!(take(&mut events, 2), ["e903 x", "e5000 x"]);
        assert_eq!(events.next().unwrap().unwrap_err().status(), Some(404));
    });
}

#[test]
fn heartbeats_are_life_and_silence_is_the_end_of_a_connection() {
    on_both(|client| {
        let (feed, fed) = mpsc::channel();
        let fed = Mutex::new(Some(fed));
        let service = Service::start(move |_, before| match before {
            0 => Reply::events(message(0, "x")).held(),
            1 => Reply::events(message(1, "x")).fed(fed.lock().unwrap().take().unwrap()),
            _ => Reply::events(message(2, "x")).held(),
        });
        let clock = Leaping::new();
        let mut events = client(&service, &clock).sandbox().events(options(EventMode::Sse));
        assert_eq!(take(&mut events, 1), ["e0 x"]);
        // Nothing comes for 45 s: a new connection is made.
        clock.expire(Duration::from_secs(45));
        assert_eq!(take(&mut events, 1), ["e1 x"]);
        assert_eq!(service.count(), 2);
        let silence = clock.elapsed();
        assert!(silence <= Duration::from_millis(45_200), "{silence:?}");
        // A comment every 30 s for five minutes: the connection stays.
        let beating = thread::spawn({
            let clock = clock.clone();
            move || {
                for _ in 0..10 {
                    clock.await_sleep(Duration::from_secs(45));
                    clock.advance(Duration::from_secs(30));
                    feed.send(b": beat\n\n".to_vec()).unwrap();
                }
                clock.await_sleep(Duration::from_secs(45));
                drop(feed);
            }
        });
        assert_eq!(take(&mut events, 1), ["e2 x"]);
        beating.join().unwrap();
        assert_eq!(service.count(), 3);
        let all = clock.elapsed() - silence;
        assert!((Duration::from_secs(300)..=Duration::from_millis(300_200)).contains(&all), "{all:?}");
    });
}

#[test]
fn connections_that_bring_nothing_are_backed_off_and_given_up() {
    on_both(|client| {
        let service = Service::start(|_, _| Reply::events(""));
        let clock = Leaping::new();
        let mut events = client(&service, &clock).sandbox().events(options(EventMode::Sse).cursor(cursor(7)));
        let error = events.next().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StreamCut);
        assert!(events.next().is_none());
        assert_eq!(events.cursor(), Some(cursor(7)));
        assert_eq!(service.params("cursor"), vec![Some(cursor(7)); 11]);
        let bounds = [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000];
        let pauses = clock.pauses();
        assert_eq!(pauses.len(), bounds.len());
        for (pause, bound) in pauses.iter().zip(bounds.map(|bound| bound * MILLISECOND)) {
            assert!((bound..=2 * bound).contains(pause), "{pauses:?}");
        }
    });
}
