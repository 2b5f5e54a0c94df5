//! API keys: what they open, making, rotating, revoking and counting them.

use std::time::Duration;

use sandboxer::{Operation, clock::ManualClock};
use sandboxer_mock_server::{KeySeed, MockServer, Scenario, SessionSeed, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};

use crate::{
    asks::{QUERY, body_of, path_to},
    http::{Answer, Api},
    worlds::{people, scripted_and_clock},
};

const MORE_KEYS: &str = r#"
[[keys]]
secret = "key-of-bob-reads1"
account = "bob"
preset = "read-only"

[[sessions]]
secret = "alice-is-here"
account = "alice"
[[sessions]]
secret = "bob-is-here"
account = "bob"
"#;

struct Server {
    server: MockServer,
    clock: ManualClock,
}

impl Server {
    fn start() -> Self {
        let (server, clock) = scripted_and_clock(&(people(["alice", "bob"]) + MORE_KEYS));
        Self { server, clock }
    }

    fn with(&self, secret: &str) -> Api {
        Api::with_key(&self.server.url(), secret)
    }

    fn alice(&self) -> Api {
        self.with("key-alice")
    }

    fn bob(&self) -> Api {
        self.with("key-bob")
    }

    fn alice_herself(&self) -> Api {
        self.with("alice-is-here")
    }
}

/// Asks; streams are not waited for.
async fn ask(api: &Api, operation: Operation, path: &str) -> (u16, Value) {
    let request = api.request(operation.info().method, path).json(&body_of(operation, "id_1"));
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let body = if status < 400 { Value::Null } else { response.json().await.unwrap_or_default() };
    (status, body)
}

#[tokio::test]
async fn every_operation_asks_for_its_action() {
    let own = Server::start();
    let catalogue = own.alice().get("/api-keys").await.succeeds(200, "api_key.list")["catalog"].clone();
    let actions: Vec<String> = serde_json::from_value(catalogue["actions"].clone()).unwrap();
    let mut lacking = 0;
    for operation in Operation::ALL.iter().copied() {
        let Some(action) = operation.info().key_action else { panic!("{operation} takes any key") };
        let path = path_to(operation, "id_1", "1");
        if action == "session" {
            let (status, body) = ask(&own.alice(), operation, &path).await;
            assert_eq!((status, body["code"].as_str()), (403, Some("session_required")), "{operation}");
            continue;
        }
        assert!(actions.iter().any(|known| known == action), "{action} is not in the catalogue");
        let secret = format!("key-without-{action}");
        let mut key = KeySeed::new(&secret);
        // `*` and `account.admin` grant everything.
        let others =
            actions.iter().filter(|other| *other != action && *other != "*" && *other != "account.admin");
        key.actions = Some(others.cloned().collect());
        let mut world = WorldSeed::default();
        world.keys.push(key);
        own.server.world().plant(&world).unwrap();
        let (status, body) = ask(&own.with(&secret), operation, &path).await;
        assert_eq!((status, body["code"].as_str()), (403, Some("forbidden")), "{operation}: {body}");
        assert_eq!(body["error"]["details"]["action"], action, "{operation}");
        lacking += 1;
    }
    assert!(lacking > 90, "{lacking}");
}

#[tokio::test]
async fn a_key_that_has_ended_opens_nothing() {
    let own = Server::start();
    let made = own.alice().post("/api-keys/scoped", json!({"preset": "admin", "ttl": "60"})).await;
    let expired = own.with(made.body["secret"].as_str().unwrap());
    expired.get("/me").await.succeeds(200, "user.info");
    own.clock.advance(Duration::from_secs(60));
    let made = own.alice().post("/api-keys/scoped", json!({"preset": "admin"})).await;
    let revoked = own.with(made.body["secret"].as_str().unwrap());
    let id = made.body["apiKey"]["id"].as_str().unwrap();
    revoked.get("/me").await.succeeds(200, "user.info");
    own.alice_herself()
        .call("DELETE", &format!("/api-keys/{id}"), json!({}))
        .await
        .succeeds(200, "api_key.revoked");
    for key in [expired, revoked, own.with("no-such-key")] {
        for operation in Operation::ALL.iter().copied() {
            let (status, body) = ask(&key, operation, &path_to(operation, "id_1", "1")).await;
            assert_eq!((status, body["code"].as_str()), (401, Some("unauthorized")), "{operation}");
        }
    }
}

