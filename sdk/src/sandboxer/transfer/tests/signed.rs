//! Uploads and downloads through addresses of another host.

use std::{io, time::Duration};

use bytes::Bytes;
use serde_json::json;

use super::{
    Transfer, logged, noise,
    peer::{Act, Got, Peer, answer, bytes, json as reply},
    told,
};
use crate::{AsyncFiles, Delivery, Dialect, Error, ErrorKind, MAX_FILE, clock::ManualClock};

/// A service that gives out this address.
fn service(address: String) -> Peer {
    Peer::start(move |got, _| {
        let method = if got.call.ends_with("/upload-url") { "PUT" } else { "GET" };
        reply(
            200,
            &json!({"ok": true, "type": "file.url", "url": address, "method": method, "path": "/home/user/x",
            "expiresAt": "2026-01-01T00:00:00Z"}),
        )
    })
}

/// The service, the files through it, and where its addresses lead.
fn both(host: &Peer) -> (Peer, AsyncFiles) {
    let service = service(format!("{}/u?token=hush", host.url));
    let client = service.builder(Dialect::Boat).org("acme").default_header("x-own", "hush").build().unwrap();
    (service, client.sandbox("bx_1").files())
}

fn big() -> Vec<u8> {
    noise(8 << 20)
}

#[track_caller]
fn without_key(got: &Got) {
    assert!(!got.head.to_lowercase().contains("authorization"), "{}", got.head);
    assert!(!got.head.contains("hush-key") && !got.head.contains("x-own") && !got.head.contains("acme"));
    assert!(!got.head.to_lowercase().contains("x-boat"), "{}", got.head);
}

#[track_caller]
fn hushed(error: &Error) {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!("{error} {error:?}");
        cause = error.source();
    }
    assert!(!text.contains("hush"), "{text}");
    assert_eq!(error.sandbox_id(), Some("bx_1"));
}

#[tokio::test]
async fn an_upload_goes_out_as_it_is_read_and_without_the_key() {
    for length in [Some(8 << 20), None] {
        let host = Peer::start(|_, _| Act::Say(answer(200, &[("content-length", "0")], b"")));
        let (service, files) = both(&host);
        let mut transfer = Transfer::new();
        if let Some(length) = length {
            transfer = transfer.length(length);
        }
        let (transfer, log) = logged(transfer);
        assert_eq!(files.upload_from("x", &big()[..], transfer).await.unwrap(), 8 << 20);
        told(&log, 8 << 20, length);
        assert!(log.lock().unwrap().len() > 100, "it is told of piece by piece");
        let seen = host.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].call, "PUT /u?token=hush");
        assert!(seen[0].is_whole && seen[0].body == big());
        let announced = seen[0].header("content-length").map(|length| length.parse().unwrap());
        assert_eq!(announced, length);
        without_key(&seen[0]);
        assert_eq!(service.calls(), ["POST /sandboxes/bx_1/files/upload-url"]);
        assert_eq!(service.seen()[0].json(), json!({"path": "x", "ttlSeconds": 3600}));
    }
}

#[tokio::test]
async fn what_fits_goes_through_the_service() {
    let host = Peer::start(|_, _| Act::Ignore);
    let service = Peer::start(|got, _| {
        let text = got.json()["content"].as_str().unwrap().to_owned();
        let size = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text).unwrap().len();
        reply(
            200,
            &json!({"ok": true, "type": "file.written", "success": true, "path": "x",
            "encoding": "base64", "size": size}),
        )
    });
    let files = service.client(Dialect::Boat).sandbox("bx_1").files();
    assert_eq!(files.upload_from("x", &noise(MAX_FILE)[..], Transfer::new()).await.unwrap(), MAX_FILE as u64);
    assert_eq!((service.calls().len(), host.calls().len()), (1, 0));
}

