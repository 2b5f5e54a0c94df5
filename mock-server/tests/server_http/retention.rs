//! What an account keeps of its sandboxes.

use sandboxer_mock_server::{AccountSeed, KeySeed, MockServer, SessionSeed, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};

use crate::http::{Answer, Api, until};

fn start(runner: RunnerKind) -> (MockServer, Api, Api) {
    let mut world = WorldSeed::default();
    world.sessions.push(SessionSeed::new("somebody"));
    let server = MockServer::builder().world(world).api_key("key").runner(runner).start().unwrap();
    let (key, person) = (Api::of(&server), Api::with_key(&server.url(), "somebody"));
    (server, key, person)
}

async fn change(api: &Api, body: Value) -> Answer {
    api.call("PATCH", "/account/data-retention", body).await
}

const CONFIRMED: &str = "delete archived sandbox data";

#[tokio::test]
async fn only_a_person_changes_it_and_only_word_for_word() {
    let (_server, key, person) = start(RunnerKind::Scripted);
    change(&key, json!({"snapshotsOff": true})).await.fails(403, "session_required");
    let refused = [
        (json!({}), "invalid_request"),
        (json!({"enabled": null}), "invalid_request"),
        (json!({"confirmation": CONFIRMED}), "invalid_request"),
        (json!({"enabled": "yes"}), "invalid_request"),
        (json!({"enabled": false, "everything": true}), "invalid_request"),
        (json!({"enabled": true}), "confirmation_required"),
        (json!({"enabled": true, "confirmation": "Delete archived sandbox data"}), "confirmation_required"),
        (json!({"enabled": true, "snapshotsOff": true, "confirmation": null}), "confirmation_required"),
    ];
    for (body, code) in refused {
        change(&person, body).await.fails(400, code);
    }
    let kept = key.get("/account/data-retention").await;
    assert_eq!(kept.headers["cache-control"], "no-store");
    let kept = kept.succeeds(200, "data_retention.info");
    for (on, since) in
        [("enabled", "enabledAt"), ("snapshotsOff", "snapshotsOffAt"), ("monitoringOff", "monitoringOffAt")]
    {
        assert_eq!((&kept[on], &kept[since]), (&json!(false), &json!(null)), "{on}");
    }
}

#[tokio::test]
async fn new_sandboxes_have_off_what_the_account_has_off() {
    let (_server, key, person) = start(RunnerKind::Scripted);
    let before = key.sandbox(json!({})).await;
    let kept = change(&person, json!({"snapshotsOff": true, "monitoringOff": true})).await;
    let kept = kept.succeeds(200, "data_retention.updated");
    assert_eq!((&kept["enabled"], &kept["queuedSandboxes"]), (&json!(false), &json!(0)));
    assert_eq!((&kept["snapshotsOff"], kept["snapshotsOffAt"].is_string()), (&json!(true), true));
    let refused = key.post("/sandboxes", json!({"snapshots": true})).await;
    assert_eq!(refused.fails(409, "snapshots_off_for_account")["retryable"], false);
    key.post("/sandboxes", json!({"monitoring": true})).await.fails(409, "monitoring_off_for_account");
    let made = key.post("/sandboxes", json!({})).await.succeeds(202, "sandbox.created");
    assert_eq!(
        (&made["sandbox"]["snapshots"], &made["sandbox"]["monitoring"]),
        (&json!(false), &json!(false))
    );
    let fork = format!("/sandboxes/{before}/fork");
    key.post(&fork, json!({"monitoring": true})).await.fails(409, "monitoring_off_for_account");
    let forked = key.post(&fork, json!({})).await.succeeds(202, "sandbox.forking");
    assert_eq!(
        (&forked["sandbox"]["snapshots"], &forked["sandbox"]["monitoring"]),
        (&json!(false), &json!(false))
    );
    let old = key.get(&format!("/sandboxes/{before}")).await.body;
    assert_eq!((&old["sandbox"]["snapshots"], &old["sandbox"]["monitoring"]), (&json!(true), &json!(true)));
    change(&person, json!({"monitoringOff": false})).await.succeeds(200, "data_retention.updated");
    let made = key.post("/sandboxes", json!({"monitoring": true})).await.succeeds(202, "sandbox.created");
    assert_eq!(made["sandbox"]["monitoring"], true);
}

#[tokio::test]
async fn nothing_is_kept_of_what_is_stopped() {
    let (server, key, person) = start(RunnerKind::Auto);
    let stop = async |id: &str| {
        key.exec(id, "echo secret > note").await;
        key.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
        key.wait_for(id, "archived").await;
    };
    let (old, running) = (key.sandbox(json!({})).await, key.sandbox(json!({})).await);
    stop(&old).await;
    let on = change(&person, json!({"enabled": true, "confirmation": CONFIRMED})).await;
    let on = on.succeeds(200, "data_retention.updated");
    assert_eq!(
        (&on["queuedSandboxes"], &on["acceptedDeletionOperationsIrreversible"]),
        (&json!(1), &json!(true))
    );
    let me = key.get("/me").await.body;
    assert_eq!(
        (&me["user"]["zeroDataRetention"], &me["user"]["zeroDataRetentionEnabledAt"]),
        (&json!(true), &on["enabledAt"])
    );
    key.get(&format!("/sandboxes/{old}")).await.fails(404, "not_found");
    until(async || !server.world().folder(&old).exists()).await;
    // Saying it again asks for no confirmation and changes nothing.
    let again = change(&person, json!({"enabled": true})).await.succeeds(200, "data_retention.updated");
    assert_eq!((&again["queuedSandboxes"], &again["enabledAt"]), (&json!(0), &on["enabledAt"]));

    stop(&running).await;
    until(async || !server.world().folder(&running).exists()).await;
    key.post(&format!("/sandboxes/{running}/resume"), json!({})).await.fails(409, "no_snapshot");
    key.post(&format!("/sandboxes/{running}/fork"), json!({})).await.fails(409, "no_snapshot");
    change(&person, json!({"enabled": false})).await.succeeds(200, "data_retention.updated");
    let kept = key.sandbox(json!({})).await;
    stop(&kept).await;
    key.post(&format!("/sandboxes/{kept}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    key.wait_for(&kept, "ready").await;
    assert_eq!(key.exec(&kept, "cat note").await["stdout"], "secret\n");
}

#[tokio::test]
async fn a_world_can_begin_with_it() {
    let mut world = WorldSeed::default();
    world.accounts.push(AccountSeed {
        login: "zed".into(),
        zero_data_retention: true,
        ..AccountSeed::default()
    });
    let mut key = KeySeed::new("key-of-zed");
    key.account = Some("zed".into());
    world.keys.push(key);
    let server = MockServer::builder().world(world).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::with_key(&server.url(), "key-of-zed");
    let kept = api.get("/account/data-retention").await.succeeds(200, "data_retention.info");
    assert_eq!((&kept["enabled"], &kept["snapshotsOff"]), (&json!(true), &json!(false)));
}
