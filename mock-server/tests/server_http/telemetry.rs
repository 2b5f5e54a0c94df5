//! What an account's collector is really sent.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, MockServerBuilder, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};

use crate::{
    http::{Answer, Api, until},
    receiver::{Receiver, Reply, Seen},
};

const MINUTE: Duration = Duration::from_secs(60);

fn builder(clock: &ManualClock) -> MockServerBuilder {
    // Captures come every minute, too.
    MockServer::builder()
        .clock(clock.shared())
        .capture_every(Duration::ZERO)
        .runner(RunnerKind::Scripted)
        .allow_loopback_targets()
}

async fn set(api: &Api, endpoint: &str, headers: Value) -> Answer {
    api.call("PUT", "/telemetry", json!({"endpoint": endpoint, "headers": headers})).await
}

/// The points of a gauge by the value of their first attribute.
fn points(seen: &Seen, name: &str) -> Vec<(String, Value)> {
    let body = seen.json();
    let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().clone();
    let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap_or(&Value::Null);
    let points = metric["gauge"]["dataPoints"].as_array().cloned().unwrap_or_default();
    let value = |point: &Value| point.get("asInt").or(point.get("asDouble")).cloned().unwrap();
    let first = |point: &Value| point["attributes"][0]["value"]["stringValue"].as_str().unwrap().to_owned();
    points.iter().map(|point| (first(point), value(point))).collect()
}

