//! Downloads: exact bytes, caps, progress, parts.

use super::{
    Transfer, logged, noise,
    peer::{Act, Peer, answer, bytes, chunked},
    told,
};
use crate::{AsyncFiles, Dialect, Error, ErrorKind, SnapshotFile};

fn files(peer: &Peer) -> AsyncFiles {
    peer.client(Dialect::Sandboxer).sandbox("bx_1").files()
}

#[tokio::test]
async fn every_byte_comes_and_is_told_of() {
    for size in [0, 1, (8 << 20) - 1, 8 << 20, (8 << 20) + 1] {
        let content = noise(size);
        let sent = content.clone();
        let peer = Peer::start(move |_, _| bytes(200, &[], sent.len(), &sent));
        let (transfer, log) = logged(Transfer::new().cap(size as u64));
        let download = files(&peer).download_with("a b", transfer).await.unwrap();
        assert_eq!(
            (download.total(), download.received(), download.is_archive()),
            (Some(size as u64), 0, false)
        );
        assert!(download.read_all(size).await.unwrap() == content, "{size}");
        told(&log, size as u64, Some(size as u64));
        assert_eq!(peer.calls(), ["GET /sandboxes/bx_1/artifacts?path=a+b"]);
        assert_eq!((peer.seen()[0].header("range"), peer.seen()[0].header("if-range")), (None, None));
    }
}

#[tokio::test]
async fn a_cap_holds_with_and_without_an_announced_length() {
    let peer = Peer::start(|_, _| bytes(200, &[], 100, &noise(100)));
    let error = files(&peer).download_with("x", Transfer::new().cap(99)).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::TooLarge, "transfer_too_large"));
    assert_eq!((error.sandbox_id(), error.operation()), (Some("bx_1"), Some(crate::Operation::Artifact)));

    let peer = Peer::start(|_, _| chunked(&noise(100), true));
    let (transfer, log) = logged(Transfer::new().cap(100));
    let exact = files(&peer).download_with("x", transfer).await.unwrap();
    assert_eq!(exact.total(), None);
    assert_eq!(exact.read_all(100).await.unwrap().len(), 100);
    told(&log, 100, None);
    let mut over = files(&peer).download_with("x", Transfer::new().cap(99)).await.unwrap();
    let mut came = 0;
    let error = loop {
        match over.next().await.unwrap() {
            Ok(piece) => came += piece.len(),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(came <= 99 && over.received() == came as u64);
    assert!(over.next().await.is_none(), "nothing follows an error");
    let whole = files(&peer).download_with("x", Transfer::new()).await.unwrap();
    assert_eq!(whole.read_all(99).await.unwrap_err().kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn parts_are_those_that_were_asked_for() {
    let wanted = |status, range: &'static str, body: &'static [u8]| {
        Peer::start(move |_, _| bytes(status, &[("content-range", range)], body.len(), body))
    };
    let ask = async |peer: &Peer, file: SnapshotFile| -> Result<Vec<u8>, Error> {
        let download =
            peer.client(Dialect::Sandboxer).snapshot("s1").download_with(file, Transfer::new()).await?;
        download.read_all(100).await.map(|bytes| bytes.to_vec())
    };
    let file = || SnapshotFile::new("f");
    let peer = wanted(206, "bytes 1-3/5", b"ell");
    assert_eq!(ask(&peer, file().bytes(1..4)).await.unwrap(), b"ell");
    assert_eq!(peer.seen()[0].header("range"), Some("bytes=1-3"));
    assert_eq!(ask(&wanted(206, "bytes 2-4/5", b"llo"), file().from_offset(2)).await.unwrap(), b"llo");
    assert_eq!(ask(&wanted(206, "bytes 2-4/5", b"llo"), file().last(3)).await.unwrap(), b"llo");
    assert_eq!(ask(&wanted(206, "bytes 2-4/5", b"llo"), file().bytes(2..50)).await.unwrap(), b"llo");
    for (peer, file) in [
        (wanted(200, "", b"hello"), file().bytes(1..4)),
        (wanted(206, "bytes 0-2/5", b"hel"), file().bytes(1..4)),
        (wanted(206, "bytes 1-2/5", b"el"), file().bytes(1..4)),
        (wanted(206, "bytes 0-4/5", b"hello"), file()),
    ] {
        assert_eq!(ask(&peer, file).await.unwrap_err().code(), "range_ignored");
    }
    for range in ["bytes 1-3/2", "", "bytes 1-4/5", "lines 1-3/5"] {
        let error = ask(&wanted(206, range, b"ell"), file().bytes(1..4)).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "range_mismatch"), "{range}");
    }
}

#[tokio::test]
async fn a_folder_comes_as_an_archive_whole() {
    let headers = [("content-type", "application/x-tar"), ("x-snapshot-entry-kind", "dir")];
    let peer = Peer::start(move |_, _| Act::Say(answer(200, &headers, b"tar tar tar")));
    let snapshot = peer.client(Dialect::Sandboxer).snapshot("s1");
    for file in [SnapshotFile::new(""), SnapshotFile::new("src").bytes(0..4)] {
        let download = snapshot.download_with(file, Transfer::new()).await.unwrap();
        assert_eq!((download.is_archive(), download.total()), (true, None));
        assert_eq!(&download.read_all(100).await.unwrap()[..], b"tar tar tar");
    }
}
