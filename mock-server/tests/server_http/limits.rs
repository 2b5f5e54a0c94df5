//! What wallets may start, and what they have used.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, Scenario, WorldSeed, runner::RunnerKind};
use serde_json::json;

use crate::{
    http::{Api, until},
    worlds::{person, scripted, scripted_and_clock, with_key_of},
};

const PLANS: &str = r#"
[[plans]]
key = "trial"
name = "Trial"
active_sandboxes = 10
starts_per_minute = 2
starts_per_hour = 3
starts_per_day = 4
[[plans]]
key = "pro"
dollars = 20.0
active_sandboxes = 100
"#;

fn world() -> String {
    let people = [
        ("tess", "plan = \"trial\""),
        ("paul", "plan = \"pro\""),
        ("sue", "standing = \"suspended\"\nreason = \"unpaid\""),
        ("carl", "blocked = true"),
    ];
    PLANS.to_owned() + &people.map(|(login, more)| person(login, more)).concat()
}

struct Server {
    server: MockServer,
    clock: ManualClock,
}

impl Server {
    fn start() -> Self {
        let (server, clock) = scripted_and_clock(&world());
        Self { server, clock }
    }

    fn of(&self, login: &str) -> Api {
        with_key_of(&self.server, login)
    }
}

#[tokio::test]
async fn minute_hour_and_day_are_told_apart() {
    let own = Server::start();
    let tess = own.of("tess");
    let create = async || tess.post("/sandboxes", json!({"ttlSeconds": null})).await;
    let seconds = |seconds| own.clock.advance(Duration::from_secs(seconds));
    create().await.succeeds(202, "sandbox.created");
    seconds(10);
    let id = create().await.succeeds(202, "sandbox.created")["sandbox"]["id"].as_str().unwrap().to_owned();
    tess.wait_for(&id, "ready").await;
    let refused = async |window: &str, limit: u64, retry_after: &str| {
        let answer = create().await;
        let details = answer.fails(429, "rate_limited");
        assert_eq!((&details["window"], &details["limit"]), (&json!(window), &json!(limit)));
        assert_eq!(answer.headers["retry-after"], retry_after);
        assert_eq!(details["startLimits"], json!({"perMinute": 2, "perHour": 3, "perDay": 4}));
        assert_eq!(details["starts"][window]["remaining"], 0);
        assert!(details["billingUrl"].is_string() && details["canStart"] == false, "{details}");
    };
    refused("minute", 2, "50").await;
    // A fork and a resume are starts like any other.
    tess.post(&format!("/sandboxes/{id}/fork"), json!({})).await.fails(429, "rate_limited");
    seconds(50);
    tess.post(&format!("/sandboxes/{id}/fork"), json!({})).await.succeeds(202, "sandbox.forking");
    seconds(60);
    refused("hour", 3, "3480").await;
    seconds(3480);
    tess.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    tess.wait_for(&id, "archived").await;
    tess.post(&format!("/sandboxes/{id}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    refused("day", 4, "82800").await;
    let limits = tess.get("/limits").await.succeeds(200, "limits.info");
    assert_eq!(limits["starts"]["day"], json!({"limit": 4, "used": 4, "remaining": 0}));
    assert_eq!(
        (&limits["startBlockedReason"], &limits["unlimited"]),
        (&json!("rate_limited"), &json!(false))
    );
    seconds(82_800);
    create().await.succeeds(202, "sandbox.created");
}

#[tokio::test]
async fn limits_say_what_a_wallet_has_and_used() {
    let own = Server::start();
    let paul = own.of("paul");
    let large = paul.sandbox(json!({"type": "large", "ttlSeconds": null})).await;
    own.clock.advance(Duration::from_secs(600));
    let limits = paul.get("/limits").await.succeeds(200, "limits.info");
    assert_eq!((&limits["last24hUsageSeconds"], &limits["liveUsageSeconds"]), (&json!(1200), &json!(1200)));
    let usage = paul.get(&format!("/sandboxes/{large}/usage")).await.succeeds(200, "sandbox.usage");
    assert_eq!((&usage["seconds"], &usage["dollars"]), (&json!(1200), &json!(0.012)));
    paul.delete(&large).await.succeeds(202, "sandbox.deleting");
    let small = paul.sandbox(json!({"type": "small", "ttlSeconds": null})).await;
    own.clock.advance(Duration::from_secs(60));
    paul.post(&format!("/sandboxes/{small}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    paul.wait_for(&small, "archived").await;
    own.clock.advance(Duration::from_secs(100));
    let limits = paul.get("/limits").await.succeeds(200, "limits.info");
    assert_eq!((&limits["last24hUsageSeconds"], &limits["liveUsageSeconds"]), (&json!(1230), &json!(0)));
    // A day after half of the first ten minutes.
    own.clock.advance(Duration::from_secs(86_400 - 160 - 300));
    assert_eq!(paul.get("/limits").await.body["last24hUsageSeconds"], 630);

    assert_eq!((&limits["canStart"], &limits["startLimits"]), (&json!(true), &json!(null)));
    assert_eq!((&limits["sandboxPlanKey"], &limits["sandboxPlanDollars"]), (&json!("pro"), &json!(20.0)));
    assert_eq!((&limits["maxActiveSandboxes"], &limits["activeSandboxes"]), (&json!(100), &json!(0)));
    assert_eq!(limits["standardLimits"]["activeSandboxes"], 100);
    assert_eq!(limits["trialLimits"]["creationRequestsPerHour"], 3);
    let tiers: Vec<_> =
        limits["sandboxPlanTiers"].as_array().unwrap().iter().map(|tier| &tier["key"]).collect();
    assert_eq!(tiers, [&json!("local"), &json!("pro"), &json!("trial")]);
    // Every field of the document is there.
    let documented: sandboxer::models::LimitsResponse = serde_json::from_value(limits).unwrap();
    assert!(documented.unknown_fields.is_empty(), "{:?}", documented.unknown_fields);
    assert!(documented.last24h_usage_seconds.is_some() && documented.has_subscription == Some(false));
}

#[tokio::test]
async fn who_may_start_nothing_may_look() {
    let own = Server::start();
    let sue = own.of("sue");
    let refused = sue.post("/sandboxes", json!({})).await;
    assert_eq!(refused.fails(403, "forbidden")["accountStatus"], "suspended");
    let me = sue.get("/me").await.succeeds(200, "user.info");
    assert_eq!(
        (&me["user"]["accountStatus"], &me["user"]["suspendedReason"]),
        (&json!("suspended"), &json!("unpaid"))
    );
    assert_eq!((&me["user"]["suspended"], &me["user"]["closed"]), (&json!(true), &json!(false)));
    let carl = own.of("carl").post("/sandboxes", json!({})).await;
    let details = carl.fails(402, "billing_required");
    assert!(details["billingUrl"].is_string() && details["accessTier"] == "local", "{details}");
    let limits = own.of("carl").get("/limits").await.body;
    assert_eq!((&limits["billingStatus"], &limits["checkoutRequired"]), (&json!("blocked"), &json!(true)));
}

#[tokio::test]
async fn what_waits_for_a_machine_counts_against_what_may_be_active() {
    let world = world().replace(
        "active_sandboxes = 10\nstarts_per_minute = 2\nstarts_per_hour = 3\nstarts_per_day = 4",
        "active_sandboxes = 2",
    );
    let world = WorldSeed::from_toml(&format!("{world}\n[machines]\ncount = 1")).unwrap();
    let server = MockServer::builder().world(world).runner(RunnerKind::Scripted).start().unwrap();
    let tess = Api::with_key(&server.url(), "key-tess");
    let first = tess.sandbox(json!({})).await;
    let waiting = tess.post("/sandboxes", json!({})).await.succeeds(202, "sandbox.created");
    let waiting = waiting["sandbox"]["id"].as_str().unwrap();
    assert_eq!(tess.state(waiting).await, "provisioning");
    let limits = async || {
        let limits = tess.get("/limits").await.succeeds(200, "limits.info");
        ["activeSandboxes", "maxActiveSandboxes", "canStart", "startBlockedReason"]
            .map(|it| limits[it].clone())
    };
    assert_eq!(limits().await, [json!(1), json!(2), json!(false), json!("limit_reached")]);
    tess.post("/sandboxes", json!({})).await.fails(429, "limit_reached");
    tess.delete(&first).await.succeeds(202, "sandbox.deleting");
    tess.wait_for(waiting, "ready").await;
    assert_eq!(limits().await, [json!(1), json!(2), json!(true), json!(null)]);
}

#[tokio::test]
async fn a_resume_in_the_place_of_a_stop_that_fails_takes_no_place_and_no_machine_more() {
    let world = world().replace("active_sandboxes = 10", "active_sandboxes = 1");
    let clock = ManualClock::new();
    let server = scripted(&world.replace("starts_per_minute = 2", "starts_per_minute = 9"))
        .clock(clock.shared())
        .start()
        .unwrap();
    let (tess, world) = (with_key_of(&server, "tess"), server.world());
    let id = tess.sandbox(json!({"ttlSeconds": null})).await;
    let path = format!("/sandboxes/{id}");
    let failing = async || {
        world.set_scenario_for(&id, Scenario::BrokenDisk, true).unwrap();
        tess.post(&format!("{path}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
        until(async || tess.get(&path).await.body["sandbox"]["stop"]["status"] == "failing").await;
        world.set_scenario_for(&id, Scenario::BrokenDisk, false).unwrap();
    };
    for body in [json!({}), json!({"failFast": true})] {
        failing().await;
        // Its own machine is the only one, and stays its own.
        world.set_machines(Some(0));
        tess.post("/sandboxes", json!({})).await.fails(429, "limit_reached");
        tess.post(&format!("{path}/resume"), body).await.succeeds(202, "sandbox.resuming");
        tess.wait_for(&id, "ready").await;
        world.set_machines(None);
    }
    // It is a start all the same.
    failing().await;
    tess.post(&format!("{path}/resume"), json!({})).await.fails(429, "rate_limited");
}

#[tokio::test]
async fn several_starts_at_once_are_told_when_there_is_room_for_all() {
    let clock = ManualClock::new();
    let world = "
        [[plans]]
        key = 'five'
        starts_per_minute = 5
        [[accounts]]
        login = 'tess'
        plan = 'five'
        [[keys]]
        secret = 'key-tess'
        account = 'tess'
        ";
    let world = WorldSeed::from_toml(world).unwrap();
    let server = MockServer::builder()
        .clock(clock.shared())
        .world(world)
        .runner(RunnerKind::Scripted)
        .start()
        .unwrap();
    let tess = Api::with_key(&server.url(), "key-tess");
    let seconds = |seconds| clock.advance(Duration::from_secs(seconds));
    let source = tess.sandbox(json!({})).await;
    tess.post("/named-snapshots", json!({"sandboxId": source, "name": "saved"})).await;
    until(async || tess.get("/named-snapshots/saved").await.body["snapshot"]["status"] == "ready").await;
    let create = async |count: u64| tess.post("/sandboxes", json!({"from": "saved", "count": count})).await;
    seconds(10);
    create(2).await.succeeds(202, "sandbox.created");
    seconds(10);
    let refused = create(4).await;
    assert_eq!(refused.fails(429, "rate_limited")["window"], "minute");
    // Two of the three have to leave, and the second of them came ten seconds after the first.
    assert_eq!(refused.headers["retry-after"], "50");
    assert_eq!(create(3).await.headers["retry-after"], "40");
    seconds(50);
    create(4).await.succeeds(202, "sandbox.created");
    seconds(3600);
    let never = create(6).await;
    let details = never.fails(429, "rate_limited");
    assert_eq!((&details["retryable"], &details["limit"]), (&json!(false), &json!(5)));
    assert_eq!((never.headers.get("retry-after"), &details["canStart"]), (None, &json!(true)));
    create(5).await.succeeds(202, "sandbox.created");
}
