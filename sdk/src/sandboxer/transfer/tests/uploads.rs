//! Uploads where the service takes small files only.

use std::io;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    Transfer, logged, noise,
    peer::{Act, Got, Peer, json as reply},
    told,
};
use crate::{AsyncFiles, Delivery, Dialect, ErrorKind, MAX_FILE, Operation, clock::ManualClock};

/// A service that takes files and answers commands with this exit code.
fn service(exit: i64) -> (Peer, AsyncFiles) {
    let peer = Peer::start(move |got, _| answered(got, exit));
    let files = peer.client(Dialect::Sandboxer).sandbox("bx_1").files();
    (peer, files)
}

fn answered(got: &Got, exit: i64) -> Act {
    if got.call.starts_with("PUT ") {
        return reply(
            200,
            &json!({"ok": true, "type": "file.written", "success": true, "path": "x",
            "encoding": "base64", "size": written(got).1.len()}),
        );
    }
    reply(
        200,
        &json!({"ok": true, "type": "command.finished", "success": exit == 0, "exitCode": exit,
        "stdout": "", "stderr": "no space", "timedOut": false, "commandId": "c1"}),
    )
}

fn written(got: &Got) -> (String, Vec<u8>) {
    let body = got.json();
    assert_eq!(body["encoding"], "base64");
    (body["path"].as_str().unwrap().to_owned(), STANDARD.decode(body["content"].as_str().unwrap()).unwrap())
}

#[tokio::test]
async fn what_fits_goes_as_one_write() {
    for size in [0, 1, MAX_FILE] {
        let (peer, files) = service(0);
        let content = noise(size);
        let (transfer, log) = logged(Transfer::new().length(size as u64));
        assert_eq!(files.upload_from("x", &content[..], transfer).await.unwrap(), size as u64);
        let seen = peer.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!(written(&seen[0]), ("x".to_owned(), content));
        told(&log, size as u64, Some(size as u64));
        assert_eq!(log.lock().unwrap().len(), if size == 0 { 1 } else { 2 });
    }
}

#[tokio::test]
async fn more_goes_in_parts_that_one_command_joins() {
    let size = 2 * MAX_FILE + 1;
    let (peer, files) = service(0);
    let content = noise(size);
    let (transfer, log) = logged(Transfer::new());
    assert_eq!(files.upload_from("a b/it's", &content[..], transfer).await.unwrap(), size as u64);
    let seen = peer.seen();
    let (mut joined, mut folder) = (Vec::new(), String::new());
    for (number, got) in seen[..3].iter().enumerate() {
        let (path, bytes) = written(got);
        let (start, end) = path.rsplit_once('/').unwrap();
        assert_eq!(end, number.to_string());
        assert!(start.starts_with("a b/.upload-"), "{start}");
        folder = start.to_owned();
        joined.extend(bytes);
    }
    assert!(joined == content);
    let command = seen[3].json();
    let line = command["command"].as_str().unwrap();
    let sum: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    let name = folder.strip_prefix("a b/").unwrap();
    assert!(line.starts_with("sh -c '"), "{line}");
    assert!(line.ends_with(&format!(" sh {name} 'it'\\''s' 3 {size} {sum}")), "{line}");
    assert_eq!((&command["cwd"], &command["timeoutSeconds"]), (&json!("a b"), &json!(600)));
    assert_eq!(seen.len(), 4);
    told(&log, size as u64, None);
    let counts: Vec<u64> = log.lock().unwrap().iter().map(|told| told.0).collect();
    assert_eq!(counts, [0, MAX_FILE as u64, 2 * MAX_FILE as u64, size as u64]);
}

#[tokio::test]
async fn a_cap_is_an_edge() {
    let content = noise(MAX_FILE + 1);
    let cap = content.len() as u64;
    let (peer, files) = service(0);
    assert_eq!(files.upload_from("x", &content[..], Transfer::new().cap(cap)).await.unwrap(), cap);
    let before = peer.calls().len();
    let known = Transfer::new().cap(cap - 1).length(cap);
    for transfer in [known, Transfer::new().cap(cap - 1), Transfer::new().cap(0)] {
        let (transfer, log) = logged(transfer);
        let error = files.upload_from("x", &content[..], transfer).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::TooLarge, "transfer_too_large"));
        assert_eq!((error.sandbox_id(), error.attempts()), (Some("bx_1"), 0));
        assert!(log.lock().unwrap().iter().all(|told| told.0 == 0));
    }
    assert_eq!(peer.calls().len(), before, "nothing was sent of what is over its cap");
    let late = Transfer::new().cap(2 * MAX_FILE as u64);
    let error = files.upload_from("x", &noise(2 * MAX_FILE + 1)[..], late).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    cleared(&peer, before);
}

/// After `before` requests there were parts, then the command that removes them, and no other.
#[track_caller]
fn cleared(peer: &Peer, before: usize) {
    let seen = peer.seen();
    let commands: Vec<Value> =
        seen[before..].iter().filter(|got| got.call.starts_with("POST ")).map(Got::json).collect();
    let last = commands.last().unwrap()["command"].as_str().unwrap();
    assert!(last.starts_with("rm -rf .upload-"), "{last}");
}

