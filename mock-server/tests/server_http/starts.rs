//! What a start may be refused with, whether it is a create, a fork or a resume.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, Scenario, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};

use crate::http::{Answer, Api, guarded, until};

/// The organisation on a plan, with more to say of it and of its one member.
fn seed(plan: &str, of_organisation: &str, of_member: &str) -> WorldSeed {
    let text = format!(
        "
        [[plans]]
        key = 'wide'
        active_sandboxes = 100
        [[plans]]
        key = 'narrow'
        active_sandboxes = 100
        types = ['small', 'default']
        [[plans]]
        key = 'one'
        active_sandboxes = 1
        [[plans]]
        key = 'slow'
        active_sandboxes = 100
        starts_per_minute = 2
        [[accounts]]
        login = 'bob'
        [[organisations]]
        name = 'Acme'
        id = 'team_acme'
        plan = '{plan}'
        {of_organisation}
        members = [{{ account = 'bob' {of_member} }}]
        [[keys]]
        secret = 'sbx_live_bob'
        account = 'bob'
        "
    );
    WorldSeed::from_toml(&text).unwrap()
}

/// Somebody with a sandbox that is up and one that is stopped; the organisation pays.
struct Starter {
    api: Api,
    up: String,
    down: String,
}

impl Starter {
    async fn of(server: &MockServer) -> Self {
        let api = Api::with_key(&server.url(), "sbx_live_bob");
        let up = api.sandbox(json!({"org": "Acme"})).await;
        let down = api.sandbox(json!({"org": "Acme"})).await;
        api.post(&format!("/sandboxes/{down}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
        api.wait_for(&down, "archived").await;
        Self { api, up, down }
    }

    /// Starts one sandbox in each way there is.
    async fn each(&self, body: Value) -> [Answer; 3] {
        let mut create = body.clone();
        create["org"] = "Acme".into();
        [
            self.api.post("/sandboxes", create).await,
            self.api.post(&format!("/sandboxes/{}/fork", self.up), body.clone()).await,
            self.api.post(&format!("/sandboxes/{}/resume", self.down), body).await,
        ]
    }

    async fn all_fail(&self, body: Value, status: u16, code: &str) {
        for answer in self.each(body).await {
            answer.fails(status, code);
        }
    }
}

#[tokio::test]
async fn every_start_is_refused_alike() {
    let clock = ManualClock::new();
    let server = MockServer::builder()
        .clock(clock.shared())
        .world(seed("wide", "", ""))
        .runner(RunnerKind::Scripted)
        .start()
        .unwrap();
    let world = server.world();
    let starter = Starter::of(&server).await;
    let (plain, largest, fast) = (json!({}), json!({"type": "xlarge"}), json!({"failFast": true}));

    world.plant(&seed("narrow", "", "")).unwrap();
    starter.all_fail(largest.clone(), 403, "machine_class_plan_required").await;
    world.plant(&seed("one", "", "")).unwrap();
    starter.all_fail(plain.clone(), 429, "limit_reached").await;
    world.plant(&seed("slow", "", "")).unwrap();
    starter.all_fail(plain.clone(), 429, "rate_limited").await;
    world.plant(&seed("wide", "blocked = true", "")).unwrap();
    starter.all_fail(plain.clone(), 402, "billing_required").await;
    world.plant(&seed("wide", "", ", active_sandboxes = 1")).unwrap();
    starter.all_fail(plain.clone(), 429, "member_limit_reached").await;

    world.plant(&seed("wide", "", "")).unwrap();
    world.set_scenario(Scenario::ProviderRequired, true).unwrap();
    starter.all_fail(largest, 400, "machine_provider_required").await;
    world.set_scenario(Scenario::ProviderRequired, false).unwrap();
    world.set_machines(Some(1));
    starter.all_fail(fast.clone(), 503, "no_ready_machine").await;
    world.set_machines(None);
    world.pause_starts(true);
    starter.all_fail(plain, 503, "out_of_capacity").await;
    world.pause_starts(false);

    assert_eq!((world.sandboxes().len(), world.state(&starter.down)), (2, Some("archived")));
    for answer in starter.each(fast).await {
        assert_eq!(answer.status, 202, "{}", answer.body);
    }
}

#[tokio::test]
async fn every_start_checks_what_it_brings_along() {
    let server =
        MockServer::builder().world(seed("wide", "", "")).runner(RunnerKind::Scripted).start().unwrap();
    let starter = Starter::of(&server).await;
    starter.all_fail(json!({"env": {"1A": "x"}}), 400, "invalid_env").await;
    starter.all_fail(json!({"environment": "nothing"}), 400, "unknown_environment").await;
    assert_eq!(server.world().sandboxes().len(), 2);
}

#[tokio::test]
async fn a_key_is_in_use_until_its_start_is_answered_and_belongs_to_its_body() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let source = api.sandbox(json!({})).await;
    let delay = Duration::from_secs(7);
    server.world().set_start_delay(delay);
    for (key, path) in [("k1", "/sandboxes".to_owned()), ("k2", format!("/sandboxes/{source}/fork"))] {
        let start = async |body: Value| {
            let request = api.request("POST", &path).header("Idempotency-Key", key);
            api.send(request.json(&body)).await
        };
        let (first, ()) = guarded(async {
            tokio::join!(start(json!({})), async {
                clock.wait_for_sleep_of(delay).await;
                let meanwhile = start(json!({})).await;
                assert_eq!(meanwhile.fails(409, "idempotency_in_progress")["retryable"], true);
                assert_eq!(meanwhile.headers["retry-after"], "1");
                clock.advance(delay);
            })
        })
        .await;
        assert_eq!(first.status, 202, "{}", first.body);
        let again = start(json!({})).await;
        assert_eq!((again.status, &again.body["sandbox"]["id"]), (202, &first.body["sandbox"]["id"]));
        let other = start(json!({"type": "small"})).await;
        assert_eq!(other.fails(409, "idempotency_key_reused")["retryable"], false);
    }
    assert_eq!(server.world().sandboxes().len(), 3);
}

#[tokio::test]
async fn older_callers_may_still_write_that_a_sandbox_never_stops() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let created =
        api.post("/sandboxes", json!({"ttlSeconds": "infinite"})).await.succeeds(202, "sandbox.created");
    assert_eq!((&created["ttlSeconds"], &created["sandbox"]["archiveAfter"]), (&json!(null), &json!(null)));
    for text in ["forever", "INFINITE", "60", ""] {
        let refused = api.post("/sandboxes", json!({"ttlSeconds": text})).await;
        assert_eq!(refused.fails(400, "invalid_request")["field"], "ttlSeconds", "{text}");
    }
    // Nothing newer ever took it.
    let path = format!("/sandboxes/{}", created["sandbox"]["id"].as_str().unwrap());
    api.call("PATCH", &path, json!({"ttlSeconds": "infinite"})).await.fails(400, "invalid_request");
}

