//! Events by pages and as a stream.

use std::{pin::Pin, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose};
use futures_util::{Stream, StreamExt as _};
use sandboxer::clock::{Clock as _, ManualClock, SystemClock};
use sandboxer_mock_server::MockServer;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    http::{Api, guarded},
    prompts::{ends, events, prompt},
};

/// Messages as they come: each block of lines.
struct Messages {
    body: Pin<Box<dyn Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    rest: String,
}

impl Messages {
    async fn open(request: reqwest::RequestBuilder) -> Self {
        let response =
            guarded(request.header("accept", "text/event-stream").send()).await.expect("an answer");
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"text/event-stream".parse().expect("a value"))
        );
        let mut messages = Self { body: Box::pin(response.bytes_stream()), rest: String::new() };
        assert_eq!(messages.next().await.as_deref(), Some("retry: 1000"));
        messages
    }

    async fn next(&mut self) -> Option<String> {
        guarded(async {
            loop {
                if let Some(end) = self.rest.find("\n\n") {
                    let block: String = self.rest.drain(..end + 2).collect();
                    return Some(block.trim_end().to_owned());
                }
                let bytes = self.body.next().await?.ok()?;
                self.rest.push_str(std::str::from_utf8(&bytes).expect("text"));
            }
        })
        .await
    }

    /// The next event, and its cursor.
    async fn event(&mut self) -> (String, Value) {
        let block = self.next().await.expect("a message");
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let id = field("id: ").unwrap_or_else(|| panic!("{block}"));
        (id, serde_json::from_str(&field("data: ").expect("data")).expect("JSON"))
    }
}

fn stream(api: &Api, id: &str, query: &str) -> reqwest::RequestBuilder {
    api.request("GET", &format!("/sandboxes/{id}/events?sort=asc{query}"))
}

fn cursor(event: &Value) -> String {
    let text = format!("{}:{}", event["timestamp"], event["id"].as_str().expect("an id"));
    general_purpose::URL_SAFE_NO_PAD.encode(text)
}

/// A sandbox with three conversations of two prompts each.
async fn told(server: &MockServer, api: &Api) -> (String, Vec<String>) {
    let id = api.sandbox(json!({})).await;
    server.set_agent(|turn| async move {
        turn.say("a").await;
        turn.say(turn.prompt()).await;
        Ok(())
    });
    let mut conversations = Vec::new();
    for number in 0..3 {
        let (first, conversation) =
            prompt(api, &id, json!({"prompt": number.to_string(), "new": true})).await;
        let (second, _) = prompt(api, &id, json!({"prompt": "again"})).await;
        ends(api, &id, &first, "finished").await;
        ends(api, &id, &second, "finished").await;
        conversations.push(conversation);
    }
    (id, conversations)
}

