//! What webhook endpoints are really told.

use std::time::Duration;

use sandboxer::{
    clock::{Clock as _, ManualClock},
    webhooks::{Scheme, SignatureHeaders, Verifier, WebhookEvent, WebhookEventType},
};
use sandboxer_mock_server::{MockServer, MockServerBuilder, WebhookDelivery, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};

use crate::{
    binary,
    http::{Api, until},
    receiver::{Receiver, Reply, Seen},
};

const ALL: [&str; 6] = [
    "sandbox.ready",
    "sandbox.error",
    "sandbox.archived",
    "sandbox.hydrated",
    "sandbox.degraded",
    "sandbox.recovered",
];

fn builder(clock: &ManualClock) -> MockServerBuilder {
    MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).allow_loopback_targets()
}

struct Endpoint {
    id: String,
    secret: String,
}

async fn subscribe(api: &Api, url: &str, events: &[&str]) -> Endpoint {
    let made =
        api.post("/webhooks", json!({"url": url, "events": events})).await.succeeds(201, "webhook.created");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Endpoint { id: text(&made["webhook"]["id"]), secret: text(&made["secret"]) }
}

/// The separate headers of a delivery alone, since the other scheme is preferred when both are there.
fn separate(seen: &Seen) -> SignatureHeaders {
    let of_the_scheme = seen.headers.iter().filter(|(name, _)| name.as_str().starts_with("x-"));
    SignatureHeaders::from_pairs(of_the_scheme.map(|(name, value)| (name.as_str(), value.as_bytes())))
}

fn progress(server: &MockServer, endpoint: &Endpoint) -> Vec<(&'static str, usize)> {
    let all = server.world().deliveries(&endpoint.id);
    all.iter().map(|delivery| (delivery.progress, delivery.attempts.len())).collect()
}

#[tokio::test]
async fn a_sandbox_tells_of_its_life_in_both_schemes() {
    let clock = ManualClock::new();
    let (server, receiver) = (builder(&clock).start().unwrap(), Receiver::start().await);
    let api = Api::of(&server);
    let endpoint = subscribe(&api, &receiver.url("/in?x=1"), &["sandbox.ready", "sandbox.archived"]).await;
    let id = api.sandbox(json!({})).await;
    receiver.wait_for(1).await;
    api.call("PATCH", &format!("/sandboxes/{id}"), json!({"name": "demo"}))
        .await
        .succeeds(200, "sandbox.updated");
    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    let seen = receiver.wait_for(2).await;

    let verifier = Verifier::new(endpoint.secret.as_str()).unwrap().clock(clock.shared());
    for (delivery, (kind, name)) in seen.iter().zip([("sandbox.ready", &*id), ("sandbox.archived", "demo")]) {
        assert_eq!(delivery.path, "/in?x=1");
        assert_eq!(delivery.header("content-type"), "application/json");
        assert_eq!(delivery.header("x-sandboxer-event"), kind);
        assert_eq!(delivery.header("x-sandboxer-attempt"), "1");
        let verified = verifier.verify(&delivery.headers, &delivery.body).unwrap();
        assert_eq!(verified.scheme, Scheme::Signature);
        let verified = verifier.verify(separate(delivery), &delivery.body).unwrap();
        assert_eq!(verified.scheme, Scheme::Delivery);
        let event: WebhookEvent = verifier.parse(&delivery.headers, &delivery.body).unwrap();
        assert_eq!((event.kind.as_str(), event.id.as_str()), (kind, delivery.header("x-sandboxer-delivery")));
        assert!(event.id.starts_with("evt_") && event.id.len() == 36, "{}", event.id);
        assert_eq!((&event.data.sandbox.id, event.data.sandbox.name.as_str()), (&id, name));
    }
    let ready = json!({
        "id": seen[0].header("x-sandboxer-delivery"), "type": "sandbox.ready",
        "createdAt": "2026-01-01T00:00:00.000Z",
        "data": {"sandbox": {"id": id, "name": id}, "previousState": "cloning", "state": "ready"},
    });
    assert_eq!(seen[0].json(), ready);
    assert_eq!(seen[1].json()["data"]["previousState"], "archiving");
    until(async || progress(&server, &endpoint) == [("delivered", 1), ("delivered", 1)]).await;
    let expected = WebhookEventType::from("sandbox.ready");
    assert_eq!(server.world().deliveries(&endpoint.id)[0].kind, expected.as_str());
}

