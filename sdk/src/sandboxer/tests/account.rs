//! What the account's verbs send, and what they refuse.

use std::time::Duration;

use serde_json::{Value, json};

use super::service::{Reply, Request, Service};
use crate::{
    AsyncSandboxer, Dialect, EnvironmentUpdate, EnvironmentUpgrade, Error, ErrorKind, ListRepositories,
    NewWebhook, ReplaceSecrets, RetentionUpdate, ScopedKey, TelemetryTarget, WebhookUpdate,
    models::{
        ApiKeyPreset, EnvironmentRepositoryRequest, SecretFileRequest, SelectRepositoryRequest,
        WebhookEventType,
    },
};

/// Answers everything with what all verbs here can read.
fn answer(request: &Request) -> Reply {
    let item = json!({"id": "i_1", "name": "made", "url": "https://a.example"});
    let body = json!({
        "ok": true, "type": "x", "success": true, "id": "i_1", "name": "made", "orgs": [], "members": [], "active": item,
        "apiKeys": [item], "apiKey": item, "secret": "hush", "webhooks": [item], "webhook": item, "telemetry": null, "createdResources": [],
        "test": {"ok": false, "status": 500, "message": "no"}, "environmentId": "v_1", "envContents": "A=hush",
        "secretFiles": [], "environments": [item], "environment": item, "upgraded": 1, "failed": 0,
        "installations": [{"repositories": [{"databaseId": "7"}]}], "selectedRepositories": [], "enabled": false,
        "pageInfo": {"nextCursor": null, "hasMore": false, "limit": 100},
    });
    let created = request.call == "POST /api-keys/scoped" || request.call == "POST /webhooks";
    Reply::Json(if created { 201 } else { 200 }, body)
}

fn service() -> (Service, AsyncSandboxer) {
    let service = Service::start(|request, _| answer(request));
    let client = service.client();
    (service, client)
}

#[track_caller]
fn refused<T>(result: Result<T, Error>, field: &str) {
    let Err(error) = result else { panic!("{field}: it is not refused") };
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.message().starts_with(&format!("{field}: ")), "{field}: {error}");
}

