//! Going on after a cut: only where that is right.

use super::{
    Transfer, logged, noise,
    peer::{Act, Got, Peer, bytes, chunked},
    told,
};
use crate::{AsyncSandboxer, Dialect, Error, ErrorKind, SnapshotFile};

const SIZE: usize = 1 << 20;

fn client(peer: &Peer) -> AsyncSandboxer {
    peer.client(Dialect::Sandboxer)
}

async fn artifact(peer: &Peer, transfer: Transfer) -> Result<Vec<u8>, Error> {
    let download = client(peer).sandbox("bx_1").files().download_with("x", transfer).await?;
    download.read_all(SIZE).await.map(|bytes| bytes.to_vec())
}

/// What is asked for, first and last byte.
fn asked(got: &Got) -> (usize, usize) {
    let Some(range) = got.header("range") else { return (0, SIZE - 1) };
    let (start, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    (start.parse().unwrap(), if last.is_empty() { SIZE - 1 } else { last.parse().unwrap() })
}

/// Answers what is asked for, at most `most` bytes of it, as this version.
fn give(got: &Got, tag: &str, most: usize) -> Act {
    let (start, last) = asked(got);
    let content = noise(SIZE);
    let (body, range) = (&content[start..=last], format!("bytes {start}-{last}/{SIZE}"));
    let mut headers = vec![("etag", tag)];
    if got.header("range").is_some() {
        headers.push(("content-range", &range));
    }
    if tag.is_empty() {
        headers.remove(0);
    }
    let status = if got.header("range").is_some() { 206 } else { 200 };
    bytes(status, &headers, body.len(), &body[..body.len().min(most)])
}

#[tokio::test]
async fn it_goes_on_by_a_strong_entity_tag() {
    let peer = Peer::start(|got, _| give(got, "\"v1\"", 300_000));
    let (transfer, log) = logged(Transfer::new().resumes(3));
    assert!(artifact(&peer, transfer).await.unwrap() == noise(SIZE));
    told(&log, SIZE as u64, Some(SIZE as u64));
    let seen = peer.seen();
    let starts: Vec<usize> = seen.iter().map(|got| asked(got).0).collect();
    assert_eq!(starts, [0, 300_000, 600_000, 900_000]);
    assert!(seen[1..].iter().all(|got| got.header("if-range") == Some("\"v1\"")));
    assert!(seen.iter().all(|got| got.header("authorization") == Some("Bearer hush-key")));
}

#[tokio::test]
async fn it_ends_when_the_resumes_are_used_up() {
    for (transfer, requests) in [(Transfer::new().resumes(2), 3), (Transfer::new(), 1)] {
        // Without a number the client's `retries`, 0 here, say that nothing is asked twice.
        let peer = Peer::start(|got, _| give(got, "\"v1\"", 1000));
        let error = artifact(&peer, transfer).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::StreamCut, "stream_cut"));
        assert_eq!((error.sandbox_id(), peer.calls().len()), (Some("bx_1"), requests));
    }
}

#[tokio::test]
async fn without_a_proof_it_does_not_go_on() {
    for tag in ["", "W/\"v1\""] {
        let peer = Peer::start(move |got, _| give(got, tag, 1000));
        let error = artifact(&peer, Transfer::new().resumes(5)).await.unwrap_err();
        assert_eq!((error.kind(), peer.calls().len()), (ErrorKind::StreamCut, 1), "{tag}");
    }
    let peer = Peer::start(|_, _| chunked(b"half", false));
    let error = artifact(&peer, Transfer::new().resumes(5)).await.unwrap_err();
    assert_eq!((error.kind(), peer.calls().len()), (ErrorKind::StreamCut, 1));
}

