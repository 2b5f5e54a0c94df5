//! Organisations: founding one, its members, and the wallet that is active.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, WorldSeed};
use serde_json::json;

use crate::{
    http::Api,
    worlds::{TWINS, person, scripted, with_keys_of},
};

const WORLD: &str = r#"
[[plans]]
key = "trial"
active_sandboxes = 1

[[organisations]]
name = "Acme"
id = "team_acme"
members = [{ account = "alice", role = "owner" }, { account = "bob", active_sandboxes = 3 }]
invites = [{ email = "dan@example.com", expires_in_seconds = 60 }, { email = "fay@example.com" }]
"#;

fn start(clock: &ManualClock) -> (MockServer, Api, Api, Api) {
    let alice = person("alice", "email = \"alice@example.com\"\nname = \"Alice A.\"");
    let others = person("bob", "plan = \"trial\"") + &person("eve", "");
    let server = scripted(&[&alice, &others, WORLD, TWINS].concat()).clock(clock.shared()).start().unwrap();
    let [alice, bob, eve] = with_keys_of(&server, ["alice", "bob", "eve"]);
    (server, alice, bob, eve)
}

#[tokio::test]
async fn the_active_wallet_pays_for_creates_that_name_none() {
    let (_server, alice, bob, _) = start(&ManualClock::new());
    let listed = bob.get("/orgs").await.succeeds(200, "org.list");
    assert_eq!(listed["activeWalletChosen"], false);
    let named: Vec<_> = listed["orgs"].as_array().unwrap().iter().map(|org| &org["id"]).collect();
    assert_eq!(named, [&json!("personal"), &json!("team_acme")]);
    assert_eq!((&listed["orgs"][0]["active"], &listed["orgs"][0]["role"]), (&json!(true), &json!("owner")));
    assert_eq!(
        (&listed["orgs"][1]["memberCount"], &listed["orgs"][1]["role"]),
        (&json!(2), &json!("member"))
    );

    let set = async |api: &Api, org| api.call("PATCH", "/orgs/active", json!({ "org": org })).await;
    let before = bob.sandbox(json!({})).await;
    let active = set(&bob, json!("ACME")).await.succeeds(200, "org.active_updated");
    assert_eq!(active["active"], json!({"id": "team_acme", "name": "Acme", "type": "org"}));
    let listed = bob.get("/orgs").await.body;
    assert_eq!((&listed["activeWalletChosen"], &listed["orgs"][0]["active"]), (&json!(true), &json!(false)));
    assert_eq!(listed["orgs"][1]["active"], true);
    let team = async |id: &str| bob.get(&format!("/sandboxes/{id}")).await.body["sandbox"]["team"].clone();
    let paid = bob.sandbox(json!({})).await;
    assert_eq!(team(&paid).await["id"], "team_acme");
    assert_eq!(team(&before).await, json!(null), "what was there keeps its wallet");
    assert_eq!(bob.get("/limits").await.body["teamId"], "team_acme");
    let personal = bob.get("/limits?org=personal").await.succeeds(200, "limits.info");
    assert_eq!((personal.get("teamId"), &personal["activeSandboxes"]), (None, &json!(1)));
    // Each of these says whose wallet it is, and the personal one is full.
    for body in [json!({"org": null}), json!({"teamId": null}), json!({"org": "personal", "teamId": "Acme"})]
    {
        bob.post("/sandboxes", body).await.fails(429, "limit_reached");
    }
    let request = bob.request("POST", "/sandboxes").header("X-Sandboxer-Org", "personal").json(&json!({}));
    bob.send(request).await.fails(429, "limit_reached");
    let forked =
        bob.post(&format!("/sandboxes/{paid}/fork"), json!({})).await.succeeds(202, "sandbox.forking");
    assert_eq!(forked["sandbox"]["team"]["id"], "team_acme", "a fork is paid for like its source");

    set(&bob, json!("Twins")).await.fails(403, "not_org_member");
    set(&alice, json!("twins")).await.fails(409, "ambiguous_org");
    set(&alice, json!("")).await.fails(400, "invalid_request");
    bob.call("PATCH", "/orgs/active", json!({})).await.fails(400, "invalid_request");
    assert_eq!(bob.get("/limits").await.body["teamId"], "team_acme");
    let active = set(&bob, json!(null)).await.succeeds(200, "org.active_updated");
    assert_eq!(active["active"]["type"], "personal");
    assert_eq!(bob.get("/limits").await.body.get("teamId"), None);
}

