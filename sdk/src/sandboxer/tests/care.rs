//! Waits for what a sandbox is busy with, its history and load, and guards.

use std::time::Duration;

use serde_json::{Value, json};

use super::service::{Reply, Service, created, deleting, failure, info, sandbox, with};
use crate::{Create, ErrorKind, HistoryOptions, MetricsWindow, OnExit, clock::ManualClock};

const LOOK: &str = "GET /sandboxes/bx_1";

fn setup(state: &str, status: Value) -> Reply {
    let body = with(with(sandbox(state), "setupStatus", status), "setupError", json!("exit code 3"));
    Reply::Json(200, json!({"ok": true, "type": "sandbox.info", "sandbox": body}))
}

#[tokio::test]
async fn a_setup_is_waited_for_until_it_is_told_how_it_ended() {
    for (state, status, code) in [
        ("ready", Value::Null, None),
        ("archived", json!("done"), None),
        ("ready", json!("failed"), Some("setup_failed")),
        ("archived", json!("running"), Some("sandbox_archived")),
        ("error", json!("pending"), Some("sandbox_error")),
        ("cancelled", Value::Null, Some("sandbox_cancelled")),
    ] {
        let reply = status.clone();
        let service = Service::start(move |_, _| setup(state, reply.clone()));
        let waited = service.client().sandbox("bx_1").wait_for_setup(None).await;
        assert_eq!(waited.as_ref().err().map(|error| error.code()), code, "{state} {status}");
        if code == Some("setup_failed") {
            assert!(waited.unwrap_err().message().contains("exit code 3"));
        }
    }
}

#[tokio::test]
async fn waits_look_every_2_s_and_end_at_their_limit() {
    let service =
        Service::start(|_, before| setup("ready", json!(if before < 1 { "running" } else { "done" })));
    let clock = ManualClock::new();
    let handle = service.client_on(clock.shared()).sandbox("bx_1");
    let waiting = tokio::spawn(async move { handle.wait_for_setup(None).await });
    clock.wait_for_sleep_of(Duration::from_secs(600)).await;
    clock.wait_for_sleep_of(Duration::from_secs(2)).await;
    clock.advance(Duration::from_secs(2));
    waiting.await.unwrap().unwrap();
    assert_eq!(service.calls(), [LOOK; 2]);

    let service = Service::start(|_, _| Reply::Hang);
    let clock = ManualClock::new();
    let handle = service.client_on(clock.shared()).sandbox("bx_1");
    let limit = Some(Duration::from_secs(7));
    let waiting = tokio::spawn(async move { handle.wait_until_idle(limit).await });
    service.arrived(1).await;
    clock.wait_for_sleep_of(Duration::from_secs(7)).await;
    clock.advance(Duration::from_secs(7));
    assert_eq!(waiting.await.unwrap().unwrap_err().kind(), ErrorKind::WaitTimeout);
}

#[tokio::test]
async fn idle_is_ready_or_idle_and_not_archived() {
    for (state, code) in [("ready", None), ("idle", None), ("archived", Some("sandbox_archived"))] {
        let service = Service::start(move |_, _| info(state));
        let waited = service.client().sandbox("bx_1").wait_until_idle(None).await;
        assert_eq!(waited.err().map(|error| error.code().to_owned()).as_deref(), code);
    }
}

#[tokio::test]
async fn a_stop_that_fails_or_is_superseded_ends_its_wait() {
    for (status, code) in
        [("completed", None), ("failing", Some("stop_failing")), ("superseded", Some("stop_superseded"))]
    {
        let service = Service::start(move |_, _| {
            let stop = json!({"id": "st_1", "status": status, "error": "disk full"});
            Reply::Json(200, json!({"ok": true, "type": "stop.status", "id": "bx_1", "stop": stop}))
        });
        let waited = service.client().sandbox("bx_1").wait_for_stop("st_1", None).await;
        assert_eq!(waited.err().map(|error| error.code().to_owned()).as_deref(), code);
        assert_eq!(service.calls(), ["GET /sandboxes/bx_1/stops/st_1"]);
    }
}

