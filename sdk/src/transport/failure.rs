//! What a failed try was: the error it becomes, and the facts that decide about another.

use super::connect::ConnectTimedOut;
use crate::{
    error::{Delivery, Error, ErrorKind, envelope::Envelope},
    retry::policy::Facts,
};
use http::{HeaderMap, StatusCode};
use std::{error::Error as StdError, fmt::Write as _, time::Duration};

/// A failed try.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) facts: Facts,
    /// No other try can help, whatever the table says.
    pub(crate) is_final: bool,
}

impl Failure {
    fn cut(error: Error, delivery: Delivery) -> Self {
        Self { error: error.with_delivery(delivery), facts: Facts::cut(delivery), is_final: false }
    }

    /// The request failed before the head of an answer came; `unsent` if no connection had taken it.
    pub(crate) fn transport(error: reqwest::Error, unsent: bool) -> Self {
        let error = error.without_url();
        if error.is_builder() {
            let refused =
                Error::new(ErrorKind::InvalidInput, "invalid_request", "the request cannot be formed");
            return Self { is_final: true, ..Self::cut(refused.with_source(error), Delivery::NotSent) };
        }
        let refused = unsent || error.is_connect() || was_refused(&error);
        let delivery = if refused { Delivery::NotSent } else { Delivery::Unknown };
        if let Some(ConnectTimedOut(limit)) = cause_of(&error) {
            return Self::cut(timed_out("connect", *limit).with_source(error), delivery);
        }
        let what = if error.is_connect() { "no connection" } else { "the connection failed" };
        let message = format!("{what}: {}", causes(&error));
        Self::cut(Error::new(ErrorKind::Connection, "connection_error", message).with_source(error), delivery)
    }

    /// The body of a success broke or ended early.
    pub(crate) fn half_body(status: StatusCode, message: String, source: Option<reqwest::Error>) -> Self {
        let error =
            Error::new(ErrorKind::Connection, "connection_error", message).with_status(status.as_u16());
        let error = match source {
            Some(source) => error.with_source(source.without_url()),
            None => error,
        };
        Self::cut(error, Delivery::Unknown)
    }

    /// One try took longer than `limit`.
    pub(crate) fn attempt_timed_out(limit: Duration, unsent: bool) -> Self {
        let delivery = if unsent { Delivery::NotSent } else { Delivery::Unknown };
        Self::cut(timed_out("attempt", limit), delivery)
    }

    /// The whole call took longer than `limit`.
    pub(crate) fn total_timed_out(limit: Duration, unsent: bool) -> Self {
        let delivery = if unsent { Delivery::NotSent } else { Delivery::Unknown };
        Self { is_final: true, ..Self::cut(timed_out("total", limit), delivery) }
    }

    /// The service answered with a status that is no success.
    pub(crate) fn status(
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        retry_after: Option<Duration>,
    ) -> Self {
        if status.is_redirection() {
            let message = "the service answered with a redirect, which is never followed; check the base URL";
            let error = Error::new(ErrorKind::Unexpected, "unexpected_redirect", message)
                .with_status(status.as_u16());
            return Self::unexpected(error, status, headers);
        }
        let envelope = Envelope::read(status.as_u16(), headers, body);
        let facts = Facts {
            delivery: Delivery::Answered,
            status: Some(status.as_u16()),
            code: Some(envelope.code.clone()),
            message: Some(envelope.message.clone()),
            retryable: envelope.retryable,
            window: envelope.window.clone(),
            hint: retry_after.is_some(),
        };
        let error = envelope.into_error(status.as_u16()).with_retry_after(retry_after);
        Self { error: error.with_delivery(Delivery::Answered), facts, is_final: false }
    }

    /// An answer that no repeat will better.
    pub(crate) fn unexpected(error: Error, status: StatusCode, headers: &HeaderMap) -> Self {
        let error = error
            .with_status(status.as_u16())
            .with_request_id(crate::error::envelope::request_id(headers))
            .with_delivery(Delivery::Answered);
        let facts = Facts { status: Some(status.as_u16()), ..Facts::cut(Delivery::Answered) };
        Self { error, facts, is_final: true }
    }
}

/// A success whose body says `ok: false`.
pub(crate) fn denied_success(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
    let envelope = Envelope::read(status.as_u16(), headers, body);
    envelope.into_error(status.as_u16()).with_kind(ErrorKind::Unexpected).with_delivery(Delivery::Answered)
}

/// A limit of this client ran out.
pub(crate) fn timed_out(which: &str, limit: Duration) -> Error {
    Error::new(ErrorKind::Timeout, "timeout", format!("the `{which}` limit of {limit:?} ran out"))
}

/// The peer said that it had not looked at the request.
fn was_refused(error: &reqwest::Error) -> bool {
    cause_of::<h2::Error>(error).is_some_and(|error| {
        let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
        let closing = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
        error.is_remote() && (refused || closing)
    })
}

fn cause_of<T: StdError + 'static>(error: &dyn StdError) -> Option<&T> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An I/O error shows the source of what it wraps, not the wrapped error itself.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(|io| io.get_ref());
        if let Some(found) = wrapped.and_then(|wrapped| wrapped.downcast_ref()) {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// The chain of causes as one line, the parts that only repeat the next one left out.
fn causes(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            let separator = if text.is_empty() { "" } else { ": " };
            let _ = write!(text, "{separator}{part}");
        }
        cause = error.source();
    }
    if text.is_empty() { error.to_string() } else { text }
}
