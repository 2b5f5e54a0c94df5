//! NDJSON: streaming commands and attached ones.

use std::time::Duration;

use futures_util::StreamExt as _;
use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, runner::RunnerKind};
use serde_json::{Value, json};

use crate::http::{Api, guarded, until};

/// Frames as they come.
pub(crate) struct Frames {
    body: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    rest: Vec<u8>,
}

impl Frames {
    pub(crate) async fn open(request: reqwest::RequestBuilder) -> Self {
        let response = guarded(request.send()).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/x-ndjson");
        Self { body: Box::pin(response.bytes_stream()), rest: Vec::new() }
    }

    pub(crate) async fn next(&mut self) -> Option<Value> {
        guarded(async {
            loop {
                if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = self.rest.drain(..=end).collect();
                    return Some(serde_json::from_slice(&line).unwrap());
                }
                match self.body.next().await {
                    Some(bytes) => self.rest.extend(bytes.unwrap()),
                    None => return None,
                }
            }
        })
        .await
    }

    pub(crate) async fn all(mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

fn text(frames: &[Value], stream: &str) -> String {
    frames
        .iter()
        .filter(|frame| frame["type"] == stream)
        .map(|frame| frame["data"].as_str().unwrap())
        .collect()
}

async fn stream(api: &Api, id: &str, command: &str) -> Frames {
    let body = json!({"command": command, "stream": true, "timeoutSeconds": 60});
    Frames::open(api.request("POST", &format!("/sandboxes/{id}/commands")).json(&body)).await
}

async fn attach(api: &Api, id: &str, process: &Value, query: &str) -> Frames {
    Frames::open(api.request("GET", &format!("/sandboxes/{id}/commands/{process}/stream?{query}"))).await
}

#[tokio::test]
async fn a_frame_goes_out_as_soon_as_it_is_written() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    api.exec(&id, "mkfifo go").await;
    let mut frames = stream(&api, &id, "echo one; read line < go; echo two >&2; exit 4").await;
    let started = frames.next().await.unwrap();
    assert_eq!(started["type"], "started");
    assert!(started["commandId"].as_str().unwrap().starts_with("cmd_"));
    assert_eq!(frames.next().await.unwrap(), json!({"type": "stdout", "data": "one\n"}));
    // The command waits for this; the frame above did not wait for the command.
    api.exec(&id, "echo > go").await;
    let rest = frames.all().await;
    assert_eq!(text(&rest, "stderr"), "two\n");
    let exit = rest.last().unwrap();
    assert_eq!(
        (&exit["type"], &exit["exitCode"], &exit["success"]),
        (&json!("exit"), &json!(4), &json!(false))
    );
    assert_eq!(exit["commandId"], started["commandId"]);
    assert_eq!(rest.iter().filter(|frame| frame["type"] == "exit").count(), 1);
}

#[tokio::test]
async fn characters_cut_by_pauses_arrive_whole() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    // U+1F980 in four bytes, cut after one, two and three.
    for (head, tail) in [(r"\360", r"\237\246\200"), (r"\360\237", r"\246\200"), (r"\360\237\246", r"\200")] {
        let command = format!("printf 'a{head}'; sleep 0.05; printf '{tail}b'");
        let frames = stream(&api, &id, &command).await.all().await;
        assert_eq!(text(&frames, "stdout"), "a🦀b", "{command}");
        assert_eq!(api.exec(&id, &command).await["stdout"], "a🦀b");
        let started = api.start(&id, &command).await;
        let frames = attach(&api, &id, &started["processId"], "").await.all().await;
        assert_eq!(text(&frames, "stdout"), "a🦀b");
        assert_eq!(frames.last().unwrap()["stdoutOffset"], 6);
        for frame in frames.iter().filter(|frame| frame["type"] == "stdout") {
            // Offsets are those of whole characters: going on from any of them loses and breaks nothing.
            assert!([1, 5, 6].contains(&frame["nextOffset"].as_u64().unwrap()), "{frame}");
        }
    }
}

#[tokio::test]
async fn a_long_stream_to_a_slow_reader_is_whole() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let mut frames = stream(&api, &id, "head -c 30000000 /dev/zero | tr '\\0' x").await;
    assert_eq!(frames.next().await.unwrap()["type"], "started");
    // The kernel's buffers and the server's are full long before the end.
    until(async || server.world().commands(&id).len() == 1).await;
    let rest = frames.all().await;
    let bytes: usize =
        rest.iter().filter(|f| f["type"] == "stdout").map(|f| f["data"].as_str().unwrap().len()).sum();
    assert_eq!(bytes, 30_000_000);
    assert_eq!(rest.last().unwrap()["exitCode"], 0);
}

#[tokio::test]
async fn an_attach_goes_on_from_an_offset() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let started = api
        .start(&id, "for i in 1 2 3; do printf \"line $i\\n\"; done; echo e >&2; sleep 0.05; exit 7")
        .await;
    let process = &started["processId"];
    let whole = attach(&api, &id, process, "").await.all().await;
    assert_eq!(
        whole[0],
        json!({"type": "attached", "processId": process, "stdoutOffset": 0, "stderrOffset": 0})
    );
    assert_eq!(
        (text(&whole, "stdout").as_str(), text(&whole, "stderr").as_str()),
        ("line 1\nline 2\nline 3\n", "e\n")
    );
    let exit = whole.last().unwrap();
    assert_eq!(
        (&exit["type"], &exit["status"], &exit["exitCode"]),
        (&json!("exit"), &json!("exited"), &json!(7))
    );
    assert_eq!((&exit["stdoutOffset"], &exit["stderrOffset"]), (&json!(21), &json!(2)));
    let rest = attach(&api, &id, process, "stdoutOffset=7&stderrOffset=2").await.all().await;
    assert_eq!((text(&rest, "stdout").as_str(), text(&rest, "stderr").as_str()), ("line 2\nline 3\n", ""));
}

#[tokio::test]
async fn an_attach_sends_heartbeats_and_asks_to_come_again() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Process).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"ttlSeconds": null})).await;
    let started = api.start(&id, "printf abc; exec sleep 300").await;
    let mut frames = attach(&api, &id, &started["processId"], "").await;
    assert_eq!(frames.next().await.unwrap()["type"], "attached");
    assert_eq!(frames.next().await.unwrap()["data"], "abc");
    for _ in 0..39 {
        guarded(clock.wait_for_sleep_of(Duration::from_secs(15))).await;
        clock.advance(Duration::from_secs(15));
        assert_eq!(frames.next().await.unwrap()["type"], "heartbeat");
    }
    guarded(clock.wait_for_sleep_of(Duration::from_secs(15))).await;
    clock.advance(Duration::from_secs(15));
    let last = frames.next().await.unwrap();
    assert_eq!((&last["type"], &last["stdoutOffset"]), (&json!("reconnect"), &json!(3)));
    assert_eq!(frames.next().await, None);
}

#[tokio::test]
async fn open_streams_end_cleanly_when_the_server_does() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let mut streamed = stream(&api, &id, "echo begun; sleep 300").await;
    streamed.next().await.unwrap();
    assert_eq!(streamed.next().await.unwrap()["data"], "begun\n");
    let started = api.start(&id, "sleep 300").await;
    let mut attached = attach(&api, &id, &started["processId"], "").await;
    attached.next().await.unwrap();
    let folder = server.world().folder(&id);
    tokio::task::spawn_blocking(move || server.shutdown()).await.unwrap();
    for frames in [streamed, attached] {
        let rest = frames.all().await;
        assert_eq!(rest.last().unwrap()["type"], "error", "{rest:?}");
    }
    assert!(!folder.exists());
}
