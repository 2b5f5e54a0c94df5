//! Every operation of the document, those of both dialects: answered, but for the WebSocket routes.

use http::StatusCode;
use sandboxer::{
    Operation,
    dialects::Dialect,
    models::{EventsStreamParams, MetricsParams},
    operations::Media,
};
use sandboxer_mock_server::{MockServer, Reply};
use serde_json::{Value, json};

use crate::{asks::path_to, http::Api};

#[tokio::test]
async fn every_route_answers() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let sandbox = api.sandbox(json!({})).await;
    let mut absent = Vec::new();
    let faces = [Operation::CommandStream, Operation::EventsStream];
    for operation in Operation::ALL.iter().copied().filter(|operation| !faces.contains(operation)) {
        let info = operation.info();
        // What opens a WebSocket looks for its sandbox first.
        let id = if info.media == Media::WebSocket { &sandbox } else { "id_1" };
        let request = api.request(info.method, &path_to(operation, id, "1"));
        let answer = request.send().await.expect("an answer");
        let (status, body) = (answer.status(), answer.json::<Value>().await.unwrap_or_default());
        let code = body["code"].as_str().unwrap_or_default();
        if info.media == Media::WebSocket {
            assert_eq!((status, code), (StatusCode::UPGRADE_REQUIRED, "upgrade_required"), "{operation}");
            absent.push(operation);
        } else if info.key_action == Some("session") {
            assert_eq!((status, code), (StatusCode::FORBIDDEN, "session_required"), "{operation}");
        } else {
            assert!(!matches!(code, "method_not_allowed" | "forbidden"), "{operation}");
        }
        assert!(!status.is_server_error(), "{operation}: {body}");
    }
    assert_eq!(absent, [Operation::ExecWebSocket, Operation::SshWebSocket]);
}

#[tokio::test]
async fn scripted_replies_stand_in_for_all_of_them() {
    let server = MockServer::start();
    let page = json!({"ok": true, "type": "sandbox.metrics", "points": []});
    server.on(Operation::Metrics).reply(Reply::json(page));
    server.client().api().metrics("bx_1", MetricsParams::new()).await.expect("the scripted page");

    let events = "id: 1\ndata: {}\n\n";
    server.on(Operation::EventsStream).reply(Reply::body(events, "text/event-stream"));
    let stream =
        server.client().api().events_stream("bx_1", EventsStreamParams::new()).await.expect("events");
    assert_eq!(stream.content_type(), Some("text/event-stream"));
    assert_eq!(&stream.collect(100).await.expect("all of it")[..], events.as_bytes());
    assert_eq!(server.requests_to(Operation::EventsStream).len(), 1);
    assert!(server.requests_to(Operation::Events).is_empty());

    let listed = json!({"ok": true, "type": "file.list", "path": "/tmp", "files": [], "truncated": false});
    server.on(Operation::ListFiles).reply(Reply::json(listed));
    let boat = server.client_builder().dialect(Dialect::Boat).build().expect("a client");
    let files = boat.api().list_files("bx_1", sandboxer::models::ListFilesParams::new()).await;
    assert_eq!(files.expect("the scripted list").path, "/tmp");
}
