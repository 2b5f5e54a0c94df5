//! What a scripted reply is.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};

use super::End;

/// A reply that takes the place of a real one, or changes it. Plain data: nothing happens until a request meets it.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) answer: Answer,
    pub(super) headers: HeaderMap,
    pub(super) after: Duration,
    pub(super) cut: Option<Cut>,
    pub(super) ending: End,
    pub(super) go_away: bool,
}

/// Where the answer comes from.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The real handler's.
    Real,
    /// The real handler runs, nobody hears of it.
    Lost,
    /// Nothing runs, nothing is answered.
    HungUp,
    /// A made one.
    Made { status: StatusCode, media: Option<HeaderValue>, body: Bytes },
    /// The service's error envelope, made with a request id of its own.
    Error { status: StatusCode, code: String, message: String, details: Map<String, Value> },
    /// Bytes in place of HTTP.
    Raw(Bytes),
}

/// Where an answer ends early.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    /// After so many bytes of its body.
    Body { bytes: u64, end: End },
    /// After so many bytes on the wire, its head included.
    Wire { bytes: u64, end: End },
}

impl Reply {
    fn new(answer: Answer) -> Self {
        Self {
            answer,
            headers: HeaderMap::new(),
            after: Duration::ZERO,
            cut: None,
            ending: End::Cut,
            go_away: false,
        }
    }

    fn made(status: StatusCode, media: Option<&'static str>, body: impl Into<Bytes>) -> Self {
        Self::new(Answer::Made { status, media: media.map(HeaderValue::from_static), body: body.into() })
    }

    /// The real answer, as it is or with whatever is added here: headers, a delay, an early end.
    pub fn pass() -> Self {
        Self::new(Answer::Real)
    }

    /// The real answer, late.
    pub fn delay(after: Duration) -> Self {
        Self::pass().after(after)
    }

    /// A bare status with an empty body.
    ///
    /// # Panics
    /// If `status` is not within 100 to 999.
    #[track_caller]
    pub fn status(status: u16) -> Self {
        Self::made(valid(status), None, Bytes::new())
    }

    /// The service's error envelope.
    ///
    /// # Panics
    /// If `status` is not within 100 to 999.
    #[track_caller]
    pub fn code(status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        let status = valid(status);
        Self::new(Answer::Error { status, code: code.into(), message: message.into(), details: Map::new() })
    }

    /// Status 200 with a JSON body.
    pub fn json(value: Value) -> Self {
        Self::made(StatusCode::OK, Some("application/json"), value.to_string())
    }

    /// Status 200 with any body under any media type.
    ///
    /// # Panics
    /// If `media` cannot stand in a header.
    #[track_caller]
    #[expect(clippy::expect_used, reason = "a script that cannot be meant is the test's fault")]
    pub fn body(body: impl Into<Bytes>, media: &str) -> Self {
        let media = HeaderValue::from_str(media).expect("a media type is printable text");
        Self::new(Answer::Made { status: StatusCode::OK, media: Some(media), body: body.into() })
    }

    /// Status 200 with NDJSON: each line gets its line end.
    pub fn ndjson<L: AsRef<[u8]>>(lines: impl IntoIterator<Item = L>) -> Self {
        let mut body = Vec::new();
        for line in lines {
            body.extend_from_slice(line.as_ref());
            body.push(b'\n');
        }
        Self::made(StatusCode::OK, Some("application/x-ndjson"), body)
    }

    /// The real handler runs to its answer, then the connection ends without one; see [`ending`](Self::ending).
    pub fn drop_answer() -> Self {
        Self::new(Answer::Lost)
    }

    /// The connection ends without an answer, and nothing was carried out; see [`ending`](Self::ending).
    pub fn hang_up() -> Self {
        Self::new(Answer::HungUp)
    }

    /// These bytes in place of an HTTP answer, then a clean end; the real handler does not run.
    pub fn garbage(bytes: impl Into<Bytes>) -> Self {
        Self::new(Answer::Raw(bytes.into()))
    }