#[track_caller]
fn sent(service: &Service, expected: &[(&str, Value)]) {
    let sent: Vec<_> = service.requests().into_iter().map(|request| (request.call, request.body)).collect();
    let expected: Vec<_> = expected.iter().map(|(call, body)| ((*call).to_owned(), body.clone())).collect();
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn organisations() {
    let (service, client) = service();
    let organizations = client.organizations();
    organizations.list().await.unwrap();
    organizations.create("acme").await.unwrap();
    organizations.members("team_1").await.unwrap();
    assert_eq!(organizations.set_active(Some("acme")).await.unwrap().id, "i_1");
    organizations.set_active(None).await.unwrap();
    refused(organizations.create("").await, "name");
    refused(organizations.create(&"x".repeat(101)).await, "name");
    refused(organizations.set_active(Some("")).await, "org");
    assert_eq!(organizations.members("..").await.unwrap_err().kind(), ErrorKind::InvalidInput);
    sent(
        &service,
        &[
            ("GET /orgs", Value::Null),
            ("POST /orgs", json!({"name": "acme"})),
            ("GET /orgs/team_1/members", Value::Null),
            ("PATCH /orgs/active", json!({"org": "acme"})),
            ("PATCH /orgs/active", json!({"org": null})),
        ],
    );
}

#[tokio::test]
async fn keys() {
    let (service, client) = service();
    let keys = client.api_keys();
    keys.list().await.unwrap();
    let scoped = ScopedKey::new()
        .name("ci")
        .ttl(Duration::from_millis(1500))
        .preset(ApiKeyPreset::ReadOnly)
        .action("exec")
        .action("host")
        .sandbox("bx_1")
        .environment("env_1");
    let made = keys.create_scoped(scoped).await.unwrap();
    assert!(!format!("{made:?}").contains("hush"), "{made:?}");
    keys.create_scoped(ScopedKey::new()).await.unwrap();
    assert_eq!(keys.revoke("k 1").await.unwrap().len(), 1);
    keys.rotate("k_1").await.unwrap();
    keys.usage("k_1").await.unwrap();
    let create = |key| async { client.api_keys().create_scoped(key).await };
    refused(create(ScopedKey::new().name("")).await, "name");
    refused(create(ScopedKey::new().ttl(Duration::ZERO)).await, "ttl");
    refused(create(ScopedKey::new().ttl(Duration::from_secs(365 * 86_400 + 1))).await, "ttl");
    refused(create(ScopedKey::new().ttl(Duration::MAX)).await, "ttl");
    refused(create(ScopedKey::new().no_ttl()).await, "ttl");
    refused(create(ScopedKey::new().action("")).await, "actions[0]");
    refused(create(ScopedKey::new().sandbox("")).await, "sandboxIds[0]");
    refused(create(ScopedKey::new().environment("")).await, "environmentIds[0]");
    for id in ["", ".", "..", "a\0"] {
        assert_eq!(keys.revoke(id).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(keys.rotate(id).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    let scoped = json!({"name": "ci", "ttl": "2", "preset": "read-only", "actions": ["exec", "host"],
        "sandboxIds": ["bx_1"], "environmentIds": ["env_1"]});
    sent(
        &service,
        &[
            ("GET /api-keys", Value::Null),
            ("POST /api-keys/scoped", scoped),
            ("POST /api-keys/scoped", json!({})),
            ("DELETE /api-keys/k%201", Value::Null),
            ("POST /api-keys/k_1/rotate", Value::Null),
            ("GET /api-keys/k_1/usage", Value::Null),
        ],
    );
}

#[tokio::test]
async fn a_key_for_ever_is_one_dialects() {
    let service = Service::start(|request, _| answer(request));
    let boat = service.client_of(Dialect::Boat);
    boat.api_keys().create_scoped(ScopedKey::new().no_ttl()).await.unwrap();
    sent(&service, &[("POST /api-keys/scoped", json!({"ttl": "never"}))]);
}

#[tokio::test]
async fn webhook_endpoints() {
    let (service, client) = service();
    let endpoints = client.webhook_endpoints();
    assert_eq!(endpoints.list().await.unwrap().len(), 1);
    let new = NewWebhook::new("https://hooks.example:443/in").name("alerts").event("sandbox.ready");
    let made = endpoints.create(new.events([WebhookEventType::SandboxError])).await.unwrap();
    assert!(made.secret.expose() == "hush" && !format!("{made:?}").contains("hush"));
    endpoints.get("wh_1").await.unwrap();
    let change = WebhookUpdate::new().name("a").url("https://b.example").events(["sandbox.new_kind"]);
    endpoints.update("wh_1", change).await.unwrap();
    endpoints.update("wh_1", WebhookUpdate::new().no_name()).await.unwrap();
    endpoints.delete("wh_1").await.unwrap();
    endpoints.rotate_secret("wh_1").await.unwrap();
    let create = |new| async { client.webhook_endpoints().create(new).await };
    let change = |change| async { client.webhook_endpoints().update("wh_1", change).await };
    let bad =
        ["", "http://a.example", "https://a.example:8443", "https://", "a.example", " https://a.example"];
    for url in bad {
        refused(create(NewWebhook::new(url).event("sandbox.ready")).await, "url");
        refused(change(WebhookUpdate::new().url(url)).await, "url");
    }
    let long = format!("https://a.example/{}", "x".repeat(2048));
    refused(create(NewWebhook::new(long).event("sandbox.ready")).await, "url");
    refused(create(NewWebhook::new("https://a.example")).await, "events");
    refused(create(NewWebhook::new("https://a.example").event("")).await, "events");
    refused(create(NewWebhook::new("https://a.example").event("x").name("")).await, "name");
    refused(change(WebhookUpdate::new()).await, "change");
    refused(change(WebhookUpdate::new().events([""; 0])).await, "events");
    refused(change(WebhookUpdate::new().name("x".repeat(101))).await, "name");
    let new = json!({"name": "alerts", "url": "https://hooks.example:443/in", "events": ["sandbox.ready", "sandbox.error"]});
    let changed = json!({"name": "a", "url": "https://b.example", "events": ["sandbox.new_kind"]});
    sent(
        &service,
        &[
            ("GET /webhooks", Value::Null),
            ("POST /webhooks", new),
            ("GET /webhooks/wh_1", Value::Null),
            ("PATCH /webhooks/wh_1", changed),
            ("PATCH /webhooks/wh_1", json!({"name": null})),
            ("DELETE /webhooks/wh_1", Value::Null),
            ("POST /webhooks/wh_1/rotate", Value::Null),
        ],
    );
}

#[tokio::test]
async fn telemetry() {
    let (service, client) = service();
    assert_eq!(client.telemetry().get().await.unwrap(), None);
    let target = TelemetryTarget::new("https://otel.example:4318").header("X-A", "hush").header("X-B", "2");
    let tried = client.telemetry().set(target).await.unwrap();
    assert!(!tried.test.ok, "a trial that failed is told, and is no error");
    client.telemetry().set(TelemetryTarget::new("https://otel.example")).await.unwrap();
    client.telemetry().delete().await.unwrap();
    let target = || TelemetryTarget::new("https://otel.example");
    let set = |target| async { client.telemetry().set(target).await };
    refused(set(TelemetryTarget::new("http://otel.example:4318")).await, "endpoint");
    refused(set(TelemetryTarget::new("https://otel.example:9090")).await, "endpoint");
    refused(set(TelemetryTarget::new("http://u:hush@127.0.0.1:4318")).await, "endpoint");
    refused(set(TelemetryTarget::new("ftp://127.0.0.1:4318")).await, "endpoint");
    refused(set(target().header("a b", "x")).await, "headers");
    refused(set(target().header("X-A", "x").header("x-a", "y")).await, "headers.x-a");
    refused(set(target().header("X-A", "a\nb: hush")).await, "headers.x-a");
    refused(set(target().header("X-A", "x".repeat(8193))).await, "headers.x-a");
    let headers = json!({"X-A": "hush", "X-B": "2"});
    sent(
        &service,
        &[
            ("GET /telemetry", Value::Null),
            ("PUT /telemetry", json!({"endpoint": "https://otel.example:4318", "headers": headers})),
            ("PUT /telemetry", json!({"endpoint": "https://otel.example"})),
            ("DELETE /telemetry", Value::Null),
        ],
    );
}

#[tokio::test]
async fn secrets_are_replaced_as_a_whole() {
    let (service, client) = service();
    let read = client.secrets().get().await.unwrap();
    assert!(read.env_contents.expose() == "A=hush" && !format!("{read:?}").contains("hush"));
    let all = ReplaceSecrets::new().env_contents("A=1\n").file("a/b.pem", "hush");
    client.secrets().replace(all).await.unwrap();
    client.secrets().replace(ReplaceSecrets::new()).await.unwrap();
    let replace = |secrets| async { client.secrets().replace(secrets).await };
    for path in ["", "/etc/passwd", "../x", "a/../../x", "~/x", "a\0b", &"x".repeat(4097)] {
        refused(replace(ReplaceSecrets::new().file(path, "x")).await, "secretFiles[0].path");
        refused(client.environments().set_secret_file("env_1", path, "x").await, "path");
        refused(client.environments().delete_secret_file("env_1", path).await, "path");
    }
    refused(replace(ReplaceSecrets::new().file("a", "1").file("a", "2")).await, "secretFiles[1].path");
    refused(replace(ReplaceSecrets::new().env_contents("x".repeat(65537))).await, "envContents");
    let all = json!({"envContents": "A=1\n", "secretFiles": [{"path": "a/b.pem", "contents": "hush"}]});
    sent(
        &service,
        &[
            ("GET /secrets", Value::Null),
            ("POST /secrets", all),
            // Even nothing is said in full.
            ("POST /secrets", json!({"envContents": "", "secretFiles": []})),
        ],
    );
}

#[tokio::test]
async fn environments() {
    let (service, client) = service();
    let environments = client.environments();
    environments.list().await.unwrap();
    assert_eq!(environments.create("made").await.unwrap().id, "i_1");
    let absent = environments.create("other").await.unwrap_err();
    assert_eq!((absent.kind(), absent.code()), (ErrorKind::Unexpected, "unexpected_response"));
    let change = EnvironmentUpdate::new()
        .name("ci")
        .make_default()
        .safe_for_third_parties(false)
        .pass_github(true)
        .pass_secrets(false)
        .pass_sandbox_credentials(true)
        .pass_agents_credentials(false)
        .env_contents("A=1\n")
        .secret_files([SecretFileRequest::new("k.pem", "hush")])
        .repositories([EnvironmentRepositoryRequest::new("7").base_branch("dev").setup_blocking(true)]);
    environments.update("env_1", change).await.unwrap();
    environments.upgrade("env_1", EnvironmentUpgrade::all()).await.unwrap();
    environments.upgrade("env_1", EnvironmentUpgrade::only(["bx_1"])).await.unwrap();
    environments.set_var("env_1", "A_1", "hush").await.unwrap();
    environments.delete_var("env_1", "A_1").await.unwrap();
    environments.set_secret_file("env_1", "a/k.pem", "hush").await.unwrap();
    environments.delete_secret_file("env_1", "a/k.pem").await.unwrap();
    environments.add_repo("env_1", SelectRepositoryRequest::new("7").base_branch("dev")).await.unwrap();
    environments.delete_repo("env_1", "7").await.unwrap();
    environments.delete("env_1").await.unwrap();
    let change = json!({"name": "ci", "isDefault": true, "safeForThirdParties": false, "passGithub": true,
        "passSecrets": false, "passSandboxCredentials": true, "passAgentsCredentials": false, "envContents": "A=1\n",
        "secretFiles": [{"path": "k.pem", "contents": "hush"}],
        "repositories": [{"repositoryId": "7", "baseBranch": "dev", "setupBlocking": true}]});
    let expected = [
        ("GET /environments", Value::Null),
        ("POST /environments", json!({"name": "made"})),
        ("POST /environments", json!({"name": "other"})),
        ("PUT /environments/env_1", change),
        ("POST /environments/env_1/upgrade", json!({})),
        ("POST /environments/env_1/upgrade", json!({"agentIds": ["bx_1"]})),
        ("PUT /environments/env_1/vars/A_1", json!({"value": "hush"})),
        ("DELETE /environments/env_1/vars/A_1", Value::Null),
        ("PUT /environments/env_1/secret-files", json!({"path": "a/k.pem", "contents": "hush"})),
        ("DELETE /environments/env_1/secret-files?path=a%2Fk.pem", Value::Null),
        ("POST /environments/env_1/repos", json!({"repositoryId": "7", "baseBranch": "dev"})),
        ("DELETE /environments/env_1/repos/7", Value::Null),
        ("DELETE /environments/env_1", Value::Null),
    ];
    sent(&service, &expected);
}

#[tokio::test]
async fn bad_environments_are_refused() {
    let (service, client) = service();
    let environments = client.environments();
    for name in ["", "a b", "a/b", "ä", &"x".repeat(65)] {
        refused(environments.create(name).await, "name");
        refused(environments.update("env_1", EnvironmentUpdate::new().name(name)).await, "name");
    }
    refused(environments.update("env_1", EnvironmentUpdate::new()).await, "change");
    let files = EnvironmentUpdate::new().secret_files([SecretFileRequest::new("/k", "x")]);
    refused(environments.update("env_1", files).await, "secretFiles[0].path");
    let repositories = EnvironmentUpdate::new().repositories([EnvironmentRepositoryRequest::new("")]);
    refused(environments.update("env_1", repositories).await, "repositories[0].repositoryId");
    refused(environments.upgrade("env_1", EnvironmentUpgrade::only([""])).await, "agentIds[0]");
    for key in ["", "9A", "A-B", "A B", "Ä", &"x".repeat(129)] {
        refused(environments.set_var("env_1", key, "x").await, "key");
        refused(environments.delete_var("env_1", key).await, "key");
    }
    refused(environments.set_var("env_1", "SANDBOXER_TOKEN", "x").await, "key");
    refused(environments.set_var("env_1", "A", "x".repeat(65537)).await, "value");
    refused(environments.set_var("env_1", "A", "a\0").await, "value");
    refused(environments.add_repo("env_1", SelectRepositoryRequest::new("")).await, "repositoryId");
    let branch = SelectRepositoryRequest::new("7").base_branch("");
    refused(client.repositories().select(branch).await, "baseBranch");
    for id in ["", "..", "a\nb"] {
        assert_eq!(environments.delete(id).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(environments.delete_repo("env_1", id).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(service.calls(), [""; 0]);
}

#[tokio::test]
async fn repositories() {
    let service = Service::start(|request, _| {
        let page = |id: &str, next: Option<&str>| {
            json!({"ok": true, "type": "repos.list", "environmentId": "v_1", "selectedRepositories": [],
                "installations": [{"repositories": [{"databaseId": id}]}, {"type": "org"}],
                "pageInfo": {"nextCursor": next, "hasMore": next.is_some(), "limit": 1}})
        };
        match &request.call {
            call if call.starts_with("POST") => answer(request),
            call if call.contains("cursor=c0") => Reply::Json(200, page("1", Some("c1"))),
            _ => Reply::Json(200, page("2", None)),
        }
    });
    let repositories = service.client().repositories();
    let options = ListRepositories::new().sync().search("a b").selected(true).sort("asc").cursor("c0");
    let found = repositories.list(options).collect().await.unwrap();
    let ids: Vec<_> = found.iter().map(|repository| repository.database_id.as_deref().unwrap()).collect();
    assert_eq!(ids, ["1", "2"]);
    assert_eq!(repositories.list(ListRepositories::new().limit(1)).collect().await.unwrap().len(), 1);
    repositories.select(SelectRepositoryRequest::new("7").base_branch("dev")).await.unwrap();
    let long = ListRepositories::new().search("x".repeat(201));
    refused(repositories.list(long).collect().await, "q");
    sent(
        &service,
        &[
            // GitHub is asked anew once.
            ("GET /repos?cursor=c0&limit=100&q=a+b&selected=true&sort=asc&sync=true", Value::Null),
            ("GET /repos?cursor=c1&limit=100&q=a+b&selected=true&sort=asc", Value::Null),
            ("GET /repos?limit=1", Value::Null),
            ("POST /repos", json!({"repositoryId": "7", "baseBranch": "dev"})),
        ],
    );
}

#[tokio::test]
async fn retention_takes_its_confirmation_word_for_word() {
    let (service, client) = service();
    let retention = client.data_retention();
    retention.get().await.unwrap();
    let words = "delete archived sandbox data";
    let change = RetentionUpdate::new().enable(words).snapshots_off(true).monitoring_off(false);
    retention.update(change).await.unwrap();
    retention.update(RetentionUpdate::new().enable(words).disable()).await.unwrap();
    refused(retention.update(RetentionUpdate::new()).await, "change");
    for wrong in [
        "",
        "yes",
        "Delete archived sandbox data",
        "delete archived sandbox data ",
        "delete archived sandbox data\n",
    ] {
        refused(retention.update(RetentionUpdate::new().enable(wrong)).await, "confirmation");
    }
    let enable =
        json!({"enabled": true, "confirmation": words, "snapshotsOff": true, "monitoringOff": false});
    sent(
        &service,
        &[
            ("GET /account/data-retention", Value::Null),
            ("PATCH /account/data-retention", enable),
            ("PATCH /account/data-retention", json!({"enabled": false})),
        ],
    );
}
