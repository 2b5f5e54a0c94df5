//! Files in and out.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sandboxer_mock_server::MockServer;
use serde_json::json;

use crate::http::{Api, guarded};

#[tokio::test]
async fn files_go_in_and_come_out() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}/files");
    let text = json!({"path": "deep/er/ö.txt", "content": "grüße\n"});
    let written = api.call("PUT", &path, text).await.succeeds(200, "file.written");
    assert_eq!(written["size"], 8);
    assert_eq!(api.exec(&id, "cat deep/er/*.txt").await["stdout"], "grüße\n");
    let read =
        api.get(&format!("{path}?path=/home/user/deep/er/%C3%B6.txt")).await.succeeds(200, "file.read");
    assert_eq!((read["content"].as_str(), &read["encoding"]), (Some("grüße\n"), &json!("utf8")));
    let bytes: Vec<u8> = (0..=255).collect();
    let raw = json!({"path": "/tmp/raw", "content": STANDARD.encode(&bytes), "encoding": "base64"});
    api.call("PUT", &path, raw).await.succeeds(200, "file.written");
    let read = api.get(&format!("{path}?path=/tmp/raw&encoding=base64")).await.succeeds(200, "file.read");
    assert_eq!(STANDARD.decode(read["content"].as_str().unwrap()).unwrap(), bytes);
    let download = api.request("GET", &format!("/sandboxes/{id}/artifacts?path=/tmp/raw"));
    let response = guarded(download.send()).await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/octet-stream");
    assert_eq!(response.headers()["content-length"], "256");
    assert_eq!(guarded(response.bytes()).await.unwrap(), bytes);
}

#[tokio::test]
async fn paths_and_sizes_are_checked() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}/files");
    api.exec(&id, "ln -s /etc etc; ln -s /etc/passwd pw; mkdir folder; mkfifo pipe").await;
    for bad in ["/etc/passwd", "../../etc/passwd", "etc/passwd", "pw", "folder", "pipe", "%00"] {
        api.get(&format!("{path}?path={bad}")).await.fails(400, "invalid_path");
        api.get(&format!("/sandboxes/{id}/artifacts?path={bad}")).await.fails(400, "invalid_path");
    }
    for bad in ["/etc/x", "etc/x", "../x"] {
        let write = json!({"path": bad, "content": "x"});
        api.call("PUT", &path, write).await.fails(400, "invalid_path");
        api.get(&format!("{path}/info?path={bad}")).await.fails(400, "invalid_path");
    }
    api.get(&format!("{path}?path=nothing")).await.fails(404, "path_not_found");
    api.get(&format!("/sandboxes/{id}/artifacts?path=nothing")).await.fails(404, "path_not_found");
    api.get(&path).await.fails(400, "invalid_request");
    let odd = json!({"path": "x", "content": "%%%", "encoding": "base64"});
    api.call("PUT", &path, odd).await.fails(400, "invalid_request");

    api.exec(
        &id,
        "head -c 5242880 /dev/zero > fits; head -c 5242881 /dev/zero > big; truncate -s 52428801 huge",
    )
    .await;
    let fits = api.get(&format!("{path}?path=fits&encoding=base64")).await.succeeds(200, "file.read");
    assert_eq!(fits["size"], 5 << 20);
    let big = api.get(&format!("{path}?path=big")).await;
    let details = big.fails(400, "file_too_large");
    assert_eq!((&details["limit"], &details["size"]), (&json!(5_242_880), &json!(5_242_881)));
    let huge = api.get(&format!("/sandboxes/{id}/artifacts?path=huge")).await;
    assert_eq!(huge.fails(400, "file_too_large")["limit"], 50 << 20);
    let most = json!({"path": "most", "content": "\"".repeat(5 << 20)});
    api.call("PUT", &path, most).await.succeeds(200, "file.written");
    let over = json!({"path": "over", "content": "x".repeat((5 << 20) + 1)});
    api.call("PUT", &path, over).await.fails(400, "file_too_large");
    api.get(&format!("{path}?path=over")).await.fails(404, "path_not_found");
}

#[tokio::test]
async fn a_stopped_sandbox_has_no_machine_for_files() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    api.exec(&id, "echo x > f").await;
    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    let path = format!("/sandboxes/{id}/files");
    api.get(&format!("{path}?path=f")).await.fails(409, "machine_not_running");
    api.get(&format!("{path}?path=/etc/passwd")).await.fails(400, "invalid_path");
    api.call("PUT", &path, json!({"path": "f", "content": "y"})).await.fails(409, "machine_not_running");
    api.get(&format!("/sandboxes/{id}/artifacts?path=f")).await.fails(409, "machine_not_running");
}
