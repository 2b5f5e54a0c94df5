//! Stopping, bringing back, copying, changing and deleting.

use sandboxer::{Fork, OnExit, Resume, Stop, Ttl, Update, models::UsageParams};

use super::{long, millis, secs};
use crate::builder_goldens_support::{
    book::{Book, call, plain, refused},
    peer::Mood,
};

#[tokio::test]
async fn the_life_of_sandboxes() {
    let mut book = Book::open("lifecycle").await;
    let client = book.client();
    let sandbox = client.sandbox("bx_1");

    book.section("Stop");
    plain!(book, sandbox.stop_with(Stop::new()).await);
    call!(book, sandbox.stop_with(Stop::new().force()).await);
    call!(book, sandbox.stop_with(Stop::new().wait(false)).await);
    book.mood(Mood::Slow);
    plain!(book, sandbox.stop_with(Stop::new().wait(false)).await);
    call!(book, sandbox.stop_with(Stop::new().wait_limit(millis(50))).await);
    refused!(book, sandbox.stop_with(Stop::new().wait_limit(secs(0))).await);

    book.section("Resume");
    plain!(book, sandbox.resume(Resume::new()).await);
    call!(book, sandbox.resume(Resume::new().kind("large")).await);
    call!(book, sandbox.resume(Resume::new().ttl(secs(60))).await);
    call!(book, sandbox.resume(Resume::new().no_ttl()).await);
    call!(book, sandbox.resume(Resume::new().env("CI", "1")).await);
    call!(book, sandbox.resume(Resume::new().envs([("CI", "1"), ("DEBUG", "0")])).await);
    call!(book, sandbox.resume(Resume::new().environment("base")).await);
    call!(book, sandbox.resume(Resume::new().no_env()).await);
    call!(book, sandbox.resume(Resume::new().fail_fast()).await);
    call!(book, sandbox.resume(Resume::new().wait(false)).await);
    book.mood(Mood::Slow);
    plain!(book, sandbox.resume(Resume::new().wait(false)).await);
    call!(book, sandbox.resume(Resume::new().wait_limit(millis(50))).await);
    refused!(book, sandbox.resume(Resume::new().ttl(secs(0))).await);
    refused!(book, sandbox.resume(Resume::new().ttl(secs(2_592_001))).await);
    refused!(book, sandbox.resume(Resume::new().env("A-B", "1")).await);
    refused!(book, sandbox.resume(Resume::new().environment("")).await);
    refused!(book, sandbox.resume(Resume::new().environment("base").no_env()).await);
    refused!(book, sandbox.resume(Resume::new().wait_limit(secs(0))).await);

    book.section("Fork");
    plain!(book, sandbox.fork(Fork::new()).await);
    call!(book, sandbox.fork(Fork::new().kind("xlarge")).await);
    call!(book, sandbox.fork(Fork::new().ttl(secs(60))).await);
    call!(book, sandbox.fork(Fork::new().no_ttl()).await);
    call!(book, sandbox.fork(Fork::new().env("CI", "1")).await);
    call!(book, sandbox.fork(Fork::new().envs([("CI", "1"), ("DEBUG", "0")])).await);
    call!(book, sandbox.fork(Fork::new().environment("base")).await);
    call!(book, sandbox.fork(Fork::new().no_env()).await);
    call!(book, sandbox.fork(Fork::new().fail_fast()).await);
    call!(book, sandbox.fork(Fork::new().wait(false)).await);
    call!(book, sandbox.fork(Fork::new().name("copy")).await);
    call!(book, sandbox.fork(Fork::new().monitoring(true)).await);
    book.mood(Mood::Slow);
    plain!(book, sandbox.fork(Fork::new().wait(false)).await);
    call!(book, sandbox.fork(Fork::new().wait_limit(millis(50))).await);
    refused!(book, sandbox.fork(Fork::new().ttl(secs(0))).await);
    refused!(book, sandbox.fork(Fork::new().env("SANDBOXER_TOKEN", "1")).await);
    refused!(book, sandbox.fork(Fork::new().environment("")).await);
    refused!(book, sandbox.fork(Fork::new().environment("base").no_env()).await);
    refused!(book, sandbox.fork(Fork::new().name("")).await);
    refused!(book, sandbox.fork(Fork::new().wait_limit(secs(0))).await);

    book.section("Update and extend");
    plain!(book, sandbox.update(Update::new().name("demo")).await);
    call!(book, sandbox.update(Update::new().ttl(secs(60))).await);
    call!(book, sandbox.update(Update::new().ttl(Ttl::Never)).await);
    call!(book, sandbox.update(Update::new().subdomain("calm-otter")).await);
    call!(book, sandbox.extend(secs(90)).await);
    call!(book, sandbox.extend(None).await);
    refused!(book, sandbox.update(Update::new()).await);
    refused!(book, sandbox.update(Update::new().name("")).await);
    refused!(book, sandbox.update(Update::new().ttl(secs(0))).await);
    refused!(book, sandbox.update(Update::new().ttl(secs(2_592_001))).await);
    refused!(book, sandbox.update(Update::new().subdomain("ab")).await);
    refused!(book, sandbox.update(Update::new().subdomain(long(41))).await);
    refused!(book, sandbox.update(Update::new().subdomain("Calm")).await);
    refused!(book, sandbox.update(Update::new().subdomain("-calm")).await);
    refused!(book, sandbox.update(Update::new().subdomain("calm-")).await);
    refused!(book, sandbox.update(Update::new().subdomain("calm--otter")).await);
    refused!(book, sandbox.update(Update::new().subdomain("calm-desktop")).await);
    refused!(book, sandbox.update(Update::new().subdomain("calm-3000")).await);
    refused!(book, sandbox.extend(secs(0)).await);

    book.section("Usage and deletion");
    plain!(book, sandbox.usage(UsageParams::new()).await);
    call!(book, sandbox.usage(UsageParams::new().since("2026-01-01T00:00:00Z")).await);
    call!(book, sandbox.usage(UsageParams::new().until("1767225600")).await);
    refused!(book, sandbox.usage(UsageParams::new().since("")).await);
    plain!(book, sandbox.delete().await);

    book.section("on_exit");
    plain!(book, sandbox.on_exit(OnExit::Delete).finish().await);
    call!(book, sandbox.on_exit(OnExit::Stop).finish().await);
    call!(book, {
        let mut guard = sandbox.on_exit(OnExit::Delete);
        guard.set_on_exit(OnExit::Stop);
        guard.finish().await
    });

    book.section("Ids of sandboxes");
    plain!(book, client.get("bx_1").await);
    call!(book, client.get("a b/c?d").await);
    plain!(book, client.sandbox("bx_1").refresh().await);
    call!(book, client.sandbox("bx_9").refresh().await);
    refused!(book, client.get("").await);
    refused!(book, client.get(".").await);
    refused!(book, client.get("..").await);
    refused!(book, client.get("a\0b").await);
    refused!(book, client.get("a\nb").await);
    refused!(book, client.sandbox("").refresh().await);
    refused!(book, client.sandbox("..").delete().await);
    refused!(book, client.sandbox("..").stop().await);
    refused!(book, client.sandbox("..").resume(Resume::new()).await);
    refused!(book, client.sandbox("..").fork(Fork::new()).await);
    refused!(book, client.sandbox("..").exec("true").await);
    book.close();
}