#[tokio::test]
async fn only_subscribed_endpoints_of_the_account_are_told() {
    let clock = ManualClock::new();
    let (server, receiver) = (builder(&clock).start().unwrap(), Receiver::start().await);
    let api = Api::of(&server);
    let ready = subscribe(&api, &receiver.url("/ready"), &["sandbox.ready"]).await;
    let errors = subscribe(&api, &receiver.url("/errors"), &["sandbox.error"]).await;
    let seed = "[[accounts]]\nlogin = \"bob\"\n[[keys]]\nsecret = \"key-bob\"\naccount = \"bob\"";
    server.world().plant(&WorldSeed::from_toml(seed).unwrap()).unwrap();
    let bob = Api::with_key(&server.url(), "key-bob");
    let others = subscribe(&bob, &receiver.url("/bob"), &ALL).await;
    let id = api.sandbox(json!({})).await;
    server.world().break_sandbox(&id, "broken").unwrap();
    let seen = receiver.wait_for(2).await;
    let mut paths: Vec<_> =
        seen.iter().map(|delivery| (delivery.path.as_str(), delivery.header("x-sandboxer-event"))).collect();
    paths.sort_unstable();
    assert_eq!(paths, [("/errors", "sandbox.error"), ("/ready", "sandbox.ready")]);
    assert_eq!(server.world().deliveries(&others.id), []);
    let failed = server.world().deliveries(&errors.id);
    assert_eq!((failed.len(), failed[0].kind.as_str()), (1, "sandbox.error"));
    assert_eq!(server.world().deliveries(&ready.id).len(), 1);
}

#[tokio::test]
async fn what_is_not_acknowledged_is_sent_again_eight_times_in_all() {
    let clock = ManualClock::new();
    let (server, receiver) = (builder(&clock).start().unwrap(), Receiver::start().await);
    let api = Api::of(&server);
    receiver.otherwise(Reply::Status(500));
    receiver.next(Reply::Redirect(receiver.url("/elsewhere")));
    let endpoint = subscribe(&api, &receiver.url("/in"), &["sandbox.ready"]).await;
    api.sandbox(json!({})).await;
    receiver.wait_for(1).await;
    for (number, pause) in [10, 20, 40, 80, 160, 320, 640].into_iter().enumerate() {
        clock.wait_for_sleep_of(Duration::from_secs(pause)).await;
        assert_eq!(progress(&server, &endpoint), [("pending", number + 1)]);
        clock.advance(Duration::from_secs(pause) - Duration::from_millis(1));
        clock.wait_for_sleep_of(Duration::from_millis(1)).await;
        assert_eq!(receiver.seen().len(), number + 1, "not a moment early");
        clock.advance(Duration::from_millis(1));
        receiver.wait_for(number + 2).await;
    }
    until(async || progress(&server, &endpoint) == [("failed", 8)]).await;
    let verifier = Verifier::new(endpoint.secret.as_str()).unwrap().no_tolerance();
    let seen = receiver.seen();
    for (number, delivery) in seen.iter().enumerate() {
        assert_eq!(delivery.path, "/in", "redirects are not followed");
        assert_eq!(delivery.body, seen[0].body);
        assert_eq!(delivery.header("x-sandboxer-delivery"), seen[0].header("x-sandboxer-delivery"));
        assert_eq!(delivery.header("x-sandboxer-attempt"), (number + 1).to_string());
        verifier.verify(&delivery.headers, &delivery.body).unwrap();
    }
    // Each is signed when it is sent, so that none is too old for its receiver.
    assert_ne!(seen[0].header("x-sandboxer-timestamp"), seen[7].header("x-sandboxer-timestamp"));
    let attempts = &server.world().deliveries(&endpoint.id)[0].attempts;
    assert_eq!(attempts[..2], [Ok(302), Ok(500)]);
    clock.advance(Duration::from_secs(100_000));
    api.sandbox(json!({})).await;
    receiver.wait_for(9).await;
    assert_eq!(receiver.seen()[8].header("x-sandboxer-attempt"), "1", "the old one is done with");
}

