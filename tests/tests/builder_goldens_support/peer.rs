//! A peer that answers every operation, and notes down what it was asked.

use std::{
    future::pending,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use sandboxer::clock::{Clock as _, ManualClock};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::answers::{Answer, Document};

/// How the peer behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It answers, and all is well.
    #[default]
    Normal,
    /// It answers, and nothing is ever done: no sandbox is ready, no stop, save or prompt ends.
    Slow,
    /// It refuses all and asks to be tried again after 8 seconds.
    Busy,
    /// It never answers.
    Hanging,
    /// It begins a stream and falls silent.
    Silent,
}

#[derive(Default)]
struct Inner {
    mood: Mood,
    seen: Vec<String>,
    hanging: bool,
    stopped: bool,
}

/// The peer. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct Peer {
    inner: Arc<Mutex<Inner>>,
    document: Arc<Document>,
    clock: ManualClock,
    began: Arc<Mutex<Duration>>,
    pub(crate) url: String,
}

impl Peer {
    pub(crate) async fn start(clock: ManualClock) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/api/v1", listener.local_addr().unwrap());
        let peer = Self {
            inner: Arc::default(),
            document: Arc::new(Document::read()),
            clock,
            began: Arc::default(),
            url,
        };
        let app = Router::new().fallback(answer).with_state(peer.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        peer
    }

    /// Forgets what was seen, and behaves so from now on.
    pub(crate) fn begin(&self, mood: Mood) {
        *self.lock() = Inner { mood, ..Inner::default() };
        *self.began.lock().unwrap() = self.clock.elapsed();
    }

    /// What was asked, request by request.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.lock().seen.clone()
    }

    /// Whether a request waits for an answer that never comes.
    pub(crate) fn is_hanging(&self) -> bool {
        self.lock().hanging
    }

    /// Notes down a connection that is never answered.
    pub(crate) fn connected(&self) {
        let mut inner = self.lock();
        inner.seen.push("a connection".to_owned());
        inner.hanging = true;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    fn answer(&self, method: &str, path: &str, accepts_events: bool, body: &Value) -> Answer {
        let (mood, stopped, asked) = {
            let mut inner = self.lock();
            inner.stopped |= method == "post" && path.ends_with("/stop");
            (inner.mood, inner.stopped, inner.seen.len())
        };
        if mood == Mood::Busy {
            let error = json!({"code": "gateway_error", "message": "later", "status": 502});
            return Answer::json(502, &json!({"ok": false, "error": error}));
        }
        if accepts_events {
            let event = json!({"id": "e1", "type": "prompt", "timestamp": 1, "data": {}});
            return Answer::lines("text/event-stream", &format!("id: e1\ndata: {event}\n\n"));
        }
        if method == "post" && path.ends_with("/commands") && body["stream"] == true {
            let frames = [json!({"type": "started", "commandId": "c1"}), ended()];
            return Answer::lines("application/x-ndjson", &frames.map(|frame| format!("{frame}\n")).concat());
        }
        if method == "get" && path.ends_with("/stream") {
            let attached = json!({"type": "attached", "processId": 7, "stdoutOffset": 0, "stderrOffset": 0});
            let mut end = ended();
            end["status"] = json!("exited");
            let frames = [attached, end];
            return Answer::lines("application/x-ndjson", &frames.map(|frame| format!("{frame}\n")).concat());
        }
        let more = |id: &str| more(id, mood == Mood::Slow, stopped, asked, body);
        let none = || {
            Answer::json(
                404,
                &json!({"ok": false, "error": {"code": "not_found", "message": "no such operation", "status": 404}}),
            )
        };
        self.document.answer(method, path, more).unwrap_or_else(none)
    }
}

fn ended() -> Value {
    json!({"type": "exit", "success": true, "exitCode": 0, "timedOut": false, "stdoutOffset": 0, "stderrOffset": 0})
}

