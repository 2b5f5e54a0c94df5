//! The recorder: what was asked of the server lately, for tests and for people who look.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
    time::SystemTime,
};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header, request};
use sandboxer::{Operation, clock::SharedClock};
use serde_json::Value;

/// How many requests are kept.
pub const REQUESTS_KEPT: usize = 10_000;
/// How many bytes of each body are kept.
pub const BODY_KEPT: usize = 64 * 1024;

/// Keeps the last [`REQUESTS_KEPT`] requests. Cloning gives another handle to the same record.
#[derive(Clone, Debug)]
pub struct Recorder {
    clock: SharedClock,
    requests: Arc<Mutex<VecDeque<Recorded>>>,
}

impl Recorder {
    /// An empty record whose times come from `clock`.
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, requests: Arc::default() }
    }

    /// Notes down a request, before it is carried out. A command that asks for a stream is recorded as
    /// [`Operation::CommandStream`], one for events as a stream [`Operation::EventsStream`].
    pub fn record(
        &self,
        operation: Option<Operation>,
        head: &request::Parts,
        body: &[u8],
        connection: Option<u64>,
    ) -> Recorded {
        let entry = Recorded {
            inner: Arc::new(Inner {
                operation: operation.map(|operation| face(operation, &head.headers, body)),
                method: head.method.clone(),
                path: head.uri.path().to_owned(),
                query: head.uri.query().map(str::to_owned),
                headers: head.headers.clone(),
                body: Bytes::copy_from_slice(&body[..body.len().min(BODY_KEPT)]),
                body_size: body.len(),
                at: self.clock.now(),
                connection,
                status: AtomicU16::new(0),
            }),
        };
        let mut requests = self.lock();
        if requests.len() >= REQUESTS_KEPT {
            requests.pop_front();
        }
        requests.push_back(entry.clone());
        entry
    }

    /// All requests kept, oldest first.
    pub fn requests(&self) -> Vec<Recorded> {
        self.lock().iter().cloned().collect()
    }

    /// The requests kept for one operation, oldest first.
    pub fn requests_to(&self, operation: Operation) -> Vec<Recorded> {
        self.lock().iter().filter(|request| request.operation() == Some(operation)).cloned().collect()
    }

    /// The last requests, newest first; at most so many.
    pub(crate) fn last(&self, most: usize) -> Vec<Recorded> {
        self.lock().iter().rev().take(most).cloned().collect()
    }

    /// Forgets everything recorded so far.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Recorded>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The two faces of a command share one path, and so do those of events: the body or the media type wanted says which is
/// meant.
fn face(operation: Operation, headers: &HeaderMap, body: &[u8]) -> Operation {
    #[derive(serde::Deserialize)]
    struct Face {
        #[serde(default)]
        stream: Value,
    }
    match operation {
        Operation::Command => match serde_json::from_slice::<Face>(body) {
            Ok(Face { stream: Value::Bool(true) }) => Operation::CommandStream,
            _ => operation,
        },
        Operation::Events => {
            let wanted = headers.get_all(http::header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
            let mut kinds = wanted.flat_map(|value| value.split(','));
            let streams = kinds.any(|kind| {
                let kind = kind.split(';').next().unwrap_or_default().trim();
                kind.eq_ignore_ascii_case("text/event-stream")
            });
            if streams { Operation::EventsStream } else { operation }
        }
        other => other,
    }
}

/// One request that reached the server. Cloning is cheap.
#[derive(Clone)]
pub struct Recorded {
    inner: Arc<Inner>,
}

struct Inner {
    operation: Option<Operation>,
    method: Method,
    path: String,
    query: Option<String>,
    headers: HeaderMap,
    body: Bytes,
    body_size: usize,
    at: SystemTime,
    connection: Option<u64>,
    status: AtomicU16,
}

impl Recorded {
    /// What was asked for; nothing where path and method name no operation.
    pub fn operation(&self) -> Option<Operation> {
        self.inner.operation
    }

    /// The HTTP method.
    pub fn method(&self) -> &Method {
        &self.inner.method
    }

    /// The path as sent, still percent-encoded.
    pub fn path(&self) -> &str {
        &self.inner.path
    }

    /// The query as sent, without the question mark.
    pub fn query(&self) -> Option<&str> {
        self.inner.query.as_deref()
    }

    /// All headers, the key among them.
    pub fn headers(&self) -> &HeaderMap {
        &self.inner.headers
    }

    /// The first header of this name, in any case, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers.get(name)?.to_str().ok()
    }

    /// The first [`BODY_KEPT`] bytes of the body.
    pub fn body(&self) -> &Bytes {
        &self.inner.body
    }

    /// How many bytes the body had.
    pub fn body_size(&self) -> usize {
        self.inner.body_size
    }

    /// The body as JSON; nothing where it is none, or longer than what is kept.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.inner.body).ok()
    }

    /// When the request was read, by the server's clock.
    pub fn at(&self) -> SystemTime {
        self.inner.at
    }

    /// Which connection it came over, counted from 1; nothing if it came over none of its own.
    pub fn connection(&self) -> Option<u64> {
        self.inner.connection
    }

    /// The status answered; nothing while there is no answer, and for good where the answer was withheld.
    pub fn status(&self) -> Option<u16> {
        Some(self.inner.status.load(Ordering::Acquire)).filter(|status| *status != 0)
    }

    /// Notes down the status answered.
    pub fn answered(&self, status: StatusCode) {
        self.inner.status.store(status.as_u16(), Ordering::Release);
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers = self.inner.headers.iter().map(|(name, value)| match name {
            &header::AUTHORIZATION | &header::PROXY_AUTHORIZATION | &header::COOKIE => {
                (name, "[redacted]".to_owned())
            }
            _ => (name, String::from_utf8_lossy(value.as_bytes()).into_owned()),
        });
        let query = self.inner.query.as_ref().map(|query| {
            let shown = query.split('&').map(|pair| match pair.split_once('=') {
                Some(("access_token", _)) => "access_token=[redacted]",
                Some(("signature", _)) => "signature=[redacted]",
                _ => pair,
            });
            shown.collect::<Vec<_>>().join("&")
        });
        f.debug_struct("Recorded")
            .field("operation", &self.inner.operation)
            .field("method", &self.inner.method)
            .field("path", &self.inner.path)
            .field("query", &query)
            .field("headers", &headers.collect::<Vec<_>>())
            // Bodies carry environments and files: only their size is shown.
            .field("body_size", &self.inner.body_size)
            .field("status", &self.status())
            .field("connection", &self.inner.connection)
            .finish_non_exhaustive()
    }
}
