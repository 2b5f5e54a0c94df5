//! The snapshots of sandboxes: when they are made, what is in them, how they go.

use std::{fs, time::Duration};

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, Scenario, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};

use crate::{
    http::{Answer, Api, until},
    worlds::{people, scripted_and_clock, with_keys_of},
};

fn scripted() -> MockServer {
    MockServer::builder().runner(RunnerKind::Scripted).start().unwrap()
}

/// Puts a file into the home folder of a sandbox, behind the server's back.
fn put(server: &MockServer, sandbox: &str, path: &str, text: &str) {
    let path = server.world().folder(sandbox).join("home/user").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

async fn stop(api: &Api, id: &str, body: Value) {
    api.post(&format!("/sandboxes/{id}/stop"), body).await.succeeds(202, "sandbox.stopping");
    api.wait_for(id, "archived").await;
}

async fn resume(api: &Api, id: &str) {
    api.post(&format!("/sandboxes/{id}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    api.wait_for(id, "ready").await;
}

async fn shown(api: &Api, id: &str) -> Value {
    api.get(&format!("/sandboxes/{id}")).await.succeeds(200, "sandbox.info")["sandbox"].clone()
}

async fn listed(api: &Api, path: &str) -> Vec<Value> {
    api.get(path).await.succeeds(200, "snapshot.list")["snapshots"].as_array().unwrap().clone()
}

async fn delete(api: &Api, path: &str, confirm: &str) -> Answer {
    api.send(api.request("DELETE", path).header("X-Sandboxer-Confirm-Delete", confirm)).await
}

fn id_of(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_stop_captures_what_has_changed() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let latest = format!("/sandboxes/{id}/snapshots/latest");
    assert_eq!(api.get(&latest).await.succeeds(200, "snapshot.latest")["snapshot"], Value::Null);
    assert_eq!(shown(&api, &id).await["lastSnapshotStatus"], Value::Null);
    put(&server, &id, "a", "1234");
    put(&server, &id, "b", "12");
    clock.advance(Duration::from_secs(5));
    stop(&api, &id, json!({})).await;
    let view = shown(&api, &id).await;
    assert_eq!(view["lastSnapshotStatus"], "completed");
    assert_eq!(view["snapshotCompletedAt"], "2026-01-01T00:00:05.000Z");
    let first = api.get(&latest).await.succeeds(200, "snapshot.latest")["snapshot"].clone();
    assert_eq!((&first["kind"], &first["generation"]), (&json!("base"), &json!(0)));
    assert_eq!((&first["sizeBytes"], &first["fileCount"]), (&json!(6), &json!(2)));
    assert_eq!((&first["contentSizeBytes"], &first["contentFileCount"]), (&json!(6), &json!(2)));
    assert_eq!((&first["sandboxId"], &first["status"]), (&json!(id), &json!("completed")));
    assert_eq!(first["createdAt"], "2026-01-01T00:00:05.000Z");

    resume(&api, &id).await;
    put(&server, &id, "b", "12345678");
    stop(&api, &id, json!({})).await;
    let second = api.get(&latest).await.succeeds(200, "snapshot.latest")["snapshot"].clone();
    assert_eq!((&second["kind"], &second["generation"]), (&json!("incremental"), &json!(1)));
    assert_eq!((&second["sizeBytes"], &second["contentSizeBytes"]), (&json!(8), &json!(12)));
    assert_eq!(second["chainId"], first["chainId"]);
    assert_eq!(listed(&api, &format!("/sandboxes/{id}/snapshots")).await, [second.clone(), first.clone()]);
    assert_eq!(listed(&api, "/snapshots?sort=asc").await, [first, second]);

    let without = api.sandbox(json!({"snapshots": false})).await;
    stop(&api, &without, json!({})).await;
    assert!(listed(&api, &format!("/sandboxes/{without}/snapshots")).await.is_empty());
}

#[tokio::test]
async fn lists_are_read_page_by_page_by_whoever_they_belong_to() {
    let world = people(["alice", "bob"]);
    let (server, clock) = scripted_and_clock(&world);
    let [alice, bob] = with_keys_of(&server, ["alice", "bob"]);
    let (one, two) = (alice.sandbox(json!({})).await, alice.sandbox(json!({})).await);
    let mut made = Vec::new();
    for _ in 0..3 {
        for id in [&one, &two] {
            clock.advance(Duration::from_secs(1));
            made.push(server.world().capture(id).unwrap());
        }
    }
    let ids = |list: &[Value]| list.iter().map(id_of).collect::<Vec<_>>();
    for (sort, expected) in [("asc", made.clone()), ("desc", made.iter().rev().cloned().collect())] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = alice.get(&format!("/snapshots?limit=4&sort={sort}{cursor}")).await;
            let page = page.succeeds(200, "snapshot.list");
            found.extend(ids(page["snapshots"].as_array().unwrap()));
            let info = &page["pageInfo"];
            assert_eq!(info["hasMore"].as_bool().unwrap(), info["nextCursor"].is_string());
            let Some(next) = info["nextCursor"].as_str() else { break };
            cursor = format!("&cursor={}", next.replace('+', "%2B").replace('=', "%3D"));
        }
        assert_eq!(found, expected);
    }
    let of_two = listed(&alice, &format!("/sandboxes/{two}/snapshots?sort=asc")).await;
    assert_eq!(ids(&of_two), [made[1].clone(), made[3].clone(), made[5].clone()]);
    assert_eq!(listed(&alice, "/snapshots?cursor=nonsense").await.len(), 6);
    alice.get("/snapshots?limit=0").await.fails(400, "invalid_limit");
    alice.get(&format!("/sandboxes/{one}/snapshots?limit=201")).await.fails(400, "invalid_limit");

    assert!(listed(&bob, "/snapshots").await.is_empty());
    let snapshot = &made[0];
    for path in [
        format!("/sandboxes/{one}/snapshots"),
        format!("/sandboxes/{one}/snapshots/latest"),
        format!("/snapshots/{snapshot}/tree"),
        format!("/snapshots/{snapshot}/files"),
        format!("/snapshots/{snapshot}/download"),
        "/snapshots/nothing/tree".to_owned(),
    ] {
        bob.get(&path).await.fails(404, "not_found");
    }
    delete(&bob, &format!("/snapshots/{snapshot}"), snapshot).await.fails(404, "not_found");
    delete(&bob, &format!("/sandboxes/{one}/snapshots"), &one).await.fails(404, "not_found");
    assert_eq!(listed(&alice, "/snapshots").await.len(), 6);

    let limited = format!("[[keys]]\nsecret = 'limited'\naccount = 'alice'\nsandboxes = ['{two}']\n{world}");
    server.world().plant(&WorldSeed::from_toml(&limited).unwrap()).unwrap();
    let limited = Api::with_key(&server.url(), "limited");
    let found = listed(&limited, "/snapshots?sort=asc").await;
    assert_eq!(ids(&found), [made[1].clone(), made[3].clone(), made[5].clone()]);
    limited.get(&format!("/snapshots/{}/tree", made[0])).await.fails(404, "not_found");
    limited.get(&format!("/snapshots/{}/tree", made[1])).await.succeeds(200, "snapshot.tree");
}

#[tokio::test]
async fn a_snapshot_that_others_build_on_stays_until_they_are_gone() {
    let server = scripted();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    put(&server, &id, "a", "1");
    let made: Vec<String> = (0..3).map(|_| server.world().capture(&id).unwrap()).collect();
    let path = |snapshot: &str| format!("/snapshots/{snapshot}");
    let details = delete(&api, &path(&made[0]), &id).await;
    assert_eq!(details.fails(409, "delete_confirmation_required")["targetId"], made[0]);
    let details = delete(&api, &format!("/sandboxes/{id}/snapshots"), &made[0]).await;
    assert_eq!(details.fails(409, "delete_confirmation_required")["targetId"], id);
    let operation = |answer: Answer| answer.succeeds(202, "snapshot.deleting")["operation"].clone();
    let status = async |operation: &Value| {
        let read = api.get(&format!("/deletion-operations/{}", id_of(operation))).await;
        read.succeeds(200, "deletion.operation")["operation"].clone()
    };
    let first = operation(delete(&api, &path(&made[0]), &made[0]).await);
    assert_eq!((&first["kind"], &first["targetId"]), (&json!("snapshot"), &json!(made[0])));
    until(async || status(&first).await["stage"] == "kept_for_newer_snapshots").await;
    assert_eq!(status(&first).await["status"], "blocked");
    delete(&api, &path(&made[0]), &made[0]).await.fails(404, "not_found");
    api.get(&format!("{}/tree", path(&made[0]))).await.fails(404, "not_found");
    assert_eq!(listed(&api, "/snapshots").await.len(), 2);
    // Those that build on it are as good as before.
    let manifest = api.get(&format!("{}/download", path(&made[1]))).await.succeeds(200, "snapshot.download");
    assert_eq!(manifest["chunks"].as_array().unwrap().len(), 2);

    let all =
        delete(&api, &format!("/sandboxes/{id}/snapshots"), &id).await.succeeds(202, "snapshot.deleting");
    assert_eq!(all["operations"].as_array().unwrap().len(), 2);
    assert!(listed(&api, "/snapshots").await.is_empty());
    for operation in all["operations"].as_array().unwrap().iter().chain([&first]) {
        until(async || status(operation).await["status"] == "completed").await;
    }
    let folder = server.world().folder(&id);
    let left = folder.parent().unwrap().with_file_name("snapshots");
    assert_eq!(fs::read_dir(left).unwrap().count(), 0);
    assert_eq!(shown(&api, &id).await["snapshotAvailable"], false);
    // It is up, and its disk with it.
    stop(&api, &id, json!({})).await;
    let after = listed(&api, "/snapshots").await;
    assert_eq!((after.len(), &after[0]["kind"]), (1, &json!("base")));
}

#[tokio::test]
async fn a_stopped_sandbox_is_no_newer_than_its_newest_snapshot() {
    let server = scripted();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let note = server.world().folder(&id).join("home/user/note");
    let read = || fs::read_to_string(&note).unwrap();
    put(&server, &id, "note", "old");
    stop(&api, &id, json!({})).await;
    resume(&api, &id).await;
    assert_eq!(read(), "old");
    // What came after the last snapshot is lost when nothing is saved.
    put(&server, &id, "note", "lost");
    stop(&api, &id, json!({"force": true})).await;
    assert_eq!(listed(&api, "/snapshots").await.len(), 1);
    let forked = api.post(&format!("/sandboxes/{id}/fork"), json!({})).await.succeeds(202, "sandbox.forking");
    let copy = server.world().folder(forked["id"].as_str().unwrap()).join("home/user/note");
    assert_eq!(fs::read_to_string(copy).unwrap(), "old");
    resume(&api, &id).await;
    assert_eq!(read(), "old");

    put(&server, &id, "note", "new");
    stop(&api, &id, json!({})).await;
    let newest = id_of(&listed(&api, &format!("/sandboxes/{id}/snapshots")).await[0]);
    delete(&api, &format!("/snapshots/{newest}"), &newest).await.succeeds(202, "snapshot.deleting");
    resume(&api, &id).await;
    assert_eq!(read(), "old");

    stop(&api, &id, json!({})).await;
    delete(&api, &format!("/sandboxes/{id}/snapshots"), &id).await.succeeds(202, "snapshot.deleting");
    api.post(&format!("/sandboxes/{id}/resume"), json!({})).await.fails(409, "no_snapshot");
    api.post(&format!("/sandboxes/{id}/fork"), json!({})).await.fails(409, "no_snapshot");
    let save = json!({"sandboxId": id, "name": "x"});
    api.post("/named-snapshots", save).await.fails(409, "no_snapshot");

    let young = api.sandbox(json!({})).await;
    stop(&api, &young, json!({"force": true})).await;
    api.post(&format!("/sandboxes/{young}/resume"), json!({})).await.fails(409, "no_snapshot");
}

#[tokio::test]
async fn the_snapshots_of_a_sandbox_go_with_it() {
    let server = scripted();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let snapshot = server.world().capture(&id).unwrap();
    let folder = server.world().folder(&id);
    api.delete(&id).await.succeeds(202, "sandbox.deleting");
    api.get(&format!("/snapshots/{snapshot}/tree")).await.fails(404, "not_found");
    assert!(listed(&api, "/snapshots").await.is_empty());
    let left = folder.parent().unwrap().with_file_name("snapshots").join(&snapshot);
    until(async || !left.exists()).await;
}

#[tokio::test]
async fn older_kinds_of_snapshots_have_no_list() {
    let server = scripted();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"name": "x"})).await;
    put(&server, &id, "a", "1");
    let path = format!("/snapshots/{}", server.world().capture(&id).unwrap());
    for (scenario, code, retryable) in [
        (Scenario::LegacySnapshots, "legacy_snapshot", false),
        (Scenario::UnindexedSnapshots, "snapshot_not_indexed", true),
    ] {
        server.world().set_scenario_for(&id, scenario, true).unwrap();
        let tree = api.get(&format!("{path}/tree")).await.succeeds(200, "snapshot.tree");
        assert_eq!((&tree["treeAvailable"], &tree["reason"]), (&json!(false), &json!(code)));
        assert_eq!(tree["entries"], json!([]));
        let file = api.get(&format!("{path}/files?path=home/user/a")).await;
        assert_eq!(file.fails(409, code)["retryable"], retryable);
        server.world().set_scenario_for(&id, scenario, false).unwrap();
    }
    server.world().set_scenario_for(&id, Scenario::LegacySnapshots, true).unwrap();
    let seen = &listed(&api, "/snapshots").await[0];
    assert_eq!((&seen["kind"], &seen["contentFileCount"]), (&json!("legacy"), &Value::Null));
    let manifest = api.get(&format!("{path}/download")).await.succeeds(200, "snapshot.download");
    assert_eq!((&manifest["kind"], &manifest["inventory"]), (&json!("legacy"), &Value::Null));
}

#[tokio::test]
async fn snapshots_outlive_the_server_and_leftovers_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let builder = MockServer::builder().data_dir(folder.path()).api_key("key");
        builder.runner(RunnerKind::Scripted).start().unwrap()
    };
    let server = start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    put(&server, &id, "a", "1234");
    let snapshot = server.world().capture(&id).unwrap();
    drop(server);
    let leftovers = ["half.new", "0b9c8f3e-6a53-4d53-8f0c-0a0b7a0c5d1e"];
    for leftover in leftovers {
        fs::create_dir_all(folder.path().join("snapshots").join(leftover).join("disk")).unwrap();
    }
    let server = start();
    let api = Api::of(&server);
    let tree = api.get(&format!("/snapshots/{snapshot}/tree")).await.succeeds(200, "snapshot.tree");
    assert_eq!(tree["entries"], json!([{"path": "home/user/a", "kind": "file", "size": 4}]));
    for leftover in leftovers {
        until(async || !folder.path().join("snapshots").join(leftover).exists()).await;
    }
}
