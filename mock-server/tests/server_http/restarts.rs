//! What calls have made of a world's entries, after a restart with the same world file on the same folder.

use std::path::Path;

use sandboxer::webhooks::Verifier;
use sandboxer_mock_server::{MockServer, MockServerBuilder, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    http::Api,
    receiver::{Receiver, Seen},
};

/// A data folder and a world file beside it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new(world: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.say(world);
        place
    }

    fn world(&self) -> std::path::PathBuf {
        self.folder.path().join("world.toml")
    }

    /// Writes the world file anew.
    fn say(&self, world: &str) {
        std::fs::write(self.world(), world).unwrap();
    }

    fn builder(&self) -> MockServerBuilder {
        let data: &Path = &self.folder.path().join("data");
        let world = WorldSeed::from_file(&self.world()).unwrap();
        MockServer::builder().world(world).data_dir(data).api_key("k").allow_loopback_targets()
    }

    fn start(&self) -> (MockServer, Api) {
        let server = self.builder().runner(RunnerKind::Scripted).start().unwrap();
        let api = Api::of(&server);
        (server, api)
    }
}

async fn end(server: MockServer) {
    tokio::task::spawn_blocking(move || server.shutdown()).await.unwrap();
}

fn verifies(secret: &str, seen: &Seen) -> bool {
    Verifier::new(secret).unwrap().verify(&seen.headers, &seen.body).is_ok()
}

#[tokio::test]
async fn webhooks_stay_as_calls_have_left_them() {
    let receiver = Receiver::start().await;
    let hook = |path: &str, more: &str| {
        format!("[[webhooks]]\nurl = '{}'\nsecret = 'whsec_of_the_world'\n{more}\n", receiver.url(path))
    };
    let world = [hook("/rotated", ""), hook("/moved", "name = 'first'"), hook("/gone", "")].concat();
    let place = Place::new(&world);
    let list = async |api: &Api| {
        let listed = api.get("/webhooks").await.succeeds(200, "webhook.list")["webhooks"].clone();
        let mut listed = listed.as_array().unwrap().clone();
        listed.sort_by_key(|hook| hook["url"].to_string());
        listed
    };
    let url = |path: &str| json!(receiver.url(path));

    let (server, api) = place.start();
    let path = |hooks: &[Value], at: usize| format!("/webhooks/{}", hooks[at]["id"].as_str().unwrap());
    let hooks = list(&api).await;
    assert_eq!(
        (&hooks[0]["url"], &hooks[1]["url"], &hooks[2]["url"]),
        (&url("/gone"), &url("/moved"), &url("/rotated"))
    );
    api.call("DELETE", &path(&hooks, 0), json!({})).await.succeeds(200, "webhook.deleted");
    let moved = json!({"url": receiver.url("/elsewhere"), "name": "second", "events": ["sandbox.error"]});
    api.call("PATCH", &path(&hooks, 1), moved).await.succeeds(200, "webhook.updated");
    let rotated = api.post(&format!("{}/rotate", path(&hooks, 2)), json!({})).await;
    let rotated = rotated.succeeds(200, "webhook.rotated")["secret"].as_str().unwrap().to_owned();
    let before = list(&api).await;
    end(server).await;

    let (server, api) = place.start();
    assert_eq!(list(&api).await, before);
    assert_eq!(before.len(), 2);
    api.sandbox(json!({})).await;
    let seen = receiver.wait_for(1).await;
    assert_eq!(seen[0].path, "/rotated");
    assert!(verifies(&rotated, &seen[0]) && !verifies("whsec_of_the_world", &seen[0]));
    // Planting it while the server runs is no other thing.
    server.world().plant(&WorldSeed::from_file(&place.world()).unwrap()).unwrap();
    assert_eq!(list(&api).await, before);
    end(server).await;

    // The world says something else about the one that was moved.
    place.say(&[hook("/rotated", ""), hook("/moved", "name = 'third'"), hook("/gone", "")].concat());
    let (_server, api) = place.start();
    let hooks = list(&api).await;
    assert_eq!(hooks.len(), 2, "{hooks:?}");
    assert_eq!((&hooks[0]["url"], &hooks[0]["name"]), (&url("/moved"), &json!("third")));
    assert_eq!((&hooks[0]["id"], &hooks[1]), (&before[0]["id"], &before[1]));
}

#[tokio::test]
async fn an_account_has_no_more_webhooks_than_it_may() {
    let place = Place::new("");
    let (server, api) = place.start();
    for number in 0..10 {
        let body = json!({"url": format!("https://hooks.example/{number}"), "events": ["sandbox.ready"]});
        api.post("/webhooks", body).await.succeeds(201, "webhook.created");
    }
    let first = api.get("/webhooks").await.body["webhooks"][0]["id"].as_str().unwrap().to_owned();
    end(server).await;
    place.say("[[webhooks]]\nurl = 'https://hooks.example/of-the-world'\nsecret = 's'");
    let urls = async |api: &Api| {
        let listed = api.get("/webhooks").await.succeeds(200, "webhook.list")["webhooks"].clone();
        let of_the_world = |hook: &&Value| hook["url"].as_str().unwrap().ends_with("of-the-world");
        let all = listed.as_array().unwrap();
        (all.len(), all.iter().filter(of_the_world).count())
    };
    let (server, api) = place.start();
    assert_eq!(urls(&api).await, (10, 0));
    api.call("DELETE", &format!("/webhooks/{first}"), json!({})).await.succeeds(200, "webhook.deleted");
    end(server).await;
    // Now that there is room it is planted.
    let (_server, api) = place.start();
    assert_eq!(urls(&api).await, (10, 1));
}