fn attribute(record: &Value, name: &str) -> Value {
    let attributes = record["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == name);
    found.map_or(Value::Null, |found| found["value"]["stringValue"].clone())
}

fn records(seen: &Seen) -> Vec<Value> {
    seen.json()["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_collector_is_set_tried_read_and_taken_away() {
    let clock = ManualClock::new();
    let (server, collector) = (builder(&clock).start().unwrap(), Receiver::start().await);
    let api = Api::of(&server);
    let none = api.get("/telemetry").await.succeeds(200, "telemetry.info");
    assert_eq!(none, json!({"ok": true, "type": "telemetry.info", "telemetry": null}));
    api.send(api.request("DELETE", "/telemetry")).await.fails(404, "not_found");

    collector.next(Reply::Says(200, "{\"partialSuccess\":{}}"));
    let headers = json!({"Authorization": "Bearer hush", "x-tenant": "7"});
    let answer =
        set(&api, &collector.url("/otlp/v1/logs/"), headers).await.succeeds(200, "telemetry.updated");
    assert_eq!(answer["test"], json!({"ok": true, "status": 200, "message": "{\"partialSuccess\":{}}"}));
    let expected = json!({
        "endpoint": collector.url("/otlp"), "headers": ["Authorization", "x-tenant"],
        "lastExportAt": "2026-01-01T00:00:00.000Z", "lastError": null,
        "createdAt": "2026-01-01T00:00:00.000Z",
    });
    assert_eq!(answer["telemetry"], expected);
    assert_eq!(api.get("/telemetry").await.body["telemetry"], expected);

    let seen = collector.seen();
    assert_eq!((seen.len(), seen[0].path.as_str()), (1, "/otlp/v1/metrics"));
    assert_eq!(seen[0].header("content-type"), "application/json");
    assert_eq!((seen[0].header("authorization"), seen[0].header("x-tenant")), ("Bearer hush", "7"));
    assert!(points(&seen[0], "sandboxer.sandboxes").contains(&("ready".into(), json!("0"))));
    let body = seen[0].json();
    let point = &body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["gauge"]["dataPoints"][0];
    assert_eq!(point["timeUnixNano"], "1767225600000000000");

    let gone = api.send(api.request("DELETE", "/telemetry")).await.succeeds(200, "telemetry.deleted");
    assert_eq!(gone["telemetry"], Value::Null);
    assert_eq!(api.get("/telemetry").await.body["telemetry"], Value::Null);
    clock.advance(MINUTE * 5);
    api.sandbox(json!({})).await;
    assert_eq!(collector.seen().len(), 1);
}

#[tokio::test]
async fn a_trial_that_fails_says_why_and_keeps_the_change() {
    let clock = ManualClock::new();
    let (server, collector) = (builder(&clock).start().unwrap(), Receiver::start().await);
    let api = Api::of(&server);
    collector.next(Reply::Says(401, "no such token"));
    let answer = set(&api, &collector.url(""), json!(null)).await.succeeds(200, "telemetry.updated");
    assert_eq!(answer["test"], json!({"ok": false, "status": 401, "message": "no such token"}));
    let error = json!({"message": "no such token", "status": 401, "at": "2026-01-01T00:00:00.000Z"});
    assert_eq!(answer["telemetry"]["lastError"], error);
    assert_eq!(answer["telemetry"]["lastExportAt"], Value::Null);
    collector.next(Reply::Redirect(collector.url("/elsewhere")));
    let answer = set(&api, &collector.url("/"), json!({})).await.succeeds(200, "telemetry.updated");
    assert_eq!(answer["test"], json!({"ok": false, "status": 302, "message": "the collector answered 302"}));
    assert_eq!(answer["telemetry"]["endpoint"], collector.url(""));

    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let answer = set(&api, &format!("http://{closed}"), json!({})).await.succeeds(200, "telemetry.updated");
    assert_eq!((&answer["test"]["ok"], &answer["test"]["status"]), (&json!(false), &Value::Null));
    assert!(answer["test"]["message"].as_str().unwrap().to_lowercase().contains("refused"), "{answer}");

    collector.next(Reply::Hang);
    let (api, url) = (api.clone(), collector.url(""));
    let setting = tokio::spawn(async move { set(&api, &url, json!({})).await });
    clock.wait_for_sleep_of(Duration::from_secs(10)).await;
    clock.advance(Duration::from_secs(10));
    let answer = setting.await.unwrap().succeeds(200, "telemetry.updated");
    assert_eq!(answer["test"], json!({"ok": false, "status": null, "message": "no answer within 10 s"}));
}

#[tokio::test]
async fn gauges_follow_every_minute() {
    let clock = ManualClock::new();
    let (server, collector) = (builder(&clock).start().unwrap(), Receiver::start().await);
    let api = Api::of(&server);
    let first = api.sandbox(json!({"ttlSeconds": null, "name": "one"})).await;
    api.sandbox(json!({"ttlSeconds": null, "monitoring": false})).await;
    let stopped = api.sandbox(json!({"ttlSeconds": null})).await;
    api.post(&format!("/sandboxes/{stopped}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&stopped, "archived").await;
    set(&api, &collector.url(""), json!({})).await.succeeds(200, "telemetry.updated");
    for count in 2..5 {
        clock.wait_for_sleep_of(MINUTE).await;
        assert_eq!(collector.seen().len(), count - 1);
        clock.advance(MINUTE);
        let seen = collector.wait_for(count).await;
        let states = points(&seen[count - 1], "sandboxer.sandboxes");
        for (state, number) in [("ready", "2"), ("archived", "1"), ("error", "0")] {
            assert!(states.contains(&(state.to_owned(), json!(number))), "{states:?}");
        }
        for gauge in ["sandboxer.sandbox.processes", "sandboxer.sandbox.cpu", "sandboxer.sandbox.memory"] {
            let ids: Vec<_> = points(&seen[count - 1], gauge).into_iter().map(|(id, _)| id).collect();
            assert_eq!(
                ids,
                std::slice::from_ref(&first),
                "{gauge}: neither the stopped one nor the one without monitoring"
            );
        }
    }
    let exported_at = async || api.get("/telemetry").await.body["telemetry"]["lastExportAt"].clone();
    until(async || exported_at().await == "2026-01-01T00:03:00.000Z").await;
    // An hour without a server's attention is owed once.
    clock.wait_for_sleep_of(MINUTE).await;
    clock.advance(MINUTE * 60);
    collector.wait_for(5).await;
    clock.wait_for_sleep_of(MINUTE).await;
    assert_eq!(collector.seen().len(), 5);
}

#[tokio::test]
async fn what_happens_to_sandboxes_goes_to_the_logs() {
    let clock = ManualClock::new();
    let (server, collector) = (builder(&clock).start().unwrap(), Receiver::start().await);
    let api = Api::of(&server);
    set(&api, &collector.url("/v1/metrics"), json!({})).await.succeeds(200, "telemetry.updated");
    let id = api.sandbox(json!({})).await;
    let seen = collector.wait_for(2).await;
    assert_eq!(seen[1].path, "/v1/logs");
    let ready = &records(&seen[1])[0];
    assert_eq!(
        (&ready["eventName"], &ready["severityText"], &ready["severityNumber"]),
        (&json!("sandbox.ready"), &json!("INFO"), &json!(9))
    );
    assert_eq!(ready["timeUnixNano"], "1767225600000000000");
    assert_eq!(attribute(ready, "sandboxer.sandbox.id"), json!(id));
    assert_eq!(attribute(ready, "sandboxer.sandbox.name"), json!(id));
    assert_eq!(attribute(ready, "sandboxer.sandbox.previous_state"), "cloning");
    server.world().break_sandbox(&id, "broken").unwrap();
    let seen = collector.wait_for(3).await;
    let error = &records(&seen[2])[0];
    assert_eq!((&error["eventName"], &error["severityNumber"]), (&json!("sandbox.error"), &json!(17)));
    assert_eq!(attribute(error, "sandboxer.sandbox.state"), "error");
}

#[tokio::test]
async fn logs_wait_for_a_collector_that_is_down_and_not_for_ever() {
    let clock = ManualClock::new();
    let (server, collector) = (builder(&clock).start().unwrap(), Receiver::start().await);
    let api = Api::of(&server);
    set(&api, &collector.url(""), json!({})).await.succeeds(200, "telemetry.updated");
    let logs = || collector.seen().into_iter().filter(|seen| seen.path == "/v1/logs").collect::<Vec<_>>();
    let errors = async || api.get("/telemetry").await.body["telemetry"]["lastError"]["status"].clone();
    collector.next(Reply::RetryAfter(503, 30));
    let first = api.sandbox(json!({"ttlSeconds": null})).await;
    until(async || errors().await == 503).await;
    let second = api.sandbox(json!({"ttlSeconds": null})).await;
    clock.wait_for_sleep_of(Duration::from_secs(30)).await;
    assert_eq!(logs().len(), 1, "what comes later waits too");
    clock.advance(Duration::from_secs(30));
    until(async || logs().len() == 2).await;
    let sent: Vec<_> =
        records(&logs()[1]).iter().map(|record| attribute(record, "sandboxer.sandbox.id")).collect();
    assert_eq!(sent, [json!(first), json!(second)]);
    until(async || errors().await == Value::Null).await;

    // What the collector does not want is not sent again.
    collector.next(Reply::Status(400));
    api.sandbox(json!({"ttlSeconds": null})).await;
    until(async || errors().await == 400).await;
    let last = api.sandbox(json!({"ttlSeconds": null})).await;
    until(async || logs().len() == 4).await;
    let sent: Vec<_> =
        records(&logs()[3]).iter().map(|record| attribute(record, "sandboxer.sandbox.id")).collect();
    assert_eq!(sent, [json!(last)]);
}

#[tokio::test]
async fn bad_collectors_are_refused_and_change_nothing() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    for endpoint in [
        "http://otel.example:4318",
        "https://otel.example:8080",
        "https://user@otel.example",
        "https://10.0.0.1:4318",
        "http://127.0.0.1:4318",
        "https://otel.example/v1/logs?x=1",
        "https://otel.example/#x",
        "otel.example",
        "",
    ] {
        assert_eq!(
            set(&api, endpoint, json!({})).await.fails(400, "invalid_endpoint")["field"],
            "endpoint",
            "{endpoint}"
        );
    }
    let many: serde_json::Map<_, _> = (0..33).map(|number| (format!("x-{number}"), json!("1"))).collect();
    for (headers, field) in [
        (json!({"bad name": "x"}), "headers.bad name"),
        (json!({"": "x"}), "headers."),
        (json!({"x": "hush\r\nevil: 1"}), "headers.x"),
        (json!({"x": "y".repeat(8193)}), "headers.x"),
        (json!({"x": 5}), "headers.x"),
        (json!({"X-A": "1", "x-a": "2"}), "headers.x-a"),
        (json!({"Host": "other"}), "headers.Host"),
        (json!({"content-length": "0"}), "headers.content-length"),
        (Value::Object(many), "headers"),
        (json!([]), "headers"),
    ] {
        let refused = set(&api, "https://otel.example", headers).await;
        assert_eq!(refused.fails(400, "invalid_request")["field"], field);
        assert!(!refused.body.to_string().contains("hush"));
    }
    assert_eq!(api.get("/telemetry").await.body["telemetry"], Value::Null);
}

#[tokio::test]
async fn telemetry_is_for_administrators_of_the_account() {
    let clock = ManualClock::new();
    let collector = Receiver::start().await;
    let world = r#"
        [[accounts]]
        login = "bob"
        [[keys]]
        secret = "key-bob"
        account = "bob"
        [[keys]]
        secret = "key-sandboxes"
        preset = "full-sandbox"
    "#;
    let server =
        builder(&clock).api_key("key-admin").world(WorldSeed::from_toml(world).unwrap()).start().unwrap();
    let admin = Api::with_key(&server.url(), "key-admin");
    let bob = Api::with_key(&server.url(), "key-bob");
    let other = Api::with_key(&server.url(), "key-sandboxes");
    set(&admin, &collector.url(""), json!({})).await.succeeds(200, "telemetry.updated");
    other.get("/telemetry").await.fails(403, "forbidden");
    set(&other, &collector.url(""), json!({})).await.fails(403, "forbidden");
    other.send(other.request("DELETE", "/telemetry")).await.fails(403, "forbidden");
    assert_eq!(bob.get("/telemetry").await.body["telemetry"], Value::Null);
    bob.send(bob.request("DELETE", "/telemetry")).await.fails(404, "not_found");
    bob.sandbox(json!({})).await;
    let id = admin.sandbox(json!({})).await;
    let seen = collector.wait_for(2).await;
    assert_eq!(attribute(&records(&seen[1])[0], "sandboxer.sandbox.id"), json!(id), "and nobody else's");
}
