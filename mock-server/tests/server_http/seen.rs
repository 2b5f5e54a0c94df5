//! The file of what was answered, which the gate looks at.

use std::{
    collections::BTreeMap,
    env, fs,
    process::{Command, Stdio},
};

use sandboxer::Operation;
use sandboxer_mock_server::{MockServer, Reply, RunnerKind, Scenario};
use serde_json::json;

use crate::http::Api;

#[tokio::test]
async fn real_answers_beside_scripted_ones() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    server.on(Operation::ListOrganizations).reply(Reply::code(409, "too_soon", "not now"));
    api.get("/orgs").await.fails(409, "too_soon");
    for _ in 0..2 {
        api.get("/me").await.succeeds(200, "user.info");
    }
    api.get("/sandboxes/bx_22222222").await.fails(404, "not_found");
    api.get("/nothing").await.fails(404, "not_found");
    server.on(Operation::Limits).reply(Reply::drop_answer());
    api.request("GET", "/limits").send().await.unwrap_err();

    let id = api.sandbox(json!({})).await;
    server.world().set_scenario(Scenario::Restoring, true).unwrap();
    let stream = api.request("POST", &format!("/sandboxes/{id}/commands"));
    let frames = stream.json(&json!({"command": "true", "stream": true})).send().await.unwrap();
    assert!(frames.text().await.unwrap().contains("sandbox_direct_failed"));
}

#[test]
fn each_process_notes_once_what_it_really_answered() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("seen");
    let run = || {
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["--exact", "seen::real_answers_beside_scripted_ones"]).env("SANDBOXER_SEEN", &file);
        // Its results are not this run's.
        again.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    for mut process in [run(), run()] {
        assert!(process.wait().unwrap().success());
    }
    let text = fs::read_to_string(&file).unwrap();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for line in text.lines() {
        *counts.entry(line).or_default() += 1;
    }
    let lines: Vec<(&str, u32)> = counts.into_iter().collect();
    assert_eq!(
        lines,
        [
            ("- 404 not_found", 2),
            ("commandStream 200 -", 2),
            ("commandStream 200 sandbox_direct_failed", 2),
            ("create 202 -", 2),
            ("get 200 -", 2),
            ("get 404 not_found", 2),
            ("limits 200 -", 2),
            ("me 200 -", 2),
        ]
    );
}
