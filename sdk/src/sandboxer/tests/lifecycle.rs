//! Stop, resume, fork, delete and lists.

use serde_json::json;

use super::service::{Reply, Service, deleting, failure, info, sandbox, with};
use crate::{Create, Delivery, ErrorKind, Fork, ListOptions, Resume, Stop, Ttl, Update};

fn action(kind: &str, stop: Option<&str>) -> Reply {
    let stop = stop.map(|status| {
        json!({"id": "stop_1", "status": status, "requestedAt": null,
        "lastAttemptAt": null, "error": null, "endedAt": null})
    });
    Reply::Json(
        202,
        json!({"ok": true, "type": kind, "id": "bx_1", "status": "x", "stop": stop,
        "sandbox": with(sandbox("archiving"), "stop", stop.clone().unwrap_or_default())}),
    )
}

fn stopping(state: &str, id: &str, status: &str, error: Option<&str>) -> Reply {
    let stop = json!({"id": id, "status": status, "requestedAt": null, "lastAttemptAt": null, "error": error,
        "endedAt": null});
    Reply::Json(
        200,
        json!({"ok": true, "type": "sandbox.info", "sandbox": with(sandbox(state), "stop", stop)}),
    )
}

#[tokio::test]
async fn a_stop_ends_with_what_the_stop_says() {
    type Case = (fn() -> Reply, Option<&'static str>);
    let cases: [Case; 5] = [
        (|| stopping("archived", "stop_1", "completed", None), None),
        (|| stopping("archiving", "stop_1", "failing", Some("disk full")), Some("stop_failing")),
        (|| stopping("ready", "stop_1", "superseded", None), Some("stop_superseded")),
        (|| info("error"), Some("sandbox_error")),
        (|| failure(404, "not_found"), Some("not_found")),
    ];
    for (look, code) in cases {
        let service = Service::start(move |request, _| match request.call.as_str() {
            "POST /sandboxes/bx_1/stop" => action("sandbox.stopping", Some("pending")),
            _ => look(),
        });
        let stopped = service.client().sandbox("bx_1").stop().await;
        assert_eq!(stopped.as_ref().err().map(|error| error.code()), code);
        if code == Some("stop_failing") {
            assert!(stopped.unwrap_err().message().contains("disk full"));
        }
    }
}

#[tokio::test]
async fn an_older_stop_does_not_count_and_no_wait_does_not_look() {
    let service = Service::start(|request, before| match (request.call.as_str(), before) {
        ("POST /sandboxes/bx_1/stop", _) => action("sandbox.stopping", Some("pending")),
        (_, 0) => stopping("archiving", "stop_0", "superseded", None),
        _ => info("archived"),
    });
    let client = service.client();
    client.sandbox("bx_1").stop().await.unwrap();
    assert_eq!(service.calls().len(), 3);
    client.sandbox("bx_1").stop_with(Stop::new().force().wait(false)).await.unwrap();
    assert_eq!(service.calls().len(), 4);
    assert_eq!(service.requests()[3].body, json!({"force": true}));
}

#[tokio::test]
async fn stopping_what_is_stopped_is_fine_and_anything_else_is_not() {
    for (state, fine) in [("archived", true), ("running", false)] {
        let service = Service::start(move |request, _| match request.call.as_str() {
            "POST /sandboxes/bx_1/stop" => failure(400, "stop_failed"),
            _ => info(state),
        });
        let stopped = service.client().sandbox("bx_1").stop().await;
        assert_eq!(stopped.is_ok(), fine, "{state}");
    }
}

#[tokio::test]
async fn a_resume_whose_answer_is_lost_is_looked_after_and_never_sent_twice() {
    for (state, fine) in [("provisioning", true), ("archived", false)] {
        let service = Service::start(move |request, before| match (request.call.as_str(), before) {
            ("POST /sandboxes/bx_1/resume", _) => Reply::Drop,
            (_, 0) => info("archived"),
            (_, 1) => info(state),
            _ => info("ready"),
        });
        let resumed = service.client().get("bx_1").await.unwrap().resume(Resume::new()).await;
        assert_eq!(resumed.is_ok(), fine, "{state}");
        let sent = service.calls().iter().filter(|call| call.starts_with("POST")).count();
        assert_eq!(sent, 1);
    }
}

#[tokio::test]
async fn a_sandbox_that_may_have_been_up_all_along_was_not_resumed() {
    for (before, after, fine) in [
        (None, "ready", false),
        (None, "provisioning", false),
        (None, "provisioned", false),
        (None, "new-state", false),
        (Some("archived"), "ready", true),
        (Some("archiving"), "running", false),
        (Some("archiving"), "provisioning", true),
        (Some("error"), "cloning", true),
        (Some("archived"), "archiving", false),
        (Some("archived"), "new-state", false),
        (Some("ready"), "ready", false),
        (Some("ready"), "running", false),
        (Some("ready"), "provisioning", true),
        (Some("provisioning"), "provisioned", false),
        (Some("provisioning"), "ready", false),
    ] {
        let service = Service::start(move |request, looks| match (request.call.as_str(), looks) {
            ("POST /sandboxes/bx_1/resume", _) => Reply::Drop,
            (_, 0) => info(before.unwrap_or(after)),
            (_, 1) => info(after),
            _ => info("ready"),
        });
        let client = service.client();
        let sandbox = match before {
            Some(_) => client.get("bx_1").await.unwrap(),
            None => client.sandbox("bx_1"),
        };
        let resumed = sandbox.resume(Resume::new().env("A", "1")).await;
        assert_eq!(resumed.is_ok(), fine, "{before:?} {after}");
        if let Err(error) = resumed {
            assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connection, Delivery::Unknown));
        }
    }
}

