//! Disks kept under a name, and codes that give them to others.

use std::{fs, time::Duration};

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, Scenario, runner::RunnerKind};
use serde_json::{Value, json};

use crate::{
    http::{Api, guarded, until},
    worlds::{ACME, people, person, scripted_and_clock, with_key_of},
};

struct Setting {
    server: MockServer,
    clock: ManualClock,
}

impl Setting {
    fn new() -> Self {
        let plan = "[[plans]]\nkey = \"trial\"\nnamed_snapshots = 2\n";
        let others = person("carl", "plan = \"trial\"") + &person("poor", "blocked = true");
        let (server, clock) = scripted_and_clock(&[plan, &people(["alice", "bob"]), ACME, &others].concat());
        Self { server, clock }
    }

    fn api(&self, login: &str) -> Api {
        with_key_of(&self.server, login)
    }

    fn write(&self, sandbox: &str, text: &str) {
        fs::write(self.server.world().folder(sandbox).join("home/user/note"), text).unwrap();
    }

    fn read(&self, sandbox: &str) -> String {
        fs::read_to_string(self.server.world().folder(sandbox).join("home/user/note")).unwrap()
    }

    /// How many snapshots have files.
    fn kept(&self) -> usize {
        let spaces = self.server.world().folder("x");
        fs::read_dir(spaces.parent().unwrap().with_file_name("snapshots")).unwrap().count()
    }
}

async fn named(api: &Api, name: &str) -> Value {
    let path = format!("/named-snapshots/{name}");
    api.get(&path).await.succeeds(200, "snapshot.named.info")["snapshot"].clone()
}

async fn begin(api: &Api, sandbox: &str, name: &str) -> Value {
    let body = json!({"sandboxId": sandbox, "name": name});
    let saving = api.post("/named-snapshots", body).await.succeeds(202, "snapshot.named.saving");
    assert_eq!((&saving["status"], &saving["snapshot"]["status"]), (&json!("saving"), &json!("saving")));
    saving["snapshot"].clone()
}

async fn save(api: &Api, sandbox: &str, name: &str) -> Value {
    begin(api, sandbox, name).await;
    until(async || named(api, name).await["status"] == "ready").await;
    named(api, name).await
}

#[tokio::test]
async fn a_disk_is_saved_used_replaced_and_removed() {
    let set = Setting::new();
    let alice = set.api("alice");
    let id = alice.sandbox(json!({"type": "large", "env": {"MINE": "1"}})).await;
    set.write(&id, "one");
    let saved = save(&alice, &id, "base").await;
    assert_eq!((&saved["sourceSandboxId"], &saved["type"]), (&json!(id), &json!("large")));
    assert_eq!((&saved["sizeBytes"], saved.get("error")), (&json!(3), None));
    let first = saved["snapshotId"].as_str().unwrap().to_owned();
    set.write(&id, "changed since");

    // The snapshot behind a name can be read like others, and is in no list of them.
    let tree = alice.get(&format!("/snapshots/{first}/tree")).await.succeeds(200, "snapshot.tree");
    assert_eq!(tree["entries"][0]["path"], "home/user/note");
    assert_eq!(alice.get("/snapshots").await.body["snapshots"], json!([]));
    let refused = alice.request("DELETE", &format!("/snapshots/{first}"));
    alice.send(refused.header("X-Sandboxer-Confirm-Delete", &first)).await.fails(404, "not_found");
    set.api("bob").get(&format!("/snapshots/{first}/tree")).await.fails(404, "not_found");

    let made = alice.sandbox(json!({"from": "base"})).await;
    assert_eq!(set.read(&made), "one");
    let seen = alice.get(&format!("/sandboxes/{made}")).await.body["sandbox"].clone();
    assert_eq!((&seen["type"], &seen["state"]), (&json!("default"), &json!("ready")));

    set.clock.advance(Duration::from_secs(1));
    save(&alice, &made, "other").await;
    set.write(&id, "two");
    set.clock.advance(Duration::from_secs(1));
    let replaced = save(&alice, &id, "base").await;
    assert_ne!(replaced["snapshotId"], saved["snapshotId"]);
    alice.get(&format!("/snapshots/{first}/tree")).await.fails(404, "not_found");
    assert_eq!(set.read(&alice.sandbox(json!({"from": "base"})).await), "two");
    assert_eq!(set.read(&made), "one");
    until(async || set.kept() == 2).await;

    let list = alice.get("/named-snapshots").await.succeeds(200, "snapshot.named.list");
    let names: Vec<&Value> = list["snapshots"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["base", "other"]);
    assert_eq!((&list["allowance"]["used"], &list["allowance"]["free"]), (&json!(2), &json!(10)));

    // A name does not need its sandbox.
    alice.delete(&id).await.succeeds(202, "sandbox.deleting");
    alice.get(&format!("/sandboxes/{id}")).await.fails(404, "not_found");
    assert_eq!(set.read(&alice.sandbox(json!({"from": "base"})).await), "two");
    let gone = alice.call("DELETE", "/named-snapshots/base", json!({})).await;
    let gone = gone.succeeds(200, "snapshot.named.deleted");
    assert_eq!((&gone["name"], &gone["status"]), (&json!("base"), &json!("deleted")));
    alice.get("/named-snapshots/base").await.fails(404, "not_found");
    alice.call("DELETE", "/named-snapshots/base", json!({})).await.fails(404, "not_found");
    let refused = alice.post("/sandboxes", json!({"from": "base"})).await;
    assert_eq!(refused.fails(404, "snapshot_not_found")["field"], "from");
    until(async || set.kept() == 1).await;
}

