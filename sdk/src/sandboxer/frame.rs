//! A line of a command's stream or of an attach stream.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::{
    error::{Delivery, Error, ErrorKind, envelope::canonical},
    outcome::{End, Outcome},
    output::Facts,
    wire::Timestamp,
};

/// A frame of either stream; which fields are there depends on its type.
///
/// Only `type` and, on output, `data` are essential: anything else that is missing or of another type is as good as
/// absent, and fields this client does not know are passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Frame {
    #[serde(rename = "type", deserialize_with = "required")]
    pub(crate) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) data: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) command_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) next_offset: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) stdout_offset: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) stderr_offset: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    status: Option<String>,
    #[serde(deserialize_with = "lenient")]
    exit_code: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    signal: Option<String>,
    #[serde(deserialize_with = "lenient")]
    success: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    timed_out: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    oom_killed: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    stdout_truncated: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    stderr_truncated: Option<bool>,
    #[serde(deserialize_with = "lenient")]
    cwd: Option<String>,
    #[serde(deserialize_with = "lenient")]
    started_at: Option<Timestamp>,
    #[serde(deserialize_with = "lenient")]
    finished_at: Option<Timestamp>,
    #[serde(deserialize_with = "lenient")]
    error: Option<String>,
    #[serde(deserialize_with = "lenient")]
    message: Option<String>,
    #[serde(deserialize_with = "lenient")]
    retryable: Option<bool>,
}

fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

impl Frame {
    /// The outcome that an `exit` frame tells.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome::from_end(End {
            timed_out: self.timed_out == Some(true) || self.status.as_deref() == Some("timed_out"),
            lost: self.is_lost(),
            signal: self.signal.as_deref(),
            exit_code: self.exit_code,
            success: self.success,
        })
    }

    /// Whether an `exit` frame says that the end of the command was not seen.
    pub(crate) fn is_lost(&self) -> bool {
        self.status.as_deref() == Some("lost")
    }

    /// Copies what an `exit` frame tells besides the outcome.
    pub(crate) fn describe(self, facts: &mut Facts) {
        facts.oom_killed |= self.oom_killed == Some(true);
        facts.stdout_truncated |= self.stdout_truncated == Some(true);
        facts.stderr_truncated |= self.stderr_truncated == Some(true);
        facts.command_id = self.command_id.or(facts.command_id.take());
        facts.cwd = self.cwd.or(facts.cwd.take());
        facts.started_at = self.started_at.or(facts.started_at.take());
        facts.finished_at = self.finished_at.or(facts.finished_at.take());
    }

    /// The error that an `error` frame tells.
    pub(crate) fn into_error(self) -> Error {
        let code = self.error.filter(|code| !code.is_empty()).unwrap_or_else(|| "stream_error".to_owned());
        let code = canonical(code);
        let message = self.message.unwrap_or_else(|| "the service ended the stream with an error".to_owned());
        // The service sets the flag only where it proves that the command never ran.
        Error::new(ErrorKind::StreamFailed, code, message)
            .with_delivery(Delivery::Answered)
            .with_retryable(self.retryable == Some(true))
    }
}

/// The error of an output frame without output.
pub(crate) fn without_data() -> Error {
    malformed("an output frame of the stream has no data")
}

/// The error of a frame that does not say what it is.
pub(crate) fn without_type() -> Error {
    malformed("a frame of the stream has no type")
}

fn malformed(message: &str) -> Error {
    Error::new(ErrorKind::Unexpected, "malformed_frame", message).with_delivery(Delivery::Answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Frame {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn odd_fields_are_as_good_as_absent() {
        let odd =
            frame(r#"{"type":"exit","exitCode":"x","signal":7,"timedOut":null,"cwd":[],"new":{"a":1}}"#);
        assert_eq!(odd.outcome(), Outcome::Lost);
        assert_eq!(frame(r#"{"type":"exit","exitCode":3,"cwd":7}"#).outcome(), Outcome::Exited(3));
    }

    #[test]
    fn only_an_object_with_a_type_is_a_frame() {
        for bad in [r#"{"type":null}"#, r#"{"type":5}"#, "7", "null", "\"exit\""] {
            assert!(serde_json::from_str::<Frame>(bad).is_err(), "{bad}");
        }
        assert!(frame("{}").kind.is_none());
        assert!(frame(r#"{"type":"stdout","data":5}"#).data.is_none());
    }

    #[test]
    fn an_exit_frame_tells_everything_once() {
        let text = r#"{"type":"exit","exitCode":null,"signal":"SIGKILL","oomKilled":true,"stdoutTruncated":true,
            "commandId":"cmd_1","cwd":"/tmp","startedAt":"2026-01-01T00:00:00.000Z","status":"exited"}"#;
        let exit = frame(text);
        assert_eq!(exit.outcome().to_string(), "ended by SIGKILL");
        let mut facts = Facts { cwd: Some("old".into()), ..Facts::default() };
        exit.describe(&mut facts);
        assert!(facts.oom_killed && facts.stdout_truncated && !facts.stderr_truncated);
        assert_eq!(facts.command_id.as_deref(), Some("cmd_1"));
        assert_eq!(facts.cwd.as_deref(), Some("/tmp"));
        assert_eq!(frame(r#"{"type":"exit","status":"lost","exitCode":0}"#).outcome(), Outcome::Lost);
    }

    #[test]
    fn an_error_frame_is_a_typed_error() {
        let error = frame(r#"{"type":"error","error":"sandbox_restoring","message":"m","retryable":true}"#)
            .into_error();
        assert_eq!(
            (error.kind(), error.code(), error.is_retryable()),
            (ErrorKind::StreamFailed, "sandbox_restoring", true)
        );
        let bare = frame(r#"{"type":"error"}"#).into_error();
        assert_eq!((bare.code(), bare.is_retryable()), ("stream_error", false));
    }
}
