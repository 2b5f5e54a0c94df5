//! What a create of the other dialect may ask for besides, and the names that the other dialect uses.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, Scenario, runner::RunnerKind};
use serde_json::{Value, json};

use crate::{
    http::{Api, until},
    worlds::{ACME, people, running, with_key_of, with_keys_of},
};

fn server() -> MockServer {
    running(&(people(["alice", "bob"]) + ACME))
}

async fn create(api: &Api, body: Value) -> Value {
    api.post("/sandboxes", body).await.succeeds(202, "sandbox.created")
}

async fn settled(api: &Api, id: &str) -> Value {
    let sandbox = async || api.get(&format!("/sandboxes/{id}")).await.body["sandbox"].clone();
    until(async || {
        let status = sandbox().await["setupStatus"].clone();
        status == "done" || status == "failed"
    })
    .await;
    sandbox().await
}

#[tokio::test]
async fn files_are_there_before_the_setup_script_runs() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let files = json!([
        {"path": "app/main.sh", "content": "echo $1 > said\n"},
        {"path": "/tmp/raw", "content": "AAEC", "encoding": "base64"},
    ]);
    let body = json!({"name": "with files", "files": files, "setupScript": "sh app/main.sh hello"});
    let created = create(&api, body).await["sandbox"].clone();
    assert_eq!((&created["name"], &created["setupStatus"]), (&json!("with files"), &json!("pending")));
    let id = created["id"].as_str().unwrap();
    assert_eq!(settled(&api, id).await["setupStatus"], "done");
    assert_eq!(api.exec(id, "cat said").await["stdout"], "hello\n");
    let raw = api.get(&format!("/sandboxes/{id}/files?path=/tmp/raw&encoding=base64")).await;
    assert_eq!(raw.succeeds(200, "file.read")["content"], "AAEC");

    // Without a script, too; one that cannot be written is said, and the script does not run.
    let alone = create(&api, json!({"files": [{"path": "a", "content": "x"}]})).await;
    let id = alone["sandbox"]["id"].as_str().unwrap();
    assert_eq!(settled(&api, id).await["setupStatus"], "done");
    assert_eq!(api.exec(id, "cat a").await["stdout"], "x");
    let files = json!([{"path": "a", "content": "x"}, {"path": "a/b", "content": "x"}]);
    let failed = create(&api, json!({"files": files, "setupScript": "touch ran"})).await;
    let failed = settled(&api, failed["sandbox"]["id"].as_str().unwrap()).await;
    assert_eq!(failed["setupStatus"], "failed");
    assert!(failed["setupError"].as_str().unwrap().starts_with("a/b could not be written"), "{failed}");
    assert_eq!(api.exec(failed["id"].as_str().unwrap(), "ls").await["stdout"], "a\n");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_nothing_is_created() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let many = |count: u64| json!((1..=count).map(|port| json!({"port": port})).collect::<Vec<_>>());
    let file = |path: &str| json!([{"path": path, "content": ""}]);
    let large = "x".repeat(200 << 10);
    let short: Vec<Value> = (0..33).map(|at| json!({"path": at.to_string(), "content": ""})).collect();
    for (code, body) in [
        ("invalid_name", json!({"name": ""})),
        ("invalid_name", json!({"name": "x".repeat(121)})),
        ("invalid_files", json!({"files": file("/etc/x")})),
        ("invalid_files", json!({"files": file("../x")})),
        ("invalid_files", json!({"files": file("folder/")})),
        ("invalid_files", json!({"files": file("")})),
        ("invalid_files", json!({"files": file("a\0")})),
        ("invalid_files", json!({"files": [{"path": "a"}]})),
        ("invalid_files", json!({"files": ["a"]})),
        ("invalid_files", json!({"files": [{"path": "a", "content": "%", "encoding": "base64"}]})),
        ("invalid_files", json!({"files": [{"path": "a", "content": "", "encoding": "latin1"}]})),
        (
            "invalid_files",
            json!({"files": [{"path": "a", "content": large}, {"path": "b", "content": large}]}),
        ),
        ("invalid_files", json!({"files": short})),
        ("invalid_hosted_ports", json!({"hostedPorts": [{"port": 0}]})),
        ("invalid_hosted_ports", json!({"hostedPorts": [{"port": 65536}]})),
        ("invalid_hosted_ports", json!({"hostedPorts": [{}]})),
        ("invalid_hosted_ports", json!({"hostedPorts": [{"port": 80}, {"port": 80, "public": true}]})),
        ("invalid_hosted_ports", json!({"hostedPorts": many(51)})),
        ("count_requires_from", json!({"count": 2})),
        ("count_with_fail_fast", json!({"count": 2, "from": "base", "failFast": true})),
        ("count_with_hosted_ports", json!({"count": 2, "from": "base", "hostedPorts": many(1)})),
        ("fail_fast_with_hosted_ports", json!({"failFast": true, "hostedPorts": many(1)})),
        ("invalid_access", json!({"visibility": "shared"})),
        ("invalid_access", json!({"visibility": "everybody"})),
        ("invalid_request", json!({"count": 0})),
        ("invalid_request", json!({"count": 1001, "from": "base"})),
    ] {
        api.post("/sandboxes", body).await.fails(400, code);
    }
    let listed = api.get("/sandboxes").await.succeeds(200, "sandbox.list");
    assert_eq!(listed["sandboxes"], json!([]));
}