#[tokio::test]
async fn what_belongs_to_others_is_not_found() {
    let own = Server::start();
    let alice = own.alice();
    let id = alice.sandbox(json!({"name": "hers"})).await;
    let limited = json!({"preset": "admin", "sandboxIds": [alice.sandbox(json!({})).await]});
    let limited = alice.post("/api-keys/scoped", limited).await;
    // Another account's key, and a key of the account that is good for another sandbox.
    for key in [own.bob(), own.with(limited.body["secret"].as_str().unwrap())] {
        for operation in Operation::ALL.iter().copied().filter(|one| one.info().path.contains("{sandboxId}"))
        {
            let answered = ask(&key, operation, &format!("{}{QUERY}", path_to(operation, &id, "1"))).await;
            assert_eq!((answered.0, answered.1["code"].as_str()), (404, Some("not_found")), "{operation}");
        }
    }
    let sandbox = alice.get(&format!("/sandboxes/{id}")).await.succeeds(200, "sandbox.info");
    assert_eq!(
        (&sandbox["sandbox"]["state"], &sandbox["sandbox"]["name"]),
        (&json!("ready"), &json!("hers"))
    );
    let keys = alice.get("/api-keys").await.succeeds(200, "api_key.list");
    let hers = format!("/api-keys/{}", keys["apiKeys"][0]["id"].as_str().unwrap());
    let bob = own.with("bob-is-here");
    bob.call("DELETE", &hers, json!({})).await.fails(404, "not_found");
    bob.post(&format!("{hers}/rotate"), json!({})).await.fails(404, "not_found");
    bob.get(&format!("{hers}/usage")).await.fails(404, "not_found");
}

#[tokio::test]
async fn a_key_grants_what_it_was_made_for_and_no_more_than_its_maker_has() {
    let own = Server::start();
    let alice = own.alice();
    let (one, two) = (alice.sandbox(json!({})).await, alice.sandbox(json!({})).await);
    let made =
        alice.post("/api-keys/scoped", json!({"name": "ci", "preset": "ci", "sandboxIds": [one]})).await;
    let made = made.succeeds(201, "api_key.created");
    let (key, secret) = (&made["apiKey"], made["secret"].as_str().unwrap());
    assert!(secret.starts_with("sbx_live_") && secret.len() == 73, "{secret}");
    assert_eq!(secret.strip_prefix(key["keyPrefix"].as_str().unwrap()).map(str::len), Some(73 - 12));
    assert!(secret.ends_with(key["keyLastFour"].as_str().unwrap()));
    assert_eq!((&key["name"], &key["credentialLane"]), (&json!("ci"), &json!("scoped-v1")));
    assert_eq!(key["scope"]["sandboxes"], json!([one]));
    assert_eq!((&key["scope"]["environments"], &key["sandboxId"]), (&json!("*"), &json!(null)));
    assert_eq!(
        (&key["expired"], &key["expiringSoon"], &key["lastUsedAt"]),
        (&json!(false), &json!(false), &json!(null))
    );
    let limited = own.with(secret);
    let listed = limited.get("/sandboxes").await.succeeds(200, "sandbox.list");
    assert_eq!(listed["sandboxes"].as_array().unwrap().len(), 1);
    limited.get(&format!("/sandboxes/{one}")).await.succeeds(200, "sandbox.info");
    limited.get(&format!("/sandboxes/{two}")).await.fails(404, "not_found");
    limited.post("/sandboxes", json!({})).await.fails(403, "forbidden");
    limited.get("/account/data-retention").await.fails(403, "forbidden");
    assert_eq!(limited.get("/api-keys").await.body["apiKeys"], json!([]));
    // It can read its own use, and no other's.
    let usage = |key: &Value| format!("/api-keys/{}/usage", key["id"].as_str().unwrap());
    limited.get(&usage(key)).await.succeeds(200, "api_key.usage");
    for other in made["apiKeys"].as_array().unwrap().iter().filter(|other| other["id"] != key["id"]) {
        limited.get(&usage(other)).await.fails(404, "not_found");
    }
    let forking =
        alice.post("/api-keys/scoped", json!({"preset": "full-sandbox", "sandboxIds": [one]})).await;
    let forking = own.with(forking.body["secret"].as_str().unwrap());
    forking.post(&format!("/sandboxes/{one}/fork"), json!({})).await.fails(403, "forbidden");

    let admin = json!({"actions": ["account.admin", "account.admin"], "sandboxIds": [one, one], "ttl": "1h"});
    let made = alice.post("/api-keys/scoped", admin).await.succeeds(201, "api_key.created");
    assert_eq!(made["apiKey"]["scope"]["actions"], json!(["account.admin"]));
    assert_eq!(made["apiKey"]["expiringSoon"], true);
    let admin = own.with(made["secret"].as_str().unwrap());
    let make = async |body: Value| admin.post("/api-keys/scoped", body).await;
    make(json!({})).await.fails(403, "forbidden");
    make(json!({"sandboxIds": [two]})).await.fails(400, "invalid_request");
    let child = make(json!({"sandboxIds": [one]})).await.succeeds(201, "api_key.created");
    assert_eq!(
        child["apiKey"]["expiresAt"], made["apiKey"]["expiresAt"],
        "a child does not outlive its maker"
    );
    assert_eq!(child["apiKeys"], json!([]));
    let read_only = child["apiKey"]["scope"]["actions"].as_array().unwrap();
    assert!(read_only.contains(&json!("sandbox.read")) && !read_only.contains(&json!("exec")));
}

