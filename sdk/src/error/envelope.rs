//! Reads an error answer, whatever its shape: the documented envelope, a flat object, text, HTML or nothing.

use super::{Error, ErrorKind};
use crate::generated::dialects::Dialect;
use http::HeaderMap;
use serde_json::{Map, Value};

/// Characters of an answer without an envelope that are kept as the message.
const MESSAGE_LIMIT: usize = 500;

/// What an error answer says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Envelope {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) details: Option<Value>,
    pub(crate) request_id: Option<String>,
    /// What the service says about a repeat, wherever in the body it says so. A refusal beats an offer.
    pub(crate) retryable: Option<bool>,
    /// The window of a used up quota.
    pub(crate) window: Option<String>,
}

impl Envelope {
    /// Reads the body of an answer with this status.
    pub(crate) fn read(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        // A few bytes that are not UTF-8 must not hide what the rest says.
        let text = String::from_utf8_lossy(body);
        let mut envelope = match serde_json::from_str::<Value>(&text) {
            Ok(Value::Object(object)) => Self::of_object(object),
            Ok(Value::String(text)) => Self { message: shortened(&text), ..Self::default() },
            _ => Self { message: shortened(&text), ..Self::default() },
        };
        envelope.code = canonical(envelope.code);
        if envelope.code.is_empty() {
            envelope.code = format!("http_{status}");
        }
        if envelope.message.is_empty() {
            envelope.message =
                match http::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason()) {
                    Some(reason) => format!("the service answered {reason} and nothing more"),
                    None => "the service answered nothing more".to_owned(),
                };
        }
        envelope.request_id = envelope.request_id.or_else(|| request_id(headers));
        envelope
    }

    fn of_object(mut top: Map<String, Value>) -> Self {
        let mut envelope = Self { request_id: take_text(&mut top, "requestId"), ..Self::default() };
        let mut offers = vec![top.get("retryable").and_then(Value::as_bool)];
        let mut details = None;
        match top.remove("error") {
            Some(Value::Object(mut error)) => {
                offers.push(error.get("retryable").and_then(Value::as_bool));
                envelope.code = take_text(&mut error, "code").unwrap_or_default();
                envelope.message = take_text(&mut error, "message").unwrap_or_default();
                details = error.remove("details");
            }
            Some(Value::String(code)) if is_code(&code) => envelope.code = code,
            Some(Value::String(text)) => envelope.message = text,
            _ => {}
        }
        if let Some(code) = take_text(&mut top, "code") {
            envelope.code = code;
        }
        if let Some(message) = take_text(&mut top, "message") {
            envelope.message = message;
        }
        let mut details = match details.or_else(|| top.remove("details")) {
            Some(Value::Object(details)) => details,
            Some(Value::Null) | None => Map::new(),
            Some(other) => Map::from_iter([("details".to_owned(), other)]),
        };
        offers.push(details.get("retryable").and_then(Value::as_bool));
        // What stands beside the code is as much a detail as what stands below `details`.
        for known in ["ok", "type", "status", "success", "details"] {
            top.remove(known);
        }
        for (name, value) in top {
            details.entry(name).or_insert(value);
        }
        envelope.window = details.get("window").and_then(Value::as_str).map(str::to_owned);
        envelope.retryable = offers.into_iter().flatten().min();
        envelope.details = (!details.is_empty()).then_some(Value::Object(details));
        envelope
    }

    /// The error an answer of this status and envelope is reported as.
    pub(crate) fn into_error(self, status: u16) -> Error {
        Error::new(ErrorKind::of_status(status), self.code, self.message)
            .with_status(status)
            .with_details(self.details)
            .with_request_id(self.request_id)
    }
}

/// A code in the spelling of the default dialect, whichever service it came from: services are seen to use both.
pub(crate) fn canonical(code: String) -> String {
    let mut aliases = Dialect::ALL.iter().flat_map(|dialect| dialect.info().code_aliases);
    aliases.find(|(own, _)| *own == code).map_or(code, |(_, meant)| (*meant).to_owned())
}

/// The service's id of a request, from the headers of its answer.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    headers.get("x-request-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty()).map(str::to_owned)
}

