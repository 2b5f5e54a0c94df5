//! Keys, organisations, webhook endpoints, telemetry, retention.

use sandboxer::{Dialect, NewWebhook, RetentionUpdate, ScopedKey, TelemetryTarget, WebhookUpdate};

use super::{long, millis, secs};
use crate::builder_goldens_support::book::{Book, call, plain, refused};

#[tokio::test]
async fn keys_and_organizations() {
    let mut book = Book::open("account").await;
    let client = book.client();
    let boat = book.builder().dialect(Dialect::Boat).build().unwrap();

    book.section("ScopedKey");
    plain!(book, client.api_keys().create_scoped(ScopedKey::new()).await);
    call!(book, client.api_keys().create_scoped(ScopedKey::new().name("nightly")).await);
    call!(book, client.api_keys().create_scoped(ScopedKey::new().ttl(secs(86_400))).await);
    call!(book, client.api_keys().create_scoped(ScopedKey::new().ttl(millis(1))).await);
    call!(book, client.api_keys().create_scoped(ScopedKey::new().ttl(secs(365 * 86_400))).await);
    call!(book, client.api_keys().create_scoped(ScopedKey::new().preset("ci")).await);
    call!(book, client.api_keys().create_scoped(ScopedKey::new().action("exec")).await);
    call!(book, client.api_keys().create_scoped(ScopedKey::new().action("exec").action("file.read")).await);
    call!(book, client.api_keys().create_scoped(ScopedKey::new().sandbox("bx_1")).await);
    call!(book, client.api_keys().create_scoped(ScopedKey::new().environment("env_1")).await);
    plain!(book, boat.api_keys().create_scoped(ScopedKey::new()).await);
    call!(book, boat.api_keys().create_scoped(ScopedKey::new().no_ttl()).await);
    refused!(book, client.api_keys().create_scoped(ScopedKey::new().no_ttl()).await);
    refused!(book, client.api_keys().create_scoped(ScopedKey::new().name("")).await);
    refused!(book, client.api_keys().create_scoped(ScopedKey::new().name(long(101))).await);
    refused!(book, client.api_keys().create_scoped(ScopedKey::new().ttl(secs(0))).await);
    refused!(book, client.api_keys().create_scoped(ScopedKey::new().ttl(secs(365 * 86_400 + 1))).await);
    refused!(book, client.api_keys().create_scoped(ScopedKey::new().preset("")).await);
    refused!(book, client.api_keys().create_scoped(ScopedKey::new().action("")).await);
    refused!(book, client.api_keys().create_scoped(ScopedKey::new().sandbox("")).await);
    refused!(book, client.api_keys().create_scoped(ScopedKey::new().environment("")).await);

    book.section("API keys");
    plain!(book, client.api_keys().revoke("sak_1").await);
    call!(book, client.api_keys().revoke("sak_2").await);
    plain!(book, client.api_keys().rotate("sak_1").await);
    call!(book, client.api_keys().rotate("sak_2").await);
    plain!(book, client.api_keys().usage("sak_1").await);
    call!(book, client.api_keys().usage("sak_2").await);
    refused!(book, client.api_keys().revoke("").await);
    refused!(book, client.api_keys().rotate("..").await);
    refused!(book, client.api_keys().usage(".").await);

    book.section("Organisations");
    plain!(book, client.organizations().create("acme").await);
    call!(book, client.organizations().create("other").await);
    plain!(book, client.organizations().members("team_1").await);
    call!(book, client.organizations().members("team_2").await);
    plain!(book, client.organizations().set_active(None).await);
    call!(book, client.organizations().set_active(Some("team_1")).await);
    refused!(book, client.organizations().create("").await);
    refused!(book, client.organizations().members("..").await);
    refused!(book, client.organizations().set_active(Some("")).await);
    refused!(book, boat.organizations().create("acme").await);

    book.section("RetentionUpdate");
    plain!(book, client.data_retention().update(RetentionUpdate::new().snapshots_off(true)).await);
    call!(book, client.data_retention().update(RetentionUpdate::new().snapshots_off(false)).await);
    call!(book, client.data_retention().update(RetentionUpdate::new().monitoring_off(true)).await);
    call!(
        book,
        client.data_retention().update(RetentionUpdate::new().enable("delete archived sandbox data")).await
    );
    call!(book, client.data_retention().update(RetentionUpdate::new().disable()).await);
    refused!(book, client.data_retention().update(RetentionUpdate::new()).await);
    refused!(book, client.data_retention().update(RetentionUpdate::new().enable("")).await);
    refused!(book, client.data_retention().update(RetentionUpdate::new().enable("yes")).await);
    book.close();
}

