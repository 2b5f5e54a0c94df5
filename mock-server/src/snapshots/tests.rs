//! Snapshots that go while somebody asks for them.

use std::sync::Weak;

use serde_json::{Value, json};

use crate::{
    MockServer,
    app::lock,
    runner::RunnerKind,
    space,
    store::{StoreError, typed},
    testing::{guarded, until},
    world::snapshots::Snapshot,
};

#[tokio::test]
async fn one_that_goes_while_it_is_asked_for_is_not_there() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).api_key("key").start().unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let created = http.post(format!("{}/sandboxes", server.url())).bearer_auth("key").json(&json!({}));
    let created: Value = guarded(async { created.send().await.unwrap().json().await.unwrap() }).await;
    let id = created["sandbox"]["id"].as_str().unwrap();
    until(|| server.world().state(id) == Some("ready")).await;
    let app = server.app();
    for what in ["tree", "files?path=/", "download"] {
        let snapshot = server.world().capture(id).unwrap();
        let alone = app.shelf.try_hold_alone(&snapshot).unwrap();
        let url = format!("{}/snapshots/{snapshot}/{what}", server.url());
        let asked = http.get(url).bearer_auth("key").send();
        let asked = tokio::spawn(async move { asked.await.unwrap().status().as_u16() });
        // The other one is whoever asks, and waits.
        until(|| lock(&app.shelf.locks).get(&snapshot).map_or(0, Weak::strong_count) == 2).await;
        space::remove_tree(app.shelf.folder(&snapshot)).await.unwrap();
        app.write::<_, StoreError>(|tx| typed::remove::<Snapshot>(tx, &snapshot)).unwrap();
        drop(alone);
        assert_eq!(guarded(asked).await.unwrap(), 404, "{what}");
    }
}