#[tokio::test]
async fn one_of_two_savers_of_a_name_wins() {
    let set = Setting::new();
    let alice = set.api("alice");
    let id = alice.sandbox(json!({})).await;
    set.write(&id, "old");
    save(&alice, &id, "base").await;
    let delay = Duration::from_secs(60);
    // Captures would come every minute, too.
    set.server.world().set_capture_every(Duration::ZERO);
    set.server.world().set_save_delay(delay);
    set.write(&id, "new");
    let body = json!({"sandboxId": id, "name": "base"});
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (api, body) = (alice.clone(), body.clone());
        tries.spawn(async move { api.post("/named-snapshots", body).await });
    }
    let answers = tries.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 202).count(), 1);
    for answer in answers.iter().filter(|answer| answer.status != 202) {
        answer.fails(409, "save_in_progress");
    }
    alice.call("DELETE", "/named-snapshots/base", json!({})).await.fails(409, "save_in_progress");
    guarded(set.clock.wait_for_sleep_of(delay)).await;
    // Until the save is done, the name gives what it gave before.
    assert_eq!(named(&alice, "base").await["status"], "saving");
    assert_eq!(set.read(&alice.sandbox(json!({"from": "base"})).await), "old");
    set.write(&id, "later");
    set.clock.advance(delay);
    until(async || named(&alice, "base").await["status"] == "ready").await;
    assert_eq!(set.read(&alice.sandbox(json!({"from": "base"})).await), "new");
}

#[tokio::test]
async fn what_cannot_be_saved_is_refused_or_fails() {
    let set = Setting::new();
    let (alice, carl, poor) = (set.api("alice"), set.api("carl"), set.api("poor"));
    let id = alice.sandbox(json!({})).await;
    set.write(&id, "kept");
    for name in ["", "Upper", "-dash", "under_score", "latest", "new", "x y", &"a".repeat(64)] {
        let answer = alice.post("/named-snapshots", json!({"sandboxId": id, "name": name})).await;
        answer.fails(400, "invalid_name");
    }
    alice.post("/named-snapshots", json!({"name": "x"})).await.fails(400, "invalid_request");
    let answer = carl.post("/named-snapshots", json!({"sandboxId": id, "name": "x"})).await;
    answer.fails(404, "not_found");
    let without = alice.sandbox(json!({"snapshots": false})).await;
    let answer = alice.post("/named-snapshots", json!({"sandboxId": without, "name": "x"})).await;
    answer.fails(409, "no_snapshot");
    set.server.world().break_sandbox(&without, "worn out").unwrap();

    save(&alice, &id, "base").await;
    set.server.world().set_scenario_for(&id, Scenario::BrokenDisk, true).unwrap();
    begin(&alice, &id, "base").await;
    until(async || named(&alice, "base").await["status"] == "failed").await;
    assert_eq!(named(&alice, "base").await["error"], "the disk cannot be saved");
    assert_eq!(set.read(&alice.sandbox(json!({"from": "base"})).await), "kept");
    begin(&alice, &id, "fresh").await;
    until(async || named(&alice, "fresh").await["status"] == "failed").await;
    alice.post("/sandboxes", json!({"from": "fresh"})).await.fails(404, "snapshot_not_found");
    set.server.world().set_scenario_for(&id, Scenario::BrokenDisk, false).unwrap();
    let again = save(&alice, &id, "base").await;
    assert_eq!(again.get("error"), None);

    let his = carl.sandbox(json!({})).await;
    save(&carl, &his, "a").await;
    save(&carl, &his, "b").await;
    let answer = carl.post("/named-snapshots", json!({"sandboxId": his, "name": "c"})).await;
    assert_eq!(answer.fails(409, "named_snapshot_limit")["limit"], 2);
    save(&carl, &his, "b").await;
    poor.get("/named-snapshots").await.succeeds(200, "snapshot.named.list");

    // A stopped sandbox is saved as it was when it was stopped.
    alice.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    alice.wait_for(&id, "archived").await;
    save(&alice, &id, "stopped").await;
    assert_eq!(set.read(&alice.sandbox(json!({"from": "stopped"})).await), "kept");
}