#[tokio::test]
async fn what_an_account_keeps_stays_as_calls_have_left_it() {
    let world = |switches: &str| {
        format!("[[accounts]]\nlogin = 'local'\n{switches}\n[[sessions]]\nsecret = 'somebody'\n")
    };
    let place = Place::new(&world("zero_data_retention = true"));
    let kept = async |api: &Api| {
        let kept = api.get("/account/data-retention").await.succeeds(200, "data_retention.info");
        ["enabled", "snapshotsOff", "monitoringOff"].map(|name| kept[name].as_bool().unwrap())
    };
    let (server, api) = place.start();
    assert_eq!(kept(&api).await, [true, false, false]);
    let somebody = Api::with_key(&server.url(), "somebody");
    let off = json!({"enabled": false});
    somebody.call("PATCH", "/account/data-retention", off).await.succeeds(200, "data_retention.updated");
    let id = api.sandbox(json!({})).await;
    end(server).await;

    let (server, api) = place.start();
    assert_eq!(kept(&api).await, [false, false, false]);
    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    let snapshots = api.get(&format!("/sandboxes/{id}/snapshots")).await.succeeds(200, "snapshot.list");
    assert!(!snapshots["snapshots"].as_array().unwrap().is_empty(), "{snapshots}");
    end(server).await;

    // Something else is said about one switch, and nothing else about the other.
    place.say(&world("zero_data_retention = true\nmonitoring_off = true"));
    let (server, api) = place.start();
    assert_eq!(kept(&api).await, [false, false, true]);
    end(server).await;
    for (switches, on) in [("", false), ("zero_data_retention = true", true)] {
        place.say(&world(switches));
        let (server, api) = place.start();
        assert_eq!(kept(&api).await, [on, false, true], "{switches}");
        end(server).await;
    }
}

const ENVIRONMENTS: &str = "
[[environments]]
name = 'base'
env = 'A=base'
[[environments]]
name = 'ci'
default = true
env = 'A=ci'
[[environments]]
name = 'old'
env = 'A=old'
[[environments]]
name = 'called'
";

/// Names, numbers of the latest versions, variables and which one is the default, in the order of the names.
async fn environments(api: &Api) -> Vec<(String, u64, String, bool)> {
    let listed = api.get("/environments").await.succeeds(200, "environments.list")["environments"].clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let show = |it: &Value| {
        let number = it["latestVersionNumber"].as_u64().unwrap();
        (text(&it["name"]), number, text(&it["envContents"]), it["isDefault"] == true)
    };
    let mut all: Vec<_> = listed.as_array().unwrap().iter().map(show).collect();
    all.sort_unstable();
    all
}

async fn path_of(api: &Api, name: &str) -> String {
    let listed = api.get("/environments").await.body["environments"].clone();
    let found = listed.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
    format!("/environments/{}", found["id"].as_str().unwrap())
}

fn expect(all: &[(&str, u64, &str, bool)]) -> Vec<(String, u64, String, bool)> {
    all.iter().map(|(name, number, env, first)| ((*name).into(), *number, (*env).into(), *first)).collect()
}