#[tokio::test]
async fn a_start_that_fails_fast_holds_the_machine_that_it_saw() {
    let clock = ManualClock::new();
    let seed = WorldSeed::from_toml("[machines]\ncount = 3\nboot_delay_ms = 5000\n").unwrap();
    let server =
        MockServer::builder().clock(clock.shared()).world(seed).runner(RunnerKind::Scripted).start().unwrap();
    let (api, world) = (Api::of(&server), server.world());
    let fast = json!({"failFast": true, "ttlSeconds": null});
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (api, fast) = (api.clone(), fast.clone());
            tokio::spawn(async move { api.post("/sandboxes", fast).await })
        })
        .collect();
    let mut started = Vec::new();
    for call in calls {
        let answer = guarded(call).await.unwrap();
        match answer.status {
            202 => started.push(answer.body["sandbox"]["id"].as_str().unwrap().to_owned()),
            _ => drop(answer.fails(503, "no_ready_machine")),
        }
    }
    assert_eq!((started.len(), world.sandboxes().len()), (3, 3));
    // Whoever waits comes after them, and they are up without waiting.
    let patient = api.post("/sandboxes", json!({"ttlSeconds": null})).await.succeeds(202, "sandbox.created");
    let patient = patient["sandbox"]["id"].as_str().unwrap().to_owned();
    // Only while one of them boots: whoever waits for a machine gives up after a while.
    let boot = Duration::from_secs(5);
    until(async || {
        if clock.next_due().is_some_and(|due| due <= boot) {
            clock.advance(boot);
        }
        world.state(&started[0]) == Some("ready")
            && world.state(&started[1]) == Some("ready")
            && world.state(&started[2]) == Some("ready")
    })
    .await;
    assert_eq!(api.state(&patient).await, "provisioning");
    api.delete(&patient).await.succeeds(202, "sandbox.deleting");

    // A fork and a resume hold theirs alike, and one that is stopped before it is up gives it back.
    world.set_boot_delay(Duration::from_secs(3600));
    let [source, down, spare] = &started[..] else { unreachable!() };
    let stop = async |id: &str| {
        api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
        api.wait_for(id, "archived").await;
    };
    let fork = async || api.post(&format!("/sandboxes/{source}/fork"), fast.clone()).await;
    let resume = async || api.post(&format!("/sandboxes/{down}/resume"), fast.clone()).await;
    stop(down).await;
    let copy = fork().await.succeeds(202, "sandbox.forking")["id"].as_str().unwrap().to_owned();
    fork().await.fails(503, "no_ready_machine");
    resume().await.fails(503, "no_ready_machine");
    stop(&copy).await;
    resume().await.succeeds(202, "sandbox.resuming");
    fork().await.fails(503, "no_ready_machine");
    api.delete(spare).await.succeeds(202, "sandbox.deleting");
    fork().await.succeeds(202, "sandbox.forking");
}
