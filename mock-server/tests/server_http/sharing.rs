//! Sandboxes of an organisation, and what its members may do in them; names that only one can have.

use sandboxer_mock_server::{MockServer, Scenario};
use serde_json::{Value, json};

use crate::{
    http::{Api, guarded},
    worlds::{ACME, people, scripted, with_keys_of},
};

fn start() -> (MockServer, Api, Api) {
    let server = scripted(&(people(["alice", "bob"]) + ACME)).start().unwrap();
    let [alice, bob] = with_keys_of(&server, ["alice", "bob"]);
    (server, alice, bob)
}

async fn shown(api: &Api, id: &str) -> Value {
    api.get(&format!("/sandboxes/{id}")).await.succeeds(200, "sandbox.info")["sandbox"].clone()
}

#[tokio::test]
async fn members_work_in_what_was_shared_and_started_since() {
    let (server, alice, bob) = start();
    let own = alice.sandbox(json!({})).await;
    alice.post(&format!("/sandboxes/{own}/share"), json!({})).await.fails(400, "not_org_sandbox");
    bob.post(&format!("/sandboxes/{own}/share"), json!({})).await.fails(404, "not_found");

    let id = alice.sandbox(json!({"org": "Acme"})).await;
    let path = format!("/sandboxes/{id}");
    let command = json!({"command": "true"});
    assert_eq!(shown(&bob, &id).await["access"], "view");
    assert_eq!(shown(&alice, &id).await["holdsCreatorLogins"], true);
    bob.post(&format!("{path}/commands"), command.clone()).await.fails(403, "forbidden");
    bob.post(&format!("{path}/share"), json!({})).await.fails(403, "forbidden");
    // Whoever may only look at it looks at its load, as far as its machine answers.
    let stats = async || bob.get(&format!("{path}/stats")).await;
    stats().await.succeeds(200, "sandbox.stats");
    server.world().set_scenario_for(&id, Scenario::Unreachable, true).unwrap();
    stats().await.fails(502, "sandbox_direct_failed");
    bob.post(&format!("{path}/commands"), command.clone()).await.fails(403, "forbidden");
    server.world().set_scenario_for(&id, Scenario::Unreachable, false).unwrap();

    for _ in 0..2 {
        let shared = alice.post(&format!("{path}/share"), json!({})).await.succeeds(200, "sandbox.shared");
        assert_eq!(shared["restartRequired"], true);
        assert_eq!(shared["sandbox"]["wipePendingUntilRestart"], true);
    }
    assert_eq!(shown(&bob, &id).await["access"], "view");
    // Whoever may see it may stop it; resuming it is for those who may use it.
    bob.post(&format!("{path}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    bob.wait_for(&id, "archived").await;
    bob.post(&format!("{path}/resume"), json!({})).await.fails(403, "forbidden");
    alice.post(&format!("{path}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    alice.wait_for(&id, "ready").await;

    let used = shown(&bob, &id).await;
    assert_eq!((&used["access"], &used["createdBy"]), (&json!("use"), &json!("alice")));
    assert_eq!(
        (&used["holdsCreatorLogins"], &used["wipePendingUntilRestart"]),
        (&json!(false), &json!(false))
    );
    bob.exec(&id, "true").await;
    bob.post(&format!("{path}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    bob.wait_for(&id, "archived").await;
    let resumed = bob.post(&format!("{path}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    assert_eq!(resumed["sandbox"]["access"], "use");
    for (method, what) in [("PATCH", ""), ("POST", "/share"), ("POST", "/fork"), ("POST", "/recover")] {
        let answer = bob.call(method, &format!("{path}{what}"), json!({})).await;
        answer.fails(403, "forbidden");
    }
    bob.delete(&id).await.fails(403, "forbidden");
}

#[tokio::test]
async fn what_has_no_environment_is_open_to_members_from_the_start() {
    let (_server, alice, bob) = start();
    let id = alice.sandbox(json!({"org": "Acme", "noEnv": true})).await;
    assert_eq!(shown(&bob, &id).await["access"], "use");
    bob.exec(&id, "true").await;
    let shared =
        alice.post(&format!("/sandboxes/{id}/share"), json!({})).await.succeeds(200, "sandbox.shared");
    assert_eq!(shared["restartRequired"], false);
    let listed = bob.get("/sandboxes?org=Acme").await.succeeds(200, "sandbox.list");
    assert_eq!(listed["sandboxes"][0]["access"], "use");
}

#[tokio::test]
async fn of_many_that_want_one_subdomain_exactly_one_wins() {
    let (_server, alice, bob) = start();
    let mut ids = Vec::new();
    for api in [&alice, &bob, &alice, &bob] {
        ids.push((api.clone(), api.sandbox(json!({})).await));
    }
    let calls: Vec<_> = ids
        .iter()
        .cloned()
        .map(|(api, id)| {
            tokio::spawn(async move {
                let rename = json!({"subdomain": "the-one", "name": "renamed"});
                (id.clone(), api.call("PATCH", &format!("/sandboxes/{id}"), rename).await)
            })
        })
        .collect();
    let mut winner = None;
    for call in calls {
        let (id, answer) = guarded(call).await.unwrap();
        match answer.status {
            200 => assert_eq!(winner.replace(id), None, "two won"),
            _ => drop(answer.fails(400, "invalid_name")),
        }
    }
    let winner = winner.expect("nobody won");
    for (api, id) in &ids {
        let sandbox = shown(api, id).await;
        assert_eq!(sandbox["subdomain"] == "the-one", *id == winner);
        assert_eq!(sandbox["name"] == "renamed", *id == winner, "a refused change changes nothing");
    }
    // A name that nobody bears any more can be had.
    let (api, _) = ids.iter().find(|(_, id)| *id == winner).unwrap();
    api.call("PATCH", &format!("/sandboxes/{winner}"), json!({"subdomain": "another"}))
        .await
        .succeeds(200, "sandbox.updated");
    let (api, id) = ids.iter().find(|(_, id)| *id != winner).unwrap();
    api.call("PATCH", &format!("/sandboxes/{id}"), json!({"subdomain": "the-one"}))
        .await
        .succeeds(200, "sandbox.updated");
}
