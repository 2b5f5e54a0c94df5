//! What a message of the stream means.

use serde_json::Value;

use super::Event;
use crate::error::{Delivery, Error, ErrorKind, envelope};

/// Characters of an error message without the promised shape that are kept.
const MESSAGE_LIMIT: usize = 500;

/// What a message says.
#[derive(Debug)]
pub(super) enum Said {
    /// That the service is there; or something this client does not know.
    Nothing,
    /// These events, in order.
    Events(Vec<Event>),
    /// That the stream failed; or it cannot be read.
    Failed(Error),
}

/// Reads a message by its name and data.
///
/// An event is an object with a `type`, whatever the message is called; several come as an object whose `events` lists
/// them. A message of another name whose data is none of these is a sign between services that is passed over; half an
/// event is not.
pub(super) fn read(name: &str, data: &str) -> Said {
    match name {
        "ping" | "heartbeat" => return Said::Nothing,
        "error" => return Said::Failed(failure(data)),
        _ => {}
    }
    let unnamed = name == "message";
    let object = data.trim_start().starts_with('{');
    match serde_json::from_str::<Value>(data) {
        Ok(value) => match events(value) {
            Some(events) => Said::Events(events),
            None if unnamed => Said::Failed(malformed("a message of the event stream is no event")),
            None => Said::Nothing,
        },
        // The text may hold anything, so the error tells only where and what kind.
        Err(error) if unnamed || object => {
            let (line, column) = (error.line(), error.column());
            let what = format!("a message of the event stream is not JSON (line {line}, column {column})");
            Said::Failed(malformed(&what))
        }
        Err(_) => Said::Nothing,
    }
}

/// One event or several; `None` for anything else, a list with something else in it included.
fn events(value: Value) -> Option<Vec<Event>> {
    match Event::read(value) {
        Ok(event) => Some(vec![event]),
        Err(Value::Object(mut fields)) => match fields.remove("events") {
            Some(Value::Array(list)) => list.into_iter().map(|value| Event::read(value).ok()).collect(),
            _ => None,
        },
        Err(_) => None,
    }
}

fn failure(data: &str) -> Error {
    let value: Value = serde_json::from_str(data).unwrap_or_default();
    let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let code = envelope::canonical(text("code").unwrap_or("event_stream_error").to_owned());
    let bare = value.is_null().then_some(data.trim()).filter(|text| !text.is_empty());
    let message = text("message").or_else(|| text("error")).or(bare);
    let message: String = message
        .unwrap_or("the service ended the event stream with an error")
        .chars()
        .take(MESSAGE_LIMIT)
        .collect();
    Error::new(ErrorKind::StreamFailed, code, message)
        .with_delivery(Delivery::Answered)
        .with_retryable(value.get("retryable").and_then(Value::as_bool) == Some(true))
}

fn malformed(message: &str) -> Error {
    Error::new(ErrorKind::Unexpected, "malformed_event", message).with_delivery(Delivery::Answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(name: &str, data: &str) -> Vec<String> {
        match read(name, data) {
            Said::Events(events) => events.iter().map(|event| event.kind().to_owned()).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn error(name: &str, data: &str) -> Error {
        match read(name, data) {
            Said::Failed(error) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_event_or_several_under_any_name() {
        assert_eq!(kinds("message", r#"{"type":"prompt"}"#), ["prompt"]);
        assert_eq!(kinds("response", "\n {\"type\":\"response\",\n\"events\":5}"), ["response"]);
        assert_eq!(kinds("new-name", r#"{"type":"new-kind"}"#), ["new-kind"]);
        assert_eq!(kinds("message", r#"{"events":[{"type":"a"},{"type":"b"}]}"#), ["a", "b"]);
        assert!(kinds("message", r#"{"events":[]}"#).is_empty());
    }

    #[test]
    fn signs_of_life_and_of_others_are_passed_over() {
        for (name, data) in [
            ("ping", ""),
            ("ping", r#"{"type":"prompt"}"#),
            ("heartbeat", "{}"),
            ("cursor", "{}"),
            ("bye", "see you"),
            ("end", "7"),
        ] {
            assert!(matches!(read(name, data), Said::Nothing), "{name} {data}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_tells_no_secret() {
        for (name, data) in [
            ("message", "{\"type\":\"prompt\",\"s3cr3t"),
            ("response", "{\"type\":\"prompt\",\"s3cr3t"),
            ("message", ""),
            ("message", "s3cr3t"),
            ("message", "[]"),
            ("message", r#"{"type":5}"#),
            ("message", r#"{"events":[{"type":"a"},{"s3cr3t":1}]}"#),
        ] {
            let error = error(name, data);
            assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "malformed_event"), "{data}");
            assert!(!error.to_string().contains("s3cr3t"));
        }
    }

    #[test]
    fn an_error_message_is_a_typed_error() {
        let seen = |data: &str| {
            let error = error("error", data);
            assert_eq!(error.kind(), ErrorKind::StreamFailed);
            (error.code().to_owned(), error.message().to_owned(), error.is_retryable())
        };
        let bare = "the service ended the event stream with an error";
        assert_eq!(seen(r#"{"code":"c","message":"m"}"#), ("c".into(), "m".into(), false));
        assert_eq!(seen(r#"{"code":"boat_starting"}"#).0, "sandbox_starting", "boat's spelling");
        assert_eq!(
            seen(r#"{"error":"e","retryable":true}"#),
            ("event_stream_error".into(), "e".into(), true)
        );
        assert_eq!(seen(" broken "), ("event_stream_error".into(), "broken".into(), false));
        assert_eq!(seen(""), ("event_stream_error".into(), bare.into(), false));
        assert_eq!(seen("[5]"), ("event_stream_error".into(), bare.into(), false));
        assert_eq!(seen(&"x".repeat(10_000)).1.len(), MESSAGE_LIMIT);
    }
}
