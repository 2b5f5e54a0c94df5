//! The life of a sandbox: its states, its clock, its copies, its end.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};

use crate::http::{Api, guarded, until};

#[tokio::test]
async fn a_sandbox_starts_stops_comes_back_and_goes() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let created = api.post("/sandboxes", json!({"type": "large"})).await.succeeds(202, "sandbox.created");
    let id = created["sandbox"]["id"].as_str().unwrap().to_owned();
    assert_eq!(created["ttlSeconds"], 3600);
    assert_eq!(created["sandbox"]["billingMultiplier"], 2.0);
    api.wait_for(&id, "ready").await;
    api.exec(&id, "echo kept > note; echo /tmp too > /tmp/x 2>/dev/null; true").await;

    let path = format!("/sandboxes/{id}");
    let stopping = api.post(&format!("{path}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    assert_eq!(stopping["status"], "archiving");
    let stop = stopping["stop"]["id"].as_str().unwrap().to_owned();
    assert_eq!(stopping["stop"]["status"], "pending");
    api.wait_for(&id, "archived").await;
    let shown = api.get(&path).await.succeeds(200, "sandbox.info");
    assert_eq!(shown["sandbox"]["stop"]["status"], "completed");
    assert_eq!(shown["sandbox"]["stop"]["requestedAt"], Value::Null);
    assert_eq!(shown["sandbox"]["archiveAfter"], Value::Null);
    assert_eq!(shown["sandbox"]["snapshotAvailable"], true);
    let read = api.get(&format!("{path}/stops/{stop}")).await.succeeds(200, "stop.status");
    assert_eq!(read["stop"]["status"], "completed");
    assert!(read["stop"]["requestedAt"].is_string());

    let again = api.post(&format!("{path}/stop"), json!({})).await;
    assert_eq!(again.fails(400, "stop_failed")["sandbox"]["id"], id);
    let refused = api.post(&format!("{path}/commands"), json!({"command": "true"})).await;
    let details = refused.fails(409, "sandbox_not_ready");
    assert_eq!((&details["state"], &details["retryable"]), (&json!("archived"), &json!(false)));
    assert_eq!(refused.body["state"], "archived");

    let resumed = api.post(&format!("{path}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    assert_eq!(resumed["status"], "resuming");
    api.wait_for(&id, "ready").await;
    api.post(&format!("{path}/resume"), json!({})).await.fails(409, "sandbox_not_ready");
    assert_eq!(api.exec(&id, "cat note").await["stdout"], "kept\n");

    let folder = server.world().folder(&id);
    assert!(folder.exists());
    let deleting = api.delete(&id).await.succeeds(202, "sandbox.deleting");
    api.get(&path).await.fails(404, "not_found");
    let operation = deleting["operation"]["id"].as_str().unwrap().to_owned();
    assert!(operation.starts_with("bdop_"));
    until(async || {
        let read =
            api.get(&format!("/deletion-operations/{operation}")).await.succeeds(200, "deletion.operation");
        read["operation"]["status"] == "completed"
    })
    .await;
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_stop_that_is_pending_is_joined_forced_or_superseded() {
    let clock = ManualClock::new();
    let delay = Duration::from_secs(10);
    let server = MockServer::builder()
        .clock(clock.shared())
        .stop_delay(delay)
        .runner(RunnerKind::Scripted)
        .start()
        .unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}");
    let stop = async |body: Value| {
        let answer = api.post(&format!("{path}/stop"), body).await.succeeds(202, "sandbox.stopping");
        answer["stop"]["id"].as_str().unwrap().to_owned()
    };
    let first = stop(json!({})).await;
    assert_eq!(stop(json!({})).await, first);
    assert_eq!(api.state(&id).await, "archiving");
    api.post(&format!("{path}/commands"), json!({"command": "true"})).await.fails(409, "sandbox_not_ready");
    // From here on the disk is saved, and force has nothing to give up but the wait.
    guarded(clock.wait_for_sleep_of(delay)).await;
    assert_eq!(stop(json!({"force": true})).await, first);
    api.wait_for(&id, "archived").await;

    api.post(&format!("{path}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    api.wait_for(&id, "ready").await;
    let second = stop(json!({})).await;
    assert_ne!(first, second);
    guarded(clock.wait_for_sleep_of(delay)).await;
    api.post(&format!("{path}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    clock.advance(delay);
    api.wait_for(&id, "ready").await;
    let read = api.get(&format!("{path}/stops/{second}")).await.succeeds(200, "stop.status");
    assert_eq!(read["stop"]["status"], "superseded");
    let old = api.get(&format!("{path}/stops/{first}")).await.succeeds(200, "stop.status");
    assert_eq!(old["stop"]["status"], "completed");
}

#[tokio::test]
async fn a_sandbox_stops_by_itself_when_its_time_is_over() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    // Captures would come every minute, too.
    server.world().set_capture_every(Duration::ZERO);
    let api = Api::of(&server);
    let id = api.sandbox(json!({"ttlSeconds": 60})).await;
    let other = api.sandbox(json!({"ttlSeconds": null})).await;
    guarded(clock.wait_for_sleep_of(Duration::from_secs(60))).await;
    clock.advance(Duration::from_secs(59));
    let longer = json!({"ttlSeconds": 100, "name": "x".repeat(200)});
    let updated =
        api.call("PATCH", &format!("/sandboxes/{id}"), longer).await.succeeds(200, "sandbox.updated");
    assert_eq!(updated["sandbox"]["name"].as_str().unwrap().len(), 120);
    assert_eq!(updated["sandbox"]["archiveAfter"], "2026-01-01T00:02:39.000Z");
    guarded(clock.wait_for_sleep_of(Duration::from_secs(100))).await;
    clock.advance(Duration::from_secs(99));
    assert_eq!(api.state(&id).await, "ready");
    clock.advance(Duration::from_secs(1));
    api.wait_for(&id, "archived").await;
    assert_eq!(api.state(&other).await, "ready");
    // A resume that does not name a length keeps the stored one.
    api.post(&format!("/sandboxes/{id}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    api.wait_for(&id, "ready").await;
    guarded(clock.wait_for_sleep_of(Duration::from_secs(100))).await;
    let usage = api.get(&format!("/sandboxes/{id}/usage")).await.succeeds(200, "sandbox.usage");
    assert_eq!((&usage["seconds"], &usage["running"]), (&json!(159), &json!(true)));
}

#[tokio::test]
async fn calls_are_held_while_a_sandbox_starts() {
    let clock = ManualClock::new();
    let boot = Duration::from_secs(20);
    let server = MockServer::builder()
        .clock(clock.shared())
        .boot_delay(boot)
        .capture_every(Duration::ZERO)
        .runner(RunnerKind::Process)
        .start()
        .unwrap();
    let api = Api::of(&server);
    let created = api.post("/sandboxes", json!({})).await.succeeds(202, "sandbox.created");
    let id = created["sandbox"]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        (created["status"].as_str(), api.state(&id).await.as_str()),
        (Some("provisioning"), "provisioning")
    );
    guarded(clock.wait_for_sleep_of(boot)).await;
    let held = tokio::spawn({
        let (api, id) = (api.clone(), id.clone());
        async move { api.exec(&id, "echo held").await }
    });
    let write = json!({"path": "x", "content": "y"});
    let writing = tokio::spawn({
        let (api, path) = (api.clone(), format!("/sandboxes/{id}/files"));
        async move { api.call("PUT", &path, write).await }
    });
    // The boot and the two calls: the auto-stop is further away.
    guarded(clock.wait_for_sleep_of(Duration::from_secs(60))).await;
    clock.advance(boot);
    assert_eq!(guarded(held).await.unwrap()["stdout"], "held\n");
    guarded(writing).await.unwrap().succeeds(200, "file.written");

    server.world().set_boot_delay(Duration::from_secs(3000));
    let created = api.post("/sandboxes", json!({})).await.succeeds(202, "sandbox.created");
    let id = created["sandbox"]["id"].as_str().unwrap().to_owned();
    let late = tokio::spawn({
        let (api, path) = (api.clone(), format!("/sandboxes/{id}/commands"));
        async move { api.post(&path, json!({"command": "true"})).await }
    });
    guarded(clock.wait_for_sleep_of(Duration::from_secs(60))).await;
    clock.advance(Duration::from_secs(60));
    let late = guarded(late).await.unwrap();
    assert_eq!(late.fails(409, "sandbox_starting")["retryable"], true);
    assert_eq!(late.headers["retry-after"], "2");
    assert_eq!(server.world().commands(&id), [""; 0]);
}

#[tokio::test]
async fn a_fork_is_a_copy_and_the_source_stays_as_it_is() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"env": {"A": "1"}, "type": "small"})).await;
    api.exec(&id, "echo one > f; ln -s f link; mkdir -p d/e; echo t > /tmp/t 2>/dev/null; true").await;
    let forking =
        api.post(&format!("/sandboxes/{id}/fork"), json!({})).await.succeeds(202, "sandbox.forking");
    let copy = forking["id"].as_str().unwrap().to_owned();
    assert_ne!(copy, id);
    // What the source writes after the answer is its own.
    api.exec(&id, "echo two > f").await;
    api.wait_for(&copy, "ready").await;
    let seen = api.exec(&copy, "cat f link; echo $A; echo three >> f").await;
    assert_eq!(seen["stdout"], "one\none\n1\n");
    assert_eq!(api.exec(&id, "cat f").await["stdout"], "two\n");
    let shown = api.get(&format!("/sandboxes/{copy}")).await.succeeds(200, "sandbox.info");
    assert_eq!(shown["sandbox"]["type"], "small");
    api.delete(&id).await.succeeds(202, "sandbox.deleting");
    assert_eq!(api.exec(&copy, "cat f").await["stdout"], "one\nthree\n");
}

#[tokio::test]
async fn a_sandbox_without_snapshots_cannot_come_back() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"snapshots": false})).await;
    api.exec(&id, "echo x > f").await;
    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    api.post(&format!("/sandboxes/{id}/resume"), json!({})).await.fails(409, "no_snapshot");
    api.post(&format!("/sandboxes/{id}/fork"), json!({})).await.fails(409, "no_snapshot");
    until(async || !server.world().folder(&id).exists()).await;
    // The path is judged before the state.
    api.get(&format!("/sandboxes/{id}/files?path=/etc/passwd")).await.fails(400, "invalid_path");
    api.get(&format!("/sandboxes/{id}/files?path=f")).await.fails(409, "machine_not_running");
}

