//! What wallets may start, and what they have used.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, WorldSeed, runner::RunnerKind};
use serde_json::json;

use crate::http::Api;

const WORLD: &str = r#"
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

[[accounts]]
login = "tess"
plan = "trial"
[[accounts]]
login = "paul"
plan = "pro"
[[accounts]]
login = "sue"
standing = "suspended"
reason = "unpaid"
[[accounts]]
login = "carl"
blocked = true

[[keys]]
secret = "key-tess"
account = "tess"
[[keys]]
secret = "key-paul"
account = "paul"
[[keys]]
secret = "key-sue"
account = "sue"
[[keys]]
secret = "key-carl"
account = "carl"
"#;

struct Server {
    server: MockServer,
    clock: ManualClock,
}

impl Server {
    fn start() -> Self {
        let clock = ManualClock::new();
        let world = WorldSeed::from_toml(WORLD).unwrap();
        let server = MockServer::builder().clock(clock.shared()).world(world).runner(RunnerKind::Scripted);
        Self { server: server.start().unwrap(), clock }
    }

    fn of(&self, login: &str) -> Api {
        Api::with_key(&self.server.url(), &format!("key-{login}"))
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
