//! Questions about a long history, and how much of it is kept.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, RunnerKind};
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
    assert_eq!(ask("mode=process").await, (1, vec![]));
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