#[tokio::test]
async fn a_key_makes_one_sandbox() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let create = async |key: &str, body: Value| {
        let request = api.request("POST", "/sandboxes").header("Idempotency-Key", key).json(&body);
        api.send(request).await
    };
    let first =
        create("k1", json!({"type": "small", "ttlSeconds": 60})).await.succeeds(202, "sandbox.created");
    let id = first["sandbox"]["id"].as_str().unwrap().to_owned();
    api.wait_for(&id, "ready").await;
    // The order of fields is no other body.
    let again = api.request("POST", "/sandboxes").header("Idempotency-Key", "k1");
    let again =
        api.send(again.body(r#"{"ttlSeconds":60,"type":"small"}"#)).await.succeeds(202, "sandbox.created");
    assert_eq!((&again["sandbox"]["id"], again["status"].as_str()), (&json!(id), Some("ready")));
    assert_eq!(create("k1", json!({})).await.fails(409, "idempotency_key_reused")["retryable"], false);
    create("k2", json!({"type": "huge"})).await.fails(400, "invalid_request");
    create("k2", json!({"type": "small"})).await.succeeds(202, "sandbox.created");
    assert_eq!(server.world().sandboxes().len(), 2);
    let fork = async || {
        let request = api.request("POST", &format!("/sandboxes/{id}/fork")).header("Idempotency-Key", "k3");
        api.send(request).await.succeeds(202, "sandbox.forking")["id"].clone()
    };
    assert_eq!(fork().await, fork().await);
    assert_eq!(server.world().sandboxes().len(), 3);
    clock.advance(Duration::from_secs(24 * 3600));
    let later = create("k1", json!({})).await.succeeds(202, "sandbox.created");
    assert_ne!(later["sandbox"]["id"], json!(id));
}

#[tokio::test]
async fn only_a_call_that_repeats_another_finds_a_sandbox_ready() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let create = async |key: &str| {
        let request = api.request("POST", "/sandboxes").header("Idempotency-Key", key).json(&json!({}));
        let created = api.send(request).await.succeeds(202, "sandbox.created");
        let sandbox = &created["sandbox"];
        let shown = (created["status"].clone(), sandbox["state"].clone());
        (sandbox["id"].as_str().unwrap().to_owned(), shown)
    };
    for key in 0..10 {
        let key = format!("key {key}");
        let (id, first) = create(&key).await;
        assert_eq!(first, (json!("provisioning"), json!("provisioning")));
        api.wait_for(&id, "ready").await;
        assert_eq!(create(&key).await, (id.clone(), (json!("ready"), json!("ready"))));
        let forking = api.post(&format!("/sandboxes/{id}/fork"), json!({})).await;
        assert_eq!(forking.succeeds(202, "sandbox.forking")["sandbox"]["state"], "provisioning");
    }
}

