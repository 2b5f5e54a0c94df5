//! Snapshots and named snapshots.

use std::time::Duration;

use serde_json::{Value, json};

use super::service::{Reply, Service};
use crate::{ErrorKind, SnapshotFile, SnapshotListOptions, clock::ManualClock};

fn named(kind: &str, status: &str, created: &str) -> Value {
    json!({"ok": true, "type": kind, "status": "saving", "snapshot": {"name": "base", "status": status,
        "error": "disk full", "sourceSandboxId": "bx_1", "createdAt": created}})
}

const OLD: &str = "2026-01-01T00:00:00Z";
const NEW: &str = "2026-01-02T00:00:00Z";

#[tokio::test]
async fn a_snapshot_is_saved_and_waited_for_past_the_one_it_replaces() {
    let service = Service::start(|request, before| match (request.call.as_str(), before) {
        ("POST /named-snapshots", _) => Reply::Json(202, named("snapshot.named.saving", "saving", NEW)),
        (_, 0) => Reply::Json(200, named("snapshot.named.info", "ready", OLD)),
        (_, 1) => Reply::Json(200, named("snapshot.named.info", "saving", NEW)),
        _ => Reply::Json(200, named("snapshot.named.info", "ready", NEW)),
    });
    let clock = ManualClock::new();
    let sandbox = service.client_on(clock.shared()).sandbox("bx_1");
    let saving = tokio::spawn(async move { sandbox.snapshot("base").await });
    for _ in 0..2 {
        clock.wait_for_sleep_of(Duration::from_secs(2)).await;
        clock.advance(Duration::from_secs(2));
    }
    assert_eq!(saving.await.unwrap().unwrap().created_at.as_str(), NEW);
    let look = "GET /named-snapshots/base";
    assert_eq!(service.calls(), ["POST /named-snapshots", look, look, look]);
    assert_eq!(service.requests()[0].body, json!({"sandboxId": "bx_1", "name": "base"}));
}

#[tokio::test]
async fn a_failed_save_ends_the_wait_with_its_reason() {
    let service = Service::start(|_, _| Reply::Json(200, named("snapshot.named.info", "failed", NEW)));
    let error = service.client().named_snapshots().wait("base", None).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, "snapshot_failed"));
    assert!(error.message().contains("disk full"));
    assert_eq!(error.sandbox_id(), Some("bx_1"));
}

