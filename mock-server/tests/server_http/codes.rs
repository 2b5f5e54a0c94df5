//! Codes that many operations share, at every operation that lists them.

use std::{future::pending, time::Duration};

use reqwest::RequestBuilder;
use sandboxer::{Operation, clock::ManualClock, operations::ERROR_CODES};
use sandboxer_mock_server::{MockServer, Scenario, SessionSeed, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};

use crate::{
    asks::{QUERY, body_of, path_to},
    http::{Answer, Api},
    worlds::{self, TWINS},
};

/// The operations that list a code; streaming faces are carried out as what they are faces of.
fn listing(code: &str) -> Vec<Operation> {
    let lists = |operation: &Operation| operation.info().errors.contains(&code);
    let faces = [Operation::CommandStream, Operation::EventsStream];
    let found: Vec<_> =
        Operation::ALL.iter().copied().filter(|it| lists(it) && !faces.contains(it)).collect();
    assert!(!found.is_empty(), "{code}");
    found
}

/// Calls operations for a sandbox.
struct Ask<'a> {
    api: &'a Api,
    sandbox: &'a str,
    process: &'a str,
}

impl<'a> Ask<'a> {
    fn of(api: &'a Api, sandbox: &'a str) -> Self {
        Self { api, sandbox, process: "1" }
    }

    fn bare(&self, operation: Operation) -> RequestBuilder {
        let path = path_to(operation, self.sandbox, self.process);
        self.api.request(operation.info().method, &format!("{path}{QUERY}"))
    }

    async fn answer(&self, operation: Operation) -> Answer {
        self.api.send(self.bare(operation).json(&body_of(operation, self.sandbox))).await
    }
}

#[track_caller]
fn fails(operation: Operation, answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.code()), (status, code), "{operation}: {}", answer.body);
    answer.fails(status, code);
}

fn scripted() -> MockServer {
    MockServer::builder().runner(RunnerKind::Scripted).start().unwrap()
}

/// A server with a person signed in, for whom no operation is closed.
fn signed_in() -> (MockServer, Api) {
    let mut world = WorldSeed::default();
    world.sessions.push(SessionSeed::new("somebody"));
    let server = MockServer::builder().world(world).runner(RunnerKind::Scripted).start().unwrap();
    let person = Api::with_key(&server.url(), "somebody");
    (server, person)
}

