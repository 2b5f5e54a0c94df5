//! Commands that are waited for, and those in the background.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sandboxer::clock::{Clock as _, SystemClock};
use sandboxer_mock_server::MockServer;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::http::{Answer, Api, guarded, until};

#[tokio::test]
async fn a_command_is_answered_with_what_came_of_it() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"env": {"A": "sandbox", "B": "sandbox"}})).await;
    let path = format!("/sandboxes/{id}/commands");
    let body = json!({"command": "echo $A $B $SANDBOXER_ID; echo err >&2; exit 3", "env": {"B": "own"}});
    let done = api.post(&path, body).await.succeeds(200, "command.finished");
    assert_eq!(done["stdout"], format!("sandbox own {id}\n"));
    assert_eq!(done["stderr"], "err\n");
    assert_eq!(
        (&done["exitCode"], &done["success"], &done["timedOut"]),
        (&json!(3), &json!(false), &json!(false))
    );
    assert_eq!(done["signal"], Value::Null);
    assert_eq!(done["cwd"], "/home/user");

    let killed = api.exec(&id, "kill -9 $$").await;
    assert_eq!((&killed["exitCode"], &killed["signal"]), (&Value::Null, &json!("SIGKILL")));
    let raw = api.exec(&id, r"printf 'a\377b'").await;
    assert_eq!(raw["stdout"], "a\u{fffd}b");
    api.exec(&id, "mkdir -p app/src").await;
    let inside =
        api.post(&path, json!({"command": "pwd", "cwd": "app/src"})).await.succeeds(200, "command.finished");
    assert!(inside["stdout"].as_str().unwrap().ends_with("/home/user/app/src\n"), "{}", inside["stdout"]);
    assert_eq!(inside["cwd"], "/home/user/app/src");
}

#[tokio::test]
async fn a_command_is_ended_at_its_limit() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let body = json!({"command": "echo begun; sleep 30", "timeoutSeconds": 1});
    let done = api.post(&format!("/sandboxes/{id}/commands"), body).await.succeeds(200, "command.finished");
    assert_eq!((&done["timedOut"], &done["success"]), (&json!(true), &json!(false)));
    assert_eq!(done["stdout"], "begun\n");
    let record = history(&api, &id, "").await.remove(0);
    assert_eq!(record["status"], "timed_out");
}

#[tokio::test]
async fn output_of_a_waiting_command_is_cut_at_8_mib() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let done = api.exec(&id, "head -c 9000000 /dev/zero | tr '\\0' x; echo e >&2").await;
    assert_eq!(done["stdout"].as_str().unwrap().len(), 8 << 20);
    assert_eq!((&done["stdoutTruncated"], &done["stderrTruncated"]), (&json!(true), &json!(false)));
    let record = history(&api, &id, "").await.remove(0);
    assert_eq!((&record["stdoutBytes"], &record["outputTruncated"]), (&json!(9_000_000), &json!(true)));
}

