//! Making sandboxes.

use sandboxer::{Create, Dialect, Error, Ttl, models::HostPortRequest};

use super::{long, millis, secs};
use crate::builder_goldens_support::{
    book::{Book, call, plain, refused},
    peer::Mood,
};

/// Takes a guard's sandbox out, so that nothing follows.
fn kept(guard: Result<sandboxer::AsyncGuard, Error>) -> Result<(), Error> {
    guard.map(|guard| drop(guard.keep()))
}

#[tokio::test]
async fn making_sandboxes() {
    let mut book = Book::open("create").await;
    let client = book.client();

    book.section("Create");
    plain!(book, client.create(Create::new()).await);
    call!(book, client.create(Create::new().kind("small")).await);
    call!(book, client.create(Create::new().ttl(secs(1800))).await);
    call!(book, client.create(Create::new().ttl(millis(1))).await);
    call!(book, client.create(Create::new().ttl(millis(1500))).await);
    call!(book, client.create(Create::new().ttl(secs(2_592_000))).await);
    call!(book, client.create(Create::new().ttl(Ttl::Never)).await);
    call!(book, client.create(Create::new().no_ttl()).await);
    call!(book, client.create(Create::new().env("CI", "1")).await);
    call!(book, client.create(Create::new().envs([("CI", "1"), ("_b9", "")])).await);
    call!(book, client.create(Create::new().environment("base")).await);
    call!(book, client.create(Create::new().no_env()).await);
    call!(book, client.create(Create::new().fail_fast()).await);
    call!(book, client.create(Create::new().wait(false)).await);
    call!(book, client.create(Create::new().name("demo")).await);
    call!(book, client.create(Create::new().name(long(121))).await);
    call!(book, client.create(Create::new().snapshots(false)).await);
    call!(book, client.create(Create::new().monitoring(false)).await);
    call!(book, client.create(Create::new().setup_script("make setup\n")).await);
    call!(book, client.create(Create::new().setup_script(long(65_536))).await);
    call!(book, client.create(Create::new().org("team_1")).await);
    call!(book, client.create(Create::new().personal()).await);
    call!(book, client.create(Create::new().from("base")).await);
    call!(book, client.create(Create::new().from("bsh_1")).await);
    plain!(book, client.create(Create::new().setup_script("make")).await);
    call!(book, client.create(Create::new().setup_script("make").wait_for_setup()).await);
    book.mood(Mood::Slow);
    plain!(book, client.create(Create::new().wait(false)).await);
    call!(book, client.create(Create::new().wait_limit(millis(50))).await);

    book.section("Create: refusals");
    refused!(book, client.create(Create::new().kind("")).await);
    refused!(book, client.create(Create::new().ttl(secs(0))).await);
    refused!(book, client.create(Create::new().ttl(secs(2_592_001))).await);
    refused!(book, client.create(Create::new().ttl(std::time::Duration::MAX)).await);
    refused!(book, client.create(Create::new().env("", "1")).await);
    refused!(book, client.create(Create::new().env("9A", "1")).await);
    refused!(book, client.create(Create::new().env("A B", "1")).await);
    refused!(book, client.create(Create::new().env("A=B", "1")).await);
    refused!(book, client.create(Create::new().env(long(129), "1")).await);
    refused!(book, client.create(Create::new().env("SANDBOXER_TOKEN", "hush")).await);
    refused!(book, client.create(Create::new().env("A", "hush\0")).await);
    refused!(book, client.create(Create::new().env("A", long(65_536))).await);
    refused!(book, client.create(Create::new().envs((0..101).map(|n| (format!("V{n}"), "")))).await);
    refused!(book, client.create(Create::new().environment("")).await);
    refused!(book, client.create(Create::new().environment("base").no_env()).await);
    refused!(book, client.create(Create::new().name("")).await);
    refused!(book, client.create(Create::new().setup_script(long(65_537))).await);
    refused!(book, client.create(Create::new().setup_script("a\0b")).await);
    refused!(book, client.create(Create::new().org("")).await);
    refused!(book, client.create(Create::new().from("")).await);
    refused!(book, client.create(Create::new().wait_limit(secs(0))).await);
    refused!(book, client.create(Create::new().file("a.txt", "text")).await);
    refused!(book, client.create(Create::new().hosted_port(HostPortRequest::new(3000))).await);
    refused!(book, client.create(Create::new().visibility("personal")).await);

    book.section("Create, of the other service");
    let boat = book.builder().dialect(Dialect::Boat).build().unwrap();
    plain!(book, boat.create(Create::new()).await);
    call!(book, boat.create(Create::new().env("SANDBOXER_TOKEN", "1")).await);
    call!(book, boat.create(Create::new().name("demo")).await);
    call!(book, boat.create(Create::new().file("a.txt", "text")).await);
    call!(book, boat.create(Create::new().file("a.bin", [0xff, 0x00])).await);
    call!(book, boat.create(Create::new().hosted_port(HostPortRequest::new(3000).public(true))).await);
    call!(book, boat.create(Create::new().visibility("personal")).await);
    call!(book, boat.create(Create::new().org("team_1")).await);
    refused!(book, boat.create(Create::new().file("", "text")).await);
    refused!(book, boat.create((0..33).fold(Create::new(), |all, n| all.file(format!("{n}"), "text"))).await);
    refused!(book, boat.create(Create::new().hosted_port(HostPortRequest::new(0))).await);
    refused!(book, boat.create(Create::new().visibility("")).await);
    refused!(book, boat.create(Create::new().env("BOAT_ID", "1")).await);

    book.section("guard and scoped");
    plain!(book, kept(client.guard(Create::new()).await));
    call!(book, kept(client.guard(Create::new().kind("small")).await));
    plain!(book, client.scoped(Create::new(), |_| async { Ok(()) }).await);
    call!(book, client.scoped(Create::new().kind("small"), |_| async { Ok(()) }).await);
    refused!(book, kept(client.guard(Create::new().ttl(secs(0))).await));
    refused!(book, client.scoped(Create::new().name(""), |_| async { Ok(()) }).await);
    book.close();
}
