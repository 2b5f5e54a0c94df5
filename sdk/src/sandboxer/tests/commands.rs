//! Commands in the foreground and in the background.

use std::time::Duration;

use serde_json::json;

use super::service::{Reply, Service, failure, info};
use crate::{
    CallOptions, Command, Delivery, Error, ErrorKind, Offsets, Outcome,
    clock::{Clock as _, ManualClock},
    models::CommandStatusParams,
    stream::{Chunk, Gap, OutputStream},
};

fn finished(exit_code: i64) -> Reply {
    Reply::Json(
        200,
        json!({"ok": true, "type": "command.finished", "success": exit_code == 0, "commandId": "cmd_1",
        "exitCode": exit_code, "stdout": "out", "stderr": "err", "timedOut": false}),
    )
}

fn started() -> Reply {
    Reply::Json(
        200,
        json!({"ok": true, "type": "command.started", "success": true, "commandId": "cmd_1",
        "processId": 7, "pid": 7, "command": "x", "startedAt": "2026-01-01T00:00:00Z"}),
    )
}

#[tokio::test]
async fn a_command_is_sent_with_its_own_fields() {
    let service = Service::start(|_, _| finished(3));
    let sandbox = service.client().sandbox("bx_1");
    let command =
        Command::argv(["echo", "a b"]).cwd("app").env("A", "1").timeout(Duration::from_millis(1500));
    let output = sandbox.exec(command).await.unwrap();
    assert_eq!((output.outcome(), output.command_id()), (Outcome::Exited(3), Some("cmd_1")));
    assert_eq!(output.check().unwrap_err().sandbox_id(), Some("bx_1"));
    let expected = json!({"command": "echo 'a b'", "cwd": "app", "env": {"A": "1"}, "timeoutSeconds": 2});
    assert_eq!(service.requests()[0].body, expected);
    sandbox.exec("true").await.unwrap();
    assert_eq!(service.requests()[1].body, json!({"command": "true"}));
}

