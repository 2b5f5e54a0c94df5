//! Repositories: listed as far as the world has them, selected, and checked out where the world says from where.

use std::{path::Path, process::Command};

use sandboxer_mock_server::{MockServer, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};

use crate::http::{Api, until};

const WORLD: &str = r#"
[[repositories]]
full_name = "local/notes"
id = 10
[[repositories]]
full_name = "acme/Web"
id = 20
private = true
description = "The site"
[[repositories]]
full_name = "acme/api"
id = 30
[[repositories]]
full_name = "acme/worker"
id = 40
[[accounts]]
login = "bob"
[[keys]]
secret = "key-local"
[[keys]]
secret = "key-bob"
account = "bob"
"#;

fn names(page: &Value) -> Vec<String> {
    let installations = page["installations"].as_array().unwrap().iter();
    let all = installations.flat_map(|it| it["repositories"].as_array().unwrap());
    all.map(|it| it["fullName"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn repositories_are_listed_by_page_and_selected() {
    let world = WorldSeed::from_toml(WORLD).unwrap();
    let server = MockServer::builder().world(world).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let list = async |query: &str| api.get(&format!("/repos{query}")).await.succeeds(200, "repos.list");

    let all = list("?sync=true").await;
    assert_eq!(names(&all), ["acme/worker", "acme/api", "acme/Web", "local/notes"]);
    assert_eq!(all["pageInfo"], json!({"nextCursor": null, "hasMore": false, "limit": 100}));
    let acme = &all["installations"][0];
    assert_eq!((&acme["accountLogin"], &acme["type"]), (&json!("acme"), &json!("Organization")));
    let web = &acme["repositories"][2];
    assert_eq!(
        (&web["databaseId"], &web["name"], &web["private"]),
        (&json!("20"), &json!("Web"), &json!(true))
    );
    assert_eq!(all["installations"][1]["type"], "User");

    for (sort, wanted) in [
        ("asc", ["local/notes", "acme/Web", "acme/api", "acme/worker"]),
        ("desc", ["acme/worker", "acme/api", "acme/Web", "local/notes"]),
    ] {
        let first = list(&format!("?limit=3&sort={sort}")).await;
        assert_eq!(names(&first), wanted[..3]);
        let cursor = first["pageInfo"]["nextCursor"].as_str().unwrap();
        let rest = api.request("GET", "/repos").query(&[("limit", "3"), ("sort", sort), ("cursor", cursor)]);
        let rest = api.send(rest).await.succeeds(200, "repos.list");
        assert_eq!(names(&rest), wanted[3..]);
        assert_eq!(rest["pageInfo"]["hasMore"], false);
    }
    assert_eq!(names(&list("?q=WEB").await), ["acme/Web"]);
    assert_eq!(names(&list("?cursor=nonsense&limit=1").await), ["acme/worker"]);
    assert!(names(&list("?selected=true").await).is_empty());
    api.get("/repos?limit=0").await.fails(400, "invalid_limit");

    let select = json!({"repositoryId": "20"});
    let selected = api.post("/repos", select).await.succeeds(200, "repos.updated");
    assert_eq!(selected["selectedRepositories"][0]["baseBranch"], "main");
    let select = json!({"repositoryId": "20", "baseBranch": "dev"});
    let again = api.post("/repos", select).await.succeeds(200, "repos.updated");
    assert_eq!(again["selectedRepositories"].as_array().unwrap().len(), 1);
    assert_eq!(again["selectedRepositories"][0]["baseBranch"], "dev");
    assert_ne!(again["environmentId"], selected["environmentId"]);
    for unknown in ["99", "020", "x"] {
        api.post("/repos", json!({"repositoryId": unknown})).await.fails(404, "repository_not_found");
    }
    let listed = list("?selected=true").await;
    assert_eq!(names(&listed), ["acme/Web"]);
    assert_eq!(listed["selectedRepositories"], again["selectedRepositories"]);
    assert_eq!(listed["environmentId"], again["environmentId"]);

    let path = format!("/environments/{}", listed["subenvironmentId"].as_str().unwrap());
    let add = json!({"repositoryId": "30", "baseBranch": "next"});
    let added = api.post(&format!("{path}/repos"), add).await.succeeds(200, "environment.updated");
    assert_eq!(added["versionNumber"], 4);
    api.call("DELETE", &format!("{path}/repos/20"), json!({})).await.succeeds(200, "environment.updated");
    api.call("DELETE", &format!("{path}/repos/20"), json!({})).await.fails(404, "not_found");
    let replace =
        json!({"repositories": [{"repositoryId": "40", "setupScript": "make", "setupBlocking": true}]});
    let replaced = api.call("PUT", &path, replace).await.succeeds(200, "environment.updated");
    let left = &replaced["environment"]["selectedRepositories"];
    assert_eq!((left.as_array().unwrap().len(), &left[0]["setupScript"]), (1, &json!("make")));
}

#[tokio::test]
async fn an_account_without_repositories_is_not_connected() {
    let world = WorldSeed::from_toml(WORLD).unwrap();
    let server = MockServer::builder().world(world).runner(RunnerKind::Scripted).start().unwrap();
    let bob = Api::with_key(&server.url(), "key-bob");
    bob.get("/repos").await.fails(409, "github_not_connected");
    bob.post("/repos", json!({"repositoryId": "20"})).await.fails(409, "github_not_connected");
}

fn git(folder: &Path, arguments: &[&str]) {
    let who = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    let done = Command::new("git").arg("-C").arg(folder).args(who).args(arguments).output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[tokio::test]
async fn sandboxes_bring_their_repositories_along() {
    let folder = tempfile::tempdir().unwrap();
    let (code, plain) = (folder.path().join("code"), folder.path().join("plain"));
    std::fs::create_dir_all(&code).unwrap();
    std::fs::create_dir_all(&plain).unwrap();
    std::fs::write(plain.join("note"), "plain\n").unwrap();
    git(&code, &["init", "--quiet", "--initial-branch=main"]);
    std::fs::write(code.join("file"), "main\n").unwrap();
    git(&code, &["add", "."]);
    git(&code, &["commit", "--quiet", "-m", "one"]);
    git(&code, &["checkout", "--quiet", "-b", "dev"]);
    std::fs::write(code.join("file"), "dev\n").unwrap();
    git(&code, &["commit", "--quiet", "-am", "two"]);
    let world = format!(
        r#"
        [[repositories]]
        full_name = "acme/code"
        path = "{}"
        private = true
        [[repositories]]
        full_name = "acme/plain"
        path = "{}"
        [[repositories]]
        full_name = "acme/elsewhere"
        [[environments]]
        name = "base"
        env = "A=1"
        repositories = [
            {{ full_name = "acme/code", branch = "dev", setup_script = "echo $A $PWD > ran", setup_blocking = true }},
            {{ full_name = "acme/plain", setup_script = "echo later > ran" }},
            {{ full_name = "acme/elsewhere" }},
        ]
        "#,
        code.display(),
        plain.display()
    );
    let server = MockServer::builder().world(WorldSeed::from_toml(&world).unwrap()).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let out = api.exec(&id, "cat code/file code/ran plain/note; ls; test -w code/file && echo mine").await;
    // Where commands are not isolated, their home is a folder of this machine.
    let home = api.exec(&id, "printf %s \"$HOME\"").await["stdout"].as_str().unwrap().to_owned();
    assert_eq!(out["stdout"], format!("dev\n1 {home}/code\nplain\ncode\nplain\nmine\n"), "{out}");
    let config =
        api.exec(&id, "cat code/.git/config code/.git/HEAD").await["stdout"].as_str().unwrap().to_owned();
    assert!(config.contains("https://github.com/acme/code.git") && config.ends_with("ref: refs/heads/dev\n"));
    until(async || api.exec(&id, "cat plain/ran").await["stdout"] == "later\n").await;

    // Without the sign-in at GitHub, only what anybody can read.
    let base = api.get("/environments").await.body["environments"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/environments/{base}");
    api.call("PUT", &path, json!({"passGithub": false})).await.succeeds(200, "environment.updated");
    let id = api.sandbox(json!({})).await;
    assert_eq!(api.exec(&id, "ls").await["stdout"], "plain\n");
}

#[tokio::test]
async fn a_stop_or_a_deletion_does_not_wait_for_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let world = |blocking: bool| {
        let repository = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            format!("[[repositories]]\nfull_name = \"acme/{name}\"\npath = \"{}\"\n", path.display())
        };
        let wait = format!(r#"setup_script = "touch ../begun; sleep 600", setup_blocking = {blocking}"#);
        let next = format!(r#"setup_script = "touch ../late", setup_blocking = {blocking}"#);
        format!(
            r#"
            {}
            {}
            [[environments]]
            name = "base"
            repositories = [{{ full_name = "acme/one", {wait} }}, {{ full_name = "acme/two", {next} }}]
            "#,
            repository("one"),
            repository("two"),
        )
    };
    for (blocking, state) in [(true, "cloning"), (false, "ready")] {
        let world = WorldSeed::from_toml(&world(blocking)).unwrap();
        let server = MockServer::builder().world(world).start().unwrap();
        let api = Api::of(&server);
        let mut begun = Vec::new();
        for _ in 0..2 {
            let body = json!({"setupScript": "touch late"});
            let created = api.post("/sandboxes", body).await.succeeds(202, "sandbox.created");
            let id = created["sandbox"]["id"].as_str().unwrap().to_owned();
            let home = server.world().folder(&id).join("home/user");
            until(async || home.join("begun").exists()).await;
            assert_eq!(api.state(&id).await, state);
            begun.push((id, home));
        }
        let [(stopped, home), (deleted, gone)] = &begun[..] else { unreachable!() };
        let path = format!("/sandboxes/{stopped}");
        let stopping = api.post(&format!("{path}/stop"), json!({})).await;
        stopping.succeeds(202, "sandbox.stopping");
        api.wait_for(stopped, "archived").await;
        // What has not begun does not begin in a sandbox that is stopped.
        let status = if blocking { "pending" } else { "failed" };
        until(async || api.get(&path).await.body["sandbox"]["setupStatus"] == status).await;
        assert!(!home.join("late").exists());

        let deleting = api.delete(deleted).await.succeeds(202, "sandbox.deleting");
        let operation = format!("/deletion-operations/{}", deleting["operation"]["id"].as_str().unwrap());
        until(async || api.get(&operation).await.body["operation"]["status"] == "completed").await;
        assert!(!gone.exists());
    }
}