#[tokio::test]
async fn ports_are_hosted_from_the_start() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let ports = json!([{"port": 8000, "public": true, "localhost": true}, {"port": 8001}]);
    let body = json!({"hostedPorts": ports});
    let send = async || {
        let request = api.request("POST", "/sandboxes").header("Idempotency-Key", "once").json(&body);
        api.send(request).await.succeeds(202, "sandbox.created")
    };
    let created = send().await;
    let id = created["sandbox"]["id"].as_str().unwrap().to_owned();
    let hosted = created["hostedPorts"].as_array().unwrap();
    let about = |port: &Value| (port["port"].clone(), port["access"].clone(), port["isProtected"].clone());
    assert_eq!(about(&hosted[0]), (json!(8000), json!("public"), json!(false)));
    assert_eq!(about(&hosted[1]), (json!(8001), json!("private"), json!(true)));
    assert_eq!(send().await["hostedPorts"], created["hostedPorts"]);
    api.wait_for(&id, "ready").await;
    let listed = api.get(&format!("/sandboxes/{id}/host")).await.succeeds(200, "port.list");
    assert_eq!(listed["ports"].as_array().unwrap().len(), 2);
    for (listed, hosted) in listed["ports"].as_array().unwrap().iter().zip(hosted) {
        assert_eq!(listed["url"], hosted["url"]);
    }
}

