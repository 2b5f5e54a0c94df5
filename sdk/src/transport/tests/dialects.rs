//! What a service of another dialect is sent, and how its answers are read.

use super::{
    builder,
    peer::{Peer, Request, answer, ok},
};
use crate::{
    AsyncSandboxer, Command, Delivery, Dialect, Error, ErrorKind, Operation, RequestOptions,
    models::{
        CommandRequest, CreateSandboxRequest, DeleteFileParams, DeleteSandboxParams, DesktopParams,
        DesktopTheme, EventsStreamParams, FileFolderRequest, FileMoveRequest, FilePermissionsRequest,
        FileReplaceRequest, FileUrlRequest, FindInFilesParams, GetFileInfoParams, GetSnapshotFileParams,
        ListFilesParams, SearchFilesParams,
    },
};
use http::{Method, StatusCode};
use serde_json::{Value, json};

fn boat(url: &str) -> AsyncSandboxer {
    builder(url).dialect(Dialect::Boat).org("acme").build().unwrap()
}

fn line(request: &Request) -> &str {
    request.head.lines().next().unwrap_or_default().strip_suffix(" HTTP/1.1").unwrap()
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

#[tokio::test]
async fn headers_have_the_names_of_the_service() {
    let peer = Peer::start(vec![ok("{}")]);
    let api = boat(&peer.url).api().clone();
    let _ = api.delete_sandbox("bx_1", DeleteSandboxParams::new()).await;
    let confirmed = RequestOptions::new().header("X-Sandboxer-Confirm-Delete", "bx_2");
    api.request(Method::DELETE, "/sandboxes/bx_2", confirmed).await.unwrap();
    for (request, id) in peer.requests().iter().zip(["bx_1", "bx_2"]) {
        assert_eq!(request.values("x-boat-org"), ["acme"]);
        assert_eq!(request.values("x-ascii-confirm-delete"), [id]);
        assert!(!request.head.to_lowercase().contains("x-sandboxer-org"), "{}", request.head);
        assert!(!request.head.to_lowercase().contains("x-sandboxer-confirm"), "{}", request.head);
    }
}

#[tokio::test]
async fn paths_and_the_organisation_go_where_the_service_looks() {
    let peer = Peer::start(vec![ok("{}")]);
    let api = boat(&peer.url).api().clone();
    let _ = api.revoke_snapshot_share("named-snapshots", "shr/1").await;
    let _ = api.list_snapshot_shares("base").await;
    let _ = api.get_named_snapshot("base").await;
    let _ = api.environments().await;
    let _ = api.delete_environment_var("env_1", "KEY").await;
    let requests = peer.requests();
    let lines: Vec<&str> = requests.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "DELETE /api/v1/saved-snapshots/named-snapshots/shares/shr%2F1",
            "GET /api/v1/saved-snapshots/base/shares",
            "GET /api/v1/named-snapshots/base",
            "GET /api/v1/environments?org=acme",
            "DELETE /api/v1/environments/env_1/vars/KEY?org=acme",
        ]
    );
    let named: Vec<usize> = requests.iter().map(|request| request.values("x-boat-org").len()).collect();
    assert_eq!(named, [1, 1, 1, 0, 0]);
}