#[tokio::test]
async fn twenty_calls_with_one_key_make_one_sandbox() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let request = api.request("POST", "/sandboxes").header("Idempotency-Key", "same");
            let api = api.clone();
            tokio::spawn(async move { api.send(request).await })
        })
        .collect();
    let mut made = std::collections::BTreeSet::new();
    for call in calls {
        let answer = guarded(call).await.unwrap();
        match answer.status {
            202 => drop(made.insert(answer.body["sandbox"]["id"].to_string())),
            _ => drop(answer.fails(409, "idempotency_in_progress")),
        }
    }
    assert_eq!((made.len(), server.world().sandboxes().len()), (1, 1));
}

#[tokio::test]
async fn lists_have_pages_orders_and_filters() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(api.sandbox(json!({})).await);
        clock.advance(Duration::from_millis(1));
    }
    api.post(&format!("/sandboxes/{}/stop", ids[0]), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&ids[0], "archived").await;
    let walk = async |query: &str| {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let page =
                api.get(&format!("/sandboxes?limit=2&{query}{cursor}")).await.succeeds(200, "sandbox.list");
            seen.extend(
                page["sandboxes"].as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap().to_owned()),
            );
            assert_eq!(page["pageInfo"]["limit"], 2);
            match page["pageInfo"]["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={}", next.replace('+', "%2B").replace('=', "%3D")),
                None => return seen,
            }
        }
    };
    assert_eq!(walk("sort=asc").await, ids);
    let newest_first: Vec<_> = ids.iter().rev().cloned().collect();
    assert_eq!(walk("").await, newest_first);
    assert_eq!(walk("sort=asc&state=ready,idle").await, ids[1..]);
    assert_eq!(walk("state=archived").await, ids[..1]);
}

