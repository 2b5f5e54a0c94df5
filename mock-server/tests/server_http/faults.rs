//! Faults and the record, through the whole server and with the real client.

use std::{sync::Arc, time::Duration};

use sandboxer::{Create, ErrorKind, Operation, clock::ManualClock};
use sandboxer_mock_server::{
    MockServer, Reply, RunnerKind,
    faults::{End, WireFault},
    runner::{Script, ScriptedRunner},
};
use serde_json::json;

use crate::http::{Api, guarded, until};

#[tokio::test]
async fn create_survives_two_failures() {
    let server = MockServer::start();
    server.on(Operation::Create).reply(Reply::status(503)).times(2);
    let sandbox = guarded(server.client().create(Create::new())).await.unwrap();
    let tries = server.requests_to(Operation::Create);
    assert_eq!(tries.len(), 3);
    assert!(tries.iter().all(|t| t.header("idempotency-key") == tries[0].header("idempotency-key")));
    assert_eq!(tries.iter().map(|t| t.status()).collect::<Vec<_>>(), [Some(503), Some(503), Some(202)]);
    assert_eq!(guarded(sandbox.exec("echo hi")).await.unwrap().stdout_text(), "hi\n");
    assert_eq!(server.world().sandboxes().len(), 1);
}

#[tokio::test]
async fn a_dropped_answer_makes_one_sandbox_and_a_cut_command_runs_once() {
    let server = MockServer::start();
    server.on(Operation::Create).reply(Reply::drop_answer());
    let sandbox = guarded(server.client().create(Create::new())).await.unwrap();
    assert_eq!(server.world().sandboxes().len(), 1);
    server.on(Operation::Command).reply(Reply::drop_answer());
    let error = guarded(sandbox.exec("echo x >> count")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    let id = server.world().sandboxes().remove(0);
    until(async || server.world().commands(&id).len() == 1).await;
    assert_eq!(guarded(sandbox.exec("wc -l < count")).await.unwrap().stdout_text().trim(), "1");
}

#[tokio::test]
async fn the_wire_breaks_on_demand_and_heals() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    server.wire().next_connection(WireFault::AfterSent { bytes: 20, end: End::Reset });
    assert!(guarded(api.request("GET", "/me").send()).await.is_err());
    api.get("/me").await.succeeds(200, "user.info");
    server.on(Operation::Me).reply(Reply::pass().end_body_after(10, End::Cut));
    let response = guarded(api.request("GET", "/me").send()).await.unwrap();
    assert!(guarded(response.bytes()).await.is_err());
    server
        .on(Operation::Me)
        .reply(Reply::code(409, "sandbox_starting", "not yet").detail("retryable", true))
        .always();
    api.get("/me").await.fails(409, "sandbox_starting");
    server.clear_faults();
    api.get("/me").await.succeeds(200, "user.info");
    assert_eq!(server.requests_to(Operation::Me).len(), 5);
}

#[tokio::test]
async fn delays_are_slept_on_the_servers_clock() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    server.on(Operation::Me).reply(Reply::delay(Duration::from_secs(90)));
    let waiting = tokio::spawn(async move { api.get("/me").await });
    guarded(clock.wait_for_sleep_of(Duration::from_secs(90))).await;
    clock.advance(Duration::from_secs(90));
    guarded(waiting).await.unwrap().succeeds(200, "user.info");
}

#[tokio::test]
async fn http_1_and_http_2_share_the_port() {
    let server = MockServer::start();
    let http = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let request = http.get(format!("{}/me", server.url())).bearer_auth(server.api_key());
    let response = guarded(request.send()).await.unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, reqwest::Version::HTTP_2));
    let api = Api::of(&server);
    api.get("/me").await.succeeds(200, "user.info");
    let id = api.sandbox(json!({})).await;
    let request =
        http.post(format!("{}/sandboxes/{id}/commands", server.url())).bearer_auth(server.api_key());
    let response =
        guarded(request.json(&json!({"command": "echo two", "stream": true})).send()).await.unwrap();
    let text = guarded(response.text()).await.unwrap();
    assert!(text.contains("two\\n") && text.trim_end().ends_with('}'), "{text}");
}

#[tokio::test]
async fn commands_can_be_scripted() {
    let clock = ManualClock::new();
    let runner = ScriptedRunner::new(clock.shared());
    runner.on(
        "make",
        Script::new().stdout("working\n").pause(Duration::from_secs(20)).stderr("failed\n").exit(2),
    );
    runner.on("eat", Script::new().out_of_memory());
    let server = MockServer::builder().clock(clock.shared()).own_runner(Arc::new(runner)).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let making = tokio::spawn({
        let (api, id) = (api.clone(), id.clone());
        async move { api.exec(&id, "make test").await }
    });
    guarded(clock.wait_for_sleep_of(Duration::from_secs(20))).await;
    clock.advance(Duration::from_secs(20));
    let done = guarded(making).await.unwrap();
    assert_eq!((&done["stdout"], &done["stderr"]), (&json!("working\n"), &json!("failed\n")));
    assert_eq!(done["exitCode"], 2);
    assert_eq!(api.exec(&id, "other").await["exitCode"], 127);
    let eaten = api.exec(&id, "eat").await;
    assert_eq!(
        (&eaten["success"], &eaten["exitCode"], &eaten["signal"], &eaten["oomKilled"]),
        (&json!(false), &json!(null), &json!("SIGKILL"), &json!(true))
    );
    let eaten = api.start(&id, "eat").await;
    let process = format!("/sandboxes/{id}/commands/{}", eaten["processId"]);
    until(async || api.get(&process).await.body["status"] == "exited").await;
    assert_eq!(api.get(&process).await.body["oomKilled"], true);
}