#[tokio::test]
async fn keys_that_make_no_sense_are_refused_and_nothing_is_made() {
    let own = Server::start();
    let (alice, bob) = (own.alice(), own.bob());
    let foreign = bob.sandbox(json!({})).await;
    let before = alice.get("/api-keys").await.body["apiKeys"].clone();
    let bad = [
        (json!({"preset": "everything"}), "preset"),
        (json!({"preset": "ci", "actions": ["exec"]}), "preset"),
        (json!({"actions": ["exec", "sandbox.destroy"]}), "actions[1]"),
        (json!({"actions": []}), "actions"),
        (json!({"ttl": "366d"}), "ttl"),
        (json!({"ttl": "never"}), "ttl"),
        (json!({"ttl": 60}), "ttl"),
        (json!({"sandboxIds": [foreign]}), "sandboxIds"),
        (json!({"sandboxIds": ["bx_nothing1"]}), "sandboxIds"),
        (json!({"sandboxIds": []}), "sandboxIds"),
        (json!({"environmentIds": ["none"]}), "environmentIds"),
        (json!({"name": ""}), "name"),
        (json!({"scope": "all"}), "scope"),
    ];
    for (body, field) in bad {
        let refused = alice.post("/api-keys/scoped", body.clone()).await;
        assert_eq!(refused.fails(400, "invalid_request")["field"], field, "{body}");
    }
    assert_eq!(ids(&alice.get("/api-keys").await.body), ids(&json!({"apiKeys": before})));
    own.with("key-of-bob-reads1").post("/api-keys/scoped", json!({})).await.fails(403, "forbidden");
    own.server.world().set_scenario(Scenario::ScopedKeysOff, true).unwrap();
    let off = alice.post("/api-keys/scoped", json!({})).await;
    assert_eq!((off.status, &off.body["error"]), (503, &json!("scoped_api_key_creation_disabled")));
    assert_eq!((&off.body["scopedCreationEnabled"], off.body.get("ok")), (&json!(false), None));
    assert_eq!(off.body["requestId"], off.headers["x-request-id"].to_str().unwrap());
    assert_eq!(alice.get("/api-keys").await.body["catalog"]["scopedCreationEnabled"], false);
    let error = own.server.client_builder().api_key("key-alice").build().unwrap();
    let error = error.api().create_scoped_api_key(Default::default()).await.expect_err("none can be made");
    assert_eq!((error.status(), error.code()), (Some(503), "scoped_api_key_creation_disabled"));
}