    /// Adds or replaces a header of the answer.
    ///
    /// # Panics
    /// If the name or value cannot stand in a header.
    #[track_caller]
    #[must_use]
    #[expect(clippy::expect_used, reason = "a script that cannot be meant is the test's fault")]
    pub fn header(mut self, name: &str, value: impl AsRef<str>) -> Self {
        let name: HeaderName = name.parse().expect("a header's name is a token");
        self.headers
            .insert(name, HeaderValue::from_str(value.as_ref()).expect("a header's value is printable text"));
        self
    }

    /// Adds `Retry-After` in seconds; fractions round up.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.headers.insert(header::RETRY_AFTER, seconds.into());
        self
    }

    /// Gives a made answer, one with a body for instance, another status.
    ///
    /// # Panics
    /// If `status` is not within 100 to 999.
    #[track_caller]
    #[must_use]
    pub fn with_status(mut self, new: u16) -> Self {
        let new = valid(new);
        if let Answer::Made { status, .. } | Answer::Error { status, .. } = &mut self.answer {
            *status = new;
        }
        self
    }

    /// Adds a field to the details of an error envelope; `retryable` and `state` also show at its top, as the service has
    /// them. Changes no other reply.
    #[must_use]
    pub fn detail(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        if let Answer::Error { details, .. } = &mut self.answer {
            details.insert(name.into(), value.into());
        }
        self
    }

    /// Waits so long on the server's clock before anything else happens.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.after = wait;
        self
    }

    /// How the connection ends in [`drop_answer`](Self::drop_answer) and [`hang_up`](Self::hang_up): cleanly unless said
    /// otherwise. [`End::Stall`] leaves the request without an answer and the connection open.
    #[must_use]
    pub fn ending(mut self, end: End) -> Self {
        self.ending = end;
        self
    }

    /// Lets so many bytes of the answer's body through (before any chunk framing), then ends the connection. A body that is
    /// shorter is not touched, except that one of unknown length loses its end.
    #[must_use]
    pub fn end_body_after(mut self, bytes: u64, end: End) -> Self {
        self.cut = Some(Cut::Body { bytes, end });
        self
    }

    /// Lets so many bytes of the answer through, head and framing included, then ends the connection. Counts what is sent
    /// from the moment the reply is used, so it fits HTTP/1; an answer that is shorter leaves the rest to the next one on
    /// the connection.
    #[must_use]
    pub fn end_answer_after(mut self, bytes: u64, end: End) -> Self {
        self.cut = Some(Cut::Wire { bytes, end });
        self
    }

    /// Also tells the client not to use the connection for another request: GOAWAY on HTTP/2, `Connection: close` on
    /// HTTP/1. Requests in flight are answered.
    #[must_use]
    pub fn go_away(mut self) -> Self {
        self.go_away = true;
        self
    }
}

#[track_caller]
#[expect(clippy::expect_used, reason = "a script that cannot be meant is the test's fault")]
fn valid(status: u16) -> StatusCode {
    StatusCode::from_u16(status).expect("a status is within 100 to 999")
}

/// The service's error envelope with its request id.
pub(super) fn envelope(
    status: StatusCode,
    code: &str,
    message: &str,
    extras: &Map<String, Value>,
    request_id: &str,
) -> Value {
    let mut details = extras.clone();
    details.insert("error".into(), code.into());
    details.insert("message".into(), message.into());
    let mut body = json!({
        "ok": false,
        "type": "sandbox.error",
        "status": status.as_u16(),
        "code": code,
        "message": message,
        "requestId": request_id,
        "error": { "code": code, "message": message, "status": status.as_u16(), "details": details },
    });
    for name in ["retryable", "state"] {
        if let Some(value) = extras.get(name) {
            body[name] = value.clone();
        }
    }
    body
}
