//! Files in and out.

use serde_json::json;

use super::service::{Reply, Service};
use crate::{ErrorKind, MAX_FILE};

fn file(encoding: &str, size: usize, content: &str) -> Reply {
    Reply::Json(
        200,
        json!({"ok": true, "type": "file.read", "success": true, "path": "/tmp/x", "encoding": encoding,
        "size": size, "content": content}),
    )
}

#[tokio::test]
async fn text_is_read_once_and_doubtful_text_is_checked_by_its_bytes() {
    // (text answer, its size, base64 answer, its size, result)
    let cases = [
        ("aé", 3, "", 0, Ok("aé")),
        ("\u{FFFD}", 3, "77+9", 3, Ok("\u{FFFD}")),
        ("\u{FFFD}", 1, "/w==", 1, Err("not_utf8")),
        ("\u{FFFD}", 3, "8J+Y", 3, Err("not_utf8")),
    ];
    for (text, text_size, bytes, size, expected) in cases {
        let service = Service::start(move |request, _| {
            if request.call.contains("encoding=base64") {
                file("base64", size, bytes)
            } else {
                file("utf8", text_size, text)
            }
        });
        let read = service.client().sandbox("bx_1").files().read("/tmp/x").await;
        assert_eq!(read.as_deref().map_err(|error| error.code()), expected);
        assert_eq!(service.calls().len(), if bytes.is_empty() { 1 } else { 2 });
    }
}

#[tokio::test]
async fn bytes_are_checked_against_their_size() {
    for (reply, fine) in [
        (("base64", 2, "/wA="), true),
        (("base64", 3, "/wA="), false),
        (("base64", 2, "%%%"), false),
        (("utf8", 2, "ab"), false),
    ] {
        let service = Service::start(move |_, _| file(reply.0, reply.1, reply.2));
        let read = service.client().sandbox("bx_1").files().read_bytes("/tmp/x").await;
        assert_eq!(read.is_ok(), fine, "{reply:?}");
        if let Err(error) = read {
            assert_eq!(error.kind(), ErrorKind::Unexpected);
        }
    }
}

#[tokio::test]
async fn content_travels_as_text_or_base64_and_never_too_big() {
    let service = Service::start(|_, _| {
        Reply::Json(
            200,
            json!({"ok": true, "type": "file.written", "success": true, "path": "x", "encoding": "utf8", "size": 1}),
        )
    });
    let files = service.client().sandbox("bx_1").files();
    files.write("x", "é").await.unwrap();
    files.write("x", String::from("y")).await.unwrap();
    files.write("x", [0xFF, 0x00]).await.unwrap();
    let bodies: Vec<_> = service.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies[0], json!({"path": "x", "content": "é", "encoding": "utf8"}));
    assert_eq!(bodies[2], json!({"path": "x", "content": "/wA=", "encoding": "base64"}));
    files.write("x", vec![b'a'; MAX_FILE]).await.unwrap();
    let error = files.write("x", vec![b'a'; MAX_FILE + 1]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.message().contains("5242880"), "{error}");
    for bad in ["", "a\0b", &"x".repeat(4097)] {
        assert_eq!(files.write(bad, "x").await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(files.read(bad).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(files.download(bad).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(service.calls().len(), 4);
}

#[tokio::test]
async fn a_download_goes_into_a_writer() {
    let service = Service::start(|_, _| Reply::Lines("some bytes".to_owned()));
    let files = service.client().sandbox("bx_1").files();
    let mut written = Vec::new();
    assert_eq!(files.download_to("big", &mut written).await.unwrap(), 10);
    assert_eq!(written, b"some bytes");
}
