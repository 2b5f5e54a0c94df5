//! What becomes of a prompt: its end, its events, its answer.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use sandboxer::{CallOptions, Error, ErrorKind, EventMode, EventOptions, Result, clock::Clock as _};
use serde_json::{Value, json};

use super::{
    leaping::Leaping,
    service::{Reply, Service},
    twins::{Client, Events, Run, Twin, of, on, on_both},
    waits::seconds,
};

const STATUS: &str = "GET /sandboxes/bx_1/prompts/p1";

/// How far the prompt is.
pub(crate) fn prompt(status: &str) -> Reply {
    let done = matches!(status, "finished" | "failed" | "interrupted");
    let run = json!({"id": "p1", "promptId": "p1", "status": status, "done": done, "conversationId": "c1"});
    Reply::json(200, &json!({"ok": true, "type": "prompt.run", "id": "bx_1", "promptRun": run}))
}

fn events(list: &[Value], next: Option<&str>) -> Reply {
    let info = json!({"nextCursor": next, "hasMore": next.is_some(), "limit": 50});
    let page = json!({"ok": true, "type": "events.list", "id": "bx_1", "events": list, "pageInfo": info});
    Reply::json(200, &page)
}

fn response(id: &str, task: &str, content: &str, streaming: bool) -> Value {
    json!({"id": id, "type": "response", "timestamp": 1_767_226_200_001_i64, "taskId": task, "conversationId": "c1",
        "data": {"content": content, "is_streaming": streaming}})
}

fn run(client: &Client) -> Run {
    of!(client.sandbox() => prompt_run("p1"))
}

impl Run {
    fn events(&self, options: EventOptions) -> Events {
        match self {
            Twin::Async(runtime, run) => Twin::Async(runtime.clone(), run.events_with(options).unwrap()),
            Twin::Blocking(run) => Twin::Blocking(run.events_with(options).unwrap()),
        }
    }

    fn conversation_id(&self) -> Option<&str> {
        match self {
            Twin::Async(_, run) => run.conversation_id(),
            Twin::Blocking(run) => run.conversation_id(),
        }
    }
}

#[test]
fn a_wait_answers_however_the_run_ends() {
    on_both(|client| {
        for status in ["finished", "failed", "interrupted"] {
            let service = Service::start(move |_, before| prompt(["queued", "running", status][before]));
            let clock = Leaping::new();
            let run = run(&client(&service, &clock));
            let ended = on!(run => wait()).unwrap();
            assert_eq!((ended.status.as_str(), ended.done), (status, true));
            assert_eq!(run.conversation_id(), Some("c1"));
            assert_eq!(service.count(), 3);
            assert_eq!(clock.elapsed(), Duration::from_millis(110));
        }
    });
}

#[test]
fn a_wait_has_no_limit_of_its_own() {
    on_both(|client| {
        let clock = Leaping::new();
        let service = Service::start({
            let clock = clock.clone();
            // Longer than any other wait takes at most.
            move |_, _| prompt(if clock.elapsed() < seconds(2_000) { "running" } else { "finished" })
        });
        on!(run(&client(&service, &clock)) => wait()).unwrap();
        assert!((seconds(2_000)..=seconds(2_002)).contains(&clock.elapsed()), "{:?}", clock.elapsed());
    });
}

#[test]
fn an_answer_that_grows_is_looked_at_again_for_two_seconds() {
    on_both(|client| {
        for looks in [1, 3, 5, 6, 99] {
            let clock = Leaping::new();
            let service = Service::start(move |request, before| {
                let last = match before + 1 < looks {
                    true => response("r2", "p1", "fi", true),
                    false => response("r2", "p1", "final", false),
                };
                match request.call.as_str() {
                    STATUS => prompt("finished"),
                    _ => events(&[last, response("r1", "p1", "on my way", false)], None),
                }
            });
            let answer = on!(run(&client(&service, &clock)) => text());
            if looks <= 5 {
                assert_eq!(answer.unwrap(), "final", "{looks}");
            } else {
                let error: Error = answer.unwrap_err();
                assert_eq!((error.kind(), error.code()), (ErrorKind::StreamCut, "answer_incomplete"));
                let details = json!({"promptId": "p1", "partial": "fi", "before": "on my way"});
                assert_eq!((error.details(), error.sandbox_id()), (Some(&details), Some("bx_1")));
                assert!(error.is_retryable());
            }
            let pauses = looks.min(5) - 1;
            assert_eq!(clock.pauses(), vec![Duration::from_millis(500); pauses], "{looks}");
            assert_eq!(service.count(), 1 + looks.min(5));
        }
    });
}

