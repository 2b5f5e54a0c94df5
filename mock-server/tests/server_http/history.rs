//! Questions about a long history.

use sandboxer_mock_server::{MockServer, RunnerKind};
use serde_json::Value;

use crate::http::Api;

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