async fn history(api: &Api, id: &str, query: &str) -> Vec<Value> {
    let page =
        api.get(&format!("/sandboxes/{id}/command-history?{query}")).await.succeeds(200, "command.list");
    page["commands"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_history_is_filtered_paged_and_outlives_the_stop() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    for n in 0..5 {
        api.exec(&id, &format!("echo Number {n}")).await;
    }
    api.start(&id, "echo detached; sleep 60").await;
    let path = format!("/sandboxes/{id}/command-history");
    let texts = |records: &[Value]| -> Vec<String> {
        records.iter().map(|record| record["command"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts(&history(&api, &id, "q=number%203").await), ["echo Number 3"]);
    assert_eq!(texts(&history(&api, &id, "mode=detached").await), ["echo detached; sleep 60"]);
    assert_eq!(history(&api, &id, "mode=commands").await.len(), 6);
    assert_eq!(history(&api, &id, "mode=process").await.len(), 0);
    let first = api.get(&format!("{path}?limit=4&mode=sync")).await.succeeds(200, "command.list");
    let cursor = first["nextCursor"].as_str().unwrap();
    let rest =
        api.get(&format!("{path}?limit=4&mode=sync&cursor={cursor}")).await.succeeds(200, "command.list");
    assert_eq!(texts(rest["commands"].as_array().unwrap()), ["echo Number 0"]);
    assert_eq!(rest["nextCursor"], Value::Null);

    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    let records = history(&api, &id, "").await;
    assert_eq!((records.len(), &records[0]["status"]), (6, &json!("lost")));
    let command = records[5]["commandId"].as_str().unwrap();
    let logs = api.get(&format!("{path}/{command}/logs")).await.succeeds(200, "command.logs");
    assert_eq!((logs["data"].as_str(), &logs["done"]), (Some("Number 0\n"), &json!(true)));
    let info = api.get(&format!("{path}/{command}")).await.succeeds(200, "command.info");
    assert_eq!(info["command"]["exitCode"], 0);
    let table = api.get(&format!("/sandboxes/{id}/processes")).await.succeeds(200, "process.list");
    assert_eq!(table["live"], false);
}

#[tokio::test]
async fn a_background_command_is_asked_ended_and_recorded() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let started = api.start(&id, "printf abc; printf de >&2; exec sleep 300").await;
    let process = started["processId"].as_u64().unwrap();
    assert_eq!(started["logPath"], format!("~/.sandboxer/processes/{process}.log"));
    let path = format!("/sandboxes/{id}/commands/{process}");
    until(async || api.get(&path).await.body["stderr"] == "de").await;
    let tail = api.get(&format!("{path}?tailBytes=2")).await.succeeds(200, "command.status");
    assert_eq!(
        (&tail["stdout"], &tail["stdoutTruncated"], &tail["status"]),
        (&json!("bc"), &json!(true), &json!("running"))
    );
    let part = api.get(&format!("{path}?stdoutOffset=1")).await.succeeds(200, "command.status");
    assert_eq!(
        (&part["stdout"], &part["stdoutOffset"], &part["stdoutNextOffset"]),
        (&json!("bc"), &json!(1), &json!(3))
    );
    assert_eq!(
        (&part["stderr"], &part["stderrOffset"], &part["more"]),
        (&json!("de"), &json!(0), &json!(false))
    );
    let log = format!("/sandboxes/{id}/files?path=.sandboxer/processes/{process}.log");
    until(async || api.get(&log).await.body["content"] == "abc").await;

    let table = api.get(&format!("/sandboxes/{id}/processes")).await.succeeds(200, "process.list");
    assert_eq!(table["live"], true);
    let processes = table["processes"].as_array().unwrap();
    let sleep = processes.iter().find(|p| p["command"].as_str().unwrap().contains("sleep 300")).unwrap();
    assert_eq!(sleep["commandId"], started["commandId"]);

    let stopped = api.call("DELETE", &path, json!({})).await.succeeds(200, "command.stopped");
    assert_eq!((&stopped["running"], &stopped["signaled"]), (&json!(false), &json!(true)));
    assert_eq!(stopped["command"]["status"], "killed");
    let again = api.call("DELETE", &path, json!({})).await.succeeds(200, "command.stopped");
    assert_eq!(again["signaled"], false);
    let after = api.get(&path).await.succeeds(200, "command.status");
    assert_eq!(
        (&after["status"], &after["stdout"], &after["signal"]),
        (&json!("exited"), &json!("abc"), &json!("SIGTERM"))
    );
}

#[tokio::test]
async fn a_hundred_kilobytes_of_noise_come_back_byte_for_byte() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let started = api.start(&id, "head -c 100000 /dev/urandom | tee noise").await;
    let command = started["commandId"].as_str().unwrap();
    let logs = format!("/sandboxes/{id}/command-history/{command}/logs?encoding=base64&limit=33333");
    until(async || api.get(&logs).await.body["size"] == 100_000).await;
    let file = api.get(&format!("/sandboxes/{id}/files?path=noise&encoding=base64")).await;
    let expected = STANDARD.decode(file.body["content"].as_str().unwrap()).unwrap();
    let mut got = Vec::new();
    guarded(async {
        loop {
            let page = api.get(&format!("{logs}&offset={}", got.len())).await.succeeds(200, "command.logs");
            assert_eq!(page["offset"], got.len());
            got.extend(STANDARD.decode(page["data"].as_str().unwrap()).unwrap());
            assert_eq!(page["nextOffset"], got.len());
            if page["done"] == true {
                break;
            }
        }
    })
    .await;
    assert_eq!(got.len(), 100_000);
    assert!(got == expected);
}

#[tokio::test]
async fn nothing_is_recorded_when_monitoring_is_off() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"monitoring": false})).await;
    assert_eq!(api.exec(&id, "echo live").await["stdout"], "live\n");
    let started = api.start(&id, "echo background").await;
    let path = format!("/sandboxes/{id}/commands/{}", started["processId"]);
    until(async || api.get(&path).await.body["status"] == "exited").await;
    assert_eq!(api.get(&path).await.body["stdout"], "background\n");
    for question in ["command-history", "processes"] {
        api.get(&format!("/sandboxes/{id}/{question}")).await.fails(409, "monitoring_off");
    }
    let command = started["commandId"].as_str().unwrap();
    api.get(&format!("/sandboxes/{id}/command-history/{command}")).await.fails(409, "monitoring_off");
    api.get(&format!("/sandboxes/{id}/command-history/{command}/logs")).await.fails(409, "monitoring_off");
    assert_eq!(server.world().commands(&id), [""; 0]);
}

