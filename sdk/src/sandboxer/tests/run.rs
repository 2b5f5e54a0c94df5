//! Running a command without a time limit, and what is told of many sandboxes at once.

use std::time::Duration;

use serde_json::json;

use super::service::{Reply, Request, Service, failure};
use crate::{CallOptions, Command, Delivery, ErrorKind, Offsets, Outcome, clock::ManualClock};

const ATTACHED: &str = "{\"type\":\"attached\",\"processId\":7,\"stdoutOffset\":0,\"stderrOffset\":0}\n";
const HALF: &str = "{\"type\":\"stdout\",\"data\":\"one \",\"nextOffset\":4}\n";
const REST: &str = "{\"type\":\"attached\",\"processId\":7,\"stdoutOffset\":4,\"stderrOffset\":0}\n\
    {\"type\":\"stdout\",\"data\":\"two\",\"nextOffset\":7}\n\
    {\"type\":\"exit\",\"status\":\"exited\",\"exitCode\":137,\"signal\":\"SIGKILL\",\"oomKilled\":true,\
    \"stdoutOffset\":7,\"stderrOffset\":0}\n";

fn started() -> Reply {
    Reply::Json(
        200,
        json!({"ok": true, "type": "command.started", "success": true, "commandId": "cmd_1",
        "processId": 7, "pid": 7, "command": "x", "startedAt": "2026-01-01T00:00:00Z"}),
    )
}

fn is_start(request: &Request) -> bool {
    request.call.starts_with("POST ")
}

#[tokio::test]
async fn a_run_is_started_once_and_followed_over_cuts() {
    let service = Service::start(|request, _| match request {
        start if is_start(start) => started(),
        first if first.call.contains("stdoutOffset=0") => Reply::Lines(format!("{ATTACHED}{HALF}")),
        _ => Reply::Lines(REST.to_owned()),
    });
    let clock = ManualClock::new();
    let client = service.client_on(clock.shared());
    let command = Command::shell("x").cwd("app").env("A", "1");
    let running = tokio::spawn(async move { client.sandbox("bx_1").run(command).await });
    while !running.is_finished() {
        tokio::task::yield_now().await;
        if let Some(due) = clock.next_due().filter(|due| *due < Duration::from_secs(1)) {
            clock.advance(due);
        }
    }
    let output = running.await.unwrap().unwrap();
    assert_eq!(output.stdout_text(), "one two");
    assert_eq!(output.outcome().to_string(), "ended by SIGKILL");
    assert!(output.oom_killed() && !output.truncated() && !output.lossy());
    assert_eq!(output.command_id(), Some("cmd_1"));
    let starts: Vec<Request> = service.requests().into_iter().filter(is_start).collect();
    assert_eq!(starts.len(), 1);
    assert_eq!(starts[0].body, json!({"command": "x", "cwd": "app", "env": {"A": "1"}, "detached": true}));
}

#[tokio::test]
async fn a_lost_command_and_what_was_not_kept_are_told() {
    let lost = "{\"type\":\"attached\",\"processId\":7,\"stdoutOffset\":10,\"stderrOffset\":0}\n\
        {\"type\":\"exit\",\"status\":\"lost\",\"stdoutOffset\":10,\"stderrOffset\":0}\n";
    let service = Service::start(move |request, _| match request {
        start if is_start(start) => started(),
        _ => Reply::Lines(lost.to_owned()),
    });
    let output = service.client().sandbox("bx_1").run("x").await.unwrap();
    assert_eq!(output.outcome(), Outcome::Lost);
    assert!(output.stdout_truncated() && !output.stderr_truncated());
}

#[tokio::test]
async fn a_run_that_cannot_be_followed_tells_where_the_command_is() {
    let service = Service::start(|request, _| match request {
        start if is_start(start) => started(),
        first if first.call.contains("stdoutOffset=0") => Reply::Lines(format!("{ATTACHED}{HALF}")),
        _ => failure(409, "sandbox_not_ready"),
    });
    let error = service.client().sandbox("bx_1").run("x").await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Conflict, "sandbox_not_ready"));
    assert_eq!((error.command_id(), error.sandbox_id()), (Some("cmd_1"), Some("bx_1")));
    assert_eq!(error.details().unwrap()["processId"], 7);
    assert_eq!(error.resume_offsets(), Some(Offsets::new(4, 0)));
    assert_eq!(error.partial_output().unwrap().stdout, "one ");
}

#[tokio::test]
async fn also_when_following_cannot_even_begin() {
    let service = Service::start(|request, _| match request {
        start if is_start(start) => started(),
        _ => failure(404, "not_found"),
    });
    let error = service.client().sandbox("bx_1").run("x").await.unwrap_err();
    assert_eq!((error.kind(), error.command_id()), (ErrorKind::NotFound, Some("cmd_1")));
    assert_eq!((error.sandbox_id(), &error.details().unwrap()["processId"]), (Some("bx_1"), &json!(7)));
}

#[tokio::test]
async fn a_start_whose_answer_is_lost_is_never_sent_again() {
    let service = Service::start(|_, _| Reply::Drop);
    let client = service.client().with(CallOptions::new().retries(5));
    let error = client.sandbox("bx_1").run("x").await.unwrap_err();
    assert_eq!(error.delivery(), Delivery::Unknown);
    assert_eq!(service.calls().len(), 1);
}

#[tokio::test]
async fn a_dropped_run_leaves_the_command_alone() {
    let service = Service::start(|request, _| match request {
        start if is_start(start) => started(),
        _ => Reply::Stall(ATTACHED),
    });
    let sandbox = service.client().sandbox("bx_1");
    {
        let running = sandbox.run("x");
        tokio::pin!(running);
        tokio::select! {
            biased;
            _ = &mut running => panic!("it does not end"),
            () = service.arrived(2) => {}
        }
    }
    assert_eq!(service.calls().len(), 2, "nothing kills it");
}

#[tokio::test]
async fn a_limit_is_refused_and_a_total_limit_is_not_passed_on() {
    let service = Service::start(|_, _| started());
    let sandbox = service.client().sandbox("bx_1");
    let limited = Command::shell("x").timeout(Duration::from_secs(5));
    let error = sandbox.run(limited.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.message().contains("timeout"), "{error}");
    assert!(service.calls().is_empty());
    sandbox.with(CallOptions::new().total(Duration::from_secs(5))).start("x").await.unwrap();
    assert_eq!(service.requests()[0].body, json!({"command": "x", "detached": true}));
    sandbox.start(limited).await.unwrap();
    assert_eq!(service.requests()[1].body["timeoutSeconds"], 5);
}
