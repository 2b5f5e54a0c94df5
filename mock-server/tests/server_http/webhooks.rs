//! Webhook endpoints as accounts manage them.

use std::collections::HashSet;

use sandboxer_mock_server::{MockServer, runner::RunnerKind};
use serde_json::{Value, json};

use crate::{
    http::Api,
    worlds::{ACME, people, scripted, with_keys_of},
};

fn start() -> MockServer {
    MockServer::builder().runner(RunnerKind::Scripted).start().unwrap()
}

#[tokio::test]
async fn an_endpoint_is_made_read_changed_and_taken_away() {
    let server = start();
    let api = Api::of(&server);
    let body = json!({"name": "alerts", "url": "https://hooks.example/in", "events": ["sandbox.ready", "sandbox.error", "sandbox.ready"]});
    let made = api.post("/webhooks", body).await.succeeds(201, "webhook.created");
    let (id, secret) = (made["webhook"]["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    assert!(id.starts_with("wh_") && id.len() == 27, "{id}");
    assert!(secret.starts_with("whsec_") && secret.len() == 70, "{}", secret.len());
    let expected = json!({
        "id": id, "name": "alerts", "url": "https://hooks.example/in",
        "events": ["sandbox.ready", "sandbox.error"],
        "createdAt": made["webhook"]["createdAt"], "updatedAt": made["webhook"]["createdAt"],
    });
    assert_eq!(made["webhook"], expected);

    let path = format!("/webhooks/{id}");
    let read = api.get(&path).await.succeeds(200, "webhook.info");
    assert_eq!(read, json!({"ok": true, "type": "webhook.info", "webhook": expected}));
    let listed = api.get("/webhooks").await.succeeds(200, "webhook.list");
    assert_eq!(listed["webhooks"], json!([expected]));

    let change = json!({"name": null, "url": "https://hooks.example/v2"});
    let changed = api.call("PATCH", &path, change).await.succeeds(200, "webhook.updated");
    assert_eq!(
        (&changed["webhook"]["name"], &changed["webhook"]["url"]),
        (&Value::Null, &json!("https://hooks.example/v2"))
    );
    assert_eq!(changed["webhook"]["events"], expected["events"]);
    let changed = api.call("PATCH", &path, json!({"events": ["sandbox.archived"]})).await;
    assert_eq!(changed.succeeds(200, "webhook.updated")["webhook"]["events"], json!(["sandbox.archived"]));
    let same = api.call("PATCH", &path, json!({"url": null, "events": null})).await;
    assert_eq!(same.succeeds(200, "webhook.updated")["webhook"]["url"], "https://hooks.example/v2");

    let rotated = api.send(api.request("POST", &format!("{path}/rotate"))).await;
    let rotated = rotated.succeeds(200, "webhook.rotated");
    assert_eq!(rotated["webhook"]["id"], id);
    assert_ne!(rotated["secret"], secret);

    let gone = api.send(api.request("DELETE", &path)).await.succeeds(200, "webhook.deleted");
    assert_eq!(gone, json!({"ok": true, "type": "webhook.deleted", "id": id}));
    for (method, path) in
        [("GET", path.clone()), ("DELETE", path.clone()), ("POST", format!("{path}/rotate"))]
    {
        api.send(api.request(method, &path)).await.fails(404, "not_found");
    }
    api.call("PATCH", &path, json!({"name": "x"})).await.fails(404, "not_found");
    assert_eq!(api.get("/webhooks").await.body["webhooks"], json!([]));
}

#[tokio::test]
async fn bad_endpoints_are_refused_and_change_nothing() {
    let server = start();
    let api = Api::of(&server);
    let made =
        api.post("/webhooks", json!({"url": "https://hooks.example/in", "events": ["sandbox.ready"]})).await;
    let path =
        format!("/webhooks/{}", made.succeeds(201, "webhook.created")["webhook"]["id"].as_str().unwrap());
    let before = api.get(&path).await.body;
    let cases = [
        (json!({"url": "http://hooks.example/2"}), "invalid_webhook_url", "url"),
        (json!({"url": "http://127.0.0.1:9/2"}), "invalid_webhook_url", "url"),
        (json!({"url": "https://2130706433/"}), "invalid_webhook_url", "url"),
        (json!({"url": "https://u:p@hooks.example/"}), "invalid_webhook_url", "url"),
        (json!({"url": "https://hooks.example:444/"}), "invalid_webhook_url", "url"),
        (json!({"url": ""}), "invalid_webhook_url", "url"),
        (json!({"url": format!("https://hooks.example/{}", "x".repeat(2048))}), "invalid_webhook_url", "url"),
        (json!({"url": 5}), "invalid_webhook_url", "url"),
        (json!({"events": ["sandbox.moved"]}), "invalid_request", "events[0]"),
        (json!({"events": []}), "invalid_request", "events"),
        (json!({"events": "sandbox.ready"}), "invalid_request", "events"),
        (json!({"name": ""}), "invalid_request", "name"),
        (json!({"name": "x".repeat(101)}), "invalid_request", "name"),
    ];
    for (change, code, field) in cases {
        let refused = api.call("PATCH", &path, change.clone()).await;
        assert_eq!(refused.fails(400, code)["field"], field, "{change}");
        let mut whole = json!({"url": "https://hooks.example/2", "events": ["sandbox.error"]});
        whole.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let refused = api.post("/webhooks", whole).await;
        assert_eq!(refused.fails(400, code)["field"], field, "{change}");
    }
    for missing in [json!({"url": "https://hooks.example/2"}), json!({"events": ["sandbox.ready"]})] {
        assert_eq!(api.post("/webhooks", missing).await.status, 400);
    }
    let garbage = api.request("POST", "/webhooks").header("content-type", "application/json").body("{");
    api.send(garbage).await.fails(400, "invalid_json");
    assert_eq!(api.get(&path).await.body, before);
    assert_eq!(api.get("/webhooks").await.body["webhooks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_account_has_ten_endpoints_at_most_and_each_url_once() {
    let server = start();
    let api = Api::of(&server);
    let add = async |url: &str| api.post("/webhooks", json!({"url": url, "events": ["sandbox.ready"]})).await;
    for number in 0..10 {
        add(&format!("https://hooks.example/{number}")).await.succeeds(201, "webhook.created");
    }
    add("https://hooks.example/10").await.fails(409, "webhook_limit");
    add("HTTPS://HOOKS.example:443/9#again").await.fails(409, "webhook_exists");
    let listed = api.get("/webhooks").await.body["webhooks"].clone();
    let urls: Vec<_> = listed.as_array().unwrap().iter().map(|webhook| webhook["url"].clone()).collect();
    let expected: Vec<_> = (0..10).map(|number| json!(format!("https://hooks.example/{number}"))).collect();
    assert_eq!(urls, expected, "the oldest first");

    let path = format!("/webhooks/{}", listed[3]["id"].as_str().unwrap());
    api.call("PATCH", &path, json!({"url": "https://hooks.example/4"})).await.fails(409, "webhook_exists");
    api.call("PATCH", &path, json!({"url": "https://hooks.example/3#x"}))
        .await
        .succeeds(200, "webhook.updated");
    api.send(api.request("DELETE", &path)).await.succeeds(200, "webhook.deleted");
    add("https://hooks.example/10").await.succeeds(201, "webhook.created");
}

#[tokio::test]
async fn of_many_who_add_one_url_at_once_one_wins() {
    let server = start();
    let api = Api::of(&server);
    let adding = (0..20).map(|_| {
        let api = api.clone();
        tokio::spawn(async move {
            api.post("/webhooks", json!({"url": "https://hooks.example/in", "events": ["sandbox.ready"]}))
                .await
                .status
        })
    });
    let adding: Vec<_> = adding.collect();
    let mut statuses = Vec::new();
    for added in adding {
        statuses.push(added.await.unwrap());
    }
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().collect::<HashSet<_>>(), HashSet::from([&201, &409]));
}

#[tokio::test]
async fn endpoints_belong_to_an_account_and_need_its_keys() {
    let key = "[[keys]]\nsecret = \"key-reader\"\naccount = \"alice\"\npreset = \"read-only\"";
    let server = scripted(&[&people(["alice", "bob"]), ACME, key].concat()).start().unwrap();
    let [alice, bob] = with_keys_of(&server, ["alice", "bob"]);
    let reader = Api::with_key(&server.url(), "key-reader");
    let body = json!({"url": "https://hooks.example/in", "events": ["sandbox.ready"]});
    let made = alice.post("/webhooks", body.clone()).await.succeeds(201, "webhook.created");
    let path = format!("/webhooks/{}", made["webhook"]["id"].as_str().unwrap());

    for (method, path) in
        [("GET", path.clone()), ("DELETE", path.clone()), ("POST", format!("{path}/rotate"))]
    {
        bob.send(bob.request(method, &path)).await.fails(404, "not_found");
    }
    bob.call("PATCH", &path, json!({"name": "mine"})).await.fails(404, "not_found");
    bob.call("PATCH", &path, json!({"url": "http://x"})).await.fails(404, "not_found");
    let in_org = bob.send(bob.request("GET", "/webhooks").header("X-Sandboxer-Org", "Acme")).await;
    assert_eq!(in_org.succeeds(200, "webhook.list")["webhooks"], json!([]), "not the organisation's");
    bob.post("/webhooks", body.clone()).await.succeeds(201, "webhook.created");

    assert_eq!(reader.get(&path).await.succeeds(200, "webhook.info")["webhook"], made["webhook"]);
    reader.get("/webhooks").await.succeeds(200, "webhook.list");
    reader.post("/webhooks", body).await.fails(403, "forbidden");
    reader.call("PATCH", &path, json!({"name": "x"})).await.fails(403, "forbidden");
    for (method, path) in [("DELETE", path.clone()), ("POST", format!("{path}/rotate"))] {
        reader.send(reader.request(method, &path)).await.fails(403, "forbidden");
    }
    assert_eq!(alice.get(&path).await.body["webhook"], made["webhook"]);
}