/// Waits until a command has made the file that says so.
async fn has_begun(api: &Api, id: &str) {
    let begun = format!("/sandboxes/{id}/files?path=begun");
    until(async || api.get(&begun).await.status == 200).await;
}

/// A call that waits for a command without an end, which has begun.
async fn waiting_call(api: &Api, id: &str) -> JoinHandle<Answer> {
    let running = tokio::spawn({
        let (api, path) = (api.clone(), format!("/sandboxes/{id}/commands"));
        async move { api.post(&path, json!({"command": "touch begun; sleep 300", "timeoutSeconds": 600})).await }
    });
    has_begun(api, id).await;
    running
}

#[tokio::test]
async fn a_command_whose_sandbox_goes_away_is_an_error() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let running = waiting_call(&api, &id).await;
    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    let answer = guarded(running).await.unwrap();
    answer.fails(502, "sandbox_direct_failed");
    api.wait_for(&id, "archived").await;
    assert_eq!(history(&api, &id, "").await[0]["status"], "lost");
}

#[tokio::test]
async fn a_command_runs_to_its_end_when_its_caller_hangs_up() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let body =
        json!({"command": "touch begun; read line < go; echo through", "stream": true, "timeoutSeconds": 60});
    api.exec(&id, "mkfifo go").await;
    let response =
        api.request("POST", &format!("/sandboxes/{id}/commands")).json(&body).send().await.unwrap();
    has_begun(&api, &id).await;
    drop(response);
    SystemClock::new().sleep(Duration::from_millis(50)).await;
    api.exec(&id, "echo > go").await;
    until(async || history(&api, &id, "mode=stream").await[0]["status"] == "exited").await;
    let record = history(&api, &id, "mode=stream").await.remove(0);
    assert_eq!((&record["exitCode"], &record["stdoutBytes"]), (&json!(0), &json!(8)));
}

#[tokio::test]
async fn a_waiting_call_is_answered_when_the_server_ends() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let running = waiting_call(&api, &id).await;
    tokio::task::spawn_blocking(move || server.shutdown()).await.unwrap();
    guarded(running).await.unwrap().fails(502, "sandbox_direct_failed");
}