#[tokio::test]
async fn a_retry_blocks_nothing_and_first_tries_stay_in_order() {
    let clock = ManualClock::new();
    let (server, receiver) = (builder(&clock).start().unwrap(), Receiver::start().await);
    let api = Api::of(&server);
    let endpoint = subscribe(&api, &receiver.url("/in"), &["sandbox.ready"]).await;
    receiver.next(Reply::Status(503));
    receiver.next(Reply::Hang);
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(api.sandbox(json!({})).await);
    }
    // The first is to be sent again later; the second hangs, and the third waits for it.
    receiver.wait_for(2).await;
    for _ in 0..8 {
        ids.push(api.sandbox(json!({})).await);
    }
    clock.wait_for_sleep_of(Duration::from_secs(5)).await;
    assert_eq!(receiver.seen().len(), 2);
    clock.advance(Duration::from_secs(5));
    let seen = receiver.wait_for(10).await;
    let told: Vec<_> = seen.iter().map(|delivery| delivery.json()["data"]["sandbox"]["id"].clone()).collect();
    assert_eq!(told, ids);
    until(async || {
        progress(&server, &endpoint).iter().filter(|(progress, _)| *progress == "delivered").count() == 8
    })
    .await;
    let hung = &server.world().deliveries(&endpoint.id)[1];
    assert_eq!(hung.attempts, [Err("no answer within 5 s".to_owned())]);
    clock.advance(Duration::from_secs(10));
    let seen = receiver.wait_for(12).await;
    let mut again: Vec<_> =
        seen[10..].iter().map(|delivery| delivery.json()["data"]["sandbox"]["id"].clone()).collect();
    again.sort_by_key(|id| ids.iter().position(|known| id == known));
    assert_eq!(again, ids[..2]);
    until(async || progress(&server, &endpoint).iter().all(|(progress, _)| *progress == "delivered")).await;
}

#[tokio::test]
async fn an_endpoint_that_hangs_holds_up_no_other() {
    let clock = ManualClock::new();
    let (server, stuck, fine) =
        (builder(&clock).start().unwrap(), Receiver::start().await, Receiver::start().await);
    let api = Api::of(&server);
    stuck.otherwise(Reply::Hang);
    subscribe(&api, &stuck.url("/in"), &["sandbox.ready"]).await;
    subscribe(&api, &fine.url("/in"), &["sandbox.ready"]).await;
    for _ in 0..5 {
        api.sandbox(json!({})).await;
    }
    fine.wait_for(5).await;
    assert_eq!(stuck.wait_for(1).await.len(), 1);
}

#[tokio::test]
async fn deletion_drops_what_waits_and_rotation_changes_what_is_sent() {
    let clock = ManualClock::new();
    let (server, receiver) = (builder(&clock).start().unwrap(), Receiver::start().await);
    let api = Api::of(&server);
    receiver.otherwise(Reply::Status(500));
    let gone = subscribe(&api, &receiver.url("/gone"), &["sandbox.ready"]).await;
    let kept = subscribe(&api, &receiver.url("/kept"), &["sandbox.ready"]).await;
    api.sandbox(json!({})).await;
    receiver.wait_for(2).await;
    until(async || {
        progress(&server, &gone) == [("pending", 1)] && progress(&server, &kept) == [("pending", 1)]
    })
    .await;
    api.send(api.request("DELETE", &format!("/webhooks/{}", gone.id))).await.succeeds(200, "webhook.deleted");
    assert_eq!(server.world().deliveries(&gone.id), []);
    let rotated = api.send(api.request("POST", &format!("/webhooks/{}/rotate", kept.id))).await;
    let rotated = rotated.succeeds(200, "webhook.rotated")["secret"].as_str().unwrap().to_owned();
    receiver.otherwise(Reply::Status(200));
    clock.wait_for_sleep_of(Duration::from_secs(10)).await;
    clock.advance(Duration::from_secs(10));
    let seen = receiver.wait_for(3).await;
    assert_eq!((seen.len(), seen[2].path.as_str()), (3, "/kept"));
    let (new, old) = (Verifier::new(rotated.as_str()).unwrap(), Verifier::new(kept.secret.as_str()).unwrap());
    let first = seen.iter().find(|delivery| delivery.path == "/kept").unwrap();
    old.clock(clock.shared()).verify(&first.headers, &first.body).unwrap();
    new.clock(clock.shared()).verify(&seen[2].headers, &seen[2].body).unwrap();
    until(async || progress(&server, &kept) == [("delivered", 2)]).await;
}