#[tokio::test]
async fn a_deletion_is_done_when_it_says_so_or_its_sandbox_is_gone() {
    let operation = |status: &str, kind: &str| {
        let operation = json!({"id": "op_1", "kind": kind, "targetId": "bx_1", "reason": "explicit",
            "status": status, "attemptCount": 0, "requestedAt": "2026-01-01T00:00:00Z"});
        Reply::Json(200, json!({"ok": true, "type": "deletion.operation", "operation": operation}))
    };
    for (status, kind, calls) in [("completed", "snapshot", 1), ("processing", "sandbox", 2)] {
        let service = Service::start(move |request, _| match request.call.as_str() {
            LOOK => failure(404, "not_found"),
            _ => operation(status, kind),
        });
        let done = service.client().wait_for_deletion("op_1", None).await.unwrap();
        assert_eq!(done.status.as_str(), status);
        assert_eq!(service.calls().len(), calls);
    }
    let service = Service::start(|_, _| failure(404, "not_found"));
    let error = service.client().wait_for_deletion("op_1", None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn every_history_filter_is_sent_and_pages_follow_their_cursor() {
    let service = Service::start(|request, _| {
        let next = if request.call.contains("cursor=c0") { json!("c1") } else { Value::Null };
        Reply::Json(200, json!({"ok": true, "type": "command.list", "commands": [], "nextCursor": next}))
    });
    let options = HistoryOptions::new().mode("stream").commands().query("py test").limit(7).cursor("c0");
    assert!(service.client().sandbox("bx_1").history(options).collect().await.unwrap().is_empty());
    let calls = service.calls();
    for part in ["mode=stream%2Ccommands", "q=py", "limit=7", "cursor=c0"] {
        assert!(calls[0].contains(part), "{} lacks {part}", calls[0]);
    }
    assert!(calls[1].contains("cursor=c1"), "{}", calls[1]);
    let silent = Service::start(|_, _| Reply::Drop);
    let long = HistoryOptions::new().query("x".repeat(201));
    let error = silent.client().sandbox("bx_1").history(long).collect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(silent.calls().is_empty());
}

#[tokio::test]
async fn load_processes_share_and_recover_are_one_call_each() {
    let service = Service::start(|request, _| {
        let fields = match request.call.as_str() {
            "POST /sandboxes/bx_1/share" => json!({"sandbox": sandbox("running"), "restartRequired": true}),
            "GET /sandboxes/bx_1/processes" => json!({"live": true, "total": 0, "processes": []}),
            _ => json!({"cpu": 12.5, "status": "recovering", "window": "1w"}),
        };
        Reply::Json(200, with(with(fields, "ok", json!(true)), "type", json!("x")))
    });
    let handle = service.client().sandbox("bx_1");
    assert_eq!(handle.stats().await.unwrap().cpu, Some(12.5));
    assert_eq!(handle.metrics(MetricsWindow::Week).await.unwrap().window.as_deref(), Some("1w"));
    assert!(handle.processes().await.unwrap().live);
    assert_eq!(handle.share().await.unwrap().restart_required, Some(true));
    assert_eq!(handle.info().unwrap().state.as_str(), "running");
    assert_eq!(handle.recover().await.unwrap().status.as_deref(), Some("recovering"));
    let calls = [
        "GET /sandboxes/bx_1/stats",
        "GET /sandboxes/bx_1/metrics?window=1w",
        "GET /sandboxes/bx_1/processes",
        "POST /sandboxes/bx_1/share",
        "POST /sandboxes/bx_1/recover",
    ];
    assert_eq!(service.calls(), calls);
    assert_eq!([MetricsWindow::Hour, MetricsWindow::Day].map(MetricsWindow::as_str), ["1h", "24h"]);
}

fn living(request: &super::service::Request) -> Reply {
    match request.call.as_str() {
        "POST /sandboxes" => created("ready"),
        "DELETE /sandboxes/bx_1" => deleting(),
        "POST /sandboxes/bx_1/stop" => failure(400, "stop_failed"),
        _ => info("archived"),
    }
}

#[tokio::test]
async fn a_guard_ends_its_sandbox_on_drop_error_and_panic_and_not_when_kept() {
    let guarded = || Service::start(|request, _| living(request));
    let ends = ["POST /sandboxes", "DELETE /sandboxes/bx_1"];
    let options = || Create::new().wait(false);

    let service = guarded();
    let client = service.client();
    drop(client.guard(options()).await.unwrap());
    client.close().await;
    assert_eq!(service.calls(), ends);

    let service = guarded();
    let client = service.client();
    let inside = client.clone();
    let panicked = tokio::spawn(async move {
        let _guard = inside.guard(options()).await.unwrap();
        panic!("on purpose");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    client.close().await;
    assert_eq!(service.calls(), ends);

    let service = guarded();
    let client = service.client();
    client.guard(options()).await.unwrap().finish().await.unwrap();
    let kept = client.guard(options()).await.unwrap().keep();
    client.close().await;
    assert_eq!((kept.id(), service.calls().len()), ("bx_1", 3));
}

#[tokio::test]
async fn a_guard_that_stops_stops_and_one_that_fails_is_tried_again() {
    let service = Service::start(|request, _| living(request));
    let client = service.client();
    drop(client.sandbox("bx_1").on_exit(OnExit::Stop));
    client.close().await;
    assert_eq!(service.calls(), ["POST /sandboxes/bx_1/stop", LOOK]);

    let service = Service::start(|request, before| match before {
        0 => failure(403, "forbidden"),
        _ => living(request),
    });
    let client = service.client();
    let mut guard = client.sandbox("bx_1").on_exit(OnExit::Stop);
    guard.set_on_exit(OnExit::Delete);
    assert_eq!(guard.finish().await.unwrap_err().kind(), ErrorKind::PermissionDenied);
    client.close().await;
    assert_eq!(service.calls(), ["DELETE /sandboxes/bx_1"; 2]);

    let gone = Service::start(|_, _| failure(404, "not_found"));
    let client = gone.client();
    client.sandbox("bx_1").on_exit(OnExit::Stop).finish().await.unwrap();
    client.sandbox("bx_1").on_exit(OnExit::Delete).finish().await.unwrap();
}