#[tokio::test]
async fn environments_stay_as_calls_have_left_them_and_their_versions_never_change() {
    let place = Place::new(ENVIRONMENTS);
    let open = || {
        let server = place.builder().start().unwrap();
        let api = Api::of(&server);
        (server, api)
    };
    let (server, api) = open();
    let planted = [
        ("base", 2, "A=base", false),
        ("called", 1, "", false),
        ("ci", 1, "A=ci", true),
        ("old", 1, "A=old", false),
    ];
    assert_eq!(environments(&api).await, expect(&planted));
    let change = async |api: &Api, name: &str, body: Value| {
        let path = path_of(api, name).await;
        api.call("PUT", &path, body).await.succeeds(200, "environment.updated");
    };
    let old = path_of(&api, "old").await;
    let first = api.sandbox(json!({"environment": "old"})).await;
    change(&api, "old", json!({"envContents": "A=old2"})).await;
    let second = api.sandbox(json!({"environment": "old"})).await;
    api.call("DELETE", &old, json!({})).await.succeeds(200, "environment.deleted");
    change(&api, "base", json!({"isDefault": true})).await;
    let secrets = json!({"envContents": "A=secrets"});
    api.post("/secrets", secrets).await.succeeds(200, "secrets.updated");
    change(&api, "ci", json!({"envContents": "A=ci2"})).await;
    change(&api, "called", json!({"name": "renamed", "envContents": "A=renamed"})).await;
    end(server).await;

    let left =
        [("base", 3, "A=secrets", true), ("ci", 2, "A=ci2", false), ("renamed", 2, "A=renamed", false)];
    let pinned = async |api: &Api| {
        let mut said = Vec::new();
        for id in [&first, &second] {
            said.push(api.exec(id, "printf %s $A").await["stdout"].clone());
        }
        said
    };
    for _ in 0..2 {
        let (server, api) = open();
        assert_eq!(environments(&api).await, expect(&left));
        assert_eq!(pinned(&api).await, [json!("old"), json!("old2")]);
        end(server).await;
    }

    // What the world says anew comes on top.
    place.say(
        &ENVIRONMENTS
            .replace("'A=old'", "'A=old3'")
            .replace("name = 'called'", "name = 'called'\nenv = 'A=called'"),
    );
    let (_server, api) = open();
    let now = [
        ("base", 3, "A=secrets", true),
        ("called", 3, "A=called", false),
        ("ci", 2, "A=ci2", false),
        ("old", 3, "A=old3", false),
    ];
    assert_eq!(environments(&api).await, expect(&now));
    assert_eq!(path_of(&api, "old").await, old);
    assert_eq!(pinned(&api).await, [json!("old"), json!("old2")]);
    let upgraded = api.post(&format!("{old}/upgrade"), json!({})).await.succeeds(200, "environment.upgraded");
    assert_eq!(upgraded["upgraded"], 2);
    assert_eq!(pinned(&api).await, [json!("old3"), json!("old3")]);
}

#[tokio::test]
async fn what_the_world_changes_elsewhere_leaves_an_environment_as_calls_have_left_it() {
    let sources = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        std::fs::create_dir(sources.path().join(name)).unwrap();
        std::fs::write(sources.path().join(name).join("file"), name).unwrap();
    }
    let world = |source: &str, default: &str, more: &str| {
        let path = sources.path().join(source);
        let environments = ["base", "ci"].map(|name| {
            let is_default = name == default;
            let repositories = if name == "ci" { "[{ full_name = 'acme/web' }]" } else { "[]" };
            format!(
                "[[environments]]\nname = '{name}'\nenv = 'A={name}'\ndefault = {is_default}\n\
                 repositories = {repositories}\n"
            )
        });
        let repository = "[[repositories]]\nfull_name = 'acme/web'";
        format!("{repository}\npath = '{}'\n{more}\n{}", path.display(), environments.concat())
    };
    let place = Place::new(&world("one", "ci", ""));
    let (server, api) = place.start();
    let ci = path_of(&api, "ci").await;
    let change = json!({"envContents": "A=called"});
    api.call("PUT", &ci, change).await.succeeds(200, "environment.updated");
    let left = [("base", 2, "A=base", false), ("ci", 2, "A=called", true)];
    assert_eq!(environments(&api).await, expect(&left));
    end(server).await;

    for (source, default, more) in [
        ("one", "base", ""),
        ("one", "base", "private = true\ndescription = 'The site'"),
        ("two", "base", ""),
        ("two", "ci", ""),
    ] {
        place.say(&world(source, default, more));
        let (server, api) = place.start();
        let left = [("base", 2, "A=base", default == "base"), ("ci", 2, "A=called", default == "ci")];
        assert_eq!(environments(&api).await, expect(&left), "{source} {default} {more}");
        // The folder is the one that the world names now.
        let id = api.sandbox(json!({"environment": "ci"})).await;
        let file = server.world().folder(&id).join("home/user/web/file");
        assert_eq!(std::fs::read_to_string(file).unwrap(), source);
        end(server).await;
    }

    // The default one, removed by a call, comes back when it is to be the default one again.
    place.say(&world("two", "base", ""));
    let (server, api) = place.start();
    api.call("DELETE", &ci, json!({})).await.succeeds(200, "environment.deleted");
    end(server).await;
    let (server, api) = place.start();
    assert_eq!(environments(&api).await, expect(&[("base", 2, "A=base", true)]));
    end(server).await;
    place.say(&world("two", "ci", ""));
    let (_server, api) = place.start();
    assert_eq!(environments(&api).await, expect(&[("base", 2, "A=base", false), ("ci", 3, "A=ci", true)]));
}

#[test]
fn an_entry_that_is_there_twice_is_refused() {
    let hook = "[[webhooks]]\nurl = 'https://hooks.example/in'\nsecret = 's'\n";
    let environment = "[[environments]]\nname = 'ci'\n";
    for (text, said) in [
        (hook, "webhooks[1]: url: another endpoint of the account has it"),
        (environment, "environments[1]: name: another environment of the same owner has it"),
    ] {
        let twice = format!("{text}{text}");
        assert_eq!(WorldSeed::from_toml(&twice).unwrap_err().to_string(), said);
        let other = format!("{text}{text}account = 'bob'\n[[accounts]]\nlogin = 'bob'\n");
        WorldSeed::from_toml(&other).unwrap();
    }
}