#[tokio::test]
async fn names_belong_to_a_wallet_and_codes_to_everybody() {
    let set = Setting::new();
    let (alice, bob, carl) = (set.api("alice"), set.api("bob"), set.api("carl"));
    let id = alice.sandbox(json!({"env": {"HUSH": "1"}})).await;
    set.write(&id, "given");
    let body = json!({"sandboxId": id, "name": "ours"});
    let request = alice.request("POST", "/named-snapshots").header("X-Sandboxer-Org", "Acme").json(&body);
    alice.send(request).await.succeeds(202, "snapshot.named.saving");
    let of_acme = |api: &Api| {
        let api = api.clone();
        async move {
            let request = api.request("GET", "/named-snapshots/ours").header("X-Sandboxer-Org", "Acme");
            api.send(request).await
        }
    };
    until(async || of_acme(&bob).await.body["snapshot"]["status"] == "ready").await;
    alice.get("/named-snapshots/ours").await.fails(404, "not_found");
    bob.post("/sandboxes", json!({"from": "ours"})).await.fails(404, "snapshot_not_found");
    assert_eq!(set.read(&bob.sandbox(json!({"from": "ours", "org": "Acme"})).await), "given");
    of_acme(&carl).await.fails(403, "not_org_member");

    save(&alice, &id, "base").await;
    let shares = "/named-snapshots/base/shares";
    carl.post(shares, json!({})).await.fails(404, "not_found");
    let made = alice.post(shares, json!({})).await.succeeds(201, "snapshot.share.created");
    let code = made["shareCode"].as_str().unwrap().to_owned();
    let share = &made["share"];
    assert!(code.starts_with("bsh_") && code.starts_with(share["codePrefix"].as_str().unwrap()), "{code}");
    assert!(code.len() > share["codePrefix"].as_str().unwrap().len() + 16, "{code}");
    assert_eq!(
        (&share["status"], &share["useCount"], &share["lastUsedAt"]),
        (&json!("active"), &json!(0), &Value::Null)
    );

    set.clock.advance(Duration::from_secs(9));
    let his = carl.sandbox(json!({"from": code})).await;
    assert_eq!(set.read(&his), "given");
    let seen = carl.get(&format!("/sandboxes/{his}")).await.body["sandbox"].clone();
    assert_eq!((&seen["access"], &seen["team"]), (&json!("owner"), &Value::Null));
    let listed = async || alice.get(shares).await.succeeds(200, "snapshot.share.list")["shares"].clone();
    let used = listed().await[0].clone();
    assert_eq!((&used["useCount"], &used["lastUsedAt"]), (&json!(1), &json!("2026-01-01T00:00:09.000Z")));
    assert!(!listed().await.to_string().contains(&code));

    // What is saved later under the name is what the code gives.
    set.write(&id, "given anew");
    save(&alice, &id, "base").await;
    assert_eq!(set.read(&carl.sandbox(json!({"from": code})).await), "given anew");
    // A call that is refused uses nothing up.
    set.api("poor").post("/sandboxes", json!({"from": code})).await.fails(402, "billing_required");
    assert_eq!(listed().await[0]["useCount"], 2);

    let path = format!("{shares}/{}", share["id"].as_str().unwrap());
    carl.call("DELETE", &path, json!({})).await.fails(404, "not_found");
    for _ in 0..2 {
        let revoked = alice.call("DELETE", &path, json!({})).await.succeeds(200, "snapshot.share.revoked");
        assert_eq!(revoked["share"]["status"], "revoked");
        assert_eq!(revoked["share"]["revokedAt"], "2026-01-01T00:00:09.000Z");
        set.clock.advance(Duration::from_secs(1));
    }
    carl.post("/sandboxes", json!({"from": code})).await.fails(404, "snapshot_not_found");
    carl.post("/sandboxes", json!({"from": "bsh_unknown"})).await.fails(404, "snapshot_not_found");
    assert_eq!(set.read(&his), "given");
    alice.call("DELETE", &format!("{shares}/shr_0"), json!({})).await.fails(404, "not_found");

    let second = alice.post(shares, json!({})).await.succeeds(201, "snapshot.share.created");
    assert_eq!(listed().await[0]["id"], second["share"]["id"]);
    alice.call("DELETE", "/named-snapshots/base", json!({})).await.succeeds(200, "snapshot.named.deleted");
    carl.post("/sandboxes", json!({"from": second["shareCode"]})).await.fails(404, "snapshot_not_found");
}

