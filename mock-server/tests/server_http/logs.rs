//! Logs on the disks of sandboxes: of background commands and of setup scripts.

use std::{sync::Arc, time::Duration};

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{
    MockServer,
    runner::{Script, ScriptedRunner},
};
use serde_json::{Value, json};

use crate::http::{Api, until};

fn scripted(clock: &ManualClock, rules: &[(&str, Script)]) -> MockServer {
    let runner = ScriptedRunner::new(clock.shared());
    for (prefix, script) in rules {
        runner.on(*prefix, script.clone());
    }
    MockServer::builder().clock(clock.shared()).own_runner(Arc::new(runner)).start().unwrap()
}

async fn read(api: &Api, id: &str, path: &str) -> Value {
    api.get(&format!("/sandboxes/{id}/files?path={path}")).await.body["content"].clone()
}

#[tokio::test]
async fn a_log_begins_anew_where_a_copied_disk_has_one_of_that_number() {
    let clock = ManualClock::new();
    let say = Script::new().stdout("new\n").stderr("new error\n");
    let server = scripted(&clock, &[("say", say)]);
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let first = api.start(&id, "say").await["processId"].as_u64().unwrap();
    let logs = ["log", "err.log"].map(|end| format!(".sandboxer/processes/{}.{end}", first + 1));
    for path in &logs {
        let body = json!({"path": path, "content": "of another sandbox\n"});
        api.call("PUT", &format!("/sandboxes/{id}/files"), body).await.succeeds(200, "file.written");
    }
    let second = api.start(&id, "say").await;
    assert_eq!(second["processId"], first + 1);
    assert_eq!(second["logPath"], format!("~/{}", logs[0]));
    for (path, text) in logs.iter().zip(["new\n", "new error\n"]) {
        // From the answer on there is nothing in it of another's.
        let found = read(&api, &id, path).await;
        assert!(found == "" || found == text, "{found}");
        until(async || read(&api, &id, path).await == text).await;
    }
}

#[tokio::test]
async fn the_log_of_a_setup_script_grows_while_it_runs() {
    let clock = ManualClock::new();
    let pause = Duration::from_secs(77);
    let script = Script::new().stdout("begun\n").stderr("odd\n").pause(pause).stdout("done\n").exit(1);
    let server = scripted(&clock, &[("set up", script)]);
    let api = Api::of(&server);
    let id = api.sandbox(json!({"setupScript": "set up"})).await;
    let log = async || read(&api, &id, ".sandboxer/setup.log").await;
    let both = |text: &Value| ["begun\nodd\n", "odd\nbegun\n"].iter().any(|both| text == both);
    until(async || both(&log().await)).await;
    let status = async || api.get(&format!("/sandboxes/{id}")).await.body["sandbox"]["setupStatus"].clone();
    assert_eq!(status().await, "running");
    clock.wait_for_sleep_of(pause).await;
    clock.advance(pause);
    until(async || status().await == "failed").await;
    let whole = log().await;
    assert!(whole.as_str().unwrap().ends_with("\ndone\n"), "{whole}");
}

#[tokio::test]
async fn the_log_of_a_setup_script_has_all_that_it_wrote() {
    let clock = ManualClock::new();
    let lines = |word: &str| (0..150_000).map(|number| format!("{word} {number}\n")).collect::<String>();
    let (out, err) = (lines("a"), lines("b"));
    // More than is held of a script that nobody waits for.
    assert!(out.len() > 1 << 20 && out.len() + err.len() < 5 << 20);
    let server = scripted(&clock, &[("set up", Script::new().stdout(&out).stderr(&err).exit(1))]);
    let api = Api::of(&server);
    let id = api.sandbox(json!({"setupScript": "set up"})).await;
    let shown = async || api.get(&format!("/sandboxes/{id}")).await.body["sandbox"].clone();
    until(async || shown().await["setupStatus"] == "failed").await;
    let error = shown().await["setupError"].clone();
    assert!(error.as_str().unwrap().ends_with("\nb 149999"), "{error}");
    let whole = read(&api, &id, ".sandboxer/setup.log").await;
    // Two streams, a piece of one after a piece of the other.
    assert_eq!(whole.as_str().unwrap().len(), out.len() + err.len());
}