fn ids(listed: &Value) -> Vec<Value> {
    listed["apiKeys"].as_array().unwrap().iter().map(|key| key["id"].clone()).collect()
}

#[tokio::test]
async fn rotation_and_revocation_count_at_once() {
    let own = Server::start();
    let (alice, herself) = (own.alice(), own.alice_herself());
    let made = alice.post("/api-keys/scoped", json!({"preset": "read-only", "ttl": "2h"})).await.body;
    let id = made["apiKey"]["id"].as_str().unwrap();
    let old = own.with(made["secret"].as_str().unwrap());
    alice.post(&format!("/api-keys/{id}/rotate"), json!({})).await.fails(403, "session_required");
    alice.call("DELETE", &format!("/api-keys/{id}"), json!({})).await.fails(403, "session_required");
    old.get("/me").await.succeeds(200, "user.info");
    let rotated =
        herself.post(&format!("/api-keys/{id}/rotate"), json!({})).await.succeeds(200, "api_key.rotated");
    let new = own.with(rotated["secret"].as_str().unwrap());
    old.get("/me").await.fails(401, "unauthorized");
    new.get("/me").await.succeeds(200, "user.info");
    for kept in ["id", "name", "createdAt", "expiresAt", "scope"] {
        assert_eq!(rotated["apiKey"][kept], made["apiKey"][kept], "{kept}");
    }
    assert_eq!(rotated["apiKeys"].as_array().unwrap().len(), 2);
    own.clock.advance(Duration::from_secs(7200));
    let ended = herself.post(&format!("/api-keys/{id}/rotate"), json!({})).await;
    assert_eq!((ended.status, &ended.body["error"]), (409, &json!("api_key_expired")));
    let listed = herself.get("/api-keys").await.body;
    let ended = listed["apiKeys"].as_array().unwrap().iter().find(|key| key["id"] == id);
    assert_eq!(ended.unwrap()["expired"], true, "an ended key is listed until it is revoked");
    let revoke = async || herself.call("DELETE", &format!("/api-keys/{id}"), json!({})).await;
    let left = revoke().await.succeeds(200, "api_key.revoked");
    assert!(!ids(&left).contains(&json!(id)));
    revoke().await.succeeds(200, "api_key.revoked");
    herself.post(&format!("/api-keys/{id}/rotate"), json!({})).await.fails(404, "not_found");
    let usage = herself.get(&format!("/api-keys/{id}/usage")).await.succeeds(200, "api_key.usage");
    // With a secret that is not known any more nobody can tell whose it was.
    assert_eq!(usage["usage"], json!({"requests": 2, "windowDays": 30}));
    herself.call("DELETE", "/api-keys/sak_nothing", json!({})).await.fails(404, "not_found");
    // Remembered for as long as uses are counted.
    own.clock.advance(Duration::from_secs(31 * 86_400));
    crate::http::until(async || own.alice().get(&format!("/api-keys/{id}/usage")).await.status == 404).await;
}

