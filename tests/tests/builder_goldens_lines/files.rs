//! Files of a sandbox.

use bytes::Bytes;
use futures_util::stream;
use sandboxer::{Dialect, Download, Error, MAX_FILE, Transfer};

use super::{long, millis, secs};
use crate::builder_goldens_support::book::{Book, call, plain, refused};

fn pieces(texts: &[&'static str]) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    stream::iter(texts.iter().map(|text| Ok(Bytes::from_static(text.as_bytes()))).collect::<Vec<_>>())
}

async fn drained(download: Result<Download, Error>) -> Result<(), Error> {
    download?.read_all(100).await.map(drop)
}

#[tokio::test]
async fn files() {
    let mut book = Book::open("files").await;
    let client = book.client();
    let files = client.sandbox("bx_1").files();
    let folder = tempfile::tempdir().unwrap();
    let (local, target) = (folder.path().join("local"), folder.path().join("target"));
    std::fs::write(&local, "local text").unwrap();

    book.section("Reading and writing");
    plain!(book, files.read("a.txt").await);
    call!(book, files.read("/tmp/a b.txt").await);
    plain!(book, files.read_bytes("a.bin").await);
    plain!(book, files.write("a.txt", "text").await);
    call!(book, files.write("b.txt", "text").await);
    call!(book, files.write("a.txt", "other").await);
    call!(book, files.write("a.txt", [0xff, 0x00]).await);
    call!(book, files.write("a.txt", vec![b'x'; MAX_FILE]).await);
    plain!(book, files.download("a.bin").await);
    call!(book, files.download("../b?c#d").await);
    plain!(book, files.download_to("a.bin", tokio::io::sink()).await);
    call!(book, files.download_to("b.bin", tokio::io::sink()).await);
    plain!(book, files.upload_from("a.txt", &b"text"[..], Transfer::new()).await);
    call!(book, files.upload_from("b.txt", &b"text"[..], Transfer::new()).await);
    call!(book, files.upload_from("a.txt", &b"other"[..], Transfer::new()).await);
    call!(book, files.upload_from("a.txt", &b"text"[..], Transfer::new().cap(3)).await);
    call!(book, files.upload_stream("a.txt", pieces(&["te", "xt", "s"]), Transfer::new()).await);
    call!(book, files.upload_file("a.txt", &local, Transfer::new()).await);
    plain!(book, drained(files.download_with("a.bin", Transfer::new()).await).await);
    call!(book, drained(files.download_with("b.bin", Transfer::new()).await).await);
    call!(book, drained(files.download_with("a.bin", Transfer::new().cap(3)).await).await);
    call!(book, files.download_file("c.bin", &target, Transfer::new()).await);
    refused!(book, files.upload_from("", &b"text"[..], Transfer::new()).await);
    refused!(book, files.upload_from("a.txt", &b"text"[..], Transfer::new().length(5)).await);
    refused!(book, files.upload_stream("a\0b", pieces(&["x"]), Transfer::new()).await);
    refused!(book, files.upload_file("", &local, Transfer::new()).await);
    refused!(book, drained(files.download_with("", Transfer::new()).await).await);
    refused!(book, files.download_file("", &target, Transfer::new()).await);
    refused!(book, files.read("").await);
    refused!(book, files.read("a\0b").await);
    refused!(book, files.read(&long(4097)).await);
    refused!(book, files.read_bytes("").await);
    refused!(book, files.write("", "text").await);
    refused!(book, files.write("a\0b", "text").await);
    refused!(book, files.write("a.txt", vec![b'x'; MAX_FILE + 1]).await);
    refused!(book, files.download("").await);
    refused!(book, files.download_to("a\0b", tokio::io::sink()).await);

    book.section("Files of the other service");
    let boat = book.builder().dialect(Dialect::Boat).build().unwrap();
    let files = boat.sandbox("bx_1").files();
    plain!(book, files.list("app").await);
    call!(book, files.list("/tmp").await);
    plain!(book, files.info("a.txt").await);
    call!(book, files.info("b.txt").await);
    plain!(book, files.create_folder("app", None).await);
    call!(book, files.create_folder("lib", None).await);
    call!(book, files.create_folder("app", Some(0o755)).await);
    plain!(book, files.move_to("a", "b", false).await);
    call!(book, files.move_to("c", "b", false).await);
    call!(book, files.move_to("a", "d", false).await);
    call!(book, files.move_to("a", "b", true).await);
    plain!(book, files.set_permissions("a", 0o644).await);
    call!(book, files.set_permissions("a", 0o4755).await);
    call!(book, files.set_permissions("b", 0o644).await);
    plain!(book, files.delete("a", false).await);
    call!(book, files.delete("a", true).await);
    call!(book, files.delete("b", false).await);
    plain!(book, files.search("app", "*.rs").await);
    call!(book, files.search("lib", "*.rs").await);
    call!(book, files.search("app", "*.toml").await);
    plain!(book, files.find("app", "alpha", false).await);
    call!(book, files.find("lib", "alpha", false).await);
    call!(book, files.find("app", "beta", false).await);
    call!(book, files.find("app", "alpha", true).await);
    plain!(book, files.replace(["a.txt"], "old", "new").await);
    call!(book, files.replace(["a.txt", "b.txt"], "old", "new").await);
    call!(book, files.replace(["a.txt"], "older", "new").await);
    call!(book, files.replace(["a.txt"], "old", "").await);
    plain!(book, files.upload_url("a.bin", None).await);
    call!(book, files.upload_url("b.bin", None).await);
    call!(book, files.upload_url("a.bin", Some(millis(1))).await);
    call!(book, files.upload_url("a.bin", Some(secs(3600))).await);
    plain!(book, files.download_url("a.bin", None).await);
    call!(book, files.download_url("b.bin", None).await);
    call!(book, files.download_url("a.bin", Some(secs(60))).await);

    book.section("Files of the other service: refusals");
    refused!(book, files.list("").await);
    refused!(book, files.info("a\0b").await);
    refused!(book, files.create_folder("", None).await);
    refused!(book, files.create_folder("app", Some(0o10000)).await);
    refused!(book, files.move_to("", "b", false).await);
    refused!(book, files.move_to("a", "", false).await);
    refused!(book, files.set_permissions("a", 0o10000).await);
    refused!(book, files.set_permissions("", 0o644).await);
    refused!(book, files.delete("", true).await);
    refused!(book, files.search("app", "").await);
    refused!(book, files.search("app", "a\0b").await);
    refused!(book, files.search("app", &long(4097)).await);
    refused!(book, files.find("app", "", true).await);
    refused!(book, files.find("", "alpha", true).await);
    refused!(book, files.replace(Vec::<String>::new(), "old", "new").await);
    refused!(book, files.replace([""], "old", "new").await);
    refused!(book, files.replace(vec!["a"; 101], "old", "new").await);
    refused!(book, files.replace(["a"], "", "new").await);
    refused!(book, files.replace(["a"], "old", "n\0").await);
    refused!(book, files.upload_url("", None).await);
    refused!(book, files.upload_url("a", Some(secs(0))).await);
    refused!(book, files.upload_url("a", Some(secs(3601))).await);
    refused!(book, files.download_url("a", Some(secs(0))).await);

    book.section("Files that only the other service has");
    let files = client.sandbox("bx_1").files();
    refused!(book, files.list("app").await);
    refused!(book, files.info("app").await);
    refused!(book, files.create_folder("app", None).await);
    refused!(book, files.move_to("a", "b", false).await);
    refused!(book, files.set_permissions("a", 0o644).await);
    refused!(book, files.delete("a", false).await);
    refused!(book, files.search("app", "*").await);
    refused!(book, files.find("app", "x", false).await);
    refused!(book, files.replace(["a"], "old", "new").await);
    refused!(book, files.upload_url("a", None).await);
    refused!(book, files.download_url("a", None).await);
    book.close();
}
