//! What must hold when clients go away, keys reach too far, commands are huge, or the server is killed.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use sandboxer::Operation;
use sandboxer_mock_server::{MockServer, Reply, WorldSeed, runner::RunnerKind};
use serde_json::json;

use crate::http::{Api, until};

#[tokio::test]
async fn a_streaming_command_whose_answer_was_lost_runs_to_its_end() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    server.on(Operation::CommandStream).reply(Reply::drop_answer());
    // More than is kept for a reader that is slow: without one, the command must not wait.
    let body = json!({"command": "head -c 30000000 /dev/zero; echo whole > end", "stream": true});
    let lost = api.request("POST", &format!("/sandboxes/{id}/commands")).json(&body).send().await;
    assert!(lost.is_err());
    until(async || api.exec(&id, "cat end 2>/dev/null").await["stdout"] == "whole\n").await;
}

#[tokio::test]
async fn a_command_may_be_as_long_as_the_document_says() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    for length in [100_000, 200_000, 1_048_000] {
        let text = "é".repeat(length / 2 - 100);
        let command = format!(
            "printf %s '{text}' | wc -c; echo \"[$1$_sandboxer_line]\" $#; a='1 2'; set -- $a; echo $#; exit 3"
        );
        let done = api.exec(&id, &command).await;
        assert_eq!(done["stdout"], format!("{}\n[] 0\n2\n", text.len()), "{length}: {}", done["stderr"]);
        assert_eq!(done["exitCode"], 3);
    }
}

#[tokio::test]
async fn the_key_is_judged_before_the_query_and_an_odd_organisation_is_refused() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let stranger = Api::with_key(&server.url(), "no-key");
    stranger.get("/sandboxes?cursor=%ff").await.fails(401, "unauthorized");
    api.get("/sandboxes?cursor=%ff").await.fails(400, "invalid_request");
    for name in [&b"Zo\xc3\xab"[..], b"\xff"] {
        let value = reqwest::header::HeaderValue::from_bytes(name).unwrap();
        let request = api.request("POST", "/sandboxes").header("X-Sandboxer-Org", value);
        api.send(request).await.fails(403, "not_org_member");
    }
    assert_eq!(api.get("/sandboxes").await.body["sandboxes"], json!([]));
}

#[tokio::test]
async fn a_key_that_is_limited_to_sandboxes_makes_none() {
    let world =
        WorldSeed::from_toml("[[keys]]\nsecret = 'all'\n[[keys]]\nsecret = 'few'\nsandboxes = ['bx_none']")
            .unwrap();
    let server = MockServer::builder().world(world).runner(RunnerKind::Scripted).start().unwrap();
    Api::with_key(&server.url(), "few").post("/sandboxes", json!({})).await.fails(403, "forbidden");
    assert_eq!(Api::with_key(&server.url(), "all").get("/sandboxes").await.body["sandboxes"], json!([]));
}

#[tokio::test]
async fn a_fork_of_a_sandbox_that_is_deleted_is_whole_or_refused() {
    let server = MockServer::builder().runner(RunnerKind::Process).start().unwrap();
    let api = Api::of(&server);
    for _ in 0..8 {
        let id = api.sandbox(json!({})).await;
        api.exec(&id, "mkdir d; i=0; while [ $i -lt 300 ]; do echo $i > d/$i; i=$((i+1)); done").await;
        let path = format!("/sandboxes/{id}/fork");
        let (forked, deleted) = tokio::join!(api.post(&path, json!({})), api.delete(&id));
        deleted.succeeds(202, "sandbox.deleting");
        if forked.status == 404 {
            continue;
        }
        let copy = forked.succeeds(202, "sandbox.forking")["id"].as_str().unwrap().to_owned();
        api.wait_for(&copy, "ready").await;
        assert_eq!(api.exec(&copy, "ls d | wc -l | tr -d ' '").await["stdout"], "300\n");
    }
}

#[tokio::test]
async fn ended_commands_hold_no_files_of_the_server() {
    let Ok(server) = MockServer::builder().runner(RunnerKind::Isolated).start() else { return };
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    // Marks of commands are the only files of that kind that anybody here opens.
    let marks = || {
        let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        all.filter(|fd| {
            std::fs::read_link(fd.path()).is_ok_and(|to| to.to_string_lossy().starts_with("cgroup:"))
        })
        .count()
    };
    for _ in 0..80 {
        api.exec(&id, "true").await;
    }
    // Other tests of this program run beside this one.
    until(async || marks() < 40).await;
}

#[tokio::test]
async fn a_killed_server_knows_its_background_commands_again() {
    let data = tempfile::tempdir().unwrap();
    let serve = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandboxer-mock-server"));
        command.args(["--api-key", "k", "--data-dir"]).arg(data.path()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("listening on ").unwrap().to_owned();
        (child, Api::with_key(&url, "k"))
    };
    let (mut child, api) = serve();
    let id = api.sandbox(json!({})).await;
    let started = api.start(&id, "sleep 2.625").await;
    child.kill().unwrap();
    child.wait().unwrap();

    let (mut child, api) = serve();
    let path = format!("/sandboxes/{id}/commands/{}", started["processId"]);
    let status = api.get(&path).await.succeeds(200, "command.status");
    let again = api.start(&id, "true").await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((&status["status"], &status["known"]), (&json!("lost"), &json!(false)));
    assert_ne!(again["processId"], started["processId"]);
}
