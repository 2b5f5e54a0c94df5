//! Questions about a long history, and how much of it is kept.

use std::{sync::Arc, time::Duration};

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{
    MockServer, RunnerKind,
    runner::{Script, ScriptedRunner},
};
use serde_json::{Value, json};

use crate::http::{Api, until};

#[tokio::test]
async fn a_question_that_few_answer_is_answered_a_part_at_a_time() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let id = server.world().fill(server.api_key(), 1, 4500).unwrap().remove(0);
    let path = format!("/sandboxes/{id}/command-history");
    // All pages of a question: how many there were, and the commands of all of them.
    let ask = async |question: &str| {
        let (mut pages, mut found, mut cursor) = (0, Vec::new(), String::new());
        loop {
            let page = api.get(&format!("{path}?{question}{cursor}")).await.succeeds(200, "command.list");
            pages += 1;
            let commands = page["commands"].as_array().unwrap();
            found.extend(commands.iter().map(|record| record["command"].as_str().unwrap().to_owned()));
            match &page["nextCursor"] {
                Value::String(next) => cursor = format!("&cursor={next}"),
                _ => return (pages, found),
            }
        }
    };
    assert_eq!(ask("q=nothing").await, (3, vec![]));
    assert_eq!(ask("mode=process").await, (3, vec![]));
    assert_eq!(ask("mode=detached,stream").await, (3, vec![]));
    let (pages, found) = ask("q=NUMBER%202500").await;
    assert_eq!((pages, found), (3, vec!["echo command number 2500".to_owned()]));
    // Newest first, and a page that is full with nothing after it is the last one.
    let (pages, found) = ask("q=number%201&limit=100").await;
    let expected: Vec<String> = (0..4500)
        .rev()
        .map(|number| format!("echo command number {number}"))
        .filter(|text| text.contains("number 1"))
        .collect();
    assert_eq!(found.len(), 1111);
    assert_eq!(found, expected);
    assert!((12..=14).contains(&pages), "{pages}");
    let (pages, found) = ask("limit=100").await;
    assert_eq!((pages, found.len()), (45, 4500));
}

#[tokio::test]
async fn an_account_has_room_for_so_much_output_an_hour() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Process).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"ttlSeconds": null})).await;
    // Noise, which compressing makes no smaller, in a command that ends.
    let make = async |bytes: u64| {
        let started = api.start(&id, &format!("head -c {bytes} /dev/urandom; echo end >&2")).await;
        let path = format!("/sandboxes/{id}/command-history/{}", started["commandId"].as_str().unwrap());
        until(async || api.get(&path).await.body["command"]["status"] == "exited").await;
        // Answered once the end is recorded.
        let process = format!("/sandboxes/{id}/commands/{}", started["processId"]);
        api.call("DELETE", &process, json!({})).await.succeeds(200, "command.stopped");
        let record = api.get(&path).await.succeeds(200, "command.info")["command"].clone();
        assert_eq!(record["stdoutBytes"], bytes);
        let mut sizes = Vec::new();
        for stream in ["stdout", "stderr"] {
            let logs = api.get(&format!("{path}/logs?stream={stream}&encoding=base64&limit=10")).await;
            let logs = logs.succeeds(200, "command.logs");
            assert_eq!(logs["done"], logs["size"].as_u64().unwrap() <= 10);
            sizes.push(logs["size"].clone());
        }
        // Whoever follows the command itself gets all of it.
        let status =
            api.get(&format!("{process}?stdoutOffset={}", bytes - 1)).await.succeeds(200, "command.status");
        assert_eq!((&status["stdoutNextOffset"], &status["more"]), (&json!(bytes), &json!(false)));
        (record["outputTruncated"].as_bool().unwrap(), sizes)
    };
    let all = (false, vec![json!(6_000_000), json!(4)]);
    assert_eq!(make(6_000_000).await, all);
    let (is_truncated, sizes) = make(6_000_000).await;
    // Output is stored while it comes: how much of it still found room depends on how fast that was.
    assert!(is_truncated && sizes[0].as_u64() < Some(6_000_000), "{sizes:?}");
    // What still fits is kept.
    assert_eq!(make(1_000).await, (false, vec![json!(1_000), json!(4)]));
    clock.advance(Duration::from_secs(3600));
    assert_eq!(make(6_000_000).await, all);
}

