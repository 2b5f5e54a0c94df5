//! The load of sandboxes: what is read from the processes, what is kept of it, and what is shown.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, RunnerKind};
use serde_json::{Value, json};

use crate::http::{Api, guarded, until};

/// How much time there is between two samples.
const PERIOD: Duration = Duration::from_millis(30_001);

fn process(clock: &ManualClock) -> MockServer {
    MockServer::builder().clock(clock.shared()).runner(RunnerKind::Process).start().unwrap()
}

fn figure(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

/// Moves the clock to the next sample and waits until `count` sandboxes are in the summary.
async fn sampled(clock: &ManualClock, reached: impl AsyncFn() -> bool) {
    guarded(clock.wait_for_sleep_of(PERIOD)).await;
    clock.advance(PERIOD);
    until(reached).await;
}

#[tokio::test]
async fn the_load_now_is_that_of_the_processes() {
    for kind in [RunnerKind::Process, RunnerKind::Isolated] {
        let Ok(server) = MockServer::builder().runner(kind).start() else { continue };
        let api = Api::of(&server);
        let id = api.sandbox(json!({})).await;
        let path = format!("/sandboxes/{id}/stats");
        let idle = api.get(&path).await.succeeds(200, "sandbox.stats");
        assert_eq!((&idle["sandboxId"], figure(&idle, "cpu")), (&json!(id), 0.0));
        assert_eq!((&idle["memoryUsedBytes"], &idle["memoryTotalBytes"]), (&json!(0), &json!(4_u64 << 30)));
        assert_eq!(idle["diskTotalBytes"], json!(40_u64 << 30));
        api.exec(&id, "head -c 3000000 /dev/zero > zeros; sync zeros").await;
        api.start(&id, "while :; do :; done").await;
        // One of two processors; less where this machine has more to do.
        let stats = async || api.get(&path).await.succeeds(200, "sandbox.stats");
        until(async || figure(&stats().await, "cpu") >= 1.0).await;
        let busy = stats().await;
        assert!(figure(&busy, "cpu") <= 60.0, "{busy}");
        let disk = figure(&busy, "diskUsedBytes");
        assert!((3_000_000.0..4_000_000.0).contains(&disk), "{busy}");
        assert!(figure(&busy, "memoryUsedBytes") > 100_000.0 && figure(&busy, "mem") > 0.0, "{busy}");
        api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
        api.wait_for(&id, "archived").await;
        assert_eq!(api.get(&path).await.fails(409, "machine_not_running")["state"], "archived");
        api.get("/sandboxes/bx_other/stats").await.fails(404, "not_found");
    }
}

#[tokio::test]
async fn samples_are_taken_on_the_clock_and_shown_by_window() {
    let clock = ManualClock::new();
    let server = process(&clock);
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let quiet = api.sandbox(json!({})).await;
    let off = api.sandbox(json!({"monitoring": false})).await;
    let path = format!("/sandboxes/{id}/metrics");
    let points = async |window: &str| {
        let shown = api.get(&format!("{path}?window={window}")).await.succeeds(200, "sandbox.metrics");
        assert_eq!(shown["window"], window);
        shown["points"].as_array().unwrap().clone()
    };
    let fresh = api.get(&path).await.succeeds(200, "sandbox.metrics");
    assert_eq!((&fresh["window"], &fresh["points"]), (&json!("1h"), &json!([])));
    api.start(&id, "while :; do :; done").await;
    api.start(&off, "sleep 1000").await;
    for count in 1..=3 {
        sampled(&clock, async || points("1h").await.len() == count).await;
    }
    let shown = points("1h").await;
    // Half minutes of the wall clock, which started at a full one.
    let times: Vec<_> = shown.iter().map(|point| point["t"].as_str().unwrap()).collect();
    let expected = ["2026-01-01T00:00:30.000Z", "2026-01-01T00:01:00.000Z", "2026-01-01T00:01:30.000Z"];
    assert_eq!(times, expected);
    assert!(shown.iter().all(|point| (0.0..=60.0).contains(&figure(point, "cpu"))), "{shown:?}");
    assert!(shown.iter().all(|point| figure(point, "mem") > 0.0 && figure(point, "io") >= 0.0), "{shown:?}");
    for window in ["24h", "1w"] {
        let one = points(window).await;
        assert_eq!((one.len(), &one[0]["t"]), (1, &json!("2026-01-01T00:00:00.000Z")), "{window}");
    }
    let summary = api.get("/sandboxes/metrics?window=1h").await.succeeds(200, "sandbox.metrics_summary");
    assert_eq!(summary["sandboxes"].as_array().unwrap().len(), 1, "{summary}");
    assert_eq!(summary["sandboxes"][0]["sandboxId"], id);
    assert_eq!(summary["sandboxes"][0]["points"].as_array().unwrap().len(), 1);
    let of = async |ids: &str| {
        let summary = api.get(&format!("/sandboxes/metrics?ids={ids}")).await;
        summary.succeeds(200, "sandbox.metrics_summary")["sandboxes"].as_array().unwrap().len()
    };
    assert_eq!(of(&format!("{id},{id},{quiet},{off},bx_other")).await, 1);
    assert_eq!(of(&quiet).await, 0);
    api.get(&format!("/sandboxes/{off}/metrics")).await.fails(409, "monitoring_off");
    api.get(&format!("{path}?window=2h")).await.fails(400, "invalid_request");
    api.get("/sandboxes/metrics?window=").await.fails(400, "invalid_request");

    // A stopped one shows its newest sample, and the last look at its processes, which is forgotten after a week.
    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    let stopped = api.get(&path).await.succeeds(200, "sandbox.metrics");
    assert_eq!(stopped["current"]["t"], "2026-01-01T00:01:30.003Z");
    let processes =
        async || api.get(&format!("/sandboxes/{id}/processes")).await.succeeds(200, "process.list");
    let looked = processes().await;
    assert_eq!((&looked["live"], &looked["processes"][0]["startedAt"]), (&json!(false), &json!(null)));
    assert!(looked["total"].as_u64().unwrap() > 0, "{looked}");
    clock.advance(Duration::from_secs(7 * 24 * 3600 + 1));
    assert_eq!(processes().await["total"], 0);
    assert_eq!(points("1w").await, [json!(null); 0]);
    // Samples are kept for eight days.
    clock.advance(Duration::from_secs(2 * 24 * 3600));
    until(async || {
        clock.advance(Duration::from_secs(3700));
        api.get(&path).await.body["current"].is_null()
    })
    .await;
}

#[tokio::test]
async fn what_a_setup_script_runs_is_sampled() {
    let clock = ManualClock::new();
    let server = process(&clock);
    let api = Api::of(&server);
    let id = api.sandbox(json!({"setupScript": "sleep 1000"})).await;
    let shown = async || api.get(&format!("/sandboxes/{id}")).await.body["sandbox"]["setupStatus"].clone();
    until(async || shown().await == "running").await;
    let points = async || api.get(&format!("/sandboxes/{id}/metrics")).await.body["points"].clone();
    sampled(&clock, async || points().await.as_array().unwrap().len() == 1).await;
    assert!(figure(&points().await[0], "mem") > 0.0);
}

#[tokio::test]
async fn keys_and_other_accounts_see_what_they_may() {
    let seed = "[[accounts]]\nlogin = 'bob'\n[[keys]]\nsecret = 'sbx_live_bob'\naccount = 'bob'\n\
                [[keys]]\nsecret = 'sbx_live_files'\nactions = ['file.read']\n";
    let seed = sandboxer_mock_server::WorldSeed::from_toml(seed).unwrap();
    let clock = ManualClock::new();
    let builder = MockServer::builder().clock(clock.shared()).world(seed).api_key("sbx_live_own");
    let server = builder.runner(RunnerKind::Process).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    api.start(&id, "sleep 1000").await;
    let count = async |api: &Api| {
        let answer = api.get(&format!("/sandboxes/metrics?ids={id}")).await;
        answer.succeeds(200, "sandbox.metrics_summary")["sandboxes"].as_array().unwrap().len()
    };
    sampled(&clock, async || count(&api).await == 1).await;
    let bob = Api::with_key(&server.url(), "sbx_live_bob");
    assert_eq!(count(&bob).await, 0);
    bob.get(&format!("/sandboxes/{id}/metrics")).await.fails(404, "not_found");
    bob.get(&format!("/sandboxes/{id}/stats")).await.fails(404, "not_found");
    let files = Api::with_key(&server.url(), "sbx_live_files");
    files.get(&format!("/sandboxes/{id}/stats")).await.fails(403, "forbidden");
    files.get("/sandboxes/metrics").await.fails(403, "forbidden");
}