#[tokio::test]
async fn uses_are_counted_by_utc_days_and_what_a_key_made_is_named() {
    let own = Server::start();
    let alice = own.alice();
    let made = alice.post("/api-keys/scoped", json!({"preset": "ci"})).await.body;
    let path = format!("/api-keys/{}/usage", made["apiKey"]["id"].as_str().unwrap());
    let usage = async || alice.get(&path).await.succeeds(200, "api_key.usage");
    assert_eq!(usage().await["usage"]["requests"], 0);
    let key = own.with(made["secret"].as_str().unwrap());
    let first = key.post("/sandboxes", json!({})).await.body["sandbox"]["id"].clone();
    let second = key.post("/sandboxes", json!({})).await.body["sandbox"]["id"].clone();
    // Refused ones count too.
    key.post("/sandboxes/bx_1/fork", json!({})).await.fails(403, "forbidden");
    let used = usage().await;
    assert_eq!(used["usage"]["requests"], 3);
    assert_eq!(used["lastUsedAt"], used["createdAt"], "the clock stands still");
    assert_eq!(used["resources"], json!({"total": 2, "sandboxes": 2, "agents": 0}));
    let named: Vec<&Value> =
        used["createdResources"].as_array().unwrap().iter().map(|made| &made["id"]).collect();
    assert_eq!(named.len(), 2);
    assert!(named.contains(&&first) && named.contains(&&second));
    key.delete(first.as_str().unwrap()).await.succeeds(202, "sandbox.deleting");
    let used = usage().await;
    assert_eq!((&used["resources"]["total"], &used["createdResources"][0]["id"]), (&json!(1), &second));
    own.clock.advance(Duration::from_secs(86_400));
    key.get("/me").await.succeeds(200, "user.info");
    assert_eq!(usage().await["usage"]["requests"], 5);
    own.clock.advance(Duration::from_secs(29 * 86_400));
    assert_eq!(usage().await["usage"]["requests"], 1, "the first day is out of the window");
    own.clock.advance(Duration::from_secs(86_400));
    let used = usage().await;
    assert_eq!((&used["usage"]["requests"], used["lastUsedAt"].is_string()), (&json!(0), true));
}

#[tokio::test]
async fn people_see_what_keys_can_be_limited_to() {
    let own = Server::start();
    let id = own.alice().sandbox(json!({})).await;
    assert_eq!(own.alice().get("/api-keys").await.body["catalog"].get("scopeResources"), None);
    let catalogue = own.alice_herself().get("/api-keys").await.body["catalog"].clone();
    let named = &catalogue["scopeResources"]["sandboxes"][0];
    assert_eq!((&named["id"], &named["organizationId"]), (&json!(id), &json!("personal")));
    assert_eq!(catalogue["presets"]["admin"], json!(["*"]));
    assert_eq!((&catalogue["defaultTtl"], &catalogue["maxTtl"]), (&json!("90d"), &json!("365d")));
    // Creating a sandbox has made the default environment.
    let base = &catalogue["scopeResources"]["environments"][0];
    assert_eq!(base["name"], "base");
    let limited = json!({"preset": "full-sandbox", "environmentIds": [base["id"]]});
    let made = own.alice().post("/api-keys/scoped", limited).await.succeeds(201, "api_key.created");
    assert_eq!(made["apiKey"]["scope"]["environments"], json!([base["id"]]));
    let limited = own.with(made["secret"].as_str().unwrap());
    own.alice().post("/environments", json!({"name": "other"})).await.succeeds(200, "environment.created");
    limited.post("/sandboxes", json!({"environment": "other"})).await.fails(400, "unknown_environment");
    limited.sandbox(json!({"environment": "base"})).await;
}