#[tokio::test]
async fn a_key_for_some_sandboxes_leaves_the_snapshots_of_others_alone() {
    let set = Setting::new();
    let alice = set.api("alice");
    let (other, own) = (alice.sandbox(json!({})).await, alice.sandbox(json!({})).await);
    set.write(&other, "other");
    set.write(&own, "own");
    save(&alice, &other, "base").await;
    let body = json!({"name": "limited", "preset": "full-sandbox", "sandboxIds": [own]});
    let made = alice.post("/api-keys/scoped", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let limited = Api::with_key(&set.server.url(), made.body["secret"].as_str().unwrap());
    let before = named(&alice, "base").await;

    let refused = limited.post("/named-snapshots", json!({"sandboxId": own, "name": "base"})).await;
    refused.fails(403, "forbidden");
    for sandbox in [&other, "bx_23456789"] {
        let refused = limited.post("/named-snapshots", json!({"sandboxId": sandbox, "name": "base"})).await;
        refused.fails(404, "not_found");
    }
    limited.get("/named-snapshots/base").await.fails(404, "not_found");
    limited.call("DELETE", "/named-snapshots/base", json!({})).await.fails(404, "not_found");
    assert_eq!(named(&alice, "base").await, before);
    assert_eq!(set.read(&alice.sandbox(json!({"from": "base"})).await), "other");

    // Under a name that is free, or its own, it saves.
    for _ in 0..2 {
        save(&limited, &own, "mine").await;
    }
    assert_eq!(set.read(&alice.sandbox(json!({"from": "mine"})).await), "own");
}

#[tokio::test]
async fn variables_come_with_a_name_and_not_with_a_code() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"env": {"MINE": "secret"}})).await;
    save(&api, &id, "base").await;
    let share = api.post("/named-snapshots/base/shares", json!({})).await;
    let code = share.succeeds(201, "snapshot.share.created")["shareCode"].clone();
    for (body, expected) in [
        (json!({"from": "base"}), "secret\n"),
        (json!({"from": "base", "env": {}}), "none\n"),
        (json!({"from": code}), "none\n"),
    ] {
        let made = api.sandbox(body).await;
        assert_eq!(api.exec(&made, "echo ${MINE-none}").await["stdout"], expected);
    }
}

#[tokio::test]
async fn a_save_goes_on_where_a_killed_server_was() {
    let folder = tempfile::tempdir().unwrap();
    let start = |delay| {
        let builder = MockServer::builder().data_dir(folder.path()).api_key("key");
        let server = builder.runner(RunnerKind::Scripted).start().unwrap();
        server.world().set_save_delay(delay);
        server
    };
    let server = start(Duration::from_secs(3600));
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    begin(&api, &id, "base").await;
    drop(server);
    let server = start(Duration::ZERO);
    let api = Api::of(&server);
    until(async || named(&api, "base").await["status"] == "ready").await;
    api.sandbox(json!({"from": "base"})).await;
}
