//! Deletions that have to wait for others.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, runner::RunnerKind};
use serde_json::{Value, json};

use crate::http::{Api, guarded, until};

#[tokio::test]
async fn a_deletion_waits_for_a_save_of_the_disk() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let folder = server.world().folder(&id);
    let delay = Duration::from_secs(45);
    server.world().set_save_delay(delay);
    let save = json!({"sandboxId": id, "name": "base"});
    api.post("/named-snapshots", save).await.succeeds(202, "snapshot.named.saving");
    guarded(clock.wait_for_sleep_of(delay)).await;
    clock.advance(Duration::from_secs(5));

    let deleting = api.delete(&id).await.succeeds(202, "sandbox.deleting");
    let operation = format!("/deletion-operations/{}", deleting["operation"]["id"].as_str().unwrap());
    let read = async || api.get(&operation).await.succeeds(200, "deletion.operation")["operation"].clone();
    until(async || read().await["stage"] == "waiting_for_uploads").await;
    let waiting = read().await;
    assert_eq!((&waiting["status"], &waiting["attemptCount"]), (&json!("blocked"), &json!(1)));
    assert_eq!(waiting["expectedBy"], "2026-01-01T00:00:50.000Z");
    api.get(&format!("/sandboxes/{id}")).await.fails(404, "not_found");
    assert!(folder.exists());

    clock.advance(Duration::from_secs(40));
    until(async || read().await["status"] == "completed").await;
    let done = read().await;
    assert_eq!((&done["stage"], &done["expectedBy"]), (&json!("completed"), &Value::Null));
    assert!(!folder.exists());
    until(async || api.get("/named-snapshots/base").await.body["snapshot"]["status"] == "ready").await;
}