#[tokio::test]
async fn a_resumed_sandbox_may_be_archived_for_a_moment() {
    let service = Service::start(|request, before| match (request.call.as_str(), before) {
        ("POST /sandboxes/bx_1/resume", _) => action("sandbox.resuming", None),
        (_, 0) => info("archived"),
        _ => info("ready"),
    });
    service.client().sandbox("bx_1").resume(Resume::new().ttl(Ttl::Never)).await.unwrap();
    assert_eq!(service.requests()[0].body, json!({"ttlSeconds": null}));
}

#[tokio::test]
async fn a_fork_is_a_new_sandbox_and_a_dropped_one_is_deleted() {
    let forking = || {
        Reply::Json(202, json!({"ok": true, "type": "sandbox.forking", "id": "bx_2", "status": "forking"}))
    };
    let service = Service::start(move |request, before| match (request.call.as_str(), before) {
        ("POST /sandboxes/bx_1/fork", 1) => Reply::Hang,
        ("POST /sandboxes/bx_1/fork", _) => forking(),
        ("DELETE /sandboxes/bx_2", _) => deleting(),
        _ => info("ready"),
    });
    let client = service.client();
    let source = client.sandbox("bx_1");
    let copy = source.fork(Fork::new().kind("large")).await.unwrap();
    assert_eq!(copy.id(), "bx_2");
    {
        let forking = source.fork(Fork::new());
        tokio::pin!(forking);
        tokio::select! {
            biased;
            _ = &mut forking => panic!("it is never answered"),
            () = service.arrived(3) => {}
        }
    }
    client.close().await;
    let requests = service.requests();
    assert_eq!(
        service.calls()[2..],
        ["POST /sandboxes/bx_1/fork", "POST /sandboxes/bx_1/fork", "DELETE /sandboxes/bx_2"]
    );
    assert_eq!(requests[2].header("idempotency-key"), requests[3].header("idempotency-key"));
    assert_ne!(requests[0].header("idempotency-key"), requests[2].header("idempotency-key"));
}

#[tokio::test]
async fn deleting_what_is_gone_is_done() {
    let service =
        Service::start(|_, before| if before == 0 { deleting() } else { failure(404, "not_found") });
    let sandbox = service.client().sandbox("bx_1");
    assert_eq!(sandbox.delete().await.unwrap().unwrap().id, "op_1");
    assert!(sandbox.delete().await.unwrap().is_none());
}

#[tokio::test]
async fn changes_are_remembered() {
    let service = Service::start(|_, _| {
        let named = with(sandbox("ready"), "name", json!("new"));
        Reply::Json(200, json!({"ok": true, "type": "sandbox.updated", "sandbox": named}))
    });
    let sandbox = service.client().sandbox("bx_1");
    assert!(sandbox.info().is_none());
    sandbox.clone().update(Update::new().name("new")).await.unwrap();
    assert_eq!(sandbox.info().unwrap().name.as_deref(), Some("new"));
    assert_eq!(
        sandbox.update(Update::new().ttl(std::time::Duration::ZERO)).await.unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    for subdomain in ["a", "A-b", "a--b", "my-desktop", "app-3000", "app-"] {
        let error = sandbox.update(Update::new().subdomain(subdomain)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{subdomain}");
        assert!(error.message().starts_with("subdomain: "), "{error}");
    }
    assert_eq!(service.calls().len(), 1);
    for subdomain in ["desktop", "app3000", "123", "amber-fox-1a"] {
        sandbox.update(Update::new().subdomain(subdomain)).await.unwrap();
    }
}

#[tokio::test]
async fn lists_follow_cursors_and_bad_ids_are_refused() {
    let service = Service::start(|request, _| {
        let (ids, cursor) = if request.call.contains("cursor=c1") {
            (["c"].as_slice(), None)
        } else {
            (["a", "b"].as_slice(), Some("c1"))
        };
        let sandboxes: Vec<_> = ids.iter().map(|id| json!({"id": id, "state": "ready"})).collect();
        let page = json!({"nextCursor": cursor, "hasMore": cursor.is_some(), "limit": 2});
        Reply::Json(
            200,
            json!({"ok": true, "type": "sandbox.list", "sandboxes": sandboxes, "pageInfo": page}),
        )
    });
    let client = service.client();
    let all = client.list(ListOptions::new().state("ready").state("idle")).collect().await.unwrap();
    assert_eq!(all.iter().map(|sandbox| sandbox.id()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(service.calls()[0].contains("state=ready%2Cidle"), "{}", service.calls()[0]);
    assert!(all[0].info().is_some());
    let few = client.list(ListOptions::new().limit(1)).collect().await.unwrap();
    assert_eq!(few.len(), 1);
    assert!(service.calls()[2].contains("limit=1"));
    for bad in ["", "..", "."] {
        assert_eq!(client.get(bad).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(client.sandbox(bad).exec("true").await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(service.calls().len(), 3);
    let unset = Create::new().ttl(std::time::Duration::from_secs(2_592_001));
    assert_eq!(client.create(unset).await.unwrap_err().kind(), ErrorKind::InvalidInput);
}