#[tokio::test]
async fn pages_lead_through_the_list_both_ways_and_by_made_cursors() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let (id, conversations) = told(&server, &api).await;
    let all = events(&api, &id, "").await;
    assert_eq!(all.len(), 12);
    let page = async |query: &str| {
        api.get(&format!("/sandboxes/{id}/events?{query}")).await.succeeds(200, "events.list")
    };
    let newest = page("limit=200").await;
    let reversed: Vec<Value> = all.iter().rev().cloned().collect();
    assert_eq!(newest["events"], json!(reversed), "the newest first unless asked otherwise");
    assert_eq!(newest["pageInfo"], json!({"nextCursor": null, "hasMore": false, "limit": 200}));
    for (sort, list) in [("asc", &all), ("desc", &reversed)] {
        let (mut seen, mut next) = (Vec::new(), String::new());
        loop {
            let page = page(&format!("sort={sort}&limit=5{next}")).await;
            seen.extend(page["events"].as_array().expect("a list").clone());
            let Some(cursor) = page["pageInfo"]["nextCursor"].as_str() else { break };
            next = format!("&cursor={cursor}");
        }
        assert_eq!(&seen, list);
    }
    // A cursor that a client makes of an event, in either alphabet, padded or not.
    let text = format!("{}:{}", all[3]["timestamp"], all[3]["id"].as_str().expect("an id"));
    let padded = general_purpose::STANDARD.encode(&text).replace('+', "%2B").replace('=', "%3D");
    for cursor in [cursor(&all[3]), padded] {
        assert_eq!(page(&format!("sort=asc&cursor={cursor}")).await["events"], json!(all[4..]));
    }
    // One of a place where nothing is leads there all the same; one that is none is ignored.
    let nowhere = general_purpose::URL_SAFE_NO_PAD.encode(format!("{}:", all[3]["timestamp"]) + "~");
    assert_eq!(page(&format!("sort=asc&cursor={nowhere}")).await["events"], json!(all[4..]));
    for edited in ["x", "%25%25", &cursor(&all[3])[..9]] {
        assert_eq!(page(&format!("sort=asc&cursor={edited}")).await["events"], json!(all), "{edited}");
    }
    for limit in ["0", "201", "x"] {
        api.get(&format!("/sandboxes/{id}/events?limit={limit}")).await.fails(400, "invalid_limit");
    }

    let kinds = |events: &[Value]| events.iter().filter(|event| event["type"] == "prompt").count();
    assert_eq!((events(&api, &id, "&type=prompt").await.len(), kinds(&all)), (6, 6));
    assert_eq!(events(&api, &id, "&type=prompt,response,none").await, all);
    assert!(events(&api, &id, "&type=none").await.is_empty());
    let [one, two, three] = &conversations[..] else { panic!("{conversations:?}") };
    assert_eq!(events(&api, &id, &format!("&conversation={one},{three}")).await.len(), 8);
    let repeated =
        events(&api, &id, &format!("&conversation={one}&conversation={three}&conversation={one}")).await;
    assert_eq!(repeated.len(), 8, "a list may also come as several parameters");
    let both = events(&api, &id, &format!("&conversation={two}&type=response")).await;
    assert_eq!((both.len(), kinds(&both)), (2, 0));
    assert_eq!(both[0]["data"]["content"], "a1");
}

#[tokio::test]
async fn a_stream_tells_what_there_is_and_what_comes_and_goes_on_after_a_cut() {
    // On a clock that stands still no stream ends for want of events.
    let server = MockServer::builder().clock(ManualClock::new().shared()).start().expect("a server");
    let api = Api::of(&server);
    let (id, _) = told(&server, &api).await;
    let all = events(&api, &id, "").await;
    let mut messages = Messages::open(stream(&api, &id, "")).await;
    for event in &all {
        assert_eq!(messages.event().await, (cursor(event), event.clone()));
    }
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    server.set_agent(move |turn| {
        let held = held.clone();
        async move {
            for word in ["one", " two", " three"] {
                held.acquire().await.map_err(|error| error.to_string())?.forget();
                turn.say(word).await;
            }
            held.acquire().await.map_err(|error| error.to_string())?.forget();
            Ok(())
        }
    });
    let (prompted, _) = prompt(&api, &id, json!({"prompt": "count"})).await;
    let mut last = String::new();
    let mut until_status = async |messages: &mut Messages, status: &str| loop {
        let (cursor, event) = messages.event().await;
        last = cursor;
        if event["id"] == prompted && event["data"]["status"] == status {
            return last.clone();
        }
    };
    until_status(&mut messages, "running").await;
    let mut response = Value::Null;
    for said in ["one", "one two", "one two three"] {
        gate.add_permits(1);
        let (at, event) = messages.event().await;
        assert_eq!((&event["data"]["content"], &event["data"]["is_streaming"]), (&json!(said), &json!(true)));
        assert!(
            response.is_null()
                || (response["id"] == event["id"]
                    && response["timestamp"].as_i64() < event["timestamp"].as_i64())
        );
        (response, last) = (event, at);
    }
    drop(messages);
    gate.add_permits(1);
    ends(&api, &id, &prompted, "finished").await;
    // What was seen last wins over what was asked for once.
    let request = stream(&api, &id, &format!("&cursor={}", cursor(&all[0]))).header("last-event-id", &last);
    let mut messages = Messages::open(request).await;
    let (_, whole) = messages.event().await;
    assert_eq!((&whole["id"], &whole["data"]["content"]), (&response["id"], &json!("one two three")));
    assert!(whole["data"].get("is_streaming").is_none());
    assert_eq!(messages.event().await.1["data"]["status"], "finished");
    let mut messages =
        Messages::open(stream(&api, &id, &format!("&cursor={}&type=prompt", cursor(&all[0])))).await;
    assert_eq!(messages.event().await.1["type"], "prompt");
}

