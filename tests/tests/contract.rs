//! Every operation of the local server, its successes and its failures, held against the API document.

#[path = "contract_support/mod.rs"]
#[allow(unreachable_pub, reason = "a module of this suite alone")]
mod contract_support;

use std::{collections::BTreeSet, time::Duration};

use contract_support::{Answer, Contract, translate};
use reqwest::{Method, RequestBuilder};
use sandboxer::clock::{Clock as _, SystemClock};
use sandboxer_mock_server::MockServer;
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
    let server = MockServer::start();
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
    for (id, method, path) in tour.contract.unseen() {
        let pieces = path.split('/').map(|piece| match piece {
            "{processId}" => "1",
            "{key}" => "KEY",
            piece if piece.starts_with('{') => "none",
            piece => piece,
        });
        let path = pieces.collect::<Vec<_>>().join("/");
        let answer = tour.send(tour.request(&method, &path)).await;
        tour.contract.missing(&id, &answer);
    }
    let (succeeded, missing) = (&tour.contract.succeeded, &tour.contract.missing);
    assert_eq!(succeeded.union(missing).cloned().collect::<BTreeSet<_>>(), tour.contract.operations());
    assert_eq!(tour.contract.failed, *succeeded);
    assert_eq!(succeeded.intersection(missing).count(), 0);
}

#[test]
fn the_translation_keeps_what_the_older_dialect_says() {
    let given = json!({
        "type": "object",
        "properties": {
            "nullable": {"type": "string", "nullable": true, "enum": ["a"]},
            "above": {"type": "integer", "minimum": 0, "exclusiveMinimum": true},
            "upto": {"type": "integer", "maximum": 5, "exclusiveMaximum": false},
            "other": {"$ref": "#/components/schemas/Other", "nullable": true},
            "maybe": {"nullable": true, "allOf": [{"$ref": "#/components/schemas/Other"}]},
        },
    });
    let mut schema = translate::schema(&given);
    schema["$defs"] = translate::definitions(&json!({"Other": {"type": "boolean"}}));
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for (value, fits) in [
        (json!({"nullable": null}), true),
        (json!({"nullable": "a"}), true),
        (json!({"nullable": "b"}), false),
        (json!({"above": 1}), true),
        (json!({"above": 0}), false),
        (json!({"upto": 5}), true),
        (json!({"upto": 6}), false),
        (json!({"other": true}), true),
        (json!({"other": null}), false),
        (json!({"maybe": null}), true),
        (json!({"maybe": true}), true),
        (json!({"maybe": 1}), false),
    ] {
        assert_eq!(validator.is_valid(&value), fits, "{value}");
    }
}
