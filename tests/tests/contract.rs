//! Every operation of the local server, its successes and its failures, held against the API document.

#[path = "contract_support/mod.rs"]
#[allow(unreachable_pub, reason = "a module of this suite alone")]
mod contract_support;

use std::time::Duration;

use contract_support::{Answer, Contract};
use reqwest::{Method, RequestBuilder};
use sandboxer::clock::{Clock as _, SystemClock};
use sandboxer_mock_server::{MockServer, Scenario, SessionSeed, WorldSeed};
use serde_json::{Value, json};

struct Tour {
    contract: Contract,
    http: reqwest::Client,
    base: String,
    key: String,
}

impl Tour {
    fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.key)
    }

    async fn send(&self, request: RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let media = response.headers()["content-type"].to_str().unwrap().to_owned();
        Answer { status: response.status().as_u16(), media, body: response.bytes().await.unwrap().into() }
    }

    async fn succeeds(&mut self, id: &str, request: RequestBuilder) -> Value {
        let answer = self.send(request).await;
        self.contract.success(id, &answer);
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    async fn get(&mut self, id: &str, path: &str) -> Value {
        self.succeeds(id, self.request("GET", path)).await
    }

    async fn post(&mut self, id: &str, path: &str, body: Value) -> Value {
        self.succeeds(id, self.request("POST", path).json(&body)).await
    }

    async fn fails(&mut self, id: &str, request: RequestBuilder, code: &str) {
        let answer = self.send(request).await;
        self.contract.failure(id, &answer, code);
    }

    async fn wait_for(&mut self, sandbox: &str, state: &str) {
        let guard = SystemClock::new().sleep(Duration::from_secs(60));
        let reached = async {
            while self.get("get", &format!("/sandboxes/{sandbox}")).await["sandbox"]["state"] != state {
                SystemClock::new().sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = reached => {}
            () = guard => panic!("{sandbox} is not {state}"),
        }
    }
}

#[tokio::test]
async fn every_answer_is_as_documented() {
    let mut world = WorldSeed::from_toml("[[repositories]]\nfull_name = \"acme/web\"\nid = 10\n").unwrap();
    world.sessions.push(SessionSeed::new("somebody"));
    let server = MockServer::builder().world(world).allow_loopback_targets().start().unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut tour =
        Tour { contract: Contract::read(), http, base: server.url(), key: server.api_key().to_owned() };

    tour.get("me", "/me").await;
    tour.get("limits", "/limits").await;
    let created = tour.post("create", "/sandboxes", json!({"name": "tour", "env": {"A": "b"}})).await;
    let id = created["sandbox"]["id"].as_str().unwrap().to_owned();
    let at = |rest: &str| format!("/sandboxes/{id}{rest}");
    tour.wait_for(&id, "ready").await;
    tour.get("sandboxes", "/sandboxes?limit=1").await;
    let changes = tour.request("PATCH", &at("")).json(&json!({"name": "renamed", "ttlSeconds": null}));
    tour.succeeds("update", changes).await;

    let done = tour.post("command", &at("/commands"), json!({"command": "echo a; echo b >&2; exit 3"})).await;
    let command = done["commandId"].as_str().unwrap().to_owned();
    let streamed = json!({"command": "printf é; exit 1", "stream": true});
    tour.post("commandStream", &at("/commands"), streamed).await;
    let started = tour
        .post("command", &at("/commands"), json!({"command": "echo on; sleep 300", "detached": true}))
        .await;
    let process = started["processId"].clone();
    tour.get("processes", &at("/processes")).await;
    for (operation, path) in [("execWebSocket", at("/exec/ws")), ("sshWebSocket", at("/ssh"))] {
        tour.fails(operation, tour.request("GET", &path), "upgrade_required").await;
    }
    tour.get("commandStatus", &at(&format!("/commands/{process}?stdoutOffset=0"))).await;
    tour.get("commandStatus", &at(&format!("/commands/{process}?tailBytes=10"))).await;
    tour.succeeds("stopCommand", tour.request("DELETE", &at(&format!("/commands/{process}")))).await;
    tour.get("attachCommand", &at(&format!("/commands/{process}/stream"))).await;
    tour.get("commandHistory", &at("/command-history?limit=1")).await;
    tour.get("getCommand", &at(&format!("/command-history/{command}"))).await;
    tour.get("commandLogs", &at(&format!("/command-history/{command}/logs?encoding=base64"))).await;

    let file = tour.request("PUT", &at("/files")).json(&json!({"path": "x", "content": "text"}));
    tour.succeeds("writeFile", file).await;
    tour.get("readFile", &at("/files?path=x")).await;
    tour.get("artifact", &at("/artifacts?path=x")).await;
    tour.get("usage", &at("/usage")).await;

    ways_in(&mut tour, &id).await;
    agents(&mut tour, &id).await;
    saved(&mut tour, &server, &id).await;

    // Failures that need a sandbox in one state or another.
    let say = |tour: &Tour, body: &str| tour.request("POST", &at("/commands")).body(body.to_owned());
    tour.fails("command", say(&tour, "{"), "invalid_json").await;
    tour.fails("command", say(&tour, r#"{"command":"x","timeoutSeconds":0}"#), "invalid_timeout").await;
    tour.fails("command", say(&tour, r#"{"command":"x","env":{"A=":""}}"#), "invalid_env").await;
    tour.fails("commandStream", say(&tour, r#"{"command":"x","cwd":"/etc","stream":true}"#), "invalid_path")
        .await;
    tour.fails("readFile", tour.request("GET", &at("/files?path=/etc/passwd")), "invalid_path").await;
    tour.fails("readFile", tour.request("GET", &at("/files?path=none")), "path_not_found").await;
    tour.fails("artifact", tour.request("GET", &at("/artifacts?path=none")), "path_not_found").await;
    tour.fails("commandHistory", tour.request("GET", &at("/command-history?limit=101")), "invalid_limit")
        .await;
    tour.fails("sandboxes", tour.request("GET", "/sandboxes?limit=0"), "invalid_limit").await;
    tour.fails("sandboxes", tour.request("GET", "/sandboxes?org=none"), "not_org_member").await;
    let huge = json!({"path": "x", "content": "x".repeat(5 * 1024 * 1024 + 1)});
    tour.fails("writeFile", tour.request("PUT", &at("/files")).json(&huge), "file_too_large").await;
    tour.fails("deleteSandbox", tour.request("DELETE", &at("")), "delete_confirmation_required").await;
    tour.fails("stop", tour.request("POST", &at("/stop")).body("x".repeat(2 << 20)), "body_too_large").await;

    let forked = tour.post("fork", &at("/fork"), json!({})).await;
    let copy = forked["id"].as_str().unwrap().to_owned();
    let stopping = tour.post("stop", &at("/stop"), json!({})).await;
    let stop = stopping["stop"]["id"].as_str().unwrap().to_owned();
    tour.wait_for(&id, "archived").await;
    tour.get("getStop", &at(&format!("/stops/{stop}"))).await;
    tour.get("processes", &at("/processes")).await;
    tour.fails("stop", tour.request("POST", &at("/stop")), "stop_failed").await;
    tour.fails("command", say(&tour, r#"{"command":"x"}"#), "sandbox_not_ready").await;
    tour.fails("readFile", tour.request("GET", &at("/files?path=x")), "machine_not_running").await;
    tour.post("resume", &at("/resume"), json!({})).await;
    tour.fails("resume", tour.request("POST", &at("/resume")), "sandbox_not_ready").await;
    let delete = tour.request("DELETE", &format!("/sandboxes/{copy}"));
    let deleting = tour.succeeds("deleteSandbox", delete.header("X-Sandboxer-Confirm-Delete", &copy)).await;
    let operation = deleting["operation"]["id"].as_str().unwrap().to_owned();
    tour.get("getDeletionOperation", &format!("/deletion-operations/{operation}")).await;

    outward(&mut tour, &server).await;
    account(&mut tour, &server).await;
    environments(&mut tour).await;

    let calls = [
        ("me", "GET", "/me"),
        ("limits", "GET", "/limits"),
        ("sandboxes", "GET", "/sandboxes"),
        ("create", "POST", "/sandboxes"),
        ("getDeletionOperation", "GET", "/deletion-operations/none"),
        ("get", "GET", "/sandboxes/none"),
        ("update", "PATCH", "/sandboxes/none"),
        ("deleteSandbox", "DELETE", "/sandboxes/none"),
        ("stop", "POST", "/sandboxes/none/stop"),
        ("getStop", "GET", "/sandboxes/none/stops/none"),
        ("resume", "POST", "/sandboxes/none/resume"),
        ("fork", "POST", "/sandboxes/none/fork"),
        ("command", "POST", "/sandboxes/none/commands"),
        ("commandStatus", "GET", "/sandboxes/none/commands/1"),
        ("stopCommand", "DELETE", "/sandboxes/none/commands/1"),
        ("attachCommand", "GET", "/sandboxes/none/commands/1/stream"),
        ("commandHistory", "GET", "/sandboxes/none/command-history"),
        ("getCommand", "GET", "/sandboxes/none/command-history/none"),
        ("commandLogs", "GET", "/sandboxes/none/command-history/none/logs"),
        ("processes", "GET", "/sandboxes/none/processes"),
        ("readFile", "GET", "/sandboxes/none/files?path=x"),
        ("writeFile", "PUT", "/sandboxes/none/files"),
        ("artifact", "GET", "/sandboxes/none/artifacts?path=x"),
        ("usage", "GET", "/sandboxes/none/usage"),
    ];
    for (operation, method, path) in calls {
        let stranger = tour.request(method, path).bearer_auth("not a key");
        tour.fails(operation, stranger, "unauthorized").await;
        if path.contains("none") {
            let body = json!({"command": "x", "path": "x", "content": "x", "name": "x"});
            tour.fails(operation, tour.request(method, path).json(&body), "not_found").await;
        }
    }
    for (operation, method, path) in tour.contract.unrefused() {
        let stranger = tour.request(&method, &path.replace(['{', '}'], "")).bearer_auth("not a key");
        tour.fails(&operation, stranger, "unauthorized").await;
    }
    let every = tour.contract.operations();
    assert_eq!(tour.contract.failed, every);
    // What answers with something else than a response.
    let mut succeeded = tour.contract.succeeded.clone();
    succeeded.extend(["execWebSocket", "sshWebSocket"].map(str::to_owned));
    assert_eq!(succeeded, every);
}

/// Agents at work, what they say, and what they are told.
async fn agents(tour: &mut Tour, id: &str) {
    let at = |rest: &str| format!("/sandboxes/{id}{rest}");
    tour.get("providerModels", "/provider-models").await;
    let said =
        tour.post("prompt", &at("/prompt"), json!({"prompt": "```sh\necho hello; sleep 600\n```"})).await;
    let run = at(&format!("/prompts/{}", said["promptId"].as_str().unwrap()));
    tour.get("promptRunStatus", &run).await;
    while tour.get("events", &at("/events?limit=100")).await["events"].as_array().unwrap().is_empty() {
        SystemClock::new().sleep(Duration::from_millis(10)).await;
    }
    tour.post("steer", &at("/steer"), json!({"message": "and now this"})).await;
    tour.succeeds("interrupt", tour.request("POST", &at("/interrupt"))).await;
    tour.get("conversations", &at("/conversations")).await;
    let stream = tour.request("GET", &at("/events")).header("accept", "text/event-stream");
    let mut response = stream.send().await.unwrap();
    let media = response.headers()["content-type"].to_str().unwrap().to_owned();
    let mut body = Vec::new();
    while !String::from_utf8_lossy(&body).contains("data:") || !body.ends_with(b"\n\n") {
        body.extend(response.chunk().await.unwrap().expect("the stream goes on"));
    }
    let answer = Answer { status: response.status().as_u16(), media, body };
    tour.contract.success("eventsStream", &answer);
    for (operation, method, rest) in [
        ("prompt", "POST", "/prompt"),
        ("promptRunStatus", "GET", "/prompts/none"),
        ("steer", "POST", "/steer"),
        ("interrupt", "POST", "/interrupt"),
        ("events", "GET", "/events"),
        ("conversations", "GET", "/conversations"),
        ("recover", "POST", "/recover"),
        ("share", "POST", "/share"),
    ] {
        let request = tour.request(method, &format!("/sandboxes/none{rest}"));
        tour.fails(operation, request.json(&json!({"prompt": "x", "message": "x"})), "not_found").await;
    }
    let stream = tour.request("GET", "/sandboxes/none/events").header("accept", "text/event-stream");
    tour.fails("eventsStream", stream, "not_found").await;
    tour.fails("recover", tour.request("POST", &at("/recover")), "sandbox_is_reachable").await;
    let stranger = tour.request("GET", "/provider-models").bearer_auth("not a key");
    tour.fails("providerModels", stranger, "unauthorized").await;
}

/// What sandboxes are started with.
async fn environments(tour: &mut Tour) {
    tour.get("repos", "/repos").await;
    tour.post("selectRepo", "/repos", json!({"repositoryId": "10"})).await;
    let secrets = json!({"envContents": "A=1", "secretFiles": [{"path": "key", "contents": "hush"}]});
    tour.post("updateSecrets", "/secrets", secrets).await;
    tour.get("secrets", "/secrets").await;
    let made = tour.post("createEnvironment", "/environments", json!({"name": "ci"})).await;
    let ours = made["environments"].as_array().unwrap().iter().find(|it| it["name"] == "ci").unwrap();
    let path = format!("/environments/{}", ours["id"].as_str().unwrap());
    tour.get("environments", "/environments").await;
    for (operation, method, rest, body) in [
        ("updateEnvironment", "PUT", "", json!({"envContents": "A=1"})),
        ("setEnvironmentVar", "PUT", "/vars/B", json!({"value": "2"})),
        ("deleteEnvironmentVar", "DELETE", "/vars/B", json!({})),
        ("setEnvironmentSecretFile", "PUT", "/secret-files", json!({"path": "key", "contents": "hush"})),
        ("deleteEnvironmentSecretFile", "DELETE", "/secret-files?path=key", json!({})),
        ("addEnvironmentRepo", "POST", "/repos", json!({"repositoryId": "10"})),
        ("deleteEnvironmentRepo", "DELETE", "/repos/10", json!({})),
        ("upgradeEnvironment", "POST", "/upgrade", json!({})),
        ("deleteEnvironment", "DELETE", "", json!({})),
    ] {
        let request = tour.request(method, &format!("{path}{rest}"));
        tour.succeeds(operation, request.json(&body)).await;
        let request = tour.request(method, &format!("/environments/none{rest}"));
        tour.fails(operation, request.json(&body), "not_found").await;
    }
    let none = json!({"repositoryId": "7"});
    tour.fails("selectRepo", tour.request("POST", "/repos").json(&none), "repository_not_found").await;
    let wrong = json!({"envContents": "nothing"});
    tour.fails("updateSecrets", tour.request("POST", "/secrets").json(&wrong), "invalid_env").await;
    let wrong = tour.request("POST", "/environments").json(&json!({"name": "a/b"}));
    tour.fails("createEnvironment", wrong, "invalid_name").await;
    for (operation, path) in [("repos", "/repos"), ("secrets", "/secrets"), ("environments", "/environments")]
    {
        tour.fails(operation, tour.request("GET", path).bearer_auth("not a key"), "unauthorized").await;
    }
}

/// Ways into a sandbox, and its load.
async fn ways_in(tour: &mut Tour, id: &str) {
    let at = |rest: &str| format!("/sandboxes/{id}{rest}");
    for body in
        [json!({"port": 3000, "title": "page"}), json!({"port": 80, "public": true, "localhost": null})]
    {
        tour.post("hostPort", &at("/host"), body).await;
    }
    tour.get("listHostedPorts", &at("/host")).await;
    tour.succeeds("unhostPort", tour.request("DELETE", &at("/host?port=80"))).await;
    let key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me@example.org";
    tour.post("sshKey", &at("/sshkey"), json!({"key": key})).await;
    let bad = tour.request("POST", &at("/sshkey")).json(&json!({"key": "ssh-ed25519 AAAA"}));
    tour.fails("sshKey", bad, "invalid_ssh_key").await;
    // First that it is being made, then where it is.
    for _ in 0..2 {
        tour.post("desktop", &at("/desktop?theme=dark"), json!({})).await;
    }
    tour.get("stats", &at("/stats")).await;
    tour.get("metrics", &at("/metrics?window=24h")).await;
    tour.get("metricsSummary", "/sandboxes/metrics").await;
}

/// Snapshots, those with a name too, and codes for them.
async fn saved(tour: &mut Tour, server: &MockServer, id: &str) {
    let newest = format!("/sandboxes/{id}/snapshots/latest");
    tour.get("getLatestSandboxSnapshot", &newest).await;
    let snapshot = server.world().capture(id).unwrap();
    let later = server.world().capture(id).unwrap();
    let path = format!("/snapshots/{snapshot}");
    tour.get("getLatestSandboxSnapshot", &newest).await;
    tour.get("listSnapshots", "/snapshots?limit=1").await;
    tour.get("listSandboxSnapshots", &format!("/sandboxes/{id}/snapshots")).await;
    tour.get("getSnapshotTree", &format!("{path}/tree")).await;
    let file = format!("{path}/files?path=home/user/x");
    for way in ["", "?path=home/user/x"] {
        tour.get("getSnapshotFile", &format!("{path}/files{way}")).await;
    }
    tour.succeeds("getSnapshotFile", tour.request("GET", &file).header("range", "bytes=1-2")).await;
    tour.fails(
        "getSnapshotFile",
        tour.request("GET", &file).header("range", "bytes=9-"),
        "range_not_satisfiable",
    )
    .await;
    tour.fails("getSnapshotFile", tour.request("GET", &format!("{path}/files?path=none")), "path_not_found")
        .await;
    tour.get("getSnapshotDownload", &format!("/snapshots/{later}/download")).await;
    server.world().set_scenario(Scenario::LegacySnapshots, true).unwrap();
    tour.get("getSnapshotTree", &format!("{path}/tree")).await;
    tour.get("listSnapshots", "/snapshots").await;
    tour.get("getSnapshotDownload", &format!("{path}/download")).await;
    tour.fails("getSnapshotFile", tour.request("GET", &file), "legacy_snapshot").await;
    server.world().set_scenario(Scenario::LegacySnapshots, false).unwrap();

    let save = json!({"sandboxId": id, "name": "base"});
    tour.post("saveNamedSnapshot", "/named-snapshots", save).await;
    let reserved = tour.request("POST", "/named-snapshots").json(&json!({"sandboxId": id, "name": "latest"}));
    tour.fails("saveNamedSnapshot", reserved, "invalid_name").await;
    while tour.get("getNamedSnapshot", "/named-snapshots/base").await["snapshot"]["status"] != "ready" {
        SystemClock::new().sleep(Duration::from_millis(10)).await;
    }
    tour.get("listNamedSnapshots", "/named-snapshots").await;
    let shares = "/named-snapshots/base/shares";
    let made = tour.post("createSnapshotShare", shares, json!({})).await;
    tour.get("listSnapshotShares", shares).await;
    let started = tour.post("create", "/sandboxes", json!({"from": made["shareCode"]})).await;
    assert_eq!(started["type"], "sandbox.created");
    let share = format!("{shares}/{}", made["share"]["id"].as_str().unwrap());
    tour.succeeds("revokeSnapshotShare", tour.request("DELETE", &share)).await;
    let from = tour.request("POST", "/sandboxes").json(&json!({"from": made["shareCode"]}));
    tour.fails("create", from, "snapshot_not_found").await;
    tour.succeeds("deleteNamedSnapshot", tour.request("DELETE", "/named-snapshots/base")).await;

    let confirm = "X-Sandboxer-Confirm-Delete";
    tour.fails("deleteSnapshot", tour.request("DELETE", &path), "delete_confirmation_required").await;
    let deleting =
        tour.succeeds("deleteSnapshot", tour.request("DELETE", &path).header(confirm, &snapshot)).await;
    let operation = deleting["operation"]["id"].as_str().unwrap().to_owned();
    tour.get("getDeletionOperation", &format!("/deletion-operations/{operation}")).await;
    let all = tour.request("DELETE", &format!("/sandboxes/{id}/snapshots")).header(confirm, id);
    tour.succeeds("deleteSandboxSnapshots", all).await;
    for (operation, method, path, code) in [
        ("listSnapshots", "GET", "/snapshots?limit=0", "invalid_limit"),
        ("listNamedSnapshots", "GET", "/named-snapshots?org=none", "not_org_member"),
        ("listSandboxSnapshots", "GET", "/sandboxes/none/snapshots", "not_found"),
        ("getLatestSandboxSnapshot", "GET", "/sandboxes/none/snapshots/latest", "not_found"),
        ("deleteSandboxSnapshots", "DELETE", "/sandboxes/none/snapshots", "not_found"),
        ("getSnapshotTree", "GET", "/snapshots/none/tree", "not_found"),
        ("getSnapshotDownload", "GET", "/snapshots/none/download", "not_found"),
        ("getNamedSnapshot", "GET", "/named-snapshots/none", "not_found"),
        ("deleteNamedSnapshot", "DELETE", "/named-snapshots/none", "not_found"),
        ("listSnapshotShares", "GET", "/named-snapshots/none/shares", "not_found"),
        ("createSnapshotShare", "POST", "/named-snapshots/none/shares", "not_found"),
        ("revokeSnapshotShare", "DELETE", "/named-snapshots/none/shares/none", "not_found"),
    ] {
        tour.fails(operation, tour.request(method, path), code).await;
    }
}

/// What the service sends of its own: to webhook endpoints and to a collector.
async fn outward(tour: &mut Tour, server: &MockServer) {
    let url = format!("http://{}/", server.address());
    let body = json!({"name": "alerts", "url": url, "events": ["sandbox.error"]});
    let made = tour.post("createWebhook", "/webhooks", body.clone()).await;
    let path = format!("/webhooks/{}", made["webhook"]["id"].as_str().unwrap());
    tour.fails("createWebhook", tour.request("POST", "/webhooks").json(&body), "webhook_exists").await;
    let bad = json!({"url": "http://hooks.example", "events": ["sandbox.error"]});
    tour.fails("createWebhook", tour.request("POST", "/webhooks").json(&bad), "invalid_webhook_url").await;
    let unknown = json!({"events": ["sandbox.moved"]});
    tour.fails("updateWebhook", tour.request("PATCH", &path).json(&unknown), "invalid_request").await;
    tour.get("listWebhooks", "/webhooks").await;
    tour.get("getWebhook", &path).await;
    tour.succeeds("updateWebhook", tour.request("PATCH", &path).json(&json!({"name": null}))).await;
    tour.succeeds("rotateWebhookSigningSecret", tour.request("POST", &format!("{path}/rotate"))).await;
    tour.succeeds("deleteWebhook", tour.request("DELETE", &path)).await;
    for (operation, method, path) in [
        ("getWebhook", "GET", path.clone()),
        ("deleteWebhook", "DELETE", path.clone()),
        ("rotateWebhookSigningSecret", "POST", format!("{path}/rotate")),
        ("deleteTelemetry", "DELETE", "/telemetry".to_owned()),
    ] {
        tour.fails(operation, tour.request(method, &path), "not_found").await;
    }
    for (operation, path) in [("listWebhooks", "/webhooks"), ("getTelemetry", "/telemetry")] {
        tour.fails(operation, tour.request("GET", path).bearer_auth("not a key"), "unauthorized").await;
    }
    tour.get("getTelemetry", "/telemetry").await;
    let set = |tour: &Tour, endpoint: &str| {
        tour.request("PUT", "/telemetry").json(&json!({"endpoint": endpoint, "headers": {"X-Key": "1"}}))
    };
    let tried = tour.succeeds("setTelemetry", set(tour, &url)).await;
    assert_eq!(tried["test"]["status"], 404, "this server is no collector");
    tour.fails("setTelemetry", set(tour, "http://otel.example"), "invalid_endpoint").await;
    tour.get("getTelemetry", "/telemetry").await;
    tour.succeeds("deleteTelemetry", tour.request("DELETE", "/telemetry")).await;
}

/// Keys, organisations and data retention: by a person who is signed in, since no key will do for some.
async fn account(tour: &mut Tour, server: &MockServer) {
    let key = std::mem::replace(&mut tour.key, "somebody".to_owned());
    let made = tour.post("createScopedApiKey", "/api-keys/scoped", json!({"ttl": "1h"})).await;
    let id = made["apiKey"]["id"].as_str().unwrap().to_owned();
    tour.get("apiKeys", "/api-keys").await;
    tour.post("rotateApiKey", &format!("/api-keys/{id}/rotate"), json!({})).await;
    tour.get("apiKeyUsage", &format!("/api-keys/{id}/usage")).await;
    tour.succeeds("revokeApiKey", tour.request("DELETE", &format!("/api-keys/{id}"))).await;
    tour.get("listOrganizations", "/orgs").await;
    let org = tour.post("createOrganization", "/orgs", json!({"name": "Lab"})).await;
    let org = org["org"]["id"].as_str().unwrap().to_owned();
    tour.get("orgMembers", &format!("/orgs/{org}/members")).await;
    let paid = tour.post("create", "/sandboxes", json!({"org": org})).await;
    let paid = paid["sandbox"]["id"].as_str().unwrap().to_owned();
    tour.wait_for(&paid, "ready").await;
    tour.post("share", &format!("/sandboxes/{paid}/share"), json!({})).await;
    server.world().set_scenario_for(&paid, Scenario::Unreachable, true).unwrap();
    tour.post("recover", &format!("/sandboxes/{paid}/recover"), json!({})).await;
    let active = |tour: &Tour, org: Value| tour.request("PATCH", "/orgs/active").json(&json!({ "org": org }));
    tour.succeeds("setActiveOrganization", active(tour, json!(org))).await;
    tour.get("limits", "/limits").await;
    tour.succeeds("setActiveOrganization", active(tour, Value::Null)).await;
    tour.fails("setActiveOrganization", active(tour, json!("none")), "not_org_member").await;
    tour.get("getDataRetention", "/account/data-retention").await;
    let retention =
        |tour: &Tour, on: &str| tour.request("PATCH", "/account/data-retention").json(&json!({ on: true }));
    tour.succeeds("updateDataRetention", retention(tour, "monitoringOff")).await;
    tour.fails("updateDataRetention", retention(tour, "enabled"), "confirmation_required").await;
    let create = tour.request("POST", "/sandboxes").json(&json!({"monitoring": true}));
    tour.fails("create", create, "monitoring_off_for_account").await;
    tour.fails(
        "createOrganization",
        tour.request("POST", "/orgs").json(&json!({"name": " "})),
        "invalid_name",
    )
    .await;
    for (operation, method, path) in [
        ("rotateApiKey", "POST", "/api-keys/none/rotate"),
        ("revokeApiKey", "DELETE", "/api-keys/none"),
        ("apiKeyUsage", "GET", "/api-keys/none/usage"),
        ("orgMembers", "GET", "/orgs/none/members"),
    ] {
        tour.fails(operation, tour.request(method, path), "not_found").await;
    }
    server.world().set_scenario(Scenario::ScopedKeysOff, true).unwrap();
    let create = tour.request("POST", "/api-keys/scoped").json(&json!({}));
    tour.fails("createScopedApiKey", create, "scoped_api_key_creation_disabled").await;
    tour.key = key;
    tour.fails("updateDataRetention", retention(tour, "enabled"), "session_required").await;
    for (operation, path) in [
        ("apiKeys", "/api-keys"),
        ("listOrganizations", "/orgs"),
        ("getDataRetention", "/account/data-retention"),
    ] {
        tour.fails(operation, tour.request("GET", path).bearer_auth("not a key"), "unauthorized").await;
    }
}