#[tokio::test]
async fn a_short_total_lowers_the_commands_limit() {
    let service = Service::start(|_, _| finished(0));
    let sandbox = service.client().sandbox("bx_1");
    let short = sandbox.with(CallOptions::new().total(Duration::from_millis(5900)));
    short.exec("true").await.unwrap();
    assert_eq!(service.requests()[0].body["timeoutSeconds"], 5);
    let none = sandbox.with(CallOptions::new().total(Duration::from_millis(900)));
    assert_eq!(none.exec("true").await.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn bad_commands_are_refused_before_anything_is_sent() {
    let service = Service::start(|_, _| finished(0));
    let sandbox = service.client().sandbox("bx_1");
    let bad = [
        (Command::shell(""), "command"),
        (Command::argv(Vec::<String>::new()), "command"),
        (Command::shell("a\0b"), "command"),
        (Command::shell("a").timeout(Duration::ZERO), "timeout"),
        (Command::shell("a").timeout(Duration::from_secs(601)), "timeout"),
        (Command::shell("a").env("A=B", "x"), "env"),
        (Command::shell("a").env("A", "secret\0"), "env"),
    ];
    for (command, field) in bad {
        let error = sandbox.exec(command.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{command:?}");
        assert!(error.message().contains(field) && !error.message().contains("secret"), "{error}");
        assert_eq!(sandbox.exec_stream(command.clone()).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(sandbox.start(command).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert!(service.calls().is_empty());
}

const TURNED_AWAY: &str =
    "{\"type\":\"error\",\"error\":\"sandbox_restoring\",\"message\":\"m\",\"retryable\":true}\n";
const RUN: &str = "{\"type\":\"started\",\"commandId\":\"cmd_1\"}\n{\"type\":\"stdout\",\"data\":\"x\"}\n\
    {\"type\":\"exit\",\"exitCode\":0,\"success\":true,\"timedOut\":false}\n";

#[tokio::test]
async fn a_stream_turned_away_before_it_ran_is_opened_again() {
    let service =
        Service::start(|_, before| Reply::Lines(if before < 2 { TURNED_AWAY } else { RUN }.to_owned()));
    let clock = ManualClock::new();
    let client = service.client_on(clock.shared());
    let running = tokio::spawn(async move { client.sandbox("bx_1").exec_stream("x").await });
    for _ in 0..2 {
        clock.wait_for_sleep_of(Duration::from_secs(1)).await;
        clock.advance(Duration::from_secs(1));
    }
    let run = running.await.unwrap().unwrap();
    assert_eq!(run.command_id(), Some("cmd_1"));
    let output = run.wait().await.unwrap();
    assert_eq!((output.outcome(), &output.stdout()[..]), (Outcome::Exited(0), &b"x"[..]));
    assert_eq!(service.requests()[2].body, json!({"command": "x", "stream": true}));
}

#[tokio::test]
async fn being_turned_away_for_a_minute_is_an_error_and_a_started_command_is_never_repeated() {
    let service = Service::start(|_, _| Reply::Lines(TURNED_AWAY.to_owned()));
    let clock = ManualClock::new();
    let client = service.client_on(clock.shared());
    let running = tokio::spawn(async move { client.sandbox("bx_1").exec_stream("x").await });
    for _ in 0..60 {
        clock.wait_for_sleep_of(Duration::from_secs(1)).await;
        clock.advance(Duration::from_secs(1));
    }
    let error = running.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::StreamFailed, "sandbox_restoring"));
    assert!(error.is_retryable());
    assert_eq!(clock.elapsed(), Duration::from_secs(60));

    let after_start = format!("{{\"type\":\"started\",\"commandId\":\"cmd_1\"}}\n{TURNED_AWAY}");
    let service = Service::start(move |_, _| Reply::Lines(after_start.clone()));
    let run = service.client().sandbox("bx_1").exec_stream("x").await.unwrap();
    assert_eq!(run.wait().await.unwrap_err().code(), "sandbox_restoring");
    assert_eq!(service.calls().len(), 1);
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_an_error_with_the_command() {
    let half = RUN[..RUN.len() - 20].to_owned();
    let service = Service::start(move |_, _| Reply::Lines(half.clone()));
    let run = service.client().sandbox("bx_1").exec_stream("x").await.unwrap();
    let error = run.wait().await.unwrap_err();
    assert_eq!((error.kind(), error.command_id()), (ErrorKind::StreamCut, Some("cmd_1")));
    assert_eq!(error.partial_output().unwrap().stdout, "x");
}

#[tokio::test]
async fn a_background_command_is_followed_from_its_offsets() {
    let service = Service::start(|request, _| match request.call.as_str() {
        "POST /sandboxes/bx_1/commands" => started(),
        _ => Reply::Lines(
            "{\"type\":\"attached\",\"processId\":7,\"stdoutOffset\":2,\"stderrOffset\":0}\n\
             {\"type\":\"stdout\",\"data\":\"cd\",\"nextOffset\":4}\n\
             {\"type\":\"exit\",\"status\":\"exited\",\"exitCode\":0,\"stdoutOffset\":4,\"stderrOffset\":0}\n"
                .to_owned(),
        ),
    });
    let command = service.client().sandbox("bx_1").start("x").await.unwrap();
    assert_eq!((command.process_id(), command.pid(), command.command_id()), (7, Some(7), Some("cmd_1")));
    let mut attach = command.attach_from(Offsets::new(2, 0)).await.unwrap();
    assert_eq!(attach.next().await.unwrap().unwrap(), Chunk::Stdout("cd".into()));
    assert_eq!(attach.offsets(), Offsets::new(4, 0));
    assert_eq!(attach.wait().await.unwrap().command_id(), Some("cmd_1"));
    assert_eq!(service.requests()[0].body, json!({"command": "x", "detached": true}));
    let calls = service.calls();
    assert!(calls[1].starts_with("GET /sandboxes/bx_1/commands/7/stream?"), "{calls:?}");
    assert!(calls[1].contains("stdoutOffset=2") && calls[1].contains("stderrOffset=0"), "{calls:?}");
}

#[tokio::test]
async fn a_killed_command_was_stopped() {
    let service = Service::start(|request, _| match request.call.as_str() {
        "DELETE /sandboxes/bx_1/commands/7" => Reply::Json(
            200,
            json!({"ok": true, "type": "command.stopped",
            "processId": 7, "running": false, "signaled": true, "command": null}),
        ),
        "DELETE /sandboxes/bx_1/commands/8" => failure(404, "not_found"),
        _ => Reply::Lines("{\"type\":\"exit\",\"status\":\"exited\",\"signal\":\"SIGTERM\"}\n".to_owned()),
    });
    let sandbox = service.client().sandbox("bx_1");
    let command = sandbox.command(7);
    assert_eq!(command.wait().await.unwrap().outcome().to_string(), "ended by SIGTERM");
    assert!(command.clone().kill().await.unwrap().signaled);
    assert_eq!(command.wait().await.unwrap().outcome(), Outcome::Stopped);
    let other = sandbox.command(8);
    assert_eq!(other.kill().await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(other.wait().await.unwrap().outcome().to_string(), "ended by SIGTERM");
}

#[tokio::test]
async fn a_command_that_an_earlier_try_may_have_killed_was_stopped() {
    let ended_before = || {
        Reply::Json(
            200,
            json!({"ok": true, "type": "command.stopped",
            "processId": 7, "running": false, "signaled": false, "command": null}),
        )
    };
    type Case = (fn() -> Reply, u32, bool);
    let cases: [Case; 5] = [
        // Its first try may have done it, and the answer was lost or a gateway's.
        (|| Reply::Drop, 2, true),
        (|| failure(504, "http_504"), 2, true),
        // It was turned away: something else has ended the command.
        (|| failure(429, "rate_limited"), 2, false),
        (|| failure(404, "not_found"), 1, false),
        // A fault is the last that is heard.
        (|| failure(504, "http_504"), 1, true),
    ];
    for (number, (first, tries, stopped)) in cases.into_iter().enumerate() {
        let service = Service::start(move |request, before| match (request.call.as_str(), before) {
            ("DELETE /sandboxes/bx_1/commands/7", 0) => first(),
            ("DELETE /sandboxes/bx_1/commands/7", _) => ended_before(),
            _ => {
                Reply::Lines("{\"type\":\"exit\",\"status\":\"exited\",\"signal\":\"SIGTERM\"}\n".to_owned())
            }
        });
        let sandbox = service.client().with(CallOptions::new().retries(tries - 1)).sandbox("bx_1");
        let command = sandbox.command(7);
        let killed = command.kill().await;
        assert_eq!(killed.ok().map(|answer| answer.signaled), (tries == 2).then_some(false), "{number}");
        let outcome = command.wait().await.unwrap().outcome();
        assert_eq!(outcome == Outcome::Stopped, stopped, "{number}: {outcome}");
        assert_eq!(service.calls().iter().filter(|call| call.starts_with("DELETE")).count() as u32, tries);
    }
}

#[tokio::test]
async fn a_kill_that_came_late_takes_back_nothing_of_another() {
    // The first to come waits for its answer until the second has had its own.
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let service = Service::start(move |request, before| {
        if request.call != "DELETE /sandboxes/bx_1/commands/7" {
            return Reply::Lines(
                "{\"type\":\"exit\",\"status\":\"exited\",\"signal\":\"SIGTERM\"}\n".to_owned(),
            );
        }
        if before == 0 {
            let _ = released.lock().unwrap().recv();
        }
        Reply::Json(
            200,
            json!({"ok": true, "type": "command.stopped",
            "processId": 7, "running": false, "signaled": before == 1, "command": null}),
        )
    });
    let command = service.client().sandbox("bx_1").command(7);
    let (late, early) = (command.clone(), command.clone());
    let (late, early) = tokio::join!(late.kill(), async {
        while service.calls().is_empty() {
            tokio::task::yield_now().await;
        }
        let early = early.kill().await;
        release.send(()).unwrap();
        early
    });
    assert_eq!((late.unwrap().signaled, early.unwrap().signaled), (false, true));
    assert_eq!(command.wait().await.unwrap().outcome(), Outcome::Stopped);
}

#[tokio::test]
async fn a_kill_that_was_dropped_counts_once_a_connection_has_taken_it() {
    for taken in [false, true] {
        let service = Service::start(|request, _| match request.call.starts_with("DELETE") {
            true => Reply::Hang,
            false => {
                Reply::Lines("{\"type\":\"exit\",\"status\":\"exited\",\"signal\":\"SIGTERM\"}\n".to_owned())
            }
        });
        let command = service.client().sandbox("bx_1").command(7);
        let arrived = async {
            // A call that is polled once has no connection yet.
            while taken && service.calls().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            answer = command.kill() => panic!("{answer:?}"),
            () = arrived => {}
        }
        let outcome = command.wait().await.unwrap().outcome();
        assert_eq!(outcome == Outcome::Stopped, taken, "{outcome}");
    }
}

#[tokio::test]
async fn logs_are_read_by_pages_with_the_id_found_in_the_history() {
    let service = Service::start(|request, _| {
        let call = request.call.as_str();
        let record = |id: &str, process: i64| {
            json!({"commandId": id, "sandboxId": "bx_1", "command": "x",
            "mode": "detached", "processId": process, "status": "exited", "stdoutBytes": 0, "stderrBytes": 0,
            "outputTruncated": false, "startedAt": "2026-01-01T00:00:00Z"})
        };
        if call.contains("command-history?") {
            let second = call.contains("cursor=c1");
            let commands = if second { json!([record("cmd_7", 7)]) } else { json!([record("cmd_9", 9)]) };
            let cursor = if second { json!(null) } else { json!("c1") };
            return Reply::Json(
                200,
                json!({"ok": true, "type": "command.list", "commands": commands, "nextCursor": cursor}),
            );
        }
        let page = |offset: i64, next: i64, data: &str, done: bool| {
            Reply::Json(
                200,
                json!({"ok": true, "type": "command.logs", "commandId": "cmd_7", "stream": "stdout",
                "offset": offset, "nextOffset": next, "size": 9, "encoding": "base64", "data": data, "done": done}),
            )
        };
        match call {
            _ if call.contains("offset=0") => page(2, 5, "/wBB", false),
            _ if call.contains("offset=5") => page(5, 6, "Qg==", true),
            _ => failure(400, "invalid_request"),
        }
    });
    let command = service.client().sandbox("bx_1").command(7);
    let mut logs = command.logs(OutputStream::Stdout);
    assert_eq!(
        logs.next().await.unwrap().unwrap(),
        Chunk::Gap(Gap { stream: OutputStream::Stdout, from: 0, to: 2 })
    );
    assert_eq!(logs.collect(100).await.unwrap(), &[0xFF, 0, b'A', b'B'][..]);
    assert_eq!(command.command_id(), Some("cmd_7"));
    let calls = service.calls();
    assert!(calls[0].contains("mode=detached"), "{calls:?}");
    assert!(
        calls[2].starts_with("GET /sandboxes/bx_1/command-history/cmd_7/logs?")
            && calls[2].contains("encoding=base64")
    );
    let error = command.logs(OutputStream::Stdout).collect(100).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "output_missing"));
    assert_eq!(error.details(), Some(&json!({"stream": "stdout", "from": 0, "to": 2})));
    assert_eq!((error.sandbox_id(), error.command_id()), (Some("bx_1"), Some("cmd_7")));
    let mut logs = command.logs(OutputStream::Stdout);
    assert!(matches!(logs.next().await, Some(Ok(Chunk::Gap(_)))));
    assert_eq!(logs.collect(3).await.unwrap_err().kind(), ErrorKind::TooLarge);
    let unknown = service.client().sandbox("bx_1").command(8);
    let error = unknown.logs(OutputStream::Stdout).next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::NotFound, "command_not_found"));
    assert!(unknown.status(CommandStatusParams::new()).await.is_err());
}

#[tokio::test]
async fn another_answer_than_the_one_asked_for_is_an_error() {
    let service = Service::start(|_, _| started());
    let error = service.client().sandbox("bx_1").exec("x").await.unwrap_err();
    assert_eq!((error.kind(), error.command_id()), (ErrorKind::Unexpected, Some("cmd_1")));
    let service = Service::start(|_, _| finished(0));
    assert_eq!(service.client().sandbox("bx_1").start("x").await.unwrap_err().kind(), ErrorKind::Unexpected);
}

const HALF: &str = "{\"type\":\"started\",\"commandId\":\"cmd_1\"}\n{\"type\":\"stdout\",\"data\":\"x\"}\n";

#[tokio::test]
async fn a_total_limit_covers_the_start_of_a_stream_and_nothing_of_its_body() {
    let limited = |service: &Service, clock: &ManualClock| {
        let total = CallOptions::new().total(Duration::from_secs(5));
        service.client_on(clock.shared()).sandbox("bx_1").with(total)
    };
    // The service takes the command on and says nothing.
    let (service, clock) = (Service::start(|_, _| Reply::Stall("")), ManualClock::new());
    let sandbox = limited(&service, &clock);
    let running = tokio::spawn(async move { sandbox.exec_stream("x").await });
    // The idle limit of a command of 5 s: the head of the answer has come, and the wait for its first line begins.
    clock.wait_for_sleep_of(Duration::from_secs(60 + 5 + 30)).await;
    clock.advance(Duration::from_secs(5));
    let error = running.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Timeout, Delivery::Unknown));
    assert!(error.message().contains("total"), "{error}");

    // Turned away again and again: no new start gets a limit of its own.
    let (service, clock) = (Service::start(|_, _| Reply::Lines(TURNED_AWAY.to_owned())), ManualClock::new());
    let sandbox = limited(&service, &clock);
    let running = tokio::spawn(async move { sandbox.exec_stream("x").await });
    for _ in 0..4 {
        clock.wait_for_sleep_of(Duration::from_secs(1)).await;
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!(running.await.unwrap().unwrap_err().code(), "sandbox_restoring");
    assert_eq!((service.calls().len(), clock.elapsed()), (5, Duration::from_secs(4)));

    // Once it has started the total is over and done with.
    let (service, clock) = (Service::start(|_, _| Reply::Stall(HALF)), ManualClock::new());
    let mut run = limited(&service, &clock).exec_stream("x").await.unwrap();
    assert_eq!(run.next().await.unwrap().unwrap(), Chunk::Stdout("x".into()));
    clock.advance(Duration::from_secs(60));
    tokio::select! {
        biased;
        ended = run.next() => panic!("{ended:?}"),
        () = tokio::task::yield_now() => {}
    }
}

#[tokio::test]
async fn a_command_whose_sandbox_died_says_so() {
    type Case = (fn() -> Reply, &'static str, &'static str);
    let cases: [Case; 5] = [
        (|| info("archived"), "sandbox_archived", "archived"),
        (|| info("error"), "sandbox_error", "error"),
        (|| failure(404, "not_found"), "sandbox_gone", "gone"),
        (|| info("running"), "", ""),
        (|| failure(500, "internal_error"), "", ""),
    ];
    for (look, code, state) in cases {
        let service = Service::start(move |request, _| match request.call.as_str() {
            "GET /sandboxes/bx_1" => look(),
            _ if request.body["stream"] == true => Reply::Lines(HALF.to_owned()),
            _ => Reply::Drop,
        });
        let sandbox = service.client().sandbox("bx_1");
        let mut run = sandbox.exec_stream("x").await.unwrap();
        assert!(run.next().await.unwrap().is_ok());
        let cut = run.next().await.unwrap().unwrap_err();
        assert!(run.next().await.is_none() && run.outcome().is_none());
        assert_eq!(run.wait().await.unwrap_err().code(), cut.code());
        assert_eq!(cut.command_id(), Some("cmd_1"));
        assert_eq!(cut.partial_output().unwrap().stdout, "x");
        let lost = sandbox.exec("x").await.unwrap_err();
        assert_eq!(service.calls().len(), 4, "one look each");
        for (error, own) in [(cut, ErrorKind::StreamCut), (lost, ErrorKind::Connection)] {
            assert_eq!((error.delivery(), error.is_retryable()), (Delivery::Unknown, false));
            if code.is_empty() {
                assert_eq!(error.kind(), own);
                continue;
            }
            assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, code));
            assert_eq!(error.details().unwrap()["state"], state);
            let source = std::error::Error::source(&error).unwrap().downcast_ref::<Error>().unwrap();
            assert_eq!(source.kind(), own);
        }
    }
}

