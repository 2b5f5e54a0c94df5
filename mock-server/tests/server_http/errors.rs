//! What bad input gets.

use sandboxer_mock_server::MockServer;
use serde_json::{Value, json};

use crate::http::Api;

#[tokio::test]
async fn keys_paths_and_methods_are_checked() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let wrong = Api::with_key(&server.url(), "sbx_live_wrong");
    wrong.get("/me").await.fails(401, "unauthorized");
    wrong.get("/sandboxes/bx_22222222").await.fails(401, "unauthorized");
    let bare = reqwest::Client::builder().no_proxy().build().unwrap();
    let without = api.send(bare.get(format!("{}/me", server.url()))).await;
    without.fails(401, "unauthorized");
    assert_eq!(without.headers["www-authenticate"], "Bearer");
    let basic =
        api.send(bare.get(format!("{}/me", server.url())).header("authorization", "Basic eA==")).await;
    basic.fails(401, "unauthorized");
    api.get("/nothing").await.fails(404, "not_found");
    api.get("/sandboxes/bx_22222222").await.fails(404, "not_found");
    let refused = api.call("PUT", "/sandboxes", json!({})).await;
    refused.fails(405, "method_not_allowed");
    assert_eq!(refused.headers["allow"], "GET, POST");
}

#[tokio::test]
async fn bodies_and_queries_are_checked_and_nothing_happens() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let create = |body: Value| async { api.post("/sandboxes", body).await };
    let cases = [
        (json!({"ttlSeconds": 0}), "invalid_request", "ttlSeconds"),
        (json!({"ttlSeconds": 2_592_001}), "invalid_request", "ttlSeconds"),
        (json!({"ttlSeconds": "long"}), "invalid_request", "ttlSeconds"),
        (json!({"type": "huge"}), "invalid_request", "type"),
        (json!({"env": {"1A": "x"}}), "invalid_env", "env.1A"),
        (json!({"env": {"SANDBOXER_TOKEN": "x"}}), "invalid_env", "env.SANDBOXER_TOKEN"),
        (json!({"env": {"A": "x".repeat(65_536)}}), "invalid_env", "env"),
        (json!({"setupScript": "x".repeat(65_537)}), "invalid_setup_script", "setupScript"),
        (json!({"environment": "staging"}), "unknown_environment", "environment"),
    ];
    for (body, code, field) in cases {
        let answer = create(body).await;
        assert_eq!(answer.fails(400, code)["field"], field);
    }
    create(json!({"from": "nothing"})).await.fails(404, "snapshot_not_found");
    create(json!([])).await.fails(400, "invalid_request");
    let text = api.send(api.request("POST", "/sandboxes").body("{not json")).await;
    text.fails(400, "invalid_json");
    let long = api.send(api.request("POST", "/sandboxes").body("x".repeat(1_100_000))).await;
    long.fails(413, "body_too_large");
    let key = api.send(api.request("POST", "/sandboxes").header("Idempotency-Key", "k".repeat(256))).await;
    key.fails(400, "invalid_request");
    assert_eq!(server.world().sandboxes(), [""; 0]);
    for limit in ["0", "201", "many"] {
        let answer = api.get(&format!("/sandboxes?limit={limit}")).await;
        assert_eq!(answer.fails(400, "invalid_limit")["field"], "limit");
    }
    api.get("/sandboxes?cursor=nonsense&limit=1").await.succeeds(200, "sandbox.list");
    api.get("/sandboxes?sort=up").await.fails(400, "invalid_request");
}

#[tokio::test]
async fn commands_and_files_of_a_live_sandbox_are_checked() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}/commands");
    let cases = [
        (json!({"command": "true", "timeoutSeconds": 0}), "invalid_timeout", "timeoutSeconds"),
        (json!({"command": "true", "timeoutSeconds": 601}), "invalid_timeout", "timeoutSeconds"),
        (json!({"command": "true", "env": {"A=B": "x"}}), "invalid_env", "env.A=B"),
        (json!({"command": ""}), "invalid_request", "command"),
        (json!({"command": "a\u{0}b"}), "invalid_request", "command"),
        (json!({}), "invalid_request", "command"),
        (json!({"command": "true", "cwd": "/etc"}), "invalid_path", "cwd"),
        (json!({"command": "true", "cwd": "../.."}), "invalid_path", "cwd"),
        (json!({"command": "true", "cwd": "not-there"}), "invalid_path", "cwd"),
    ];
    for (body, code, field) in cases {
        let answer = api.post(&path, body).await;
        assert_eq!(answer.fails(400, code)["field"], field);
    }
    assert_eq!(server.world().commands(&id), [""; 0]);
    for process in ["1", "0", "-1", "x", "99999999999999999999"] {
        api.get(&format!("{path}/{process}")).await.fails(404, "not_found");
        api.call("DELETE", &format!("{path}/{process}"), json!({})).await.fails(404, "not_found");
        api.get(&format!("{path}/{process}/stream")).await.fails(404, "not_found");
    }
    api.get(&format!("/sandboxes/{id}/command-history?limit=101")).await.fails(400, "invalid_limit");
    api.get(&format!("/sandboxes/{id}/command-history/cmd_none/logs?limit=0"))
        .await
        .fails(400, "invalid_limit");
    api.get(&format!("/sandboxes/{id}/command-history?mode=odd")).await.fails(400, "invalid_request");
    api.get(&format!("/sandboxes/{id}/command-history/cmd_none")).await.fails(404, "not_found");
    api.get(&format!("/sandboxes/{id}/stops/stop_none")).await.fails(404, "not_found");
    api.get("/deletion-operations/bdop_none").await.fails(404, "not_found");
    let confirm = api.call("DELETE", &format!("/sandboxes/{id}"), json!({})).await;
    assert_eq!(confirm.fails(409, "delete_confirmation_required")["targetId"], id);
    api.get(&format!("/sandboxes/{id}/usage?since=yesterday")).await.fails(400, "invalid_request");
    api.call("PATCH", &format!("/sandboxes/{id}"), json!({"name": ""})).await.fails(400, "invalid_name");
    api.call("PATCH", &format!("/sandboxes/{id}"), json!({"subdomain": "a--b"}))
        .await
        .fails(400, "invalid_request");
    assert_eq!(api.state(&id).await, "ready");
}