#[tokio::test]
async fn machines_run_out() {
    let clock = ManualClock::new();
    let seed = WorldSeed::from_toml("[machines]\ncount = 1\n").unwrap();
    let server =
        MockServer::builder().clock(clock.shared()).world(seed).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let first = api.sandbox(json!({})).await;
    api.post("/sandboxes", json!({"failFast": true})).await.fails(503, "no_ready_machine");
    assert_eq!(server.world().sandboxes().len(), 1);
    let waiting = api.post("/sandboxes", json!({})).await.succeeds(202, "sandbox.created");
    let waiting = waiting["sandbox"]["id"].as_str().unwrap().to_owned();
    assert_eq!(api.state(&waiting).await, "provisioning");
    api.delete(&first).await.succeeds(202, "sandbox.deleting");
    api.wait_for(&waiting, "ready").await;

    let unlucky = api.post("/sandboxes", json!({})).await.succeeds(202, "sandbox.created");
    let unlucky = unlucky["sandbox"]["id"].as_str().unwrap().to_owned();
    guarded(clock.wait_for_sleep_of(Duration::from_secs(300))).await;
    clock.advance(Duration::from_secs(300));
    // Not the read below: the one that shows the end is the last.
    until(async || server.world().state(&unlucky) == Some("cancelled")).await;
    let shown = api.get(&format!("/sandboxes/{unlucky}")).await.succeeds(200, "sandbox.info");
    assert_eq!(shown["sandbox"].as_object().unwrap().len(), 3);
    assert_eq!(shown["sandbox"]["state"], "cancelled");
    api.get(&format!("/sandboxes/{unlucky}")).await.fails(404, "not_found");
    server.world().pause_starts(true);
    let paused = api.post("/sandboxes", json!({})).await;
    paused.fails(503, "out_of_capacity");
    assert_eq!(paused.headers["retry-after"], "5");
}

