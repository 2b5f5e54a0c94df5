//! The secrets of an account, replaced as a whole and pushed to what runs.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, Scenario, runner::RunnerKind};
use serde_json::json;

use crate::http::{Api, guarded};

#[tokio::test]
async fn new_secrets_reach_the_sandboxes_that_are_up() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let none = api.get("/secrets").await.succeeds(200, "secrets.info");
    assert_eq!((&none["envContents"], &none["secretFiles"]), (&json!(""), &json!([])));
    let all = json!({"envContents": "A=1", "secretFiles": [{"path": "key", "contents": "hush"}]});
    let set = api.post("/secrets", all).await.succeeds(200, "secrets.updated");
    assert_eq!(set["pushed"], json!({"updated": 0, "failed": 0}));
    assert_eq!(set["subenvironmentId"], none["subenvironmentId"]);
    assert_ne!(set["environmentId"], none["environmentId"]);

    let up = api.sandbox(json!({})).await;
    let cut_off = api.sandbox(json!({})).await;
    let without = api.sandbox(json!({"noEnv": true})).await;
    let stopped = api.sandbox(json!({})).await;
    api.post(&format!("/sandboxes/{stopped}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&stopped, "archived").await;
    let look = "echo \"$A $B\"; cat key other 2>/dev/null; true";
    assert_eq!(api.exec(&up, look).await["stdout"], "1 \nhush");

    server.world().set_scenario_for(&cut_off, Scenario::Unreachable, true).unwrap();
    let all = json!({"envContents": "B=2", "secretFiles": [{"path": "other", "contents": "new"}]});
    let set = api.post("/secrets", all).await.succeeds(200, "secrets.updated");
    assert_eq!(set["pushed"], json!({"updated": 1, "failed": 1}));
    assert_eq!(set["envContents"], "B=2");
    server.world().set_scenario_for(&cut_off, Scenario::Unreachable, false).unwrap();
    assert_eq!(api.exec(&up, look).await["stdout"], " 2\nnew");
    assert_eq!(api.exec(&cut_off, look).await["stdout"], "1 \nhush", "it keeps what it had");
    assert_eq!(api.exec(&without, look).await["stdout"], " \n");
    let sandbox = api.get(&format!("/sandboxes/{up}")).await.succeeds(200, "sandbox.info");
    assert_eq!(sandbox["sandbox"]["environmentVersion"], 3);
    // What is stopped stays with its version.
    api.post(&format!("/sandboxes/{stopped}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    api.wait_for(&stopped, "ready").await;
    assert_eq!(api.exec(&stopped, look).await["stdout"], "1 \nhush");

    // What is left out becomes empty.
    let set = api.post("/secrets", json!({})).await.succeeds(200, "secrets.updated");
    assert_eq!((&set["envContents"], &set["secretFiles"]), (&json!(""), &json!([])));
    assert_eq!(api.exec(&up, look).await["stdout"], " \n");
}

#[tokio::test]
async fn a_file_that_cannot_be_written_leaves_the_sandbox_with_its_version() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    api.exec(&id, "mkdir key").await;
    let all = json!({"envContents": "A=1", "secretFiles": [{"path": "key", "contents": "hush"}]});
    let set = api.post("/secrets", all).await.succeeds(200, "secrets.updated");
    assert_eq!(set["pushed"], json!({"updated": 0, "failed": 1}));
    let sandbox = api.get(&format!("/sandboxes/{id}")).await.succeeds(200, "sandbox.info");
    assert_eq!(sandbox["sandbox"]["environmentVersion"], 1);
    assert_eq!(api.exec(&id, "echo \"$A\"; ls -d key").await["stdout"], "\nkey\n");
}

#[tokio::test]
async fn what_a_snapshot_holds_of_somebody_elses_secrets_is_gone_before_it_is_up() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let all = json!({"secretFiles": [{"path": "key", "contents": "hush"}]});
    api.post("/secrets", all).await.succeeds(200, "secrets.updated");
    let id = api.sandbox(json!({})).await;
    assert_eq!(api.exec(&id, "echo mine > own; cat key").await["stdout"], "hush");
    let save = json!({"sandboxId": id, "name": "saved"});
    api.post("/named-snapshots", save).await.succeeds(202, "snapshot.named.saving");
    crate::http::until(async || {
        api.get("/named-snapshots/saved").await.body["snapshot"]["status"] == "ready"
    })
    .await;
    let copy = api.sandbox(json!({"from": "saved", "noEnv": true})).await;
    assert_eq!(api.exec(&copy, "ls").await["stdout"], "own\n");
    let copy = api.sandbox(json!({"from": "saved"})).await;
    assert_eq!(api.exec(&copy, "ls").await["stdout"], "key\nown\n");
}

#[tokio::test]
async fn a_fork_has_nothing_of_what_came_to_its_source_just_before_the_copy() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let source = api.sandbox(json!({})).await;
    let delay = Duration::from_secs(7);
    server.world().set_start_delay(delay);
    let path = format!("/sandboxes/{source}/fork");
    let key = |id: &str| server.world().folder(id).join("home/user/key");
    let (forked, ()) = guarded(async {
        tokio::join!(api.post(&path, json!({"noEnv": true})), async {
            clock.wait_for_sleep_of(delay).await;
            let all = json!({"secretFiles": [{"path": "key", "contents": "hush"}]});
            let set = api.post("/secrets", all).await.succeeds(200, "secrets.updated");
            assert_eq!(set["pushed"], json!({"updated": 1, "failed": 0}));
            assert!(key(&source).exists());
            clock.advance(delay);
        })
    })
    .await;
    let copy = forked.succeeds(202, "sandbox.forking")["id"].as_str().unwrap().to_owned();
    api.wait_for(&copy, "ready").await;
    assert!(key(&source).exists() && !key(&copy).exists());
}
