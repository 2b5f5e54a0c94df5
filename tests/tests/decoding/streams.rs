//! The cases of streams: a command's output, an attached command's, and events; through the verbs of both twins.

use std::collections::BTreeMap;

use sandboxer::{Error, Event, EventMode, EventOptions, Output, Result, stream::Chunk};
use serde_json::{Value, json};

use crate::{
    corpus::{self, Case},
    wire::{Wire, check_error},
};

const SANDBOX: &str = "bx_7k2mq9xd";
const KEPT: usize = 1 << 20;

/// What a stream told.
#[derive(Debug)]
struct Told {
    gives: Vec<String>,
    end: Result<Output>,
    offsets: Option<[u64; 2]>,
}

impl Told {
    fn refused(error: Error) -> Self {
        Self { gives: Vec::new(), end: Err(error), offsets: None }
    }
}

fn said(chunk: &Chunk) -> String {
    match chunk {
        Chunk::Gap(gap) => format!("gap {} {} {}", gap.stream, gap.from, gap.to),
        other => format!("{} {}", other.stream(), other.text()),
    }
}

/// Reads a stream to its end; `$wait` is `await` or nothing.
macro_rules! told {
    ($opened:expr, $next:ident, $offsets:expr $(, $wait:tt)?) => {{
        let mut stream = match $opened {
            Ok(stream) => stream.keep_output(KEPT),
            Err(error) => return Told::refused(error),
        };
        let mut gives = Vec::new();
        while let Some(chunk) = stream.$next()$(.$wait)? {
            match chunk {
                Ok(chunk) => gives.push(said(&chunk)),
                Err(error) => {
                    let again = stream.wait()$(.$wait)?.unwrap_err();
                    assert_eq!((again.kind(), again.code()), (error.kind(), error.code()), "told twice");
                    return Told { gives, end: Err(error), offsets: None };
                }
            }
        }
        let offsets = $offsets(&stream);
        Told { gives, end: stream.wait()$(.$wait)?, offsets }
    }};
}

async fn exec(wire: &Wire) -> Told {
    let sandbox = wire.client.sandbox(SANDBOX);
    told!(sandbox.exec_stream("x").await, next, |_: &sandboxer::ExecStream| None, await)
}

fn exec_blocking(wire: &Wire) -> Told {
    let sandbox = wire.blocking.sandbox(SANDBOX);
    told!(sandbox.exec_stream("x"), next, |_: &sandboxer_blocking::ExecStream| None)
}

async fn attach(wire: &Wire) -> Told {
    let command = wire.client.sandbox(SANDBOX).command(7);
    let offsets = |stream: &sandboxer::Attach| Some([stream.offsets().stdout, stream.offsets().stderr]);
    told!(command.attach().await, next, offsets, await)
}

fn attach_blocking(wire: &Wire) -> Told {
    let command = wire.blocking.sandbox(SANDBOX).command(7);
    let offsets =
        |stream: &sandboxer_blocking::Attach| Some([stream.offsets().stdout, stream.offsets().stderr]);
    told!(command.attach(), next, offsets)
}

fn check(case: &Case, twin: &str, told: Told) {
    let what = format!("{}, {twin}", case.what);
    assert_eq!(told.gives, case.gives, "{what}: {told:?}");
    match (&case.fails, told.end) {
        (Some(fails), Err(error)) => {
            check_error(&what, fails, &error, &case.secrets);
            assert_eq!(error.sandbox_id(), Some(SANDBOX), "{what}");
        }
        (None, Ok(output)) => {
            let offsets = told.offsets;
            for (name, wanted) in case.output.as_ref().and_then(Value::as_object).expect("an output") {
                let found = match name.as_str() {
                    "outcome" => output.outcome().to_string().into(),
                    "stdout" => output.stdout_text().into(),
                    "stderr" => output.stderr_text().into(),
                    "lossy" => output.lossy().into(),
                    "truncated" => output.truncated().into(),
                    "oomKilled" => output.oom_killed().into(),
                    "commandId" => json!(output.command_id()),
                    "cwd" => json!(output.cwd()),
                    "offsets" => json!(offsets),
                    other => panic!("{what}: nothing is called {other}"),
                };
                assert_eq!(&found, wanted, "{what}: {name} of {output:?}");
            }
        }
        (_, end) => panic!("{what}: {end:?}"),
    }
}

#[test]
fn commands_are_read_as_the_corpus_says() {
    let wire = Wire::new(sandboxer::Dialect::default());
    let (commands, get) = (corpus::named("commandStream"), corpus::named("get"));
    let running = get.cases().swap_remove(0);
    for case in commands.cases() {
        let play = || {
            // After a cut the sandbox is looked at.
            let body = case.bodies(false).remove(0);
            let looked = running.bodies(false).remove(0);
            wire.play([
                wire.turn("commandStream", case.status, &case.headers, body),
                wire.turn("get", None, &BTreeMap::new(), looked),
            ]);
        };
        play();
        check(&case, "async", wire.run(exec(&wire)));
        play();
        check(&case, "blocking", exec_blocking(&wire));
    }
}

#[test]
fn attached_commands_are_read_as_the_corpus_says() {
    let wire = Wire::new(sandboxer::Dialect::default());
    for case in corpus::named("attachCommand").cases() {
        wire.answer("attachCommand", &case);
        check(&case, "async", wire.run(attach(&wire)));
        wire.answer("attachCommand", &case);
        check(&case, "blocking", attach_blocking(&wire));
    }
}

fn check_events(case: &Case, twin: &str, events: Vec<Result<Event>>) {
    let what = format!("{}, {twin}", case.what);
    let (mut gives, mut failure) = (Vec::new(), None);
    for event in events {
        match event {
            Ok(event) => gives.push(format!("{} {}", event.kind(), event.id().unwrap_or("-"))),
            Err(error) => failure = Some(error),
        }
    }
    assert_eq!(gives, case.gives, "{what}: {failure:?}");
    match (&case.fails, &failure) {
        (Some(fails), Some(error)) => check_error(&what, fails, error, &case.secrets),
        (None, None) => {}
        _ => panic!("{what}: {failure:?}"),
    }
}

#[test]
fn events_are_read_as_the_corpus_says() {
    let wire = Wire::new(sandboxer::Dialect::default());
    let options = || EventOptions::new().mode(EventMode::Sse).from_start(true);
    for case in corpus::named("eventsStream").cases() {
        // A stream that did not fail would be opened again and again.
        let wanted = case.gives.len() + usize::from(case.fails.is_some());
        wire.answer("eventsStream", &case);
        let events = wire.run(async {
            let mut stream = wire.client.sandbox(SANDBOX).events(options()).unwrap();
            let mut events = Vec::new();
            while events.len() < wanted {
                events.push(stream.next().await.expect("another event"));
            }
            events
        });
        check_events(&case, "async", events);
        wire.answer("eventsStream", &case);
        let stream = wire.blocking.sandbox(SANDBOX).events(options()).unwrap();
        check_events(&case, "blocking", stream.take(wanted).collect());
    }
}