#[tokio::test]
async fn a_server_that_starts_again_takes_up_what_was_not_delivered() {
    let clock = ManualClock::new();
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start().await;
    let start = || builder(&clock).data_dir(folder.path()).api_key("k").start().unwrap();
    let server = start();
    let api = Api::of(&server);
    receiver.next(Reply::Status(500));
    receiver.next(Reply::Hang);
    let endpoint = subscribe(&api, &receiver.url("/in"), &["sandbox.ready"]).await;
    for _ in 0..3 {
        api.sandbox(json!({})).await;
    }
    receiver.wait_for(2).await;
    until(async || progress(&server, &endpoint) == [("pending", 1), ("pending", 0), ("pending", 0)]).await;
    tokio::task::spawn_blocking(move || server.shutdown()).await.unwrap();

    let server = start();
    let seen = receiver.wait_for(4).await;
    let ids: Vec<_> = seen.iter().map(|delivery| delivery.header("x-sandboxer-delivery")).collect();
    let attempts: Vec<_> = seen.iter().map(|delivery| delivery.header("x-sandboxer-attempt")).collect();
    assert_eq!((ids[1], attempts[2]), (ids[2], "1"), "a try that was cut off has not been one");
    // Before time moves on: an answer that is still on its way would come too late.
    until(async || progress(&server, &endpoint) == [("pending", 1), ("delivered", 1), ("delivered", 1)])
        .await;
    clock.wait_for_sleep_of(Duration::from_secs(10)).await;
    clock.advance(Duration::from_secs(10));
    let seen = receiver.wait_for(5).await;
    assert_eq!(
        (seen[4].header("x-sandboxer-delivery"), seen[4].header("x-sandboxer-attempt")),
        (ids[0], "2")
    );
    until(async || progress(&server, &endpoint) == [("delivered", 2), ("delivered", 1), ("delivered", 1)])
        .await;
}

#[tokio::test]
async fn a_server_that_may_not_reach_this_machine_does_not() {
    let clock = ManualClock::new();
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start().await;
    let server = builder(&clock).data_dir(folder.path()).api_key("k").start().unwrap();
    let api = Api::of(&server);
    let endpoint = subscribe(&api, &receiver.url("/in"), &["sandbox.ready"]).await;
    let named = receiver.url("/in").replace("127.0.0.1", "localhost");
    let by_name = subscribe(&api, &named, &["sandbox.ready"]).await;
    api.sandbox(json!({})).await;
    receiver.wait_for(2).await;
    until(async || progress(&server, &by_name) == [("delivered", 1)]).await;
    tokio::task::spawn_blocking(move || server.shutdown()).await.unwrap();

    let strict = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted);
    let server = strict.data_dir(folder.path()).api_key("k").start().unwrap();
    let api = Api::of(&server);
    api.post("/webhooks", json!({"url": receiver.url("/2"), "events": ["sandbox.ready"]}))
        .await
        .fails(400, "invalid_webhook_url");
    api.sandbox(json!({})).await;
    for endpoint in [&endpoint, &by_name] {
        until(async || progress(&server, endpoint) == [("delivered", 1), ("pending", 1)]).await;
        let problem = server.world().deliveries(&endpoint.id)[1].attempts[0].clone();
        assert_eq!(problem, Err("the URL must have a public address".into()));
    }
    assert_eq!(receiver.seen().len(), 2);
}

#[tokio::test]
async fn nobody_at_the_address_is_a_try_that_failed() {
    let clock = ManualClock::new();
    let server = builder(&clock).start().unwrap();
    let api = Api::of(&server);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = subscribe(&api, &format!("http://{closed}/"), &["sandbox.ready"]).await;
    api.sandbox(json!({})).await;
    until(async || progress(&server, &endpoint) == [("pending", 1)]).await;
    let problem = server.world().deliveries(&endpoint.id)[0].attempts[0].clone().unwrap_err();
    assert!(problem.to_lowercase().contains("refused"), "{problem}");
    let receiver = Receiver::on(closed).await;
    clock.wait_for_sleep_of(Duration::from_secs(10)).await;
    clock.advance(Duration::from_secs(10));
    assert_eq!(receiver.wait_for(1).await[0].header("x-sandboxer-attempt"), "2");
}