#[tokio::test]
async fn an_organisation_that_somebody_forgot_to_name_is_refused() {
    let (_server, alice, _, _) = start(&ManualClock::new());
    let answer = alice.send(alice.request("GET", "/sandboxes").header("X-Sandboxer-Org", "")).await;
    assert_eq!(answer.fails(400, "invalid_request")["field"], "X-Sandboxer-Org");
    let request = alice.request("POST", "/sandboxes").header("X-Sandboxer-Org", "").json(&json!({}));
    alice.send(request).await.fails(400, "invalid_request");
    assert_eq!(alice.get("/sandboxes").await.body["sandboxes"], json!([]), "nobody pays by mistake");
    let whole = alice.request("GET", "/sandboxes?org=").header("X-Sandboxer-Org", "personal");
    alice.send(whole).await.fails(400, "invalid_request");
}

#[tokio::test]
async fn whoever_has_left_an_organisation_pays_alone_again() {
    let (server, _, bob, _) = start(&ManualClock::new());
    bob.call("PATCH", "/orgs/active", json!({"org": "team_acme"})).await.succeeds(200, "org.active_updated");
    let smaller = r#"
        [[plans]]
        key = "trial"
        [[accounts]]
        login = "alice"
        [[organisations]]
        name = "Acme"
        id = "team_acme"
        members = [{ account = "alice", role = "owner" }]
    "#;
    server.world().plant(&WorldSeed::from_toml(smaller).unwrap()).unwrap();
    let listed = bob.get("/orgs").await.body;
    assert_eq!(listed["orgs"].as_array().unwrap().len(), 1);
    assert_eq!(listed["orgs"][0]["active"], true);
    assert_eq!(bob.post("/sandboxes", json!({})).await.body["sandbox"]["team"], json!(null));
    bob.post("/sandboxes", json!({"org": "team_acme"})).await.fails(403, "not_org_member");
}

#[tokio::test]
async fn members_and_invitations_are_for_members() {
    let clock = ManualClock::new();
    let (_server, alice, bob, eve) = start(&clock);
    let seen = bob.get("/orgs/team_acme/members").await.succeeds(200, "org.members");
    let (first, second) = (&seen["members"][0], &seen["members"][1]);
    assert_eq!((&first["email"], &first["displayName"]), (&json!("alice@example.com"), &json!("Alice A.")));
    assert_eq!((&first["role"], &first["capActiveSandboxes"]), (&json!("owner"), &json!(null)));
    assert_eq!((&second["displayName"], &second["capActiveSandboxes"]), (&json!("bob"), &json!(3)));
    assert!(second["joinedAt"].is_string());
    assert_eq!(seen["invites"].as_array().unwrap().len(), 2);
    clock.advance(Duration::from_secs(60));
    let later = alice.get("/orgs/team_acme/members").await.body;
    assert_eq!(later["invites"].as_array().unwrap().len(), 1);
    assert_eq!(later["invites"][0]["email"], "fay@example.com");
    // One that exists and one that does not look the same from outside.
    let hidden = eve.get("/orgs/team_acme/members").await;
    let absent = eve.get("/orgs/team_none/members").await;
    assert_eq!(hidden.fails(404, "not_found"), absent.fails(404, "not_found"));
    assert_eq!(hidden.body["message"], absent.body["message"]);
}

#[tokio::test]
async fn whoever_founds_an_organisation_owns_it() {
    let (_server, alice, bob, eve) = start(&ManualClock::new());
    let made = bob.post("/orgs", json!({"name": "  Lab "})).await.succeeds(201, "org.created");
    let org = &made["org"];
    assert_eq!(
        (&org["name"], &org["role"], &org["memberCount"]),
        (&json!("Lab"), &json!("owner"), &json!(1))
    );
    let id = org["id"].as_str().unwrap();
    assert!(id.starts_with("team_") && id.len() == 41, "{id}");
    // It pays no more than its founder does.
    bob.sandbox(json!({"org": id})).await;
    bob.post("/sandboxes", json!({"org": "lab"})).await.fails(429, "limit_reached");
    alice.get(&format!("/orgs/{id}/members")).await.fails(404, "not_found");
    bob.post("/orgs", json!({"name": "LAB"})).await.succeeds(201, "org.created");
    bob.get("/limits?org=Lab").await.fails(409, "ambiguous_org");
    for name in ["", "   ", "Personal"] {
        bob.post("/orgs", json!({ "name": name })).await.fails(400, "invalid_name");
    }
    bob.post("/orgs", json!({})).await.fails(400, "invalid_name");
    assert_eq!(bob.get("/orgs").await.body["orgs"].as_array().unwrap().len(), 4);
    // Those of others that somebody is in do not count for what one may own.
    for number in 2..100 {
        let body = json!({"name": format!("org {number}")});
        bob.post("/orgs", body).await.succeeds(201, "org.created");
    }
    bob.post("/orgs", json!({"name": "one more"})).await.fails(409, "org_limit");
    assert_eq!(bob.get("/orgs").await.body["orgs"].as_array().unwrap().len(), 102);
    assert_eq!(eve.get("/orgs").await.body["orgs"].as_array().unwrap().len(), 1);
}
