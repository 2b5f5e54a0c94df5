//! Accounts, organisations, keys, plans and quotas.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::MockServer;
use serde_json::json;

use crate::{
    http::Api,
    worlds::{TWINS, person, scripted, with_keys_of},
};

const WORLD: &str = r#"
[[plans]]
key = "trial"
active_sandboxes = 2
starts_per_minute = 3
types = ["small", "default"]

[[organisations]]
name = "Acme"
members = [{ account = "alice", role = "owner" }, { account = "bob", active_sandboxes = 1 }]

[[keys]]
secret = "key-reader"
account = "alice"
preset = "read-only"
[[keys]]
secret = "key-brief"
account = "alice"
expires_in_seconds = 60
"#;

fn start(clock: &ManualClock) -> MockServer {
    let people = person("alice", "") + &person("bob", "plan = \"trial\"") + &person("carl", "blocked = true");
    scripted(&[&people, WORLD, TWINS].concat()).clock(clock.shared()).start().unwrap()
}

#[tokio::test]
async fn accounts_do_not_see_each_other() {
    let server = start(&ManualClock::new());
    let [alice, bob] = with_keys_of(&server, ["alice", "bob"]);
    let id = alice.sandbox(json!({})).await;
    bob.get(&format!("/sandboxes/{id}")).await.fails(404, "not_found");
    bob.delete(&id).await.fails(404, "not_found");
    bob.post(&format!("/sandboxes/{id}/commands"), json!({"command": "true"})).await.fails(404, "not_found");
    let deleting = alice.delete(&id).await.succeeds(202, "sandbox.deleting");
    let operation = deleting["operation"]["id"].as_str().unwrap();
    bob.get(&format!("/deletion-operations/{operation}")).await.fails(404, "not_found");
    let me = bob.get("/me").await.succeeds(200, "user.info");
    assert_eq!((&me["user"]["login"], &me["user"]["accountPlan"]), (&json!("bob"), &json!("trial")));
}

#[tokio::test]
async fn keys_grant_what_they_say_for_as_long_as_they_say() {
    let clock = ManualClock::new();
    let server = start(&clock);
    let [alice] = with_keys_of(&server, ["alice"]);
    let reader = Api::with_key(&server.url(), "key-reader");
    let id = alice.sandbox(json!({})).await;
    reader.get(&format!("/sandboxes/{id}")).await.succeeds(200, "sandbox.info");
    let refused = reader.post("/sandboxes", json!({})).await;
    assert_eq!(refused.fails(403, "forbidden")["action"], "sandbox.create");
    reader.post(&format!("/sandboxes/{id}/commands"), json!({"command": "x"})).await.fails(403, "forbidden");
    reader.delete(&id).await.fails(403, "forbidden");
    let brief = Api::with_key(&server.url(), "key-brief");
    brief.get("/me").await.succeeds(200, "user.info");
    clock.advance(Duration::from_secs(60));
    brief.get("/me").await.fails(401, "unauthorized");
    server.world().revoke_key("key-reader").unwrap();
    reader.get("/me").await.fails(401, "unauthorized");
}

#[tokio::test]
async fn organisations_pay_and_share_sight() {
    let server = start(&ManualClock::new());
    let [alice, bob] = with_keys_of(&server, ["alice", "bob"]);
    let id = alice.sandbox(json!({"org": "acme"})).await;
    let listed = bob.get("/sandboxes?org=Acme").await.succeeds(200, "sandbox.list");
    assert_eq!(listed["sandboxes"][0]["id"], id);
    assert_eq!(listed["sandboxes"][0]["access"], "view");
    assert_eq!(listed["sandboxes"][0]["team"]["name"], "Acme");
    assert_eq!(bob.get("/sandboxes").await.body["sandboxes"], json!([]));
    bob.post(&format!("/sandboxes/{id}/commands"), json!({"command": "x"})).await.fails(403, "forbidden");
    bob.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    let with_header =
        |api: &Api, org: &str, path: &str| api.request("GET", path).header("X-Sandboxer-Org", org);
    let request = with_header(&bob, "Twins", "/me");
    bob.send(request).await.fails(403, "not_org_member");
    let request = with_header(&alice, "twins", "/limits");
    alice.send(request).await.fails(409, "ambiguous_org");
    // The query wins over the header.
    let request = with_header(&alice, "twins", "/limits?org=team_1");
    let limits = alice.send(request).await.succeeds(200, "limits.info");
    assert_eq!((&limits["teamId"], &limits["teamRole"]), (&json!("team_1"), &json!("member")));
    let personal = alice.get("/limits?org=personal").await.succeeds(200, "limits.info");
    assert_eq!(personal.get("teamId"), None);
    bob.sandbox(json!({"org": "Acme"})).await;
    bob.post("/sandboxes", json!({"org": "Acme"})).await.fails(429, "member_limit_reached");
}

#[tokio::test]
async fn plans_wallets_and_quotas_refuse() {
    let clock = ManualClock::new();
    let server = start(&clock);
    let [bob, carl] = with_keys_of(&server, ["bob", "carl"]);
    carl.post("/sandboxes", json!({})).await.fails(402, "billing_required");
    assert_eq!(carl.get("/limits").await.body["canStart"], false);
    bob.post("/sandboxes", json!({"type": "xlarge"})).await.fails(403, "machine_class_plan_required");
    let first = bob.sandbox(json!({})).await;
    let second = bob.sandbox(json!({})).await;
    let full = bob.post("/sandboxes", json!({})).await;
    let details = full.fails(429, "limit_reached");
    assert_eq!((&details["retryable"], &details["maxActiveSandboxes"]), (&json!(false), &json!(2)));
    bob.delete(&first).await.succeeds(202, "sandbox.deleting");
    bob.delete(&second).await.succeeds(202, "sandbox.deleting");
    clock.advance(Duration::from_secs(10));
    let third = bob.sandbox(json!({})).await;
    bob.delete(&third).await.succeeds(202, "sandbox.deleting");
    let limited = bob.post("/sandboxes", json!({})).await;
    let details = limited.fails(429, "rate_limited");
    assert_eq!((&details["window"], &details["limit"]), (&json!("minute"), &json!(3)));
    assert_eq!(details["starts"]["minute"], json!({"limit": 3, "used": 3, "remaining": 0}));
    assert_eq!(limited.headers["retry-after"], "50");
    let limits = bob.get("/limits").await.succeeds(200, "limits.info");
    assert_eq!((&limits["canStart"], &limits["startBlockedReason"]), (&json!(false), &json!("rate_limited")));
    clock.advance(Duration::from_secs(50));
    bob.sandbox(json!({})).await;
}