#[tokio::test]
async fn other_content_is_never_put_behind_what_came() {
    let content = noise(SIZE);
    let whole = move |tag: &'static str| bytes(200, &[("etag", tag)], SIZE, &content);
    let part = |range: &str, length: usize| {
        bytes(206, &[("etag", "\"v1\""), ("content-range", range)], length, &noise(length))
    };
    type Second = Box<dyn Fn() -> Act + Send + Sync>;
    let again = whole.clone();
    let seconds: Vec<(&str, Second, bool)> = vec![
        ("the same content from its beginning", Box::new(move || again("\"v1\"")), true),
        ("other content from its beginning", Box::new(move || whole("\"v2\"")), false),
        ("content without a tag", Box::new(|| bytes(200, &[], SIZE, &noise(SIZE))), false),
        ("another place", Box::new(move || part("bytes 1001-1048575/1048576", SIZE - 1001)), false),
        ("another length", Box::new(move || part("bytes 1000-1048576/1048577", SIZE - 999)), false),
        ("too short a rest", Box::new(move || part("bytes 1000-2000/1048576", 1001)), false),
        ("no range", Box::new(|| bytes(206, &[("etag", "\"v1\"")], 5, b"other")), false),
    ];
    for (what, second, fine) in seconds {
        let peer =
            Peer::start(move |got, number| if number == 0 { give(got, "\"v1\"", 1000) } else { second() });
        let came = artifact(&peer, Transfer::new().resumes(5)).await;
        match came {
            Ok(came) => assert!(fine && came == noise(SIZE), "{what}"),
            Err(error) => {
                assert!(!fine, "{what}: {error}");
                assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "range_mismatch"), "{what}");
            }
        }
        assert_eq!(peer.calls().len(), 2, "{what}");
    }
}

#[tokio::test]
async fn a_part_of_a_snapshot_goes_on_inside_its_bounds() {
    let peer = Peer::start(|got, _| give(got, "", 10_000));
    let snapshot = client(&peer).snapshot("s1");
    let content = noise(SIZE);
    let part = SnapshotFile::new("f").bytes(5_000..30_000);
    let download = snapshot.download_with(part, Transfer::new().resumes(5)).await.unwrap();
    assert_eq!(download.total(), Some(25_000));
    assert!(download.read_all(SIZE).await.unwrap() == content[5_000..30_000]);
    let ranges: Vec<_> = peer.seen().iter().map(|got| got.header("range").unwrap().to_owned()).collect();
    assert_eq!(ranges, ["bytes=5000-29999", "bytes=15000-29999", "bytes=25000-29999"]);

    let peer = Peer::start(|got, _| {
        if got.header("range") == Some("bytes=-20000") {
            let content = noise(SIZE);
            let range = format!("bytes {}-{}/{SIZE}", SIZE - 20_000, SIZE - 1);
            return bytes(206, &[("content-range", &range)], 20_000, &content[SIZE - 20_000..SIZE - 12_345]);
        }
        give(got, "", SIZE)
    });
    let snapshot = client(&peer).snapshot("s1");
    let tail = snapshot.download_with(SnapshotFile::new("f").last(20_000), Transfer::new().resumes(1)).await;
    assert!(tail.unwrap().read_all(SIZE).await.unwrap() == content[SIZE - 20_000..]);
}

#[tokio::test]
async fn a_cap_and_a_refusal_end_it_for_good() {
    let peer = Peer::start(|got, number| match number {
        0 => give(got, "\"v1\"", 1000),
        _ => bytes(404, &[], 0, b""),
    });
    let error = artifact(&peer, Transfer::new().resumes(5)).await.unwrap_err();
    assert_eq!((error.kind(), peer.calls().len()), (ErrorKind::NotFound, 2));
}

#[tokio::test]
async fn a_broken_end_after_the_last_byte_is_the_end() {
    let peer = Peer::start(|_, number| match number {
        0 => chunked(b"hello", false),
        _ => bytes(416, &[("content-range", "bytes */5")], 0, b""),
    });
    let chunk = serde_json::from_value(serde_json::json!({"generation": 0, "chunkIndex": 0, "sizeBytes": 5,
        "signedUrl": format!("{}/c", peer.url)}));
    let snapshot = client(&peer).snapshot("s1");
    let download = snapshot.download_chunk(&chunk.unwrap(), Transfer::new().resumes(5)).await.unwrap();
    assert_eq!(&download.read_all(5).await.unwrap()[..], b"hello");
    assert_eq!(peer.calls().len(), 1);
}