#[tokio::test]
async fn a_world_can_start_with_endpoints() {
    let clock = ManualClock::new();
    let (receiver, folder) = (Receiver::start().await, tempfile::tempdir().unwrap());
    let start = |secret: &str| {
        let world = format!("[[webhooks]]\nurl = \"{}\"\nsecret = \"{secret}\"", receiver.url("/in"));
        let world = WorldSeed::from_toml(&world).unwrap();
        builder(&clock).world(world).data_dir(folder.path()).api_key("k").start().unwrap()
    };
    for (number, secret) in ["whsec_one", "whsec_two"].into_iter().enumerate() {
        let server = start(secret);
        let api = Api::of(&server);
        let listed = api.get("/webhooks").await.succeeds(200, "webhook.list")["webhooks"].clone();
        assert_eq!((listed.as_array().unwrap().len(), &listed[0]["events"]), (1, &json!(ALL)));
        api.sandbox(json!({})).await;
        let seen = receiver.wait_for(number + 1).await;
        let verifier = Verifier::new(secret).unwrap().clock(clock.shared());
        verifier.verify(&seen[number].headers, &seen[number].body).unwrap();
        let id = listed[0]["id"].as_str().unwrap();
        until(async || server.world().deliveries(id).iter().all(|delivery| delivery.progress == "delivered"))
            .await;
        tokio::task::spawn_blocking(move || server.shutdown()).await.unwrap();
    }
    for bad in ["http://10.0.0.1/", "https://hooks.example:444/", "nowhere"] {
        let world = format!("[[webhooks]]\nurl = \"{bad}\"\nsecret = \"s\"");
        let error = WorldSeed::from_toml(&world).unwrap_err().to_string();
        assert!(error.starts_with("webhooks[0]: url: must "), "{error}");
    }
}

#[tokio::test]
async fn the_history_goes_back_thirty_days() {
    let clock = ManualClock::new();
    let (server, receiver) = (builder(&clock).start().unwrap(), Receiver::start().await);
    let api = Api::of(&server);
    let endpoint = subscribe(&api, &receiver.url("/in"), &["sandbox.ready"]).await;
    let day = Duration::from_secs(86_400);
    let mut histories: Vec<Vec<WebhookDelivery>> = Vec::new();
    for pause in [day * 29, day * 2] {
        api.sandbox(json!({"ttlSeconds": null})).await;
        until(async || progress(&server, &endpoint).iter().all(|(progress, _)| *progress == "delivered"))
            .await;
        histories.push(server.world().deliveries(&endpoint.id));
        clock.advance(pause);
    }
    assert_eq!((histories[0].len(), histories[1].len()), (1, 2));
    api.sandbox(json!({})).await;
    until(async || server.world().deliveries(&endpoint.id).first() == histories[1].get(1)).await;
    assert_eq!(clock.now().duration_since(ManualClock::new().now()).unwrap(), day * 31);
}

#[tokio::test]
async fn a_killed_server_forgets_no_delivery() {
    let (folder, receiver) = (tempfile::tempdir().unwrap(), Receiver::start().await);
    let folder = folder.path().to_str().unwrap();
    let arguments =
        ["--api-key", "k", "--runner", "scripted", "--allow-loopback-targets", "--data-dir", folder];
    let (server, url) = binary::start(&arguments);
    let api = Api::with_key(&url, "k");
    receiver.otherwise(Reply::Hang);
    subscribe(&api, &receiver.url("/in"), &["sandbox.ready"]).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(api.sandbox(json!({})).await);
    }
    receiver.wait_for(1).await;
    binary::kill(&server, "-KILL");
    drop(server);
    receiver.otherwise(Reply::Status(200));
    let (_server, _) = binary::start(&arguments);
    let seen = receiver.wait_for(6).await;
    let told: Vec<_> =
        seen[1..].iter().map(|delivery| delivery.json()["data"]["sandbox"]["id"].clone()).collect();
    assert_eq!(told, ids);
    assert_eq!(seen[0].body, seen[1].body, "the one that was on its way");
}