#[tokio::test]
async fn output_of_some_long_commands_is_kept() {
    let clock = ManualClock::new();
    let runner = ScriptedRunner::new(clock.shared());
    runner.on("build", Script::new().stdout(vec![b'x'; 8 << 20]));
    let server = MockServer::builder().clock(clock.shared()).own_runner(Arc::new(runner)).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let first = api.start(&id, "build").await;
    let process = format!("/sandboxes/{id}/commands/{}", first["processId"]);
    until(async || api.get(&process).await.body["status"] == "exited").await;
    for _ in 1..6 {
        api.exec(&id, "build").await;
    }
    let command = first["commandId"].as_str().unwrap();
    let logs = api.get(&format!("/sandboxes/{id}/command-history/{command}/logs?limit=3")).await;
    let logs = logs.succeeds(200, "command.logs");
    assert_eq!((&logs["offset"], &logs["data"], &logs["size"]), (&json!(0), &json!("xxx"), &json!(8 << 20)));
}

#[tokio::test]
async fn what_a_command_leaves_running_is_recorded_as_a_process() {
    let period = Duration::from_millis(30_001);
    for kind in [RunnerKind::Process, RunnerKind::Isolated] {
        let clock = ManualClock::new();
        let Ok(server) = MockServer::builder().clock(clock.shared()).runner(kind).start() else { continue };
        let api = Api::of(&server);
        let id = api.sandbox(json!({"ttlSeconds": null})).await;
        let history = async |query: &str| {
            let page = api.get(&format!("/sandboxes/{id}/command-history?{query}")).await;
            page.succeeds(200, "command.list")["commands"].as_array().unwrap().clone()
        };
        let left = api.exec(&id, "sleep 4321 > /dev/null 2>&1 & echo $!").await;
        let kept = api.start(&id, "sleep 1234").await;
        let points = async || api.get(&format!("/sandboxes/{id}/metrics")).await.body["points"].clone();
        let sample = async || {
            clock.wait_for_sleep_of(period).await;
            let before = points().await;
            clock.advance(period);
            until(async || points().await != before).await;
        };
        // A process is young for a moment of real time.
        until(async || {
            sample().await;
            !history("mode=process").await.is_empty()
        })
        .await;
        sample().await;
        let found = history("mode=process").await;
        assert_eq!(found.len(), 1, "{found:?}");
        let record = &found[0];
        assert_eq!(
            (&record["command"], &record["mode"], &record["status"], &record["cwd"], &record["processId"]),
            (&json!("sleep 4321"), &json!("process"), &json!("running"), &json!(null), &json!(null))
        );
        assert_eq!((history("mode=commands").await.len(), history("").await.len()), (2, 3));
        let path = format!("/sandboxes/{id}/command-history/{}", record["commandId"].as_str().unwrap());
        let logs = api.get(&format!("{path}/logs")).await.succeeds(200, "command.logs");
        assert_eq!((&logs["size"], &logs["done"]), (&json!(0), &json!(false)));
        // The table of processes leads to it, as it leads to commands.
        let table = api.get(&format!("/sandboxes/{id}/processes")).await.succeeds(200, "process.list");
        for (command, id) in [("sleep 4321", &record["commandId"]), ("sleep 1234", &kept["commandId"])] {
            let row = table["processes"].as_array().unwrap().iter().find(|row| row["command"] == command);
            assert_eq!(&row.unwrap()["commandId"], id, "{table}");
        }
        api.exec(&id, &format!("kill {}", left["stdout"].as_str().unwrap().trim())).await;
        sample().await;
        let ended = api.get(&path).await.succeeds(200, "command.info")["command"].clone();
        assert_eq!((&ended["status"], &ended["exitCode"]), (&json!("exited"), &json!(null)));
        assert_ne!(ended["finishedAt"], json!(null));
        // What still runs when the sandbox stops is lost; after three days nothing is known of any.
        api.exec(&id, "sleep 4322 > /dev/null 2>&1 &").await;
        until(async || {
            sample().await;
            history("mode=process").await.len() == 2
        })
        .await;
        api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
        api.wait_for(&id, "archived").await;
        let statuses: Vec<_> =
            history("mode=process").await.iter().map(|record| record["status"].clone()).collect();
        assert_eq!(statuses, ["lost", "exited"]);
        clock.advance(Duration::from_secs(73 * 3600));
        until(async || {
            clock.advance(Duration::from_secs(62));
            history("mode=process").await.is_empty()
        })
        .await;
        assert_eq!(history("").await.len(), 4);
    }
}