#[tokio::test]
async fn refusals_are_told_by_their_status_and_never_show_the_address() {
    for (status, kind, code) in [
        (403, ErrorKind::PermissionDenied, "http_403"),
        (413, ErrorKind::BadRequest, "http_413"),
        (503, ErrorKind::Server, "http_503"),
        (302, ErrorKind::Unexpected, "unexpected_redirect"),
    ] {
        let host = Peer::start(move |got, _| {
            let location = got.call.replace("PUT ", "");
            Act::Say(answer(status, &[("location", &location), ("content-length", "4")], b"hush"))
        });
        let (_service, files) = both(&host);
        let error = files.upload_from("x", &big()[..], Transfer::new()).await.unwrap_err();
        assert_eq!((error.kind(), error.code(), error.status()), (kind, code, Some(status)), "{error}");
        assert_eq!(error.is_retryable(), status == 503);
        hushed(&error);
        let error = files.download_with("x", Transfer::new()).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (kind, code));
        hushed(&error);
        assert_eq!(host.calls().len(), 2, "a redirect is not followed");
    }
}

#[tokio::test]
async fn addresses_that_are_not_safe_are_refused() {
    for address in [
        "http://files.example/u?token=hush",
        "ftp://127.0.0.1/hush",
        "https://u:hush@127.0.0.1/",
        "/u?token=hush",
        "hush",
        "",
    ] {
        let service = service(address.to_owned());
        let files = service.client(Dialect::Boat).sandbox("bx_1").files();
        let error = files.upload_from("x", &big()[..], Transfer::new()).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "invalid_url"), "{address}");
        hushed(&error);
        let error = files.download_with("x", Transfer::new()).await.unwrap_err();
        assert_eq!(error.code(), "invalid_url", "{address}");
    }
}

#[tokio::test]
async fn an_upload_that_is_given_up_never_looks_whole() {
    for length in [Some(9 << 20), None] {
        let host = Peer::start(|_, _| Act::Say(answer(200, &[("content-length", "0")], b"")));
        let (_service, files) = both(&host);
        let pieces: Vec<Result<Bytes, io::Error>> = vec![Ok(big().into()), Err(io::Error::other("worn out"))];
        let mut transfer = Transfer::new();
        if let Some(length) = length {
            transfer = transfer.length(length);
        }
        let error = files.upload_stream("x", futures_util::stream::iter(pieces), transfer).await.unwrap_err();
        assert_eq!(error.code(), "read_failed");
        let error = files.upload_from("x", &big()[..], Transfer::new().cap((8 << 20) - 1)).await.unwrap_err();
        assert_eq!(error.code(), "transfer_too_large");
        // The peer looks at what came once the connection is gone.
        while host.ended() < 2 {
            tokio::task::yield_now().await;
        }
        assert!(host.seen().iter().all(|got| !got.is_whole && !got.body.is_empty()));
    }
}

#[tokio::test]
async fn a_source_that_holds_more_than_announced_never_looks_whole() {
    let host = Peer::start(|_, _| Act::Say(answer(200, &[("content-length", "0")], b"")));
    let (_service, files) = both(&host);
    let first = futures_util::stream::iter([Ok::<_, io::Error>(Bytes::from(big()))]);
    // What is too much comes late: all that was announced could have arrived by then.
    let late = futures_util::stream::once(async {
        let mut turns = 0..200_000;
        while host.ended() == 0 && turns.next().is_some() {
            std::thread::yield_now();
            tokio::task::yield_now().await;
        }
        Ok(Bytes::from_static(b"more"))
    });
    let pieces = futures_util::StreamExt::chain(first, late);
    let error = files.upload_stream("x", pieces, Transfer::new().length(8 << 20)).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, "wrong_length"));
    while host.ended() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!host.seen()[0].is_whole);
}

#[tokio::test]
async fn an_answer_before_the_end_is_no_success() {
    let early = || Some(Act::Say(answer(200, &[("content-length", "0")], b"")));
    let host = Peer::start_hasty(move |_| early(), |_, _| Act::Ignore);
    let (_service, files) = both(&host);
    let waiting = futures_util::stream::pending::<Result<Bytes, io::Error>>();
    let first = futures_util::stream::iter([Ok(Bytes::from(big()))]);
    let endless = futures_util::StreamExt::chain(first, waiting);
    let error = files.upload_stream("x", endless, Transfer::new()).await.unwrap_err();
    // Which of the two shows first depends on the sockets.
    assert!(matches!(error.code(), "unexpected_response" | "connection_error"), "{error}");
    hushed(&error);
}