#[tokio::test]
async fn a_silent_look_at_the_sandbox_ends_after_5_seconds() {
    let service = Service::start(|request, _| match request.call.as_str() {
        "GET /sandboxes/bx_1" => Reply::Hang,
        _ => Reply::Lines(HALF.to_owned()),
    });
    let clock = ManualClock::new();
    let run = service.client_on(clock.shared()).sandbox("bx_1").exec_stream("x").await.unwrap();
    let ending = tokio::spawn(run.wait());
    service.arrived(2).await;
    clock.wait_for_sleep_of(Duration::from_secs(5)).await;
    clock.advance(Duration::from_secs(5));
    assert_eq!(ending.await.unwrap().unwrap_err().kind(), ErrorKind::StreamCut);
}

#[tokio::test]
async fn logs_that_lead_nowhere_or_are_not_exact_are_errors() {
    let page = |encoding: &str, data: &str| {
        Reply::Json(
            200,
            json!({"ok": true, "type": "command.logs", "commandId": "cmd_1", "stream": "stdout", "offset": 0,
            "nextOffset": 2, "size": 9, "encoding": encoding, "data": data, "done": false}),
        )
    };
    let cases: [(&str, &str, usize); 3] = [("base64", "QUI=", 1), ("utf8", "AB", 0), ("gzip", "QUI=", 0)];
    for (encoding, data, pieces) in cases {
        let service = Service::start(move |request, _| match request.call.as_str() {
            "POST /sandboxes/bx_1/commands" => started(),
            _ => page(encoding, data),
        });
        let command = service.client().sandbox("bx_1").start("x").await.unwrap();
        let mut logs = command.logs(OutputStream::Stdout);
        for _ in 0..pieces {
            assert_eq!(logs.next().await.unwrap().unwrap(), Chunk::Stdout("AB".into()));
        }
        let error = logs.next().await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.command_id()), (ErrorKind::Unexpected, Some("cmd_1")), "{encoding}");
        assert!(logs.next().await.is_none());
    }
}

#[tokio::test]
async fn a_history_that_leads_round_in_a_circle_is_left() {
    let service = Service::start(|request, _| {
        let next = if request.call.contains("cursor=a") { "b" } else { "a" };
        Reply::Json(200, json!({"ok": true, "type": "command.list", "commands": [], "nextCursor": next}))
    });
    let command = service.client().sandbox("bx_1").command(7);
    let error = command.logs(OutputStream::Stdout).next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), "command_not_found");
    assert_eq!(service.calls().len(), 3);
}