#[tokio::test]
async fn several_are_created_from_what_was_saved() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let source = api.sandbox(json!({})).await;
    api.exec(&source, "echo saved > f").await;
    let save = json!({"sandboxId": source, "name": "base"});
    api.post("/named-snapshots", save).await.succeeds(202, "snapshot.named.saving");
    until(async || api.get("/named-snapshots/base").await.body["snapshot"]["status"] == "ready").await;
    let body =
        json!({"from": "base", "count": 3, "name": "worker", "files": [{"path": "own", "content": "x"}]});
    let send = async || {
        let request = api.request("POST", "/sandboxes").header("Idempotency-Key", "three").json(&body);
        api.send(request).await.succeeds(202, "sandbox.created")
    };
    let created = send().await;
    let ids = |created: &Value| -> Vec<String> {
        let all = created["sandboxes"].as_array().unwrap();
        all.iter().map(|sandbox| sandbox["id"].as_str().unwrap().to_owned()).collect()
    };
    let made = ids(&created);
    assert_eq!((made.len(), &created["sandbox"]["id"]), (3, &json!(made[0])));
    assert_eq!(ids(&send().await), made);
    for id in &made {
        let sandbox = settled(&api, id).await;
        assert_eq!((&sandbox["setupStatus"], &sandbox["name"]), (&json!("done"), &json!("worker")));
        assert_eq!(api.exec(id, "cat f own").await["stdout"], "saved\nx");
    }
    let alone = create(&api, json!({"from": "base", "count": 1})).await;
    assert_eq!(alone.get("sandboxes"), None);
    // More than there may be: none is made.
    let too_many = api.post("/sandboxes", json!({"from": "base", "count": 1000})).await;
    too_many.fails(429, "limit_reached");
    let listed = api.get("/sandboxes").await.succeeds(200, "sandbox.list");
    assert_eq!(listed["sandboxes"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn members_use_what_is_shared_from_the_start() {
    let server = server();
    let [alice, bob] = with_keys_of(&server, ["alice", "bob"]);
    for visibility in ["shared", "private"] {
        let created = create(&alice, json!({"org": "acme", "visibility": visibility})).await;
        let id = created["sandbox"]["id"].as_str().unwrap();
        alice.wait_for(id, "ready").await;
        let run = bob.post(&format!("/sandboxes/{id}/commands"), json!({"command": "echo in"})).await;
        match visibility {
            "shared" => assert_eq!(run.succeeds(200, "command.finished")["stdout"], "in\n"),
            _ => drop(run.fails(403, "forbidden")),
        }
    }
}

#[tokio::test]
async fn the_names_of_the_other_dialect_are_understood() {
    let server = server();
    let api = with_key_of(&server, "alice");
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}");
    let named = |name: &str| api.request("GET", "/limits").header("X-Boat-Org", name);
    api.send(named("nowhere")).await.fails(403, "not_org_member");
    let limits = api.send(named("acme")).await.succeeds(200, "limits.info");
    assert!(limits["teamId"].is_string(), "{limits}");

    api.post("/named-snapshots", json!({"sandboxId": id, "name": "base"})).await;
    until(async || api.get("/named-snapshots/base").await.body["snapshot"]["status"] == "ready").await;
    let shares = "/saved-snapshots/base/shares";
    api.post(shares, json!({})).await.succeeds(201, "snapshot.share.created");
    let listed = api.get(shares).await.body["shares"].clone();
    let share = listed[0]["id"].as_str().expect("a share").to_owned();
    assert_eq!(api.get("/named-snapshots/base/shares").await.body["shares"], listed);
    let revoked = api.call("DELETE", &format!("{shares}/{share}"), json!(null)).await;
    assert_eq!(revoked.status, 200, "{}", revoked.body);

    let wrong = api.request("DELETE", &path).header("X-Ascii-Confirm-Delete", "bx_other");
    api.send(wrong).await.fails(409, "delete_confirmation_required");
    let right = api.request("DELETE", &path).header("X-Ascii-Confirm-Delete", &id);
    api.send(right).await.succeeds(202, "sandbox.deleting");
}

#[tokio::test]
async fn data_that_has_expired_is_not_brought_back() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}");
    api.post(&format!("{path}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    server.world().set_scenario(Scenario::DataExpires, true).unwrap();
    clock.advance(Duration::from_secs(14 * 24 * 3600 - 1));
    api.post(&format!("{path}/fork"), json!({})).await.succeeds(202, "sandbox.forking");
    clock.advance(Duration::from_secs(1));
    for way in ["resume", "fork"] {
        let refused = api.post(&format!("{path}/{way}"), json!({})).await;
        assert_eq!(refused.fails(409, "snapshot_data_expired")["retryable"], false, "{way}");
    }
    assert_eq!(api.state(&id).await, "archived");
    server.world().set_scenario(Scenario::DataExpires, false).unwrap();
    api.post(&format!("{path}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
}