#[test]
fn a_total_limit_covers_the_wait_and_the_answer() {
    on_both(|client| {
        let clock = Leaping::new();
        let service = Service::start({
            let clock = clock.clone();
            move |request, _| match request.call.as_str() {
                STATUS => prompt("finished"),
                _ => {
                    clock.expire(seconds(30));
                    events(&[], None).held()
                }
            }
        });
        let view = client(&service, &clock).with(CallOptions::new().total(seconds(30)));
        let error: Error = on!(run(&view) => text()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert_eq!(clock.elapsed(), seconds(30));
    });
}

#[test]
fn the_events_of_a_run_go_on_to_the_end_of_its_last_response() {
    on_both(|client| {
        for (status, grown, ends_well) in [
            ("finished", 3, true),
            ("finished", 99, false),
            ("interrupted", 3, true),
            ("interrupted", 99, true),
        ] {
            let (half, pages) = (response("r2", "p1", "fi", true), AtomicUsize::new(0));
            let service = Service::start(move |request, _| match request.call.as_str() {
                STATUS => prompt(status),
                _ if request.wants_events() => Reply::events(format!("id: n2\ndata: {half}\n\n")).held(),
                _ if pages.fetch_add(1, Ordering::Relaxed) < grown => {
                    events(std::slice::from_ref(&half), None)
                }
                _ => events(&[response("r2", "p1", "final", false)], None),
            });
            let clock = Leaping::new();
            let mut stream = run(&client(&service, &clock)).events(EventOptions::new());
            let (mut contents, mut failure) = (Vec::new(), None);
            while let Some(event) = stream.next() {
                match event {
                    Ok(event) => contents.push(event.as_response().unwrap().content.to_owned()),
                    Err(error) => failure = Some(error),
                }
            }
            assert_eq!(contents, if grown == 99 { vec!["fi"] } else { vec!["fi", "final"] });
            assert_eq!(failure.as_ref().map(Error::code), (!ends_well).then_some("answer_incomplete"));
            let waited = if grown == 99 { 4 } else { grown as u32 };
            assert_eq!(clock.elapsed(), Duration::from_millis(500) * waited, "{status} {grown}");
        }
    });
}

#[test]
fn the_events_of_a_run_are_its_own_and_end_with_it() {
    on_both(|client| {
        for mode in [EventMode::Auto, EventMode::Poll] {
            let data = |id: &str, task: &str| response(id, task, "x", false);
            let service = Service::start(move |request, before| match request.call.as_str() {
                STATUS => prompt(if before < 3 { "running" } else { "finished" }),
                _ if request.wants_events() => {
                    let data = data("r0", "p1");
                    Reply::events(format!("id: n1\ndata: {data}\n\nid: n2\ndata: {data}\n\n")).held()
                }
                _ if request.param("cursor") == Some("n3") => events(&[data("r3", "p1")], None),
                _ => events(&[data("r0", "p1"), data("r1", "p2"), data("r2", "p1")], Some("n3")),
            });
            let clock = Leaping::new();
            let own = run(&client(&service, &clock));
            on!(own => status()).unwrap();
            let mut stream = own.events(EventOptions::new().mode(mode).poll_interval(seconds(3)));
            let mut ids = Vec::new();
            while let Some(event) = stream.next() {
                ids.push(event.unwrap().id().unwrap().to_owned());
            }
            assert_eq!(ids, ["r0", "r2", "r3"], "{mode:?}");
            // The run was running at two looks of the stream: the third, 6 s after the first, ended it. Between pages
            // there are pauses of their own.
            let looks = service.requests().iter().filter(|request| request.call == STATUS).count();
            assert_eq!(looks, 4, "{mode:?}");
            assert!(mode == EventMode::Poll || clock.elapsed() == seconds(6), "{:?}", clock.elapsed());
            let asked = service.requests();
            let asked: Vec<_> = asked.iter().filter(|request| request.call.ends_with("/events")).collect();
            assert!(asked.iter().all(|request| request.param("conversation") == Some("c1")));
        }
        let service = Service::start(|request, _| match request.call.as_str() {
            STATUS => prompt("finished"),
            _ => events(&[], None),
        });
        let clock = Leaping::new();
        let ended: Option<Result<_>> = run(&client(&service, &clock)).events(EventOptions::new()).next();
        assert!(ended.is_none());
        assert_eq!(clock.elapsed(), seconds(0));
    });
}
