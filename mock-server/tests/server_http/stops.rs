//! Stops that come too early, save nothing, or cannot save.

use std::{fs, time::Duration};

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};

use crate::http::{Api, guarded, until};

async fn stop(api: &Api, id: &str, body: Value) {
    api.post(&format!("/sandboxes/{id}/stop"), body).await.succeeds(202, "sandbox.stopping");
    api.wait_for(id, "archived").await;
}

async fn resume(api: &Api, id: &str, body: Value) {
    api.post(&format!("/sandboxes/{id}/resume"), body).await.succeeds(202, "sandbox.resuming");
    api.wait_for(id, "ready").await;
}

#[tokio::test]
async fn what_a_forced_stop_gave_up_stays_away() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let note = server.world().folder(&id).join("home/user/note");
    fs::write(&note, "old").unwrap();
    stop(&api, &id, json!({})).await;
    resume(&api, &id, json!({})).await;
    fs::write(&note, "lost").unwrap();
    stop(&api, &id, json!({"force": true})).await;

    // Stopped again before its disk was brought back.
    server.world().set_boot_delay(Duration::from_secs(5));
    api.post(&format!("/sandboxes/{id}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    guarded(clock.wait_for_sleep_of(Duration::from_secs(5))).await;
    stop(&api, &id, json!({})).await;
    let list = api.get(&format!("/sandboxes/{id}/snapshots")).await.succeeds(200, "snapshot.list");
    let sizes: Vec<&Value> =
        list["snapshots"].as_array().unwrap().iter().map(|it| &it["contentSizeBytes"]).collect();
    assert_eq!(sizes, [3, 3]);
    server.world().set_boot_delay(Duration::ZERO);
    resume(&api, &id, json!({})).await;
    assert_eq!(fs::read_to_string(&note).unwrap(), "old");
}

#[tokio::test]
async fn secret_files_that_come_back_with_a_snapshot_are_known_to_its_copies() {
    let seed = "[[accounts]]\nlogin = 'alice'\n[[accounts]]\nlogin = 'carl'\n\
                [[keys]]\nsecret = 'alice'\naccount = 'alice'\n[[keys]]\nsecret = 'carl'\naccount = 'carl'\n";
    let world = WorldSeed::from_toml(seed).unwrap();
    let server = MockServer::builder().world(world).runner(RunnerKind::Scripted).start().unwrap();
    let (alice, carl) = (Api::with_key(&server.url(), "alice"), Api::with_key(&server.url(), "carl"));
    let key = |id: &str| server.world().folder(id).join("home/user/key");
    let all = json!({"secretFiles": [{"path": "key", "contents": "hush"}]});
    alice.post("/secrets", all).await.succeeds(200, "secrets.updated");
    let id = alice.sandbox(json!({})).await;
    stop(&alice, &id, json!({})).await;
    resume(&alice, &id, json!({"noEnv": true})).await;
    assert!(!key(&id).exists());
    // The snapshot that it goes back to has the file.
    stop(&alice, &id, json!({"force": true})).await;

    let forked = alice.post(&format!("/sandboxes/{id}/fork"), json!({})).await;
    let forked = forked.succeeds(202, "sandbox.forking")["id"].as_str().unwrap().to_owned();
    alice.wait_for(&forked, "ready").await;
    assert!(!key(&forked).exists());

    let save = json!({"sandboxId": id, "name": "base"});
    alice.post("/named-snapshots", save).await.succeeds(202, "snapshot.named.saving");
    let named = async || alice.get("/named-snapshots/base").await.body["snapshot"].clone();
    until(async || named().await["status"] == "ready").await;
    let kept = named().await["snapshotId"].as_str().unwrap().to_owned();
    let in_it = alice.get(&format!("/snapshots/{kept}/tree")).await.succeeds(200, "snapshot.tree");
    assert_eq!(in_it["entries"], json!([{"path": "home/user/key", "kind": "file", "size": 4}]));
    let share = alice.post("/named-snapshots/base/shares", json!({})).await;
    let code = share.succeeds(201, "snapshot.share.created")["shareCode"].clone();
    let his = carl.sandbox(json!({"from": code})).await;
    assert!(!key(&his).exists());
}

#[tokio::test]
async fn a_disk_that_is_not_saved_keeps_its_sandbox_up() {
    let clock = ManualClock::new();
    let server = MockServer::builder()
        .clock(clock.shared())
        .capture_every(Duration::ZERO)
        .runner(RunnerKind::Process)
        .start()
        .unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    api.exec(&id, "echo kept > note").await;
    let snapshots = server.world().folder(&id).parent().unwrap().with_file_name("snapshots");
    let aside = snapshots.with_file_name("aside");
    fs::rename(&snapshots, &aside).unwrap();

    let path = format!("/sandboxes/{id}");
    let shown = async || api.get(&path).await.succeeds(200, "sandbox.info")["sandbox"].clone();
    api.post(&format!("{path}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    until(async || shown().await["stop"]["status"] == "failing").await;
    let failing = shown().await;
    assert_eq!((&failing["state"], &failing["snapshotCompletedAt"]), (&json!("ready"), &Value::Null));
    let problem = failing["stop"]["error"].as_str().unwrap();
    assert!(problem.starts_with("the disk could not be saved: "), "{problem}");
    assert_eq!(failing["lastSnapshotStatus"], "failed");
    assert_eq!(failing["lastSnapshotAttemptAt"], "2026-01-01T00:00:00.000Z");
    let usage = api.get(&format!("{path}/usage")).await.succeeds(200, "sandbox.usage");
    assert_eq!(usage["running"], false);

    // What is begun meanwhile is not ended by an attempt that fails as well.
    let command = api.start(&id, "sleep 1000").await["processId"].clone();
    let retry = Duration::from_secs(30);
    guarded(clock.wait_for_sleep_of(retry)).await;
    clock.advance(retry);
    until(async || shown().await["stop"]["lastAttemptAt"] == "2026-01-01T00:00:30.000Z").await;
    assert_eq!(shown().await["stop"]["status"], "failing");
    let status = api.get(&format!("{path}/commands/{command}")).await.succeeds(200, "command.status");
    assert_eq!(status["status"], "running");

    guarded(clock.wait_for_sleep_of(retry)).await;
    fs::rename(&aside, &snapshots).unwrap();
    clock.advance(retry);
    api.wait_for(&id, "archived").await;
    let ended = shown().await;
    assert_eq!((&ended["stop"]["status"], &ended["stop"]["error"]), (&json!("completed"), &Value::Null));
    assert_eq!(ended["lastSnapshotStatus"], "completed");
    assert_eq!(ended["snapshotCompletedAt"], "2026-01-01T00:01:00.000Z");
    // Of the disk that was only tried out nothing is left.
    assert_eq!(fs::read_dir(&snapshots).unwrap().count(), 1);
    resume(&api, &id, json!({})).await;
    assert_eq!(api.exec(&id, "cat note").await["stdout"], "kept\n");

    // One that cannot be saved can be given up.
    fs::rename(&snapshots, &aside).unwrap();
    api.exec(&id, "echo lost > note").await;
    api.post(&format!("{path}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    until(async || shown().await["stop"]["status"] == "failing").await;
    stop(&api, &id, json!({"force": true})).await;
    fs::rename(&aside, &snapshots).unwrap();
    resume(&api, &id, json!({})).await;
    assert_eq!(api.exec(&id, "cat note").await["stdout"], "kept\n");
}