#[tokio::test]
async fn a_peer_that_takes_nothing_ends_the_upload() {
    let host = Peer::start_hasty(|_| Some(Act::Ignore), |_, _| Act::Ignore);
    let service = service(format!("{}/u?token=hush", host.url));
    let clock = ManualClock::new();
    let client =
        service.builder(Dialect::Boat).clock(clock.shared()).idle(Duration::from_secs(77)).build().unwrap();
    let files = client.sandbox("bx_1").files();
    let content = vec![0; 64 << 20];
    let upload = tokio::spawn(async move { files.upload_from("x", &content[..], Transfer::new()).await });
    while !upload.is_finished() {
        if host.calls().len() == 1 {
            clock.advance(Duration::from_secs(78));
        }
        tokio::task::yield_now().await;
    }
    let error = upload.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Timeout, Delivery::Unknown));
    assert!(error.message().contains("idle"), "{error}");
}

#[tokio::test]
async fn a_download_comes_from_a_fresh_address_each_time() {
    let content = big();
    let host = Peer::start(move |got, number| match number {
        0 => bytes(200, &[("etag", "\"v1\"")], content.len(), &content[..3 << 20]),
        _ => {
            let start = content.len() - range_start(got);
            let from = content.len() - start;
            let range = format!("bytes {from}-{}/{}", content.len() - 1, content.len());
            bytes(206, &[("etag", "\"v1\""), ("content-range", &range)], start, &content[from..])
        }
    });
    let (service, files) = both(&host);
    let (transfer, log) = logged(Transfer::new().resumes(1));
    let download = files.download_with("x", transfer).await.unwrap();
    let came = download.read_all(8 << 20).await.unwrap();
    assert!(came == big());
    told(&log, 8 << 20, Some(8 << 20));
    let seen = host.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[0].header("range"), seen[1].header("if-range")), (None, Some("\"v1\"")));
    seen.iter().for_each(without_key);
    assert_eq!(service.calls(), ["POST /sandboxes/bx_1/files/download-url"; 2]);
}

fn range_start(got: &Got) -> usize {
    let range = got.header("range").unwrap();
    range.strip_prefix("bytes=").unwrap().trim_end_matches('-').parse().unwrap()
}

#[tokio::test]
async fn a_busy_host_is_asked_again() {
    let host = Peer::start(|_, number| match number {
        0 => Act::Say(answer(503, &[("retry-after", "0"), ("content-length", "0")], b"")),
        _ => bytes(200, &[], 3, b"abc"),
    });
    let service = service(format!("{}/u?token=hush", host.url));
    let files = service.builder(Dialect::Boat).retries(1).build().unwrap().sandbox("bx_1").files();
    let content = files.download_with("x", Transfer::new()).await.unwrap().read_all(3).await.unwrap();
    assert_eq!((&content[..], host.calls().len()), (&b"abc"[..], 2));
}

#[tokio::test]
async fn a_piece_of_a_snapshot_is_checked() {
    let sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let host = Peer::start(|_, _| bytes(200, &[], 5, b"hello"));
    let snapshot = host.client(Dialect::Sandboxer).snapshot("s1");
    for (size, sum, code) in [
        (json!(5), json!(sum.to_uppercase()), None),
        (json!(null), json!(null), None),
        (json!(6), json!(sum), Some("content_damaged")),
        (json!(5), json!(sum.replace('2', "3")), Some("content_damaged")),
        (json!(5), json!("short"), Some("invalid_input")),
    ] {
        let chunk = serde_json::from_value(json!({"generation": 0, "chunkIndex": 0, "sizeBytes": size,
            "sha256": sum, "signedUrl": format!("{}/c?hush", host.url)}));
        let came = match snapshot.download_chunk(&chunk.unwrap(), Transfer::new()).await {
            Ok(download) => download.read_all(5).await,
            Err(error) => Err(error),
        };
        match code {
            None => assert_eq!(&came.unwrap()[..], b"hello"),
            Some(code) => assert_eq!(came.unwrap_err().code(), code),
        }
    }
    host.seen().iter().for_each(without_key);
}