#[tokio::test]
async fn webhook_endpoints_and_telemetry() {
    let mut book = Book::open("endpoints").await;
    let client = book.client();
    let url = "https://hooks.example/in";
    let some = || NewWebhook::new("https://hooks.example/in").event("sandbox.error");

    book.section("NewWebhook");
    plain!(book, client.webhook_endpoints().create(NewWebhook::new(url).event("sandbox.error")).await);
    call!(
        book,
        client
            .webhook_endpoints()
            .create(NewWebhook::new("https://other.example").event("sandbox.error"))
            .await
    );
    call!(
        book,
        client.webhook_endpoints().create(NewWebhook::new(url).event("sandbox.error").name("alerts")).await
    );
    call!(
        book,
        client
            .webhook_endpoints()
            .create(NewWebhook::new(url).event("sandbox.error").event("sandbox.ready"))
            .await
    );
    call!(
        book,
        client
            .webhook_endpoints()
            .create(NewWebhook::new(url).events(["sandbox.error", "sandbox.degraded"]))
            .await
    );
    refused!(book, client.webhook_endpoints().create(NewWebhook::new(url)).await);
    refused!(book, client.webhook_endpoints().create(NewWebhook::new(url).event("")).await);
    refused!(book, client.webhook_endpoints().create(some().name("")).await);
    refused!(book, client.webhook_endpoints().create(some().name(long(101))).await);
    refused!(book, client.webhook_endpoints().create(NewWebhook::new("").event("sandbox.error")).await);
    refused!(
        book,
        client
            .webhook_endpoints()
            .create(NewWebhook::new("http://hooks.example").event("sandbox.error"))
            .await
    );
    refused!(
        book,
        client
            .webhook_endpoints()
            .create(NewWebhook::new("https://hooks.example:8443").event("sandbox.error"))
            .await
    );
    refused!(
        book,
        client
            .webhook_endpoints()
            .create(NewWebhook::new("https://u:hush@hooks.example").event("sandbox.error"))
            .await
    );
    refused!(
        book,
        client
            .webhook_endpoints()
            .create(NewWebhook::new(format!("https://h.example/{}", long(2048))).event("sandbox.error"))
            .await
    );

    book.section("WebhookUpdate");
    plain!(book, client.webhook_endpoints().update("wh_1", WebhookUpdate::new().name("alerts")).await);
    call!(book, client.webhook_endpoints().update("wh_2", WebhookUpdate::new().name("alerts")).await);
    call!(book, client.webhook_endpoints().update("wh_1", WebhookUpdate::new().no_name()).await);
    call!(
        book,
        client.webhook_endpoints().update("wh_1", WebhookUpdate::new().url("https://hooks.example/v2")).await
    );
    call!(
        book,
        client.webhook_endpoints().update("wh_1", WebhookUpdate::new().events(["sandbox.error"])).await
    );
    refused!(book, client.webhook_endpoints().update("wh_1", WebhookUpdate::new()).await);
    refused!(book, client.webhook_endpoints().update("wh_1", WebhookUpdate::new().name("")).await);
    refused!(
        book,
        client.webhook_endpoints().update("wh_1", WebhookUpdate::new().url("ftp://hooks.example")).await
    );
    refused!(
        book,
        client.webhook_endpoints().update("wh_1", WebhookUpdate::new().events(Vec::<String>::new())).await
    );
    refused!(book, client.webhook_endpoints().update("", WebhookUpdate::new().name("alerts")).await);

    book.section("Webhook endpoints");
    plain!(book, client.webhook_endpoints().get("wh_1").await);
    call!(book, client.webhook_endpoints().get("wh_2").await);
    plain!(book, client.webhook_endpoints().delete("wh_1").await);
    call!(book, client.webhook_endpoints().delete("wh_2").await);
    plain!(book, client.webhook_endpoints().rotate_secret("wh_1").await);
    call!(book, client.webhook_endpoints().rotate_secret("wh_2").await);
    refused!(book, client.webhook_endpoints().get("").await);
    refused!(book, client.webhook_endpoints().delete("..").await);
    refused!(book, client.webhook_endpoints().rotate_secret("").await);

    book.section("TelemetryTarget");
    plain!(book, client.telemetry().set(TelemetryTarget::new("https://otel.example:4318")).await);
    call!(book, client.telemetry().set(TelemetryTarget::new("https://otel.example")).await);
    call!(
        book,
        client.telemetry().set(TelemetryTarget::new("https://otel.example:4318").header("X-Key", "1")).await
    );
    refused!(book, client.telemetry().set(TelemetryTarget::new("")).await);
    refused!(book, client.telemetry().set(TelemetryTarget::new("http://otel.example:4318")).await);
    refused!(book, client.telemetry().set(TelemetryTarget::new("https://otel.example:4317")).await);
    refused!(
        book,
        client.telemetry().set(TelemetryTarget::new("https://otel.example").header("", "1")).await
    );
    refused!(
        book,
        client.telemetry().set(TelemetryTarget::new("https://otel.example").header("bad name", "1")).await
    );
    refused!(
        book,
        client.telemetry().set(TelemetryTarget::new("https://otel.example").header("X-Key", "hush\n")).await
    );
    refused!(
        book,
        client
            .telemetry()
            .set(TelemetryTarget::new("https://otel.example").header("X-Key", long(8193)))
            .await
    );
    refused!(
        book,
        client
            .telemetry()
            .set(TelemetryTarget::new("https://otel.example").header("X-Key", "1").header("x-key", "2"))
            .await
    );
    book.close();
}
