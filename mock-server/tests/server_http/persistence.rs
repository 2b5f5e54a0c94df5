//! What a data folder keeps.

use sandboxer_mock_server::{MockServer, StartError};
use serde_json::json;

use crate::http::{Api, until};

fn start(folder: &std::path::Path, key: &str) -> Result<MockServer, StartError> {
    MockServer::builder().data_dir(folder).api_key(key).start()
}

#[tokio::test]
async fn everything_but_keys_and_processes_outlives_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "first").unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"name": "x"})).await;
    api.exec(&id, "echo kept | tee note").await;
    let running = api.start(&id, "echo out; sleep 300").await;
    let path = format!("/sandboxes/{id}/commands/{}", running["processId"]);
    until(async || api.get(&path).await.body["stdout"] == "out\n").await;
    assert!(matches!(start(folder.path(), "second"), Err(StartError::DataInUse(_))));
    let held = server.world();
    tokio::task::spawn_blocking(move || server.shutdown()).await.unwrap();
    drop(held);

    let server = start(folder.path(), "second").unwrap();
    Api::with_key(&server.url(), "first").get("/me").await.fails(401, "unauthorized");
    let api = Api::of(&server);
    assert_eq!(api.exec(&id, "cat note").await["stdout"], "kept\n");
    let history = api.get(&format!("/sandboxes/{id}/command-history")).await.succeeds(200, "command.list");
    let records = history["commands"].as_array().unwrap();
    assert_eq!((&records[1]["status"], &records[1]["mode"]), (&json!("lost"), &json!("detached")));
    assert_eq!(records[2]["status"], "exited");
    for (index, text) in [(1, "out\n"), (2, "kept\n")] {
        let command = records[index]["commandId"].as_str().unwrap();
        let logs = api.get(&format!("/sandboxes/{id}/command-history/{command}/logs")).await;
        assert_eq!(logs.body["data"], text);
    }
    let status = api.get(&path).await.succeeds(200, "command.status");
    assert_eq!((&status["status"], &status["stdout"]), (&json!("lost"), &json!("out\n")));
    let spaces = server.world().folder(&id);
    drop(server);
    assert!(spaces.exists());
}

#[tokio::test]
async fn what_a_killed_server_had_half_made_is_not_served_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "k").unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    api.exec(&id, "echo kept > note").await;
    tokio::task::spawn_blocking(move || server.shutdown()).await.unwrap();
    // A disk that was being brought back, one that was being copied for a fork, and one that nobody had stored yet.
    let halves = [format!("{id}.new"), "bx_23456789.new".to_owned(), "bx_23456789".to_owned()];
    let disk = |name: &str| folder.path().join("sandboxes").join(name);
    for half in &halves {
        std::fs::create_dir_all(disk(half).join("home/user")).unwrap();
        std::fs::write(disk(half).join("home/user/note"), "half").unwrap();
    }

    // A file that was being written.
    let draft = folder.path().join("scratch/.sandboxer-0");
    std::fs::write(&draft, "half").unwrap();

    let server = start(folder.path(), "k").unwrap();
    assert!(!draft.exists());
    let api = Api::of(&server);
    for half in &halves {
        let path = format!("/sandboxes/{half}");
        api.get(&path).await.fails(404, "not_found");
        api.get(&format!("{path}/files?path=note")).await.fails(404, "not_found");
        until(async || !disk(half).exists()).await;
    }
    let listed = api.get("/sandboxes").await.succeeds(200, "sandbox.list");
    assert_eq!(listed["sandboxes"].as_array().unwrap().len(), 1);
    assert_eq!(api.exec(&id, "cat note").await["stdout"], "kept\n");
}

#[test]
fn a_folder_of_a_newer_version_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    drop(start(folder.path(), "k").unwrap());
    let path = folder.path().join("state.redb");
    let set = |layout: &[u8]| {
        let store = redb::Database::open(&path).unwrap();
        let tx = store.begin_write().unwrap();
        let table = redb::TableDefinition::<&str, &[u8]>::new("meta");
        tx.open_table(table).unwrap().insert("layout", layout).unwrap();
        tx.commit().unwrap();
    };
    set(b"99");
    let refusal = start(folder.path(), "k").unwrap_err();
    assert!(matches!(refusal, StartError::Store(_)), "{refusal:?}");
    let said = refusal.to_string();
    assert!(said.contains("newer version") && said.contains("99"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    // An older one is brought up to date.
    set(b"0");
    drop(start(folder.path(), "k").unwrap());
}
