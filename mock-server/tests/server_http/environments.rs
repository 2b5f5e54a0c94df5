//! Environments: their versions, and what sandboxes get of them.

use sandboxer_mock_server::{MockServer, Scenario, runner::RunnerKind};
use serde_json::{Value, json};

use crate::{
    http::{Api, guarded, until},
    worlds::{ACME, people, running, with_keys_of},
};

fn scripted() -> (MockServer, Api) {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    (server, api)
}

async fn all(api: &Api) -> Vec<Value> {
    let listed = api.get("/environments").await.succeeds(200, "environments.list");
    listed["environments"].as_array().unwrap().clone()
}

async fn named(api: &Api, name: &str) -> Value {
    all(api).await.into_iter().find(|it| it["name"] == name).unwrap()
}

async fn path_of(api: &Api, name: &str) -> String {
    format!("/environments/{}", named(api, name).await["id"].as_str().unwrap())
}

async fn shown(api: &Api, id: &str) -> Value {
    api.get(&format!("/sandboxes/{id}")).await.succeeds(200, "sandbox.info")["sandbox"].clone()
}

async fn stdout(api: &Api, id: &str, command: &str) -> String {
    api.exec(id, command).await["stdout"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn base_is_there_from_the_first_look_and_the_default_flag_moves() {
    let (_server, api) = scripted();
    let first = all(&api).await;
    assert_eq!(first.len(), 1);
    let base = &first[0];
    assert_eq!((&base["name"], &base["isDefault"]), (&json!("base"), &json!(true)));
    assert_eq!((&base["latestVersionNumber"], &base["safeForThirdParties"]), (&json!(1), &json!(false)));
    for flag in ["passGithub", "passSecrets", "passSandboxCredentials", "passAgentsCredentials"] {
        assert_eq!(base[flag], true, "{flag}");
    }
    assert_eq!(base["versions"][0]["id"], base["latestVersionId"]);
    assert_eq!(all(&api).await, first);

    let created = api.post("/environments", json!({"name": "ci"})).await.succeeds(200, "environment.created");
    assert_eq!(created["environments"].as_array().unwrap().len(), 2);
    let refused = api.post("/environments", json!({"name": "ci"})).await;
    assert_eq!(refused.fails(409, "create_failed")["field"], "name");
    let (base, ci) = (path_of(&api, "base").await, path_of(&api, "ci").await);

    api.call("DELETE", &base, json!({})).await.fails(400, "update_failed");
    api.call("PUT", &base, json!({"isDefault": false})).await.fails(400, "update_failed");
    api.call("PUT", &ci, json!({"name": "base"})).await.fails(400, "update_failed");
    api.call("PUT", &ci, json!({"name": "a b"})).await.fails(400, "invalid_name");
    let profile = json!({"credentialProfileId": "none"});
    api.call("PUT", &ci, profile).await.fails(404, "credential_profile_not_found");
    let changed = api.call("PUT", &ci, json!({"isDefault": true, "name": "main"})).await;
    let changed = changed.succeeds(200, "environment.updated")["environment"].clone();
    assert_eq!((&changed["isDefault"], &changed["name"]), (&json!(true), &json!("main")));
    assert_eq!(changed["latestVersionNumber"], 1, "nothing of its contents changed");
    assert_eq!(named(&api, "base").await["isDefault"], false);

    let id = api.sandbox(json!({})).await;
    let sandbox = shown(&api, &id).await;
    assert_eq!((&sandbox["environment"], &sandbox["environmentVersion"]), (&json!("main"), &json!(1)));
    let deleted = api.call("DELETE", &base, json!({})).await.succeeds(200, "environment.deleted");
    assert_eq!(deleted["success"], true);
    api.call("PUT", &base, json!({})).await.fails(404, "not_found");
    assert_eq!(all(&api).await.len(), 1);
    // Its name is free again.
    api.post("/environments", json!({"name": "base"})).await.succeeds(200, "environment.created");
}

#[tokio::test]
async fn a_change_of_contents_makes_a_version_and_sandboxes_keep_theirs() {
    let (_server, api) = scripted();
    let base = path_of(&api, "base").await;
    let old = api.sandbox(json!({})).await;
    let change = json!({"envContents": "A=1\n", "passGithub": false, "safeForThirdParties": false});
    for _ in 0..2 {
        // Sent again, it changes nothing.
        let changed = api.call("PUT", &base, change.clone()).await.succeeds(200, "environment.updated");
        let changed = &changed["environment"];
        assert_eq!((&changed["latestVersionNumber"], &changed["passGithub"]), (&json!(2), &json!(false)));
        assert_eq!((&changed["envContents"], &changed["passSecrets"]), (&json!("A=1\n"), &json!(true)));
        assert!(changed["safetyAnsweredAt"].is_string());
    }
    let set = api.call("PUT", &format!("{base}/vars/B"), json!({"value": "two words"})).await;
    let set = set.succeeds(200, "environment.updated");
    assert_eq!((&set["versionNumber"], &set["success"]), (&json!(3), &json!(true)));
    let latest = named(&api, "base").await;
    assert_eq!(latest["latestVersionId"], set["versionId"]);
    assert_eq!(latest["envContents"], "A=1\nB='two words'\n");

    let new = api.sandbox(json!({"environment": "base"})).await;
    assert_eq!(shown(&api, &old).await["environmentVersion"], 1);
    assert_eq!(shown(&api, &new).await["environmentVersion"], 3);
    let counts: Vec<_> = named(&api, "base").await["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["versionNumber"].clone(), it["sandboxCount"].clone()))
        .collect();
    assert_eq!(counts, [(json!(3), json!(1)), (json!(2), json!(0)), (json!(1), json!(1))]);

    let unset = api.call("DELETE", &format!("{base}/vars/A"), json!({})).await;
    assert_eq!(unset.succeeds(200, "environment.updated")["versionNumber"], 4);
    api.call("DELETE", &format!("{base}/vars/A"), json!({})).await.fails(404, "not_found");
    assert_eq!(named(&api, "base").await["envContents"], "B='two words'\n");
}

#[tokio::test]
async fn what_cannot_be_taken_is_refused_and_changes_nothing() {
    let (_server, api) = scripted();
    let base = path_of(&api, "base").await;
    let before = all(&api).await;
    let big = "x".repeat(65_536);
    let cases = [
        ("PUT", "", json!({"envContents": "A=1\nnothing"}), 400, "invalid_env"),
        ("PUT", "", json!({"envContents": "SANDBOXER_TOKEN=x"}), 400, "invalid_env"),
        ("PUT", "", json!({"secretFiles": [{"path": "../x", "contents": ""}]}), 400, "invalid_secret_path"),
        (
            "PUT",
            "",
            json!({"name": "fine", "repositories": [{"repositoryId": "7"}]}),
            404,
            "repository_not_found",
        ),
        ("PUT", "/vars/9A", json!({"value": "x"}), 400, "invalid_key"),
        ("PUT", "/vars/A-B", json!({"value": "x"}), 400, "invalid_key"),
        ("PUT", "/vars/AGENT_ID", json!({"value": "x"}), 400, "invalid_env"),
        ("PUT", "/vars/A", json!({"value": big}), 400, "invalid_env"),
        ("PUT", "/vars/A", json!({}), 400, "invalid_env"),
        ("DELETE", "/vars/A.B", json!({}), 400, "invalid_key"),
        ("PUT", "/secret-files", json!({"path": "/etc/x", "contents": ""}), 400, "invalid_secret_path"),
        ("DELETE", "/secret-files?path=a/../b", json!({}), 400, "invalid_secret_path"),
        ("DELETE", "/secret-files?path=a", json!({}), 404, "not_found"),
        ("DELETE", "/secret-files", json!({}), 400, "invalid_secret_path"),
        ("POST", "/repos", json!({"repositoryId": "7"}), 404, "repository_not_found"),
        ("DELETE", "/repos/7", json!({}), 404, "not_found"),
    ];
    for (method, path, body, status, code) in cases {
        let answer = api.call(method, &format!("{base}{path}"), body.clone()).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{method} {path} {}", answer.body);
    }
    api.post("/environments", json!({"name": "a/b"})).await.fails(400, "invalid_name");
    api.post("/secrets", json!({"envContents": "nothing"})).await.fails(400, "invalid_env");
    let climbing = json!({"secretFiles": [{"path": "../key", "contents": "x"}]});
    api.post("/secrets", climbing).await.fails(400, "invalid_secret_path");
    let unknown = "/environments/00000000-0000-0000-0000-000000000000";
    api.call("PUT", &format!("{unknown}/vars/A"), json!({"value": "x"})).await.fails(404, "not_found");
    api.call("POST", &format!("{unknown}/upgrade"), json!({})).await.fails(404, "not_found");
    assert_eq!(all(&api).await, before);
}

#[tokio::test]
async fn sandboxes_find_variables_and_secret_files() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let base = path_of(&api, "base").await;
    let change = json!({
        "envContents": "export A=base # said\nB=base\nC='two words'\nSHELL_LINE=\"a\\nb\"",
        "secretFiles": [{"path": "config/key.pem", "contents": "hush"}],
    });
    api.call("PUT", &base, change).await.succeeds(200, "environment.updated");
    let id = api.sandbox(json!({"env": {"B": "own"}, "setupScript": "echo $A > said"})).await;
    let line = "echo \"$A|$B|$C|$SHELL_LINE\"; cat config/key.pem; stat -c ' %a' config/key.pem";
    assert_eq!(stdout(&api, &id, line).await, "base|own|two words|a\nb\nhush 600\n");
    until(async || shown(&api, &id).await["setupStatus"] == "done").await;
    assert_eq!(stdout(&api, &id, "cat said").await, "base\n");

    let none = api.sandbox(json!({"noEnv": true})).await;
    assert_eq!(stdout(&api, &none, "echo \"$A\"; ls -A").await, "\n");
    let sandbox = shown(&api, &none).await;
    assert_eq!((&sandbox["environment"], &sandbox["environmentVersion"]), (&Value::Null, &Value::Null));

    // A fork without it has nothing of it left, and neither has what is resumed without it.
    let fork = api.post(&format!("/sandboxes/{id}/fork"), json!({"noEnv": true})).await;
    let fork = fork.succeeds(202, "sandbox.forking")["id"].as_str().unwrap().to_owned();
    api.wait_for(&fork, "ready").await;
    assert_eq!(stdout(&api, &fork, "echo \"$A\"; ls config; cat said").await, "\nbase\n");
    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    let resume = format!("/sandboxes/{id}/resume");
    api.post(&resume, json!({"environment": "nothing"})).await.fails(400, "unknown_environment");
    api.post(&resume, json!({"noEnv": true})).await.succeeds(202, "sandbox.resuming");
    api.wait_for(&id, "ready").await;
    assert_eq!(stdout(&api, &id, "echo \"$A|$B\"; ls config").await, "|own\n");
    assert_eq!(shown(&api, &id).await["environment"], Value::Null);
}

#[tokio::test]
async fn flags_say_what_is_passed_on() {
    let server = MockServer::start();
    let api = Api::of(&server);
    api.post("/environments", json!({"name": "ci"})).await.succeeds(200, "environment.created");
    let ci = path_of(&api, "ci").await;
    let contents = json!({"envContents": "A=1", "secretFiles": [{"path": "key", "contents": "hush"}]});
    api.call("PUT", &ci, contents).await.succeeds(200, "environment.updated");
    let look = async || {
        let id = api.sandbox(json!({"environment": "ci"})).await;
        let line = "echo \"${A-none} $(cat key 2>/dev/null) ${SANDBOXER_TOKEN:+token}\"";
        stdout(&api, &id, line).await.trim().to_owned()
    };
    assert_eq!(look().await, "1 hush token");
    api.call("PUT", &ci, json!({"passSecrets": false})).await.succeeds(200, "environment.updated");
    assert_eq!(look().await, "none  token");
    // The key that it has does not hand out what it is not given.
    let closed = api.sandbox(json!({"environment": "ci"})).await;
    let own = Api::with_key(&server.url(), &stdout(&api, &closed, "printf %s $SANDBOXER_TOKEN").await);
    own.get(&format!("/sandboxes/{closed}")).await.succeeds(200, "sandbox.info");
    for path in ["/environments", "/secrets", "/repos"] {
        own.get(path).await.fails(403, "forbidden");
    }
    api.post(&format!("/sandboxes/{closed}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&closed, "archived").await;
    let resume = async |name: &str| {
        own.post(&format!("/sandboxes/{closed}/resume"), json!({"environment": name})).await
    };
    resume("base").await.fails(400, "unknown_environment");
    resume("ci").await.succeeds(202, "sandbox.resuming");
    let key = json!({"passSecrets": true, "passSandboxCredentials": false});
    api.call("PUT", &ci, key).await.succeeds(200, "environment.updated");
    assert_eq!(look().await, "1 hush");
    let third = json!({"safeForThirdParties": true, "passSandboxCredentials": true});
    api.call("PUT", &ci, third).await.succeeds(200, "environment.updated");
    assert_eq!(look().await, "none");
}

#[tokio::test]
async fn an_upgrade_moves_sandboxes_and_wipes_what_the_latest_version_lacks() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let base = path_of(&api, "base").await;
    for path in ["old/key", "kept"] {
        let file = json!({"path": path, "contents": "one"});
        api.call("PUT", &format!("{base}/secret-files"), file).await.succeeds(200, "environment.updated");
    }
    let ids = [api.sandbox(json!({})).await, api.sandbox(json!({})).await, api.sandbox(json!({})).await];
    let [live, stopped, cut_off] = &ids;
    api.post(&format!("/sandboxes/{stopped}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(stopped, "archived").await;
    let gone = api.call("DELETE", &format!("{base}/secret-files?path=old%2Fkey"), json!({})).await;
    gone.succeeds(200, "environment.updated");
    let file = json!({"path": "kept", "contents": "two"});
    let latest = api.call("PUT", &format!("{base}/secret-files"), file).await;
    let latest = latest.succeeds(200, "environment.updated")["versionId"].clone();
    let see = "cat kept; ls old";
    assert_eq!(stdout(&api, live, see).await, "onekey\n");

    let upgrade = format!("{base}/upgrade");
    let none = api.post(&upgrade, json!({"agentIds": []})).await.succeeds(200, "environment.upgraded");
    assert_eq!((&none["upgraded"], &none["failed"]), (&json!(0), &json!(0)));
    server.world().set_scenario_for(cut_off, Scenario::Unreachable, true).unwrap();
    let moved = api.post(&upgrade, json!({})).await.succeeds(200, "environment.upgraded");
    for (field, value) in [("upgraded", 2), ("upgradedLive", 1), ("upgradedStopped", 1), ("failed", 1)] {
        assert_eq!(moved[field], value, "{field}: {moved}");
    }
    assert_eq!(moved["latestVersionId"], latest);
    assert_eq!(stdout(&api, live, see).await, "two");
    api.post(&format!("/sandboxes/{stopped}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    api.wait_for(stopped, "ready").await;
    assert_eq!(stdout(&api, stopped, see).await, "two");
    let versions: Vec<_> = [shown(&api, live).await, shown(&api, stopped).await, shown(&api, cut_off).await]
        .map(|it| it["environmentVersion"].clone())
        .into();
    assert_eq!(versions, [json!(5), json!(5), json!(3)]);

    server.world().set_scenario_for(cut_off, Scenario::Unreachable, false).unwrap();
    let only = json!({"agentIds": [cut_off]});
    let moved = api.post(&upgrade, only).await.succeeds(200, "environment.upgraded");
    assert_eq!((&moved["upgraded"], &moved["upgradedLive"]), (&json!(1), &json!(1)));
    assert_eq!(stdout(&api, cut_off, see).await, "two");
}

#[tokio::test]
async fn of_writers_at_once_each_gets_a_version_of_its_own() {
    let (_server, api) = scripted();
    let base = path_of(&api, "base").await;
    let calls: Vec<_> = (0..16)
        .map(|n| {
            let (api, path) = (api.clone(), format!("{base}/vars/V{n}"));
            tokio::spawn(async move { api.call("PUT", &path, json!({"value": "x"})).await })
        })
        .collect();
    let mut numbers = Vec::new();
    for call in calls {
        let set = guarded(call).await.unwrap().succeeds(200, "environment.updated");
        numbers.push(set["versionNumber"].as_u64().unwrap());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (2..18).collect::<Vec<_>>());
    let base = named(&api, "base").await;
    assert_eq!(base["envContents"].as_str().unwrap().lines().count(), 16);

    let calls: Vec<_> = (0..8)
        .map(|_| {
            let api = api.clone();
            tokio::spawn(async move { api.post("/environments", json!({"name": "one"})).await.status })
        })
        .collect();
    let mut made = 0;
    for call in calls {
        made += usize::from(guarded(call).await.unwrap() == 200);
    }
    assert_eq!(made, 1);
}

const ENVIRONMENTS: &str = r#"
[[environments]]
name = "shared"
organisation = "Acme"
env = "FROM=acme"
[[environments]]
name = "base"
account = "alice"
env = "FROM=alice"
secret_files = [{ path = "key", contents = "hush" }]
"#;

#[tokio::test]
async fn an_organisation_shares_environments_that_its_owners_change() {
    let server = running(&[&people(["alice", "bob", "eve"]), ACME, ENVIRONMENTS].concat());
    let [alice, bob, eve] = with_keys_of(&server, ["alice", "bob", "eve"]);
    let listed = bob.get("/environments?org=Acme").await.succeeds(200, "environments.list");
    let names: Vec<_> =
        listed["environments"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, [json!("base"), json!("shared")]);
    let id = listed["environments"][1]["id"].as_str().unwrap();
    eve.get("/environments?org=Acme").await.fails(403, "not_org_member");
    eve.call("PUT", &format!("/environments/{id}/vars/A"), json!({"value": "x"}))
        .await
        .fails(404, "not_found");
    // Without the query it is the caller's own that are meant, whatever the header says.
    let own = bob.request("GET", "/environments").header("X-Sandboxer-Org", "Acme");
    let own = bob.send(own).await.succeeds(200, "environments.list");
    assert_eq!(own["environments"].as_array().unwrap().len(), 1);
    let path = format!("/environments/{id}/vars/FROM?org=Acme");
    bob.call("PUT", &path, json!({"value": "bob"})).await.fails(403, "forbidden");
    alice.call("PUT", &path, json!({"value": "us"})).await.succeeds(200, "environment.updated");

    bob.post("/sandboxes", json!({"environment": "shared"})).await.fails(400, "unknown_environment");
    let sandbox = bob.sandbox(json!({"environment": "shared", "org": "Acme"})).await;
    assert_eq!(stdout(&bob, &sandbox, "echo $FROM").await, "us\n");
    let named = bob.sandbox(json!({"environment": id, "org": "Acme"})).await;
    assert_eq!(shown(&bob, &named).await["environment"], "shared");

    // What was shared passes nothing of its creator's own on.
    let sandbox = alice.sandbox(json!({"org": "Acme"})).await;
    assert_eq!(stdout(&alice, &sandbox, "echo $FROM; ls").await, "alice\nkey\n");
    alice.post(&format!("/sandboxes/{sandbox}/share"), json!({})).await.succeeds(200, "sandbox.shared");
    alice.post(&format!("/sandboxes/{sandbox}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    alice.wait_for(&sandbox, "archived").await;
    alice.post(&format!("/sandboxes/{sandbox}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    alice.wait_for(&sandbox, "ready").await;
    assert_eq!(stdout(&bob, &sandbox, "echo \"$FROM\"; ls").await, "\n");
}
