//! Snapshots, and those with a name.

use sandboxer::{Download, Error, SnapshotFile, SnapshotListOptions, Transfer};

use super::{long, millis};
use crate::builder_goldens_support::{
    book::{Book, call, plain, refused},
    peer::Mood,
};

async fn drained(download: Result<Download, Error>) -> Result<(), Error> {
    download?.read_all(100).await.map(drop)
}

#[tokio::test]
async fn snapshots() {
    let mut book = Book::open("snapshots").await;
    let client = book.client();
    let sandbox = client.sandbox("bx_1");
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");

    book.section("SnapshotListOptions");
    plain!(book, client.snapshots(SnapshotListOptions::new()).collect().await);
    call!(book, client.snapshots(SnapshotListOptions::new().limit(7)).collect().await);
    call!(book, client.snapshots(SnapshotListOptions::new().sort("asc")).collect().await);
    call!(book, client.snapshots(SnapshotListOptions::new().cursor("c1")).collect().await);
    plain!(book, sandbox.snapshots(SnapshotListOptions::new()).collect().await);
    call!(book, sandbox.snapshots(SnapshotListOptions::new().limit(7)).collect().await);
    call!(book, sandbox.snapshots(SnapshotListOptions::new().sort("asc")).collect().await);
    call!(book, sandbox.snapshots(SnapshotListOptions::new().cursor("c1")).collect().await);
    refused!(book, client.snapshots(SnapshotListOptions::new().sort("")).collect().await);
    refused!(book, client.snapshots(SnapshotListOptions::new().cursor("")).collect().await);
    refused!(book, sandbox.snapshots(SnapshotListOptions::new().cursor("")).collect().await);

    book.section("SnapshotFile");
    plain!(book, client.snapshot("s1").download(SnapshotFile::new("app/log.txt")).await);
    call!(book, client.snapshot("s2").download(SnapshotFile::new("app/log.txt")).await);
    call!(book, client.snapshot("s1").download(SnapshotFile::new("")).await);
    call!(book, client.snapshot("s1").download(SnapshotFile::new("app/log.txt").bytes(0..1024)).await);
    call!(book, client.snapshot("s1").download(SnapshotFile::new("app/log.txt").from_offset(10)).await);
    call!(book, client.snapshot("s1").download(SnapshotFile::new("app/log.txt").last(10)).await);
    refused!(book, client.snapshot("s1").download(SnapshotFile::new("a\0b")).await);
    refused!(book, client.snapshot("s1").download(SnapshotFile::new(long(4097))).await);
    refused!(book, client.snapshot("s1").download(SnapshotFile::new("a").bytes(5..5)).await);
    #[allow(clippy::reversed_empty_ranges, reason = "what is refused")]
    let backwards = 6..5;
    refused!(book, client.snapshot("s1").download(SnapshotFile::new("a").bytes(backwards)).await);
    refused!(book, client.snapshot("s1").download(SnapshotFile::new("a").last(0)).await);

    let wanted = || SnapshotFile::new("app/log.txt");
    plain!(book, drained(client.snapshot("s1").download_with(wanted(), Transfer::new()).await).await);
    call!(book, drained(client.snapshot("s2").download_with(wanted(), Transfer::new()).await).await);
    call!(book, drained(client.snapshot("s1").download_with(wanted(), Transfer::new().cap(3)).await).await);
    call!(book, client.snapshot("s3").download_file(wanted(), &target, Transfer::new()).await);
    refused!(
        book,
        drained(client.snapshot("s1").download_with(wanted().last(0), Transfer::new()).await).await
    );
    refused!(book, client.snapshot("").download_file(wanted(), &target, Transfer::new()).await);

    book.section("Ids of snapshots");
    plain!(book, client.snapshot("s1").tree().await);
    plain!(book, client.snapshot("s1").manifest().await);
    plain!(book, client.snapshot("s1").delete().await);
    refused!(book, client.snapshot("").tree().await);
    refused!(book, client.snapshot("..").delete().await);

    book.section("Named snapshots");
    plain!(book, client.named_snapshots().get("base").await);
    call!(book, client.named_snapshots().get("other").await);
    plain!(book, client.named_snapshots().save("bx_1", "base").await);
    call!(book, client.named_snapshots().save("bx_2", "base").await);
    call!(book, client.named_snapshots().save("bx_1", "other").await);
    plain!(book, sandbox.snapshot("base").await);
    call!(book, sandbox.snapshot("other").await);
    plain!(book, client.named_snapshots().delete("base").await);
    call!(book, client.named_snapshots().delete("other").await);
    plain!(book, client.named_snapshots().shares("base").await);
    call!(book, client.named_snapshots().shares("other").await);
    plain!(book, client.named_snapshots().create_share("base").await);
    call!(book, client.named_snapshots().create_share("other").await);
    plain!(book, client.named_snapshots().revoke_share("base", "shr_1").await);
    call!(book, client.named_snapshots().revoke_share("other", "shr_1").await);
    call!(book, client.named_snapshots().revoke_share("base", "shr_2").await);
    book.mood(Mood::Slow);
    plain!(book, client.named_snapshots().wait("base", Some(millis(2500))).await);
    call!(book, client.named_snapshots().wait("other", Some(millis(2500))).await);
    call!(book, client.named_snapshots().wait("base", Some(millis(4700))).await);

    book.section("Named snapshots: refusals");
    refused!(book, client.named_snapshots().get("").await);
    refused!(book, client.named_snapshots().get("..").await);
    refused!(book, client.named_snapshots().save("", "base").await);
    refused!(book, client.named_snapshots().save("bx_1", "").await);
    refused!(book, client.named_snapshots().save("bx_1", "Base").await);
    refused!(book, client.named_snapshots().save("bx_1", "-base").await);
    refused!(book, client.named_snapshots().save("bx_1", "a_b").await);
    refused!(book, client.named_snapshots().save("bx_1", &long(64)).await);
    refused!(book, client.named_snapshots().save("bx_1", "latest").await);
    refused!(book, client.named_snapshots().save("bx_1", "new").await);
    refused!(book, sandbox.snapshot("self").await);
    refused!(book, sandbox.snapshot("a b").await);
    refused!(book, client.named_snapshots().delete("..").await);
    refused!(book, client.named_snapshots().shares("").await);
    refused!(book, client.named_snapshots().create_share("").await);
    refused!(book, client.named_snapshots().revoke_share("base", "..").await);
    refused!(book, client.named_snapshots().wait("", None).await);
    book.close();
}