#[tokio::test]
async fn a_sandbox_that_finds_no_machine_keeps_its_disk() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let (api, world) = (Api::of(&server), server.world());
    let note = |id: &str| world.folder(id).join("home/user/note");
    let post = async |id: &str, verb: &str| api.post(&format!("/sandboxes/{id}/{verb}"), json!({})).await;
    let first = api.sandbox(json!({})).await;
    std::fs::write(note(&first), "first").unwrap();
    let fork = {
        world.set_machines(Some(0));
        let forking = post(&first, "fork").await.succeeds(202, "sandbox.forking");
        forking["id"].as_str().unwrap().to_owned()
    };
    // One has never been up, and of the other no snapshot is saved, since its stop is called off.
    post(&fork, "stop").await.succeeds(202, "sandbox.stopping");
    api.wait_for(&fork, "archived").await;
    world.set_stop_delay(Duration::from_secs(1000));
    post(&first, "stop").await.succeeds(202, "sandbox.stopping");
    // From here on its disk is being saved.
    guarded(clock.wait_for_sleep_of(Duration::from_secs(1000))).await;
    for id in [&first, &fork] {
        post(id, "resume").await.succeeds(202, "sandbox.resuming");
        until(async || {
            clock.advance(Duration::from_secs(300));
            api.state(id).await == "archived"
        })
        .await;
        let shown = api.get(&format!("/sandboxes/{id}")).await.succeeds(200, "sandbox.info");
        assert_eq!(shown["sandbox"]["error"], "no machine became free in time");
    }
    let latest = api.get(&format!("/sandboxes/{first}/snapshots/latest")).await;
    assert_eq!(latest.succeeds(200, "snapshot.latest")["snapshot"], Value::Null);
    world.set_machines(None);
    for id in [&first, &fork] {
        post(id, "resume").await.succeeds(202, "sandbox.resuming");
        api.wait_for(id, "ready").await;
        assert_eq!(std::fs::read_to_string(note(id)).unwrap(), "first");
    }
}

#[tokio::test]
async fn a_setup_script_runs_in_the_background() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let good = api.sandbox(json!({"setupScript": "echo $A > out", "env": {"A": "set"}})).await;
    let bad = api.sandbox(json!({"setupScript": "echo broken >&2; exit 3"})).await;
    let status = async |id: &str| api.get(&format!("/sandboxes/{id}")).await.body["sandbox"].clone();
    until(async || status(&good).await["setupStatus"] == "done").await;
    assert_eq!(api.exec(&good, "cat out").await["stdout"], "set\n");
    until(async || status(&bad).await["setupStatus"] == "failed").await;
    assert_eq!(status(&bad).await["setupError"], "exit code 3: broken");
}

#[tokio::test]
async fn a_deletion_shows_its_stages() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    server.world().set_delete_delay(Duration::from_secs(20));
    let id = api.sandbox(json!({})).await;
    api.call("DELETE", &format!("/sandboxes/{id}"), Value::Null)
        .await
        .fails(409, "delete_confirmation_required");
    assert_eq!(api.state(&id).await, "ready");
    let deleting = api.delete(&id).await.succeeds(202, "sandbox.deleting");
    let operation = format!("/deletion-operations/{}", deleting["operation"]["id"].as_str().unwrap());
    let read = async || api.get(&operation).await.succeeds(200, "deletion.operation")["operation"].clone();
    guarded(clock.wait_for_sleep_of(Duration::from_secs(20))).await;
    let removing = read().await;
    assert_eq!((&removing["status"], &removing["stage"]), (&json!("processing"), &json!("removing")));
    assert_eq!((&removing["attemptCount"], &removing["completedAt"]), (&json!(1), &Value::Null));
    api.delete(&id).await.fails(404, "not_found");
    clock.advance(Duration::from_secs(20));
    until(async || read().await["status"] == "completed").await;
    assert_eq!(read().await["completedAt"], "2026-01-01T00:00:20.000Z");
    // Some weeks later nobody asks any more.
    clock.advance(Duration::from_secs(31 * 24 * 3600));
    until(async || api.get(&operation).await.status == 404).await;
}