#[tokio::test]
async fn file_operations_are_sent() {
    let peer = Peer::start(vec![ok("{}")]);
    let api = boat(&peer.url).api().clone();
    let _ = api.list_files("bx_1", ListFilesParams::new().path("a b")).await;
    let _ = api.get_file_info("bx_1", GetFileInfoParams::new("/tmp/x")).await;
    let _ = api.search_files("bx_1", SearchFilesParams::new("*.rs").path("src")).await;
    let _ = api.find_in_files("bx_1", FindInFilesParams::new("fn main").regex(true)).await;
    let _ = api.delete_file("bx_1", DeleteFileParams::new("old").recursive(true)).await;
    let _ = api.create_folder("bx_1", FileFolderRequest::new("new").mode("0755")).await;
    let _ = api.move_file("bx_1", FileMoveRequest::new("a", "b").overwrite(true)).await;
    let _ = api.set_file_permissions("bx_1", FilePermissionsRequest::new("a", "600")).await;
    let _ = api.replace_in_files("bx_1", FileReplaceRequest::new(["a".to_owned()], "x", "y")).await;
    let _ = api.create_upload_url("bx_1", FileUrlRequest::new("up").ttl_seconds(60)).await;
    let _ = api.create_download_url("bx_1", FileUrlRequest::new("down")).await;
    let requests = peer.requests();
    let files = "/api/v1/sandboxes/bx_1/files";
    let sent: Vec<String> = requests.iter().map(|request| line(request).replace(files, "…")).collect();
    assert_eq!(
        sent,
        [
            "GET …/list?path=a+b",
            "GET …/info?path=%2Ftmp%2Fx",
            "GET …/search?path=src&pattern=*.rs",
            "GET …/find?pattern=fn+main&regex=true",
            "DELETE …?path=old&recursive=true",
            "POST …/folder",
            "POST …/move",
            "POST …/permissions",
            "POST …/replace",
            "POST …/upload-url",
            "POST …/download-url",
        ]
    );
    let bodies: Vec<Value> = requests[5..].iter().map(body).collect();
    assert_eq!(
        bodies,
        [
            json!({"path": "new", "mode": "0755"}),
            json!({"source": "a", "destination": "b", "overwrite": true}),
            json!({"path": "a", "mode": "600"}),
            json!({"paths": ["a"], "pattern": "x", "newValue": "y"}),
            json!({"path": "up", "ttlSeconds": 60}),
            json!({"path": "down"}),
        ]
    );
    let bad = api.set_file_permissions("bx_1", FilePermissionsRequest::new("a", "rwx")).await.unwrap_err();
    assert_eq!((bad.kind(), bad.attempts()), (ErrorKind::InvalidInput, 0));
}

#[tokio::test]
async fn what_the_service_does_not_have_is_refused_before_sending() {
    let peer = Peer::start(vec![ok("{}")]);
    let refused = |error: Error, operation| {
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!((error.code(), error.operation()), ("unsupported_operation", Some(operation)));
        assert_eq!((error.delivery(), error.attempts()), (Delivery::NotSent, 0));
    };
    let (boat, own) = (boat(&peer.url), builder(&peer.url).build().unwrap());
    refused(boat.api().stats("bx_1").await.unwrap_err(), Operation::Stats);
    let listing = own.api().list_files("bx_1", ListFilesParams::new()).await;
    refused(listing.unwrap_err(), Operation::ListFiles);
    let named = || CreateSandboxRequest::new().name("demo");
    let error = own.api().create(named()).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::InvalidInput, Delivery::NotSent));
    assert!(error.message().contains("name: must not be set"), "{}", error.message());
    assert!(peer.requests().is_empty());
    let _ = boat.api().create(named()).await;
    assert_eq!(body(&peer.requests()[0]), json!({"name": "demo"}));
}

#[tokio::test]
async fn its_codes_are_read_as_ours() {
    let starting = r#"{"ok":false,"code":"boat_starting","message":"m","retryable":true}"#;
    let peer = Peer::start(vec![answer(409, &[], starting)]);
    let client = builder(&peer.url).dialect(Dialect::Boat).retries(0).build().unwrap();
    let error = client.api().command("bx_1", CommandRequest::new("true")).await.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), ("sandbox_starting", true));
}

#[tokio::test]
async fn variables_of_a_command_are_written_in_front_of_it() {
    let answered = json!({"ok": true, "type": "command.finished", "success": true, "exitCode": 0,
        "stdout": "", "stderr": "", "timedOut": false, "cwd": "/home/user"});
    let peer = Peer::start(vec![ok(&answered.to_string())]);
    let command = || Command::shell("echo $A").env("A", "it's").env("B", "2");
    let sandbox = boat(&peer.url).sandbox("bx_1");
    sandbox.exec(command()).await.unwrap();
    sandbox.exec("true").await.unwrap();
    let own = builder(&peer.url).build().unwrap().sandbox("bx_1");
    own.exec(command()).await.unwrap();
    let low = boat(&peer.url).api().clone();
    let exported = || CommandRequest::new("x").env([("A", "1")]);
    low.command("bx_1", exported()).await.unwrap();
    low.command_stream("bx_1", exported()).await.unwrap();
    let sent: Vec<Value> = peer.requests().iter().map(body).collect();
    assert_eq!(sent[3], json!({"command": "export A='1'; x"}));
    assert_eq!(sent[4], json!({"command": "export A='1'; x", "stream": true}));
    let long =
        low.command("bx_1", CommandRequest::new("x".repeat(1 << 20)).env([("A", "1")])).await.unwrap_err();
    assert_eq!((long.kind(), long.attempts()), (ErrorKind::InvalidInput, 0));
    assert_eq!(sent[0], json!({"command": r"export A='it'\''s' B='2'; echo $A"}));
    assert_eq!(sent[1], json!({"command": "true"}));
    assert_eq!(sent[2], json!({"command": "echo $A", "env": {"A": "it's", "B": "2"}}));
    let reserved = sandbox.exec(Command::shell("x").env("BOAT_ID", "1")).await.unwrap_err();
    assert_eq!(reserved.kind(), ErrorKind::InvalidInput);
    assert!(reserved.message().starts_with("env.BOAT_ID"), "{}", reserved.message());
}