/// What an operation answers besides the least of it.
fn more(id: &str, slow: bool, stopped: bool, asked: usize, body: &Value) -> Value {
    let state = match (slow, stopped) {
        (true, _) => "provisioning",
        (false, true) => "archived",
        (false, false) => "ready",
    };
    let sandbox = json!({"id": "bx_1", "state": state, "setupStatus": if slow || asked < 4 { "running" } else { "done" }});
    match id {
        "create" | "get" | "update" => json!({"sandbox": sandbox}),
        "fork" => json!({"id": "bx_2", "sandbox": {"id": "bx_2", "state": state}}),
        "getStop" => json!({"stop": {"status": if slow { "pending" } else { "completed" }}}),
        "getDeletionOperation" => {
            json!({"operation": {"kind": "snapshot", "status": if slow { "pending" } else { "completed" }}})
        }
        "saveNamedSnapshot" | "getNamedSnapshot" => {
            json!({"snapshot": {"name": "base", "status": if slow { "saving" } else { "ready" }}})
        }
        "desktop" if slow => json!({"type": "desktop.provisioning", "provisioning": true}),
        "desktop" => {
            json!({"type": "desktop.url", "success": true, "desktopUrl": "https://desktop.example/"})
        }
        "hostPort" => json!({"url": "https://hosted.example/"}),
        "command" if body["detached"] == true => json!({
            "type": "command.started", "processId": 7, "pid": 7, "commandId": "c1", "startedAt": "2026-01-01T00:00:00.000Z",
            "command": "x", "cwd": "/home/user", "logPath": "/l", "errLogPath": "/e"}),
        "command" => {
            json!({"type": "command.finished", "success": true, "exitCode": 0, "stdout": "", "stderr": ""})
        }
        "commandHistory" => json!({"nextCursor": null, "commands": [{
            "commandId": "c1", "sandboxId": "bx_1", "command": "x", "mode": "detached", "processId": 7, "status": "exited",
            "startedAt": "2026-01-01T00:00:00.000Z", "stdoutBytes": 0, "stderrBytes": 0, "outputTruncated": false}]}),
        "commandLogs" => {
            json!({"encoding": "base64", "data": "", "offset": 0, "nextOffset": 0, "size": 0, "done": true})
        }
        "readFile" => json!({"encoding": body["encoding"], "content": "", "size": 0}),
        "writeFile" => json!({"size": written(body)}),
        "prompt" | "promptRunStatus" => json!({
            "promptId": "p1", "conversationId": "c1",
            "promptRun": {"promptId": "p1", "conversationId": "c1", "status": if slow { "running" } else { "finished" }, "done": !slow}}),
        "events" => json!({"events": [{"id": "e1", "type": "prompt", "timestamp": 1, "data": {}}]}),
        "createEnvironment" => json!({"environments": [{"id": "env_1", "name": body["name"]}]}),
        _ => Value::Null,
    }
}

/// How many bytes a write asks for.
fn written(body: &Value) -> usize {
    let content = body["content"].as_str().unwrap_or_default();
    if body["encoding"] == "base64" {
        return STANDARD.decode(content).map(|bytes| bytes.len()).unwrap_or_default();
    }
    content.len()
}

async fn answer(State(peer): State<Peer>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let path = parts.uri.path().strip_prefix("/api/v1").unwrap_or(parts.uri.path()).to_owned();
    let accepts_events = parts.headers.get("accept").is_some_and(|accept| accept == "text/event-stream");
    let mood = {
        let mut inner = peer.lock();
        let after = peer.clock.elapsed() - *peer.began.lock().unwrap();
        let shown = shown(&parts, &path, &body, after);
        inner.seen.push(shown);
        inner.hanging = matches!(inner.mood, Mood::Hanging | Mood::Silent);
        inner.mood
    };
    if mood == Mood::Hanging {
        return pending().await;
    }
    let body = match parts.uri.query().and_then(|query| query.split_once("encoding=")) {
        Some((_, encoding)) => json!({"encoding": encoding.split('&').next()}),
        None => serde_json::from_slice(&body).unwrap_or_default(),
    };
    let method = parts.method.as_str().to_lowercase();
    let answer = peer.answer(&method, &path, accepts_events, &body);
    let mut response = Response::builder().status(answer.status).header("content-type", answer.media);
    if mood == Mood::Busy {
        response = response.header("retry-after", "8");
    }
    let body = if mood == Mood::Silent {
        let begun = futures_util::stream::once(async move { Ok::<_, std::io::Error>(answer.body) });
        Body::from_stream(futures_util::StreamExt::chain(begun, futures_util::stream::pending()))
    } else {
        Body::from(answer.body)
    };
    response.body(body).unwrap()
}

/// A request as a golden shows it: what every request has alike is left out.
fn shown(parts: &axum::http::request::Parts, path: &str, body: &[u8], after: Duration) -> String {
    let mut text = if after.is_zero() { String::new() } else { format!("after {after:?}: ") };
    text += &format!("{} {path}", parts.method);
    if let Some(query) = parts.uri.query() {
        text += &format!("?{}", cut(query));
    }
    if !body.is_empty() {
        let json: Result<Value, _> = serde_json::from_slice(body);
        let body = json.map_or_else(|_| String::from_utf8_lossy(body).into_owned(), |json| json.to_string());
        text += &format!(" {}", cut(&body));
    }
    let own_agent = concat!("sandboxer-rust/", env!("CARGO_PKG_VERSION"));
    for (name, value) in &parts.headers {
        let value = value.to_str().unwrap_or("(bytes)");
        let value = match (name.as_str(), value) {
            ("host" | "content-length" | "accept-encoding", _)
            | ("authorization", "Bearer sbx_live_1")
            | ("accept", "application/json" | "*/*")
            | ("content-type", "application/json")
            | ("x-sandboxer-attempt", "1") => continue,
            ("user-agent", agent) if agent == own_agent => continue,
            ("user-agent", agent) => &agent.replace(own_agent, "(its own)"),
            ("idempotency-key", key) if key.len() == 36 => "(a fresh one)",
            (_, value) => value,
        };
        text += &format!("\n    {name}: {}", cut(value));
    }
    text
}

/// A long text without its middle.
pub(crate) fn cut(text: &str) -> String {
    if text.len() <= 400 {
        return text.to_owned();
    }
    let (head, tail): (String, String) =
        (text.chars().take(80).collect(), text.chars().skip(text.chars().count() - 20).collect());
    format!("{head}…{tail} ({} bytes)", text.len())
}