/// The next sign of life, with the clock moved as often as it takes.
async fn sign_of_life(clock: &ManualClock, messages: &mut Messages) {
    let mut next = std::pin::pin!(messages.next());
    loop {
        tokio::select! {
            message = &mut next => return assert_eq!(message.as_deref(), Some(": heartbeat")),
            () = SystemClock::new().sleep(Duration::from_millis(20)) => clock.advance(Duration::from_secs(15)),
        }
    }
}

#[tokio::test]
async fn a_stream_shows_that_it_is_there_and_ends_with_the_sandbox_or_the_server() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).start().expect("a server");
    server.set_agent(|_| std::future::pending());
    let api = Api::of(&server);
    // A stream of a sandbox with an agent at work, which says nothing.
    let open = async || {
        let id = api.sandbox(json!({"ttlSeconds": null})).await;
        prompt(&api, &id, json!({"prompt": "be quiet"})).await;
        let mut messages = Messages::open(stream(&api, &id, "")).await;
        while messages.event().await.1["data"]["status"] != "running" {}
        (id, messages)
    };
    let ((id, mut messages), (_, mut others)) = (open().await, open().await);
    for _ in 0..3 {
        sign_of_life(&clock, &mut messages).await;
        sign_of_life(&clock, &mut others).await;
    }
    assert_eq!(api.delete(&id).await.status, 202);
    let end = loop {
        // Signs of life, and that the agent was ended, may come before.
        let message = messages.next().await.expect("an error");
        if message.starts_with("event: error") {
            break message;
        }
    };
    assert!(end.starts_with("event: error\ndata: {") && end.contains("\"not_found\""), "{end}");
    assert_eq!(messages.next().await, None);
    api.request("GET", "/me").send().await.expect("still there");
    server.shutdown();
    while let Some(message) = others.next().await {
        assert_eq!(message, ": heartbeat");
    }
}

#[tokio::test]
async fn a_stream_ends_when_nothing_more_can_come_and_goes_on_when_asked_again() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).start().expect("a server");
    let api = Api::of(&server);
    let id = api.sandbox(json!({"ttlSeconds": null})).await;
    // Nobody has been prompted at all.
    let mut empty = Messages::open(stream(&api, &id, "")).await;
    sign_of_life(&clock, &mut empty).await;
    assert_eq!(empty.next().await, None);

    let (first, _) = prompt(&api, &id, json!({"prompt": "one"})).await;
    ends(&api, &id, &first, "finished").await;
    let listed = events(&api, &id, "").await;
    let mut messages = Messages::open(stream(&api, &id, "")).await;
    let (mut last, mut told) = (String::new(), Vec::new());
    for _ in 0..listed.len() {
        let (cursor, event) = messages.event().await;
        last = cursor;
        told.push(event);
    }
    assert_eq!(told, listed);
    sign_of_life(&clock, &mut messages).await;
    assert_eq!(messages.next().await, None);

    let mut more = Messages::open(stream(&api, &id, "").header("last-event-id", last)).await;
    let (second, _) = prompt(&api, &id, json!({"prompt": "two"})).await;
    assert_eq!(more.event().await.1["id"], second.as_str());
}

#[tokio::test]
async fn a_page_costs_the_same_wherever_it_lies() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let conversation = server.world().fill_events(&id, 20_000).expect("filled");
    let all = format!("/sandboxes/{id}/events?sort=asc&limit=10");
    let first = api.get(&all).await.body["events"].clone();
    let cursor_of = |number: i64| {
        let at = first[0]["timestamp"].as_i64().expect("a time") + number;
        general_purpose::URL_SAFE_NO_PAD.encode(format!("{at}:~"))
    };
    for (filter, step) in [("", 1), ("&type=response", 2), (&*format!("&conversation={conversation}"), 1)] {
        for at in [0, 10_000, 19_989] {
            let page = api.get(&format!("{all}&cursor={}{filter}", cursor_of(at))).await;
            let events = page.body["events"].as_array().expect("a list").clone();
            assert_eq!(events.len(), (10).min(((19_999 - at) / step) as usize), "{filter} {at}");
            assert!(events[0]["timestamp"].as_i64() > first[0]["timestamp"].as_i64().map(|first| first + at));
        }
    }
    assert_eq!(api.delete(&id).await.status, 202);
}