#[tokio::test]
async fn a_sandbox_has_a_key_of_its_own() {
    let mut world = WorldSeed::default();
    world.sessions.push(SessionSeed::new("somebody"));
    let server = MockServer::builder().world(world).api_key("sbx_live_everything").start().unwrap();
    let api = Api::of(&server);
    let (id, other) = (api.sandbox(json!({})).await, api.sandbox(json!({"noEnv": true})).await);
    let token = async |id: &str| {
        let done = api.exec(id, "printf %s \"$SANDBOXER_TOKEN\"").await;
        done["stdout"].as_str().unwrap().to_owned()
    };
    assert_eq!(token(&other).await, "", "without an environment there is none");
    assert_eq!(api.exec(&id, "printf %s $SANDBOXER_API_URL").await["stdout"], server.url());
    let own = Api::with_key(&server.url(), &token(&id).await);
    assert_eq!(own.exec(&id, "echo inside").await["stdout"], "inside\n");
    own.get(&format!("/sandboxes/{other}")).await.fails(404, "not_found");
    own.post("/sandboxes", json!({})).await.fails(403, "forbidden");
    own.get("/account/data-retention").await.fails(403, "forbidden");
    assert_eq!(own.get("/api-keys").await.body["apiKeys"], json!([]));
    own.get(&format!("/sandboxes/{id}")).await.succeeds(200, "sandbox.info");
    let shown = api.get(&format!("/sandboxes/{id}")).await.body.to_string();
    assert!(!shown.contains("SANDBOXER_TOKEN"), "{shown}");

    let listed = api.get("/api-keys").await.succeeds(200, "api_key.list");
    let machine: Vec<&Value> =
        listed["apiKeys"].as_array().unwrap().iter().filter(|key| key["sandboxId"].is_string()).collect();
    assert_eq!(machine.len(), 1);
    assert_eq!((&machine[0]["sandboxId"], &machine[0]["usage"]["requests"]), (&json!(id), &json!(6)));
    let key = format!("/api-keys/{}", machine[0]["id"].as_str().unwrap());
    let somebody = Api::with_key(&server.url(), "somebody");
    let rotated = somebody.post(&format!("{key}/rotate"), json!({})).await.succeeds(200, "api_key.rotated");
    own.get("/me").await.fails(401, "unauthorized");
    assert_eq!(token(&id).await, rotated["secret"].as_str().unwrap());
    let own = Api::with_key(&server.url(), rotated["secret"].as_str().unwrap());
    own.get("/me").await.succeeds(200, "user.info");
    api.delete(&id).await.succeeds(202, "sandbox.deleting");
    own.get("/me").await.fails(401, "unauthorized");
    let other = api.sandbox(json!({})).await;
    let own = Api::with_key(&server.url(), &token(&other).await);
    let listed = somebody.get("/api-keys").await.body;
    let machine = listed["apiKeys"].as_array().unwrap().iter().find(|key| key["sandboxId"] == other.as_str());
    let key = format!("/api-keys/{}", machine.unwrap()["id"].as_str().unwrap());
    somebody.call("DELETE", &key, json!({})).await.succeeds(200, "api_key.revoked");
    own.get("/me").await.fails(401, "unauthorized");
}

#[tokio::test]
async fn what_was_done_to_keys_outlives_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut world = WorldSeed::default();
        world.sessions.push(SessionSeed::new("somebody"));
        for secret in ["first-given-key-1", "second-given-key2"] {
            world.keys.push(KeySeed::new(secret));
        }
        let server = MockServer::builder()
            .world(world)
            .data_dir(folder.path())
            .runner(RunnerKind::Scripted)
            .start()
            .unwrap();
        let url = server.url();
        (server, move |secret: &str| Api::with_key(&url, secret))
    };
    let (server, with) = start();
    let made: Answer = with("first-given-key-1").post("/api-keys/scoped", json!({"name": "kept"})).await;
    let made = made.succeeds(201, "api_key.created");
    let secret = made["secret"].as_str().unwrap();
    with(secret).get("/me").await.succeeds(200, "user.info");
    let listed = with("somebody").get("/api-keys").await.body;
    let given =
        listed["apiKeys"].as_array().unwrap().iter().find(|key| key["keyLastFour"] == "key2").unwrap();
    let given = format!("/api-keys/{}", given["id"].as_str().unwrap());
    with("somebody").call("DELETE", &given, json!({})).await.succeeds(200, "api_key.revoked");
    server.shutdown();

    let (_server, with) = start();
    let usage = format!("/api-keys/{}/usage", made["apiKey"]["id"].as_str().unwrap());
    let usage = with("first-given-key-1").get(&usage).await.succeeds(200, "api_key.usage");
    assert_eq!((&usage["name"], &usage["usage"]["requests"]), (&json!("kept"), &json!(1)));
    with(secret).get("/me").await.succeeds(200, "user.info");
    with("second-given-key2").get("/me").await.fails(401, "unauthorized");
}
