//! Answers: the success bodies and the one shape of every failure.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};

use crate::store::StoreError;

/// What a handler answers with.
pub(crate) enum Answer {
    /// A JSON object.
    Json(StatusCode, Value),
    /// Bytes of a file, and how many there are.
    Bytes(Body, u64),
    /// A frame a line.
    Ndjson(Body),
    /// Any other body, with its status and its headers, `Content-Type` among them.
    Raw(StatusCode, HeaderMap, Body),
}

impl Answer {
    /// A success: the fields of `body` after `ok` and `type`.
    pub(crate) fn new(status: u16, kind: &str, body: Value) -> Self {
        let mut fields = Map::new();
        fields.insert("ok".into(), Value::Bool(true));
        fields.insert("type".into(), Value::from(kind));
        if let Value::Object(more) = body {
            fields.extend(more);
        }
        Answer::Json(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), Value::Object(fields))
    }

    /// A success under 200.
    pub(crate) fn ok(kind: &str, body: Value) -> Self {
        Self::new(200, kind, body)
    }

    /// Adds a field to a JSON answer. What is long goes in this way: `json!` would copy it.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        if let Answer::Json(_, Value::Object(fields)) = &mut self {
            fields.insert(name.to_owned(), value.into());
        }
        self
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Answer::Json(status, _) | Answer::Raw(status, ..) => *status,
            Answer::Bytes(..) | Answer::Ndjson(_) => StatusCode::OK,
        }
    }

    /// The answer as it goes out.
    pub(crate) fn into_response(self) -> Response<Body> {
        let (status, kind, body, length) = match self {
            Answer::Json(status, value) => (status, "application/json", Body::from(value.to_string()), None),
            Answer::Bytes(body, length) => (StatusCode::OK, "application/octet-stream", body, Some(length)),
            Answer::Ndjson(body) => (StatusCode::OK, "application/x-ndjson", body, None),
            Answer::Raw(status, headers, body) => {
                let mut response = Response::new(body);
                *response.status_mut() = status;
                *response.headers_mut() = headers;
                return response;
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(length) = length {
            response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        response
    }
}

/// A failure, in the service's words.
#[derive(Debug)]
pub(crate) struct ApiError(Box<Parts>);

#[derive(Debug)]
struct Parts {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Map<String, Value>,
    retry_after: Option<u64>,
    allow: Option<HeaderValue>,
    content_range: Option<HeaderValue>,
    is_bare: bool,
}

/// What a handler hands back.
pub(crate) type Outcome = Result<Answer, ApiError>;

impl ApiError {
    /// A failure with nothing but its code and its message.
    pub(crate) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            code,
            message: message.into(),
            details: Map::new(),
            retry_after: None,
            allow: None,
            content_range: None,
            is_bare: false,
        }))
    }

    /// There is nothing of that id.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(404, "not_found", format!("there is no {what} of that id"))
    }

    /// A field, parameter or header that cannot be taken; the details name it.
    pub(crate) fn invalid(code: &'static str, field: &str, allowed: impl std::fmt::Display) -> Self {
        Self::new(400, code, format!("{field} {allowed}")).detail("field", field)
    }

    /// Something that the caller is not to blame for; the log has the rest.
    pub(crate) fn internal(problem: impl std::fmt::Display) -> Self {
        tracing::error!(%problem, "internal error");
        Self::new(500, "internal_error", "the local server failed; its log says why")
    }

    /// Adds a detail.
    pub(crate) fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.details.insert(name.to_owned(), value.into());
        self
    }

    /// Says whether the same call may succeed when sent again.
    pub(crate) fn retryable(self, retryable: bool) -> Self {
        self.detail("retryable", retryable)
    }

    /// Says when to come back, in whole seconds.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    /// Names the methods that the path does take.
    pub(crate) fn allow(mut self, methods: &str) -> Self {
        self.0.allow = HeaderValue::from_str(methods).ok();
        self
    }

    /// Answers in the older shape that a few failures have: the code under `error`, the details beside it.
    pub(crate) fn bare(mut self) -> Self {
        self.0.is_bare = true;
        self
    }

    /// Says how much there is of what a part was asked for.
    pub(crate) fn content_range(mut self, range: String) -> Self {
        self.0.content_range = HeaderValue::try_from(range).ok();
        self
    }

    /// The same under another status.
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.0.status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self
    }

    /// The same with another code.
    pub(crate) fn recoded(mut self, code: &'static str) -> Self {
        self.0.code = code;
        self
    }

    /// The code.
    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    /// The message.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// The failure as it goes out.
    pub(crate) fn into_response(self, request_id: &str) -> Response<Body> {
        let Parts { status, code, message, mut details, retry_after, allow, content_range, is_bare } =
            *self.0;
        if is_bare {
            details.insert("error".into(), code.into());
            details.insert("message".into(), message.into());
            details.insert("requestId".into(), request_id.into());
            let mut response = Response::new(Body::from(Value::Object(details).to_string()));
            *response.status_mut() = status;
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            return response;
        }
        let mut inner = json!({"code": code, "message": message, "status": status.as_u16()});
        let mut outer = json!({
            "ok": false,
            "type": "sandbox.error",
            "status": status.as_u16(),
            "code": code,
            "message": message,
            "requestId": request_id,
        });
        // Clients of both kinds exist: those that look beside the code and those that look into the details.
        for name in ["retryable", "state"] {
            if let Some(value) = details.get(name) {
                outer[name] = value.clone();
            }
        }
        if !details.is_empty() {
            inner["details"] = Value::Object(details);
        }
        outer["error"] = inner;
        let mut response = Response::new(Body::from(Bytes::from(outer.to_string())));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(methods) = allow {
            headers.insert(header::ALLOW, methods);
        }
        if let Some(range) = content_range {
            headers.insert(header::CONTENT_RANGE, range);
        }
        if status == StatusCode::UPGRADE_REQUIRED {
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::internal(error)
    }
}
