//! Creating with a setup script that is waited for.

use std::time::Duration;

use serde_json::{Value, json};

use super::service::{Reply, Service, created, deleting, failure, with};
use crate::{
    CallOptions, Create, ErrorKind,
    clock::{Clock as _, ManualClock},
};

fn info(status: &str, error: Value) -> Reply {
    let sandbox = json!({"id": "bx_1", "state": "ready", "setupStatus": status, "setupError": error});
    Reply::Json(200, with(json!({"ok": true, "type": "sandbox.info"}), "sandbox", sandbox))
}

/// A service whose script is in these states at one look after the other; the last one stays.
fn service(states: &'static [&'static str]) -> Service {
    Service::start(move |request, before| match request.call.as_str() {
        "POST /sandboxes" => created("provisioning"),
        "DELETE /sandboxes/bx_1" => deleting(),
        "GET /sandboxes/bx_1" => {
            let state = states[before.min(states.len() - 1)];
            info(state, if state == "failed" { json!("exit code 3: no such file") } else { Value::Null })
        }
        _ => failure(500, "internal_error"),
    })
}

#[tokio::test]
async fn the_script_is_waited_for_after_the_sandbox_is_ready() {
    let service = service(&["pending", "running", "running", "done"]);
    let clock = ManualClock::new();
    let client = service.client_on(clock.shared());
    let options = Create::new().setup_script("true").wait_for_setup();
    let creating = tokio::spawn(async move { client.create(options).await });
    for _ in 0..2 {
        clock.wait_for_sleep_of(Duration::from_secs(2)).await;
        clock.advance(Duration::from_secs(2));
    }
    let sandbox = creating.await.unwrap().unwrap();
    assert_eq!(service.calls().len(), 5, "ready at the first look, set up at the third after that");
    assert_eq!(service.requests()[0].body, json!({"setupScript": "true"}));
    assert_eq!(sandbox.info().unwrap().setup_error, None);
}

#[tokio::test]
async fn a_script_that_fails_is_an_error_with_the_id_and_the_reason_and_the_sandbox_stays() {
    let service = service(&["running", "failed"]);
    let client = service.client();
    let error = client.create(Create::new().setup_script("exit 3").wait_for_setup()).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, "setup_failed"));
    assert_eq!(error.sandbox_id(), Some("bx_1"));
    assert!(error.message().contains("exit code 3"), "{error}");
    let expected = json!({"state": "ready", "setupError": "exit code 3: no such file"});
    assert_eq!(error.details(), Some(&expected));
    client.close().await;
    assert!(!service.calls().iter().any(|call| call.starts_with("DELETE")));
}

#[tokio::test]
async fn a_scope_and_a_guard_clean_up_after_a_script_that_fails() {
    let service = service(&["running", "failed"]);
    let client = service.client();
    let options = Create::new().setup_script("exit 3").wait_for_setup();
    let body = |_| async { Ok(()) };
    assert_eq!(client.scoped(options.clone(), body).await.unwrap_err().code(), "setup_failed");
    assert_eq!(client.guard(options).await.unwrap_err().code(), "setup_failed");
    client.close().await;
    let deleted = service.calls().iter().filter(|call| *call == "DELETE /sandboxes/bx_1").count();
    assert_eq!(deleted, 2);
}

#[tokio::test]
async fn nothing_is_waited_for_without_a_script_or_without_being_asked() {
    for options in [Create::new().wait_for_setup(), Create::new().setup_script("sleep 60")] {
        let service = service(&["running"]);
        service.client().create(options).await.unwrap();
        assert_eq!(service.calls(), ["POST /sandboxes", "GET /sandboxes/bx_1"]);
    }
    let service = service(&["running"]);
    let last = Create::new().setup_script("sleep 60").wait_for_setup().wait(false);
    service.client().create(last).await.unwrap();
    assert_eq!(service.calls(), ["POST /sandboxes"]);
}

#[tokio::test]
async fn a_limit_covers_the_wait_for_readiness_and_that_for_the_script() {
    let service = Service::start(|request, before| match (request.call.as_str(), before) {
        ("POST /sandboxes", _) => created("provisioning"),
        (_, 0) => super::service::info("provisioning"),
        _ => info("running", Value::Null),
    });
    for (options, total) in [
        (Create::new().wait_limit(Duration::from_secs(7)), None),
        (Create::new(), Some(Duration::from_secs(7))),
    ] {
        let clock = ManualClock::new();
        let mut client = service.client_on(clock.shared());
        if let Some(total) = total {
            client = client.with(CallOptions::new().total(total));
        }
        let options = options.setup_script("sleep 60").wait_for_setup();
        let creating = tokio::spawn(async move { client.create(options).await });
        while !creating.is_finished() {
            tokio::task::yield_now().await;
            // Requests in flight have limits of their own; only pauses and the wait's own end are gone to.
            if let Some(due) = clock.next_due().filter(|due| *due <= Duration::from_secs(2)) {
                clock.advance(due);
            } else if clock.elapsed() >= Duration::from_secs(6) {
                clock.advance(Duration::from_secs(7) - clock.elapsed().min(Duration::from_secs(7)));
            }
        }
        let error = creating.await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.sandbox_id()), (ErrorKind::WaitTimeout, Some("bx_1")));
        assert_eq!(clock.elapsed(), Duration::from_secs(7));
    }
}