#[tokio::test]
async fn the_environment_is_read_by_the_services_names() {
    let built = AsyncSandboxer::builder()
        .environment(|name| match name {
            "BOAT_API_KEY" => Some("boat".into()),
            "SANDBOXER_API_URL" => Some("http://127.0.0.1:1".into()),
            _ => None,
        })
        .dialect(Dialect::Boat)
        .build()
        .unwrap();
    assert_eq!(built.api().base_url(), "https://boat.dev/api/v1");
    assert_eq!(built.api().dialect(), Dialect::Boat);
    let error = AsyncSandboxer::builder().ignore_env().dialect(Dialect::Boat).build().unwrap_err();
    assert!(error.message().contains("BOAT_API_KEY and ASCII_TOKEN"), "{}", error.message());
}

#[tokio::test]
async fn a_stream_of_events_goes_on_where_its_cursor_says() {
    let peer = Peer::start(vec![ok("data: {}\n\n")]);
    let api = builder(&peer.url).build().unwrap().api().clone();
    for cursor in ["MTpl-_", "é"] {
        let events = EventsStreamParams::new().cursor(cursor).kind("prompt");
        let stream = api.events_stream("bx_1", events).await.unwrap();
        assert_eq!(stream.status(), StatusCode::OK);
    }
    let requests = peer.requests();
    assert!(line(&requests[0]).starts_with("GET /api/v1/sandboxes/bx_1/events?"), "{}", requests[0].head);
    for part in ["cursor=MTpl-_", "sort=asc", "type=prompt"] {
        assert!(line(&requests[0]).contains(part), "{}", requests[0].head);
    }
    assert_eq!(requests[0].values("last-event-id"), ["MTpl-_"]);
    assert!(requests[1].values("last-event-id").is_empty());
    assert!(requests[0].values("accept")[0].starts_with("text/event-stream"));
}

#[tokio::test]
async fn parameters_and_body_go_out_together() {
    let peer = Peer::start(vec![ok("{}")]);
    let api = builder(&peer.url).build().unwrap().api().clone();
    let request = DesktopParams::new().vnc(1).theme(DesktopTheme::Dark).public_access(true);
    let _ = api.desktop("bx_1", request).await;
    assert_eq!(line(&peer.requests()[0]), "POST /api/v1/sandboxes/bx_1/desktop?theme=dark&vnc=1");
    assert_eq!(body(&peer.requests()[0]), json!({"publicAccess": true}));
}

#[tokio::test]
async fn a_range_of_a_snapshots_file() {
    let peer = Peer::start(vec![answer(206, &[("content-range", "bytes 2-4/10")], "cde")]);
    let api = builder(&peer.url).build().unwrap().api().clone();
    let range = GetSnapshotFileParams::new().path("a").range("bytes=2-4");
    let body = api.get_snapshot_file("snap_1", range).await.unwrap();
    assert_eq!(body.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(body.headers()["content-range"], "bytes 2-4/10");
    assert_eq!(&body.collect(10).await.unwrap()[..], b"cde");
    assert_eq!(peer.requests()[0].values("range"), ["bytes=2-4"]);
    let odd = api.get_snapshot_file("snap_1", GetSnapshotFileParams::new().range("lines=1-2")).await;
    assert_eq!(odd.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn an_id_in_the_path_is_held_against_its_pattern() {
    let peer = Peer::start(vec![ok("{}")]);
    let api = builder(&peer.url).build().unwrap().api().clone();
    for bad in ["9A", "A-B", &"x".repeat(129)] {
        let error = api.delete_environment_var("env_1", bad).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{bad}");
    }
    assert!(peer.requests().is_empty());
}
