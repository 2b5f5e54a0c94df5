//! The file verbs of one dialect: what they send, what they refuse, and that the other dialect has none of them.

use std::time::Duration;

use serde_json::{Value, json};

use super::service::{Reply, Service};
use crate::{AsyncFiles, Dialect, Error, ErrorKind};

fn files(dialect: Dialect) -> (Service, AsyncFiles) {
    let service = Service::start(|_, _| {
        let body = json!({"ok": true, "type": "x", "name": "a", "path": "/home/user/a", "files": [], "matches": [],
            "results": [], "destination": "/tmp/b", "url": "https://u.example/?token=hush", "method": "PUT",
            "expiresAt": "2026-01-01T00:00:00Z"});
        Reply::Json(200, body)
    });
    let files = service.client_of(dialect).sandbox("bx_1").files();
    (service, files)
}

#[tokio::test]
async fn every_option_is_sent() {
    let (service, files) = files(Dialect::Boat);
    files.list("/tmp/a b").await.unwrap();
    files.info("a").await.unwrap();
    files.create_folder("a/b", None).await.unwrap();
    files.create_folder("a/b", Some(0o755)).await.unwrap();
    files.move_to("a", "/tmp/b", false).await.unwrap();
    files.move_to("a", "/tmp/b", true).await.unwrap();
    files.set_permissions("a", 0o7).await.unwrap();
    files.delete("a", false).await.unwrap();
    files.delete("a", true).await.unwrap();
    files.search("a", "*.py").await.unwrap();
    files.find("a", "x y", false).await.unwrap();
    files.find("a", "^x+$", true).await.unwrap();
    files.replace(["a", "b"], "old", "").await.unwrap();
    let upload = files.upload_url("a", Some(Duration::from_millis(500))).await.unwrap();
    files.download_url("a", None).await.unwrap();
    assert!(upload.url.expose().ends_with("hush") && !format!("{upload:?}").contains("hush"));
    let sent: Vec<_> = service.requests().into_iter().map(|request| (request.call, request.body)).collect();
    let expected = [
        ("GET", "/list?path=%2Ftmp%2Fa+b", Value::Null),
        ("GET", "/info?path=a", Value::Null),
        ("POST", "/folder", json!({"path": "a/b"})),
        ("POST", "/folder", json!({"path": "a/b", "mode": "0755"})),
        ("POST", "/move", json!({"source": "a", "destination": "/tmp/b", "overwrite": false})),
        ("POST", "/move", json!({"source": "a", "destination": "/tmp/b", "overwrite": true})),
        ("POST", "/permissions", json!({"path": "a", "mode": "0007"})),
        ("DELETE", "?path=a&recursive=false", Value::Null),
        ("DELETE", "?path=a&recursive=true", Value::Null),
        ("GET", "/search?path=a&pattern=*.py", Value::Null),
        ("GET", "/find?path=a&pattern=x+y&regex=false", Value::Null),
        ("GET", "/find?path=a&pattern=%5Ex%2B%24&regex=true", Value::Null),
        ("POST", "/replace", json!({"paths": ["a", "b"], "pattern": "old", "newValue": ""})),
        ("POST", "/upload-url", json!({"path": "a", "ttlSeconds": 1})),
        ("POST", "/download-url", json!({"path": "a"})),
    ];
    let expected =
        expected.map(|(method, rest, body)| (format!("{method} /sandboxes/bx_1/files{rest}"), body));
    assert_eq!(sent, expected);
}

#[track_caller]
fn refused<T>(result: Result<T, Error>, kind: ErrorKind) {
    let Err(error) = result else { panic!("it is not refused") };
    assert_eq!((error.kind(), error.sandbox_id()), (kind, Some("bx_1")), "{error}");
}

#[tokio::test]
async fn bad_arguments_are_refused() {
    let (service, files) = files(Dialect::Boat);
    let bad = ErrorKind::InvalidInput;
    for path in ["", "a\0b", &"x".repeat(4097)] {
        refused(files.list(path).await, bad);
        refused(files.info(path).await, bad);
        refused(files.create_folder(path, None).await, bad);
        refused(files.move_to(path, "b", false).await, bad);
        refused(files.move_to("a", path, false).await, bad);
        refused(files.set_permissions(path, 0o644).await, bad);
        refused(files.delete(path, true).await, bad);
        refused(files.search(path, "*").await, bad);
        refused(files.search("a", path).await, bad);
        refused(files.find(path, "x", false).await, bad);
        refused(files.find("a", path, false).await, bad);
        refused(files.replace([path], "x", "y").await, bad);
        refused(files.upload_url(path, None).await, bad);
        refused(files.download_url(path, None).await, bad);
    }
    refused(files.create_folder("a", Some(0o10000)).await, bad);
    refused(files.set_permissions("a", u32::MAX).await, bad);
    refused(files.replace([""; 0], "x", "y").await, bad);
    refused(files.replace(["a"; 101], "x", "y").await, bad);
    refused(files.replace(["a"], "", "y").await, bad);
    refused(files.replace(["a"], "x", "\0").await, bad);
    for ttl in [Duration::ZERO, Duration::from_secs(3601), Duration::MAX] {
        refused(files.upload_url("a", Some(ttl)).await, bad);
        refused(files.download_url("a", Some(ttl)).await, bad);
    }
    assert_eq!(service.calls(), [""; 0]);
}

#[tokio::test]
async fn the_other_dialect_has_none_of_them() {
    let (service, files) = files(Dialect::Sandboxer);
    let absent = ErrorKind::Unsupported;
    refused(files.list("a").await, absent);
    refused(files.info("a").await, absent);
    refused(files.create_folder("a", None).await, absent);
    refused(files.move_to("a", "b", false).await, absent);
    refused(files.set_permissions("a", 0o644).await, absent);
    refused(files.delete("a", false).await, absent);
    refused(files.search("a", "*").await, absent);
    refused(files.find("a", "x", false).await, absent);
    refused(files.replace(["a"], "x", "y").await, absent);
    refused(files.upload_url("a", None).await, absent);
    refused(files.download_url("a", None).await, absent);
    assert_eq!(service.calls(), [""; 0]);
}
