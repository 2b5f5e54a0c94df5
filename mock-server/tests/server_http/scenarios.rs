//! Codes that no state of a healthy world leads to.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, Scenario, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};

use crate::http::{Api, guarded, until};

fn scripted() -> MockServer {
    MockServer::builder().runner(RunnerKind::Scripted).start().unwrap()
}

#[tokio::test]
async fn a_disk_that_cannot_be_saved_fails_its_stop_until_it_can() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Process).start().unwrap();
    let (api, world) = (Api::of(&server), server.world());
    let id = api.sandbox(json!({})).await;
    world.set_scenario_for(&id, Scenario::BrokenDisk, true).unwrap();
    let path = format!("/sandboxes/{id}");
    let shown = async || api.get(&path).await.succeeds(200, "sandbox.info")["sandbox"].clone();
    assert_eq!(shown().await["healthReason"], "the disk cannot be saved");

    clock.advance(Duration::from_secs(10));
    let stop = api.post(&format!("{path}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    let stop = stop["stop"]["id"].clone();
    until(async || shown().await["stop"]["status"] == "failing").await;
    let failing = shown().await;
    assert_eq!((&failing["state"], &failing["stop"]["id"]), (&json!("ready"), &stop));
    assert_eq!(failing["stop"]["error"], "the disk cannot be saved");
    assert_eq!(failing["stop"]["requestedAt"], "2026-01-01T00:00:10.000Z");
    assert_eq!(failing["lastSnapshotStatus"], "failed");
    // It can be worked in, and that does not call the stop off; nor is it paid for.
    api.exec(&id, "echo late > note").await;
    let again = api.post(&format!("{path}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    assert_eq!(again["stop"]["id"], stop);
    guarded(clock.wait_for_sleep_of(Duration::from_secs(30))).await;
    clock.advance(Duration::from_secs(30));
    until(async || shown().await["stop"]["lastAttemptAt"] == "2026-01-01T00:00:40.000Z").await;
    assert_eq!(shown().await["stop"]["status"], "failing");
    let usage = api.get(&format!("{path}/usage")).await.succeeds(200, "sandbox.usage");
    assert_eq!((&usage["seconds"], &usage["running"]), (&json!(10), &json!(false)));

    world.set_scenario_for(&id, Scenario::BrokenDisk, false).unwrap();
    guarded(clock.wait_for_sleep_of(Duration::from_secs(30))).await;
    clock.advance(Duration::from_secs(30));
    api.wait_for(&id, "archived").await;
    let ended = api.get(&format!("{path}/stops/{}", stop.as_str().unwrap())).await;
    let ended = ended.succeeds(200, "stop.status")["stop"].clone();
    assert_eq!((&ended["status"], &ended["error"]), (&json!("completed"), &Value::Null));
    api.post(&format!("{path}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    api.wait_for(&id, "ready").await;
    assert_eq!(api.exec(&id, "cat note").await["stdout"], "late\n");
}

#[tokio::test]
async fn a_failing_stop_is_forced_or_called_off() {
    let server = scripted();
    let (api, world) = (Api::of(&server), server.world());
    world.set_scenario(Scenario::BrokenDisk, true).unwrap();
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}");
    let stop = async |body: Value| {
        api.post(&format!("{path}/stop"), body).await.succeeds(202, "sandbox.stopping")["stop"]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let status = async |stop: &str| {
        api.get(&format!("{path}/stops/{stop}")).await.succeeds(200, "stop.status")["stop"]["status"].clone()
    };
    // Nor can it be copied.
    api.post(&format!("{path}/fork"), json!({})).await.fails(500, "internal_error");
    assert_eq!(world.sandboxes(), std::slice::from_ref(&id));
    let first = stop(json!({})).await;
    until(async || status(&first).await == "failing").await;
    api.post(&format!("{path}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    api.wait_for(&id, "ready").await;
    assert_eq!(status(&first).await, "superseded");
    api.post(&format!("{path}/resume"), json!({})).await.fails(409, "sandbox_not_ready");

    let second = stop(json!({})).await;
    assert_ne!(first, second);
    until(async || status(&second).await == "failing").await;
    assert_eq!(stop(json!({"force": true})).await, second);
    api.wait_for(&id, "archived").await;
    assert_eq!(status(&second).await, "completed");
    // Nothing of it was ever saved.
    api.post(&format!("{path}/resume"), json!({})).await.fails(409, "no_snapshot");

    // What is broken is not removed either, but nobody sees it any more.
    let deleting = api.delete(&id).await.succeeds(202, "sandbox.deleting");
    assert_eq!(
        (&deleting["operation"]["status"], &deleting["operation"]["attemptCount"]),
        (&json!("pending"), &json!(0))
    );
    let operation = format!("/deletion-operations/{}", deleting["operation"]["id"].as_str().unwrap());
    let read = async || api.get(&operation).await.succeeds(200, "deletion.operation")["operation"].clone();
    until(async || read().await["stage"] == "retrying").await;
    assert_eq!(read().await["status"], "processing");
    api.get(&path).await.fails(404, "not_found");
}

#[tokio::test]
async fn an_old_agent_follows_no_offsets() {
    let seed = WorldSeed::from_toml("[[scenarios]]\nname = 'old_agent'\nsandbox = 'old'\n").unwrap();
    let server = MockServer::builder().world(seed).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}");
    let process = api.start(&id, "x").await["processId"].clone();
    let by_offset = format!("{path}/commands/{process}?stdoutOffset=0");
    api.get(&by_offset).await.succeeds(200, "command.status");
    api.call("PATCH", &path, json!({"name": "old"})).await.succeeds(200, "sandbox.updated");
    api.get(&by_offset).await.fails(409, "agent_outdated");
    api.get(&format!("{path}/commands/{process}/stream")).await.fails(409, "agent_outdated");
    api.get(&format!("{path}/commands/{process}")).await.succeeds(200, "command.status");
}

#[tokio::test]
async fn a_disk_that_is_still_restored_asks_for_another_try() {
    let server = scripted();
    let (api, world) = (Api::of(&server), server.world());
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}");
    world.set_scenario_for(&id, Scenario::Restoring, true).unwrap();
    let refused = api.post(&format!("{path}/commands"), json!({"command": "true"})).await;
    assert_eq!(refused.fails(502, "sandbox_direct_failed")["retryable"], true);
    assert_eq!(refused.body["message"], "sandbox_restoring");
    api.get(&format!("{path}/files?path=x")).await.fails(502, "sandbox_direct_failed");
    let stream = api.request("POST", &format!("{path}/commands"));
    let frames = stream.json(&json!({"command": "true", "stream": true})).send().await.unwrap();
    let frames = frames.text().await.unwrap();
    let frame: Value = serde_json::from_str(frames.trim()).unwrap();
    assert_eq!((&frame["type"], &frame["retryable"]), (&json!("error"), &json!(true)));
    world.set_scenario_for(&id, Scenario::Restoring, false).unwrap();
    api.exec(&id, "true").await;
}

#[tokio::test]
async fn restored_files_arrive_after_the_sandbox_is_up() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let (api, world) = (Api::of(&server), server.world());
    let delay = Duration::from_secs(45);
    world.set_hydrate_delay(delay);
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}");
    let shown = async || api.get(&path).await.succeeds(200, "sandbox.info")["sandbox"].clone();
    let fresh = shown().await;
    assert_eq!((&fresh["hydrated"], &fresh["hydratedAt"]), (&json!(true), &Value::Null));
    api.post(&format!("{path}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    api.post(&format!("{path}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    api.wait_for(&id, "ready").await;
    assert_eq!(shown().await["hydrated"], false);
    guarded(clock.wait_for_sleep_of(delay)).await;
    clock.advance(delay);
    until(async || shown().await["hydrated"] == true).await;
    assert_eq!(shown().await["hydratedAt"], "2026-01-01T00:00:45.000Z");
}

#[tokio::test]
async fn machine_sizes_and_routes_that_are_refused() {
    let server = scripted();
    let (api, world) = (Api::of(&server), server.world());
    let id = api.sandbox(json!({"type": "large"})).await;
    let path = format!("/sandboxes/{id}");
    world.set_scenario(Scenario::FullDisk, true).unwrap();
    let small = json!({"type": "small"});
    let refused = api.post(&format!("{path}/fork"), small.clone()).await;
    assert_eq!(refused.fails(409, "type_too_small")["type"], "small");
    api.post(&format!("{path}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    api.post(&format!("{path}/resume"), small).await.fails(409, "type_too_small");
    assert_eq!(api.state(&id).await, "archived");
    api.post(&format!("{path}/resume"), json!({"type": "xlarge"})).await.succeeds(202, "sandbox.resuming");

    world.set_scenario(Scenario::ProviderRequired, true).unwrap();
    let refused = api.post("/sandboxes", json!({"type": "xlarge"})).await;
    refused.fails(400, "machine_provider_required");
    api.sandbox(json!({"type": "large"})).await;

    world.set_scenario(Scenario::GatewayDown, true).unwrap();
    let rename = json!({"subdomain": "my-app"});
    let refused = api.call("PATCH", &path, rename.clone()).await;
    assert_eq!(refused.fails(502, "gateway_error")["retryable"], true);
    let shown = api.get(&path).await.succeeds(200, "sandbox.info");
    assert_eq!(shown["sandbox"]["subdomain"], "my-app", "it is saved all the same");
    world.set_scenario(Scenario::GatewayDown, false).unwrap();
    api.call("PATCH", &path, rename).await.succeeds(200, "sandbox.updated");
}