#[tokio::test]
async fn a_source_that_is_not_as_announced_or_fails_is_an_error() {
    let (peer, files) = service(0);
    let content = noise(MAX_FILE + 7);
    for length in [MAX_FILE as u64 + 6, MAX_FILE as u64 + 8] {
        let before = peer.calls().len();
        let transfer = Transfer::new().length(length);
        let error = files.upload_from("x", &content[..], transfer).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, "wrong_length"), "{error}");
        if peer.calls().len() > before {
            cleared(&peer, before);
        }
    }
    let before = peer.calls().len();
    let first = Ok(Bytes::from(noise(MAX_FILE + 1)));
    let broken = futures_util::stream::iter([first, Err(io::Error::other("worn out"))]);
    let error = files.upload_stream("x", broken, Transfer::new()).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "read_failed"));
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "worn out");
    cleared(&peer, before);
}

#[tokio::test]
async fn what_the_joining_command_says_is_told_and_the_parts_are_removed() {
    for (exit, kind, code) in [
        (41, ErrorKind::Unexpected, "upload_damaged"),
        (42, ErrorKind::Unexpected, "upload_damaged"),
        (43, ErrorKind::BadRequest, "invalid_path"),
        (1, ErrorKind::Unexpected, "upload_failed"),
    ] {
        let (peer, files) = service(exit);
        let error = files.upload_from("x", &noise(MAX_FILE + 1)[..], Transfer::new()).await.unwrap_err();
        assert_eq!((error.kind(), error.code(), error.sandbox_id()), (kind, code, Some("bx_1")));
        cleared(&peer, 0);
    }
}

#[tokio::test]
async fn parts_are_left_to_a_joining_command_that_may_run_on() {
    let refused = |status: u16, code: &str, message: &str, retryable: bool| {
        reply(status, &json!({"ok": false, "error": code, "message": message, "retryable": retryable}))
    };
    let gone = |_: &str| Act::Say(Vec::new());
    type Case<'a> = (&'a str, Box<dyn Fn(&str) -> Act + Send + Sync>, ErrorKind, Delivery, bool);
    let cases: [Case<'_>; 8] = [
        ("POST ", Box::new(gone), ErrorKind::Connection, Delivery::Unknown, true),
        // A gateway gave up on it, or lost sight of it.
        (
            "POST ",
            Box::new(move |_| refused(504, "http_504", "late", false)),
            ErrorKind::Server,
            Delivery::Answered,
            true,
        ),
        (
            "POST ",
            Box::new(move |_| refused(502, "sandbox_direct_failed", "lost", true)),
            ErrorKind::Server,
            Delivery::Answered,
            true,
        ),
        ("POST ", Box::new(|_| reply(200, &json!("what"))), ErrorKind::Unexpected, Delivery::Answered, true),
        // It was turned away, and a part in doubt leaves nothing to wait for.
        (
            "POST ",
            Box::new(move |_| refused(403, "forbidden", "no", false)),
            ErrorKind::PermissionDenied,
            Delivery::Answered,
            false,
        ),
        (
            "POST ",
            Box::new(move |_| refused(502, "sandbox_direct_failed", "sandbox_restoring", true)),
            ErrorKind::Server,
            Delivery::Answered,
            false,
        ),
        ("PUT ", Box::new(gone), ErrorKind::Connection, Delivery::Unknown, false),
        (
            "PUT ",
            Box::new(move |_| refused(504, "http_504", "late", false)),
            ErrorKind::Server,
            Delivery::Answered,
            false,
        ),
    ];
    let content = noise(MAX_FILE + 1);
    for (number, (method, act, kind, delivery, left)) in cases.into_iter().enumerate() {
        let meets = if method == "PUT " { 1 } else { 2 };
        let peer = Peer::start(move |got, before| {
            if before == meets {
                assert!(got.call.starts_with(method), "{}", got.call);
                return act(&got.call);
            }
            answered(got, 0)
        });
        // Its time stands still: how long five unhurried megabytes take is no part of this.
        let client = peer.builder(Dialect::Sandboxer).clock(ManualClock::new().shared()).build().unwrap();
        let files = client.sandbox("bx_1").files();
        let error = files.upload_from("x", &content[..], Transfer::new()).await.unwrap_err();
        assert_eq!((error.kind(), error.delivery()), (kind, delivery), "{number}: {error}");
        let operation = if method == "PUT " { Operation::WriteFile } else { Operation::Command };
        assert_eq!(error.operation(), Some(operation), "{number}");
        let calls = peer.calls();
        let commands = calls.iter().filter(|call| call.starts_with("POST ")).count();
        let joined = usize::from(method == "POST ");
        assert_eq!(commands, joined + usize::from(!left), "{number}: {calls:?}");
        if !left {
            cleared(&peer, 0);
        }
    }
}

#[tokio::test]
async fn bad_paths_are_refused_before_anything_is_sent() {
    let (peer, files) = service(0);
    let big = noise(MAX_FILE + 1);
    for path in ["", "a\0b", "folder/", "..", "x/."] {
        let error = files.upload_from(path, &big[..], Transfer::new()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path:?}");
        assert_eq!(error.sandbox_id(), Some("bx_1"));
    }
    assert_eq!(
        files.upload_file("x", "/no/such/file", Transfer::new()).await.unwrap_err().code(),
        "read_failed"
    );
    assert_eq!(
        files.upload_file("x", std::env::temp_dir(), Transfer::new()).await.unwrap_err().code(),
        "read_failed"
    );
    assert!(peer.calls().is_empty());
}