fn take_text(object: &mut Map<String, Value>, name: &str) -> Option<String> {
    match object.remove(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

fn is_code(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

fn shortened(text: &str) -> String {
    text.trim().chars().take(MESSAGE_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(status: u16, body: &str) -> Envelope {
        Envelope::read(status, &HeaderMap::new(), body.as_bytes())
    }

    #[test]
    fn the_documented_envelope() {
        let body = json!({
            "ok": false, "type": "sandbox.error", "status": 409, "code": "sandbox_not_ready", "message": "it is archived",
            "requestId": "req_1", "retryable": false, "state": "archived",
            "error": {"code": "sandbox_not_ready", "message": "it is archived", "status": 409, "details": {"limit": 5}},
        });
        let envelope = read(409, &body.to_string());
        assert_eq!(envelope.code, "sandbox_not_ready");
        assert_eq!(envelope.message, "it is archived");
        assert_eq!(envelope.request_id.as_deref(), Some("req_1"));
        assert_eq!(envelope.retryable, Some(false));
        assert_eq!(envelope.details, Some(json!({"limit": 5, "retryable": false, "state": "archived"})));
    }

    #[test]
    fn an_error_object_alone() {
        let envelope = read(
            502,
            r#"{"error":{"code":"sandbox_direct_failed","message":"m","details":{"retryable":true}}}"#,
        );
        assert_eq!((envelope.code.as_str(), envelope.message.as_str()), ("sandbox_direct_failed", "m"));
        assert_eq!(envelope.retryable, Some(true));
    }

    #[test]
    fn a_code_of_another_dialect_is_read_as_ours() {
        assert_eq!(read(409, r#"{"code":"boat_starting"}"#).code, "sandbox_starting");
        assert_eq!(read(502, r#"{"error":{"code":"boat_direct_failed"}}"#).code, "sandbox_direct_failed");
        assert_eq!(read(409, r#"{"code":"boat_restoring"}"#).code, "boat_restoring");
    }

    #[test]
    fn a_code_in_the_error_field() {
        let envelope = read(
            503,
            r#"{"error":"scoped_api_key_creation_disabled","message":"off","scopedCreationEnabled":false}"#,
        );
        assert_eq!(
            (envelope.code.as_str(), envelope.message.as_str()),
            ("scoped_api_key_creation_disabled", "off")
        );
        assert_eq!(envelope.details, Some(json!({"scopedCreationEnabled": false})));
    }

    #[test]
    fn a_sentence_in_the_error_field_is_no_code() {
        let envelope = read(500, r#"{"error":"Internal Server Error","message":"boom"}"#);
        assert_eq!((envelope.code.as_str(), envelope.message.as_str()), ("http_500", "boom"));
    }

    #[test]
    fn a_quota_window() {
        let body = r#"{"code":"rate_limited","message":"m","error":{"code":"rate_limited","message":"m","details":{"window":"day"}}}"#;
        assert_eq!(read(429, body).window.as_deref(), Some("day"));
    }

    #[test]
    fn a_refusal_beats_an_offer() {
        assert_eq!(
            read(409, r#"{"retryable":true,"error":{"code":"a","details":{"retryable":false}}}"#).retryable,
            Some(false)
        );
    }

    #[test]
    fn html_text_and_nothing() {
        let page = format!("<html>{}</html>", "x".repeat(2000));
        let envelope = read(502, &page);
        assert_eq!(envelope.code, "http_502");
        assert_eq!(envelope.message, page[..500]);
        assert_eq!(read(404, "").code, "http_404");
        assert_eq!(read(404, "").message, "the service answered Not Found and nothing more");
        assert_eq!(read(400, "plain").message, "plain");
        assert_eq!(read(400, "[1,2]").message, "[1,2]");
        assert_eq!(read(418, "\"text\"").message, "text");
    }

    #[test]
    fn the_request_id_may_stand_in_a_header() {
        let headers = HeaderMap::from_iter([("x-request-id".parse().unwrap(), "req_h".parse().unwrap())]);
        assert_eq!(Envelope::read(500, &headers, b"").request_id.as_deref(), Some("req_h"));
        let both = Envelope::read(500, &headers, br#"{"requestId":"req_b"}"#);
        assert_eq!(both.request_id.as_deref(), Some("req_b"));
    }

    #[test]
    fn wrong_types_do_no_harm() {
        for body in
            [r#"{"code":5,"message":[],"error":7,"details":"d"}"#, r#"{"error":{"code":null}}"#, "\u{0}\u{1}"]
        {
            let envelope = read(500, body);
            assert_eq!(envelope.code, "http_500");
        }
        assert_eq!(Envelope::read(500, &HeaderMap::new(), &[0xff, 0xfe]).code, "http_500");
    }
}
