//! A service that answers every request as a test says.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use crate::{AsyncSandboxer, clock::SharedClock};

/// What is done with one request.
pub(super) enum Reply {
    Json(u16, Value),
    /// A 200 with these bytes as NDJSON.
    Lines(String),
    /// A 200 with these bytes as server-sent events.
    Events(String),
    /// A 200 with these bytes as NDJSON, then silence for as long as the client waits.
    Stall(&'static str),
    /// No answer for as long as the client waits.
    Hang,
    /// The connection ends without an answer.
    Drop,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Method and path with query.
    pub(super) call: String,
    pub(super) head: String,
    pub(super) body: Value,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

type Answer = dyn Fn(&Request, usize) -> Reply + Send + Sync;

pub(super) struct Service {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Service {
    /// Answers with `answer`, which is told the request and how often its call was made before.
    pub(super) fn start(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/api/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer): (_, Arc<Answer>) = (requests.clone(), Arc::new(answer));
        thread::spawn(move || {
            for connection in listener.incoming() {
                let (Ok(connection), seen, answer) = (connection, seen.clone(), answer.clone()) else {
                    return;
                };
                thread::spawn(move || serve(connection, &seen, &*answer));
            }
        });
        Self { url, requests }
    }

    pub(super) fn client(&self) -> AsyncSandboxer {
        let builder = AsyncSandboxer::builder().ignore_env().no_proxy().api_key("key").base_url(&self.url);
        builder.retries(0).build().unwrap()
    }

    pub(super) fn client_of(&self, dialect: crate::Dialect) -> AsyncSandboxer {
        let builder = AsyncSandboxer::builder().ignore_env().no_proxy().api_key("key").base_url(&self.url);
        builder.dialect(dialect).retries(0).build().unwrap()
    }

    pub(super) fn client_on(&self, clock: SharedClock) -> AsyncSandboxer {
        let builder = AsyncSandboxer::builder().ignore_env().no_proxy().api_key("key").base_url(&self.url);
        builder.clock(clock).build().unwrap()
    }

    pub(super) fn port(&self) -> u16 {
        url::Url::parse(&self.url).unwrap().port().unwrap()
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The calls made, in order.
    pub(super) fn calls(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.call).collect()
    }

    /// Waits until so many requests have arrived.
    pub(super) async fn arrived(&self, count: usize) {
        while self.requests.lock().unwrap().len() < count {
            tokio::task::yield_now().await;
        }
    }
}

fn serve(mut connection: TcpStream, seen: &Mutex<Vec<Request>>, answer: &Answer) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let line = head.lines().next().unwrap_or_default().to_owned();
    let call = line.trim_end_matches(" HTTP/1.1").replace("/api/v1", "");
    let mut request = Request { call, head, body: Value::Null };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    request.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let before = {
        let mut seen = seen.lock().unwrap();
        let before = seen.iter().filter(|earlier: &&Request| earlier.call == request.call).count();
        seen.push(request.clone());
        before
    };
    let (status, kind, body) = match answer(&request, before) {
        Reply::Json(status, body) => (status, "application/json", body.to_string()),
        Reply::Events(body) => (200, "text/event-stream", body),
        Reply::Lines(body) => (200, "application/x-ndjson", body),
        Reply::Stall(text) => {
            let head = "HTTP/1.1 200 X\r\ncontent-type: application/x-ndjson\r\nconnection: close";
            let _ = connection.write_all(format!("{head}\r\n\r\n{text}").as_bytes());
            let _ = reader.read_to_end(&mut Vec::new());
            return;
        }
        Reply::Hang => {
            let _ = reader.read_to_end(&mut Vec::new());
            return;
        }
        Reply::Drop => return,
    };
    let head = format!("content-type: {kind}\r\ncontent-length: {}\r\nconnection: close", body.len());
    let _ = connection.write_all(format!("HTTP/1.1 {status} X\r\n{head}\r\n\r\n{body}").as_bytes());
}

pub(super) fn sandbox(state: &str) -> Value {
    json!({"id": "bx_1", "state": state})
}

pub(super) fn created(state: &str) -> Reply {
    let status = json!({"ok": true, "type": "sandbox.created", "status": "provisioning", "ttlSeconds": 3600});
    Reply::Json(202, with(status, "sandbox", sandbox(state)))
}

pub(super) fn info(state: &str) -> Reply {
    Reply::Json(200, json!({"ok": true, "type": "sandbox.info", "sandbox": sandbox(state)}))
}

pub(super) fn deleting() -> Reply {
    let operation = json!({"id": "op_1", "kind": "sandbox", "targetId": "bx_1", "reason": "explicit",
        "status": "pending", "attemptCount": 0, "requestedAt": "2026-01-01T00:00:00Z", "completedAt": null});
    Reply::Json(202, json!({"ok": true, "type": "sandbox.deleting", "operation": operation}))
}

pub(super) fn failure(status: u16, code: &str) -> Reply {
    let error = json!({"code": code, "message": "no", "status": status});
    let body = json!({"ok": false, "type": "sandbox.error", "status": status, "code": code, "message": "no",
        "requestId": "req_1", "error": error});
    Reply::Json(status, body)
}

pub(super) fn with(mut object: Value, key: &str, value: Value) -> Value {
    object[key] = value;
    object
}