#[tokio::test]
async fn bad_names_and_ranges_are_refused_with_nothing_sent() {
    let service = Service::start(|_, _| Reply::Drop);
    let client = service.client();
    let mut refusals = Vec::new();
    let long = "x".repeat(64);
    for name in ["", "Base", "-base", "a.b", "latest", "new", long.as_str()] {
        refusals.push(client.sandbox("bx_1").snapshot(name).await.unwrap_err());
    }
    refusals.push(client.named_snapshots().save("", "base").await.unwrap_err());
    let empty: std::ops::Range<u64> = 4..4;
    for file in [
        SnapshotFile::new("f").bytes(empty),
        SnapshotFile::new("f").last(0),
        SnapshotFile::new("x".repeat(4097)),
    ] {
        refusals.push(client.snapshot("s1").download(file).await.unwrap_err());
    }
    refusals.push(client.named_snapshots().get("..").await.unwrap_err());
    refusals.push(client.snapshot("").delete().await.unwrap_err());
    for error in refusals {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert!(service.calls().is_empty());
}

#[tokio::test]
async fn the_calls_of_a_snapshot() {
    let operation = json!({"id": "op_1", "kind": "snapshot", "targetId": "s1", "reason": "explicit",
        "status": "pending", "attemptCount": 0, "requestedAt": OLD});
    let service = Service::start(move |request, _| match request.call.as_str() {
        "DELETE /snapshots/s1" => {
            Reply::Json(202, json!({"ok": true, "type": "snapshot.deleting", "operation": operation}))
        }
        "DELETE /sandboxes/bx_1/snapshots" => {
            Reply::Json(202, json!({"ok": true, "type": "snapshot.deleting", "operations": [operation]}))
        }
        "GET /sandboxes/bx_1/snapshots/latest" => {
            Reply::Json(200, json!({"ok": true, "type": "snapshot.latest", "snapshot": null}))
        }
        _ => Reply::Lines("ell".to_owned()),
    });
    let client = service.client();
    let (snapshot, sandbox) = (client.snapshot("s1"), client.sandbox("bx_1"));
    assert_eq!(snapshot.delete().await.unwrap().id, "op_1");
    assert_eq!(sandbox.delete_snapshots().await.unwrap().len(), 1);
    assert!(sandbox.latest_snapshot().await.unwrap().is_none());
    let requests = service.requests();
    assert_eq!(requests[0].header("x-sandboxer-confirm-delete"), Some("s1"));
    assert_eq!(requests[1].header("x-sandboxer-confirm-delete"), Some("bx_1"));
    for (file, range) in [
        (SnapshotFile::new("a b"), None),
        (SnapshotFile::new("a b").bytes(1..4), Some("bytes=1-3")),
        (SnapshotFile::new("a b").from_offset(7), Some("bytes=7-")),
        (SnapshotFile::new("a b").last(9), Some("bytes=-9")),
    ] {
        let body = snapshot.download(file).await.unwrap();
        assert_eq!(&body.collect(10).await.unwrap()[..], b"ell");
        let sent = service.requests().pop().unwrap();
        assert_eq!(sent.header("range"), range);
        assert!(sent.call.starts_with("GET /snapshots/s1/files?path=a"), "{}", sent.call);
    }
}

#[tokio::test]
async fn snapshots_are_listed_over_all_pages() {
    let page = |next: Value, id: &str| {
        let summary = json!({"id": id, "sandboxId": "bx_1", "status": "completed", "createdAt": OLD});
        let more = !next.is_null();
        Reply::Json(
            200,
            json!({"ok": true, "type": "snapshot.list", "snapshots": [summary],
                "pageInfo": {"nextCursor": next, "hasMore": more, "limit": 2}}),
        )
    };
    let service = Service::start(move |request, _| match request.call.contains("cursor=c1") {
        false => page(json!("c1"), "s2"),
        true => page(Value::Null, "s1"),
    });
    let options = SnapshotListOptions::new().limit(2).sort("asc");
    let client = service.client();
    let mine = client.sandbox("bx_1").snapshots(options.clone()).collect().await.unwrap();
    let all = client.snapshots(options.cursor("c1")).collect().await.unwrap();
    assert_eq!((mine.len(), all.len()), (2, 1));
    let calls = service.calls();
    for (call, parts) in calls.iter().zip([
        ["/sandboxes/bx_1/snapshots?", "limit=2", "sort=asc"],
        ["/sandboxes/bx_1/snapshots?", "limit=1", "cursor=c1"],
        ["GET /snapshots?", "limit=2", "cursor=c1"],
    ]) {
        assert!(parts.iter().all(|part| call.contains(part)), "{call} lacks one of {parts:?}");
    }
}

#[tokio::test]
async fn shares_are_made_listed_and_revoked_and_their_code_is_not_printed() {
    let share =
        json!({"id": "shr_1", "codePrefix": "bsh_h", "status": "active", "useCount": 0, "createdAt": OLD});
    let service = Service::start(move |request, _| match request.call.split(' ').next() {
        Some("POST") => Reply::Json(
            201,
            json!({"ok": true, "type": "snapshot.share.created", "name": "base", "shareCode": "bsh_hush", "share": share}),
        ),
        Some("GET") => Reply::Json(
            200,
            json!({"ok": true, "type": "snapshot.share.list", "name": "base", "shares": [share]}),
        ),
        _ => Reply::Json(
            200,
            json!({"ok": true, "type": "snapshot.share.revoked", "name": "base", "share": share}),
        ),
    });
    let group = service.client().named_snapshots();
    let made = group.create_share("base").await.unwrap();
    assert_eq!(made.share_code.expose(), "bsh_hush");
    assert!(!format!("{made:?}").contains("hush"));
    assert_eq!(group.shares("base").await.unwrap().len(), 1);
    assert_eq!(group.revoke_share("base", "shr_1").await.unwrap().id, "shr_1");
    let shares = "/named-snapshots/base/shares";
    assert_eq!(
        service.calls(),
        [format!("POST {shares}"), format!("GET {shares}"), format!("DELETE {shares}/shr_1")]
    );
}