#[tokio::test]
async fn an_id_that_nothing_has_finds_nothing() {
    let (_server, person) = signed_in();
    let ask = Ask::of(&person, "bx_22222222");
    for operation in listing("not_found") {
        fails(operation, &ask.answer(operation).await, 404, "not_found");
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_is_refused() {
    let (_server, person) = signed_in();
    let ask = Ask::of(&person, "bx_22222222");
    for operation in listing("invalid_json") {
        let answer = person.send(ask.bare(operation).body("{not json")).await;
        fails(operation, &answer, 400, "invalid_json");
    }
}

#[tokio::test]
async fn an_organisation_is_one_that_the_caller_is_in_and_no_other() {
    let seed = "
        [[accounts]]
        login = 'alice'
        [[organisations]]
        name = 'Acme'
        [[sessions]]
        secret = 'alice-is-here'
        account = 'alice'
    ";
    let server = worlds::scripted(&(seed.to_owned() + TWINS)).start().unwrap();
    let person = Api::with_key(&server.url(), "alice-is-here");
    for operation in listing("not_org_member") {
        for (organisation, status, code) in [("Acme", 403, "not_org_member"), ("TWINS", 409, "ambiguous_org")]
        {
            let request = Ask::of(&person, "bx_22222222").bare(operation);
            let answer = person.send(request.header("X-Sandboxer-Org", organisation)).await;
            fails(operation, &answer, status, code);
        }
    }
}

#[tokio::test]
async fn a_stopped_sandbox_has_no_machine() {
    let server = scripted();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let process = api.start(&id, "x").await["processId"].to_string();
    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    let ask = Ask { process: &process, ..Ask::of(&api, &id) };
    let code = ERROR_CODES.iter().find(|known| known.code == "machine_not_running").unwrap();
    let ways_in = [Operation::HostPort, Operation::SshKey, Operation::Desktop];
    for operation in listing(code.code) {
        let answer = ask.answer(operation).await;
        let status = if ways_in.contains(&operation) { 400 } else { 409 };
        fails(operation, &answer, status, code.code);
        let documented = code.other_statuses.iter().find(|(at, _)| *at == operation);
        assert_eq!(documented.map_or(code.status, |(_, status)| *status), status, "{operation}");
        assert_eq!(answer.body["error"]["details"]["state"], "archived", "{operation}");
    }
}

#[tokio::test]
async fn a_broken_sandbox_takes_no_calls() {
    let server = scripted();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    server.world().break_sandbox(&id, "the machine is gone").unwrap();
    // A resume is what brings it back.
    for operation in listing("sandbox_not_ready").into_iter().filter(|it| *it != Operation::Resume) {
        let answer = Ask::of(&api, &id).answer(operation).await;
        fails(operation, &answer, 409, "sandbox_not_ready");
        assert_eq!(answer.body["error"]["details"]["state"], "error", "{operation}");
    }
    api.post(&format!("/sandboxes/{id}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
}

#[tokio::test]
async fn a_sandbox_that_starts_is_waited_for() {
    let hold = Duration::from_secs(60);
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    server.world().set_boot_delay(Duration::from_secs(3000));
    let api = Api::of(&server);
    let created = api.post("/sandboxes", json!({})).await.succeeds(202, "sandbox.created");
    let id = created["sandbox"]["id"].as_str().unwrap();
    for operation in listing("sandbox_starting") {
        let ask = Ask::of(&api, id);
        let held = async {
            clock.wait_for_sleep_of(hold).await;
            clock.advance(hold);
            pending::<Answer>().await
        };
        let answer = tokio::select! {
            answer = ask.answer(operation) => answer,
            answer = held => answer,
        };
        fails(operation, &answer, 409, "sandbox_starting");
        assert_eq!(answer.headers["retry-after"], "2", "{operation}");
    }
}

#[tokio::test]
async fn nothing_reaches_a_machine_that_does_not_answer() {
    let server = scripted();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let codes = [
        (Scenario::BoatRestoring, 409, "boat_restoring", json!(true)),
        (Scenario::Restoring, 502, "sandbox_direct_failed", json!(true)),
        (Scenario::Unreachable, 502, "sandbox_direct_failed", Value::Null),
    ];
    for (scenario, status, code, retryable) in codes {
        server.world().set_scenario(scenario, true).unwrap();
        for operation in listing(code) {
            let answer = Ask::of(&api, &id).answer(operation).await;
            fails(operation, &answer, status, code);
            assert_eq!(answer.body["retryable"], retryable, "{operation}");
        }
        // That is the gateway's, whatever the machine does.
        api.post(&format!("/sandboxes/{id}/host"), json!({"port": 80})).await.succeeds(200, "port.hosted");
        server.world().set_scenario(scenario, false).unwrap();
    }
    // The sibling service has no load to tell of, and so no code for it.
    server.world().set_scenario(Scenario::BoatRestoring, true).unwrap();
    let stats = Ask::of(&api, &id).answer(Operation::Stats).await;
    fails(Operation::Stats, &stats, 502, "sandbox_direct_failed");
    assert_eq!(stats.body["message"], "sandbox_restoring");
}

#[tokio::test]
async fn a_blocked_wallet_pays_for_nothing() {
    let seed = |rest: &str| WorldSeed::from_toml(&format!("[[accounts]]\nlogin = 'bob'\n{rest}")).unwrap();
    let own = seed("[[keys]]\nsecret = 'sbx_live_bob'\naccount = 'bob'");
    let server = MockServer::builder().world(own).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::with_key(&server.url(), "sbx_live_bob");
    let id = api.sandbox(json!({})).await;
    let stopped = api.sandbox(json!({})).await;
    api.post(&format!("/sandboxes/{stopped}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&stopped, "archived").await;
    server.world().plant(&seed("blocked = true")).unwrap();
    for operation in listing("billing_required") {
        let sandbox = if operation == Operation::Resume { &stopped } else { &id };
        let answer = Ask::of(&api, sandbox).answer(operation).await;
        fails(operation, &answer, 402, "billing_required");
        assert!(answer.body["error"]["details"]["billingUrl"].is_string(), "{operation}");
    }
    assert_eq!(api.get(&format!("/sandboxes/{id}/host")).await.body["ports"], json!([]));
}
