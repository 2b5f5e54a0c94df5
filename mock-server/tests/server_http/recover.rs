//! Machines that nothing reaches, and their restart.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, Scenario, runner::RunnerKind};
use serde_json::{Value, json};

use crate::http::{Api, guarded};

async fn shown(api: &Api, id: &str) -> Value {
    api.get(&format!("/sandboxes/{id}")).await.succeeds(200, "sandbox.info")["sandbox"].clone()
}

async fn recover(api: &Api, id: &str) -> crate::http::Answer {
    api.post(&format!("/sandboxes/{id}/recover"), json!({})).await
}

#[tokio::test]
async fn an_unreachable_machine_is_restarted_and_its_sandbox_gets_well() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Process).start().unwrap();
    let (api, world) = (Api::of(&server), server.world());
    let id = api.sandbox(json!({})).await;
    api.exec(&id, "echo kept > note").await;
    let running = api.start(&id, "sleep 300").await;
    let details = recover(&api, &id).await;
    assert_eq!(details.fails(409, "sandbox_is_reachable")["retryable"], false);

    world.set_recover_delay(Duration::from_secs(90));
    world.set_scenario_for(&id, Scenario::Unreachable, true).unwrap();
    let sick = shown(&api, &id).await;
    assert_eq!((&sick["state"], &sick["health"]), (&json!("ready"), &json!("degraded")));
    assert_eq!(sick["healthReason"], "the machine does not answer");
    assert_eq!(sick["degradedSince"], "2026-01-01T00:00:00.000Z");
    let command = api.post(&format!("/sandboxes/{id}/commands"), json!({"command": "true"})).await;
    let details = command.fails(502, "sandbox_direct_failed");
    assert_eq!(details.get("retryable"), None, "nothing is said about whether it runs");

    let begun = recover(&api, &id).await.succeeds(200, "sandbox.recovering");
    assert_eq!(begun["status"], "recovering");
    guarded(clock.wait_for_sleep_of(Duration::from_secs(90))).await;
    assert_eq!(shown(&api, &id).await["health"], "degraded");
    clock.advance(Duration::from_secs(90));
    crate::http::until(async || shown(&api, &id).await["health"] == "ok").await;
    let well = shown(&api, &id).await;
    assert_eq!((&well["healthReason"], &well["degradedSince"]), (&Value::Null, &Value::Null));
    assert_eq!(api.exec(&id, "cat note").await["stdout"], "kept\n");
    let status = api.get(&format!("/sandboxes/{id}/commands/{}", running["processId"])).await;
    assert_eq!(status.succeeds(200, "command.status")["status"], "lost");

    world.set_scenario_for(&id, Scenario::Unreachable, true).unwrap();
    let refused = recover(&api, &id).await;
    refused.fails(409, "too_soon");
    assert_eq!(refused.headers["retry-after"], "510");
    clock.advance(Duration::from_secs(510));
    recover(&api, &id).await.succeeds(200, "sandbox.recovering");
}

#[tokio::test]
async fn machines_that_cannot_be_restarted_say_so() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let (api, world) = (Api::of(&server), server.world());
    let id = api.sandbox(json!({})).await;
    world.set_scenario(Scenario::Unreachable, true).unwrap();
    world.set_scenario(Scenario::StuckMachine, true).unwrap();
    recover(&api, &id).await.fails(409, "reset_failed");
    world.set_scenario(Scenario::NoPowerSwitch, true).unwrap();
    recover(&api, &id).await.fails(409, "recover_unsupported");
    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    recover(&api, &id).await.fails(409, "no_machine");
    assert_eq!(shown(&api, &id).await["health"], "ok", "what is stopped is not ill");
    recover(&api, "bx_22222222").await.fails(404, "not_found");
}

#[tokio::test]
async fn what_is_set_for_a_name_befalls_whoever_is_given_it() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    server.world().set_scenario_for("lost", Scenario::Unreachable, true).unwrap();
    let id = api.sandbox(json!({})).await;
    for (name, health) in [("lost", "degraded"), ("found", "ok")] {
        let changed = api.call("PATCH", &format!("/sandboxes/{id}"), json!({"name": name})).await;
        assert_eq!(changed.succeeds(200, "sandbox.updated")["sandbox"]["health"], health, "{name}");
    }
}
