//! The one error type of the suite.

mod build;
pub(crate) mod envelope;
mod kind;
mod partial;

pub use kind::{Delivery, ErrorKind};
pub use partial::{Offsets, PartialOutput};

use crate::generated::operations::Operation;
use serde_json::Value;
use std::{borrow::Cow, error::Error as StdError, fmt, time::Duration};

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call, a stream or a wait failed.
///
/// One pointer in size. [`kind`](Self::kind) is for branching, [`delivery`](Self::delivery) says whether the request may
/// have had an effect, `Display` is one line for people (`code: message (status N) [request_id=…]`), and
/// [`source`](StdError::source) keeps the cause. Keys, tokens and URLs never appear in it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # use sandboxer_mock_server::{MockServer, Reply};
/// use sandboxer::{AsyncSandboxer, Delivery, ErrorKind, Operation};
/// use std::time::Duration;
///
/// let error = AsyncSandboxer::builder().ignore_env().build().unwrap_err();
/// assert_eq!((error.kind(), error.code()), (ErrorKind::Config, "missing_api_key"));
/// assert_eq!((error.status(), error.attempts(), error.is_retryable()), (None, 0, false));
///
/// # let server = MockServer::start(); let client = server.client();
/// # let quota = Reply::code(429, "rate_limited", "3 starts an hour").detail("window", "hour");
/// # server.on(Operation::Create).reply(quota.retry_after(Duration::from_secs(3600)));
/// // An hour's quota of creates is used up: the wait is longer than the client's total limit, so it fails at once.
/// let error = client.create(Default::default()).await.unwrap_err();
/// assert_eq!((error.kind(), error.status(), error.delivery()), (ErrorKind::RateLimited, Some(429), Delivery::Answered));
/// assert_eq!((error.message(), &error.details().unwrap()["window"]), ("3 starts an hour", &"hour".into()));
/// assert_eq!((error.operation(), error.attempts()), (Some(Operation::Create), 1));
/// assert!(error.is_retryable() && error.retry_after() == Some(Duration::from_secs(3600)));
/// assert!(error.idempotency_key().is_some(), "for the same create, later");
/// assert!(error.request_id().is_some());
///
/// # server.on(Operation::CommandStream).reply(Reply::ndjson([
/// #     r#"{"type":"started","commandId":"c1"}"#, r#"{"type":"stdout","data":"one\n"}"#,
/// # ]));
/// # let sandbox = client.create(Default::default()).await.unwrap();
/// // The connection broke before the command's final frame.
/// let error = sandbox.exec_stream("make").await.unwrap().wait().await.unwrap_err();
/// assert_eq!((error.kind(), error.delivery()), (ErrorKind::StreamCut, Delivery::Unknown));
/// assert_eq!((error.sandbox_id(), error.command_id()), (Some(sandbox.id()), Some("c1")));
/// assert_eq!(error.partial_output().unwrap().stdout_text(), "one\n");
/// assert!(error.resume_offsets().is_none(), "only of a command that was started in the background");
/// # }
/// ```
pub struct Error(Box<Inner>);

#[derive(Default)]
struct Inner {
    kind: Option<ErrorKind>,
    status: Option<u16>,
    code: Cow<'static, str>,
    message: String,
    details: Option<Value>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    retryable: bool,
    delivery: Option<Delivery>,
    operation: Option<Operation>,
    attempts: u32,
    sandbox_id: Option<String>,
    command_id: Option<String>,
    idempotency_key: Option<String>,
    partial_output: Option<PartialOutput>,
    resume_offsets: Option<Offsets>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// What went wrong, for branching.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind.unwrap_or(ErrorKind::Unexpected)
    }

    /// The HTTP status, if one was received.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// A stable code: the service's own, `http_<status>` when the answer named none, or one of this client's (see
    /// `docs/errors.md`).
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// What went wrong, for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What the service told beyond code and message.
    pub fn details(&self) -> Option<&Value> {
        self.0.details.as_ref()
    }

    /// The service's id of the request, to quote in a support case.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// How long the service asked to wait before the next try, from the answer on.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether the same call may be sent again without running anything twice, by the operation's repeat class and what
    /// the service said. True also when this client already repeated it and gave up. The same call means the same key too,
    /// for a create or fork: see [`idempotency_key`](Self::idempotency_key).
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }

    /// How far the call got, all its tries together: a try that may have had an effect is not forgotten when a later one is
    /// refused.
    pub fn delivery(&self) -> Delivery {
        self.0.delivery.unwrap_or(Delivery::NotSent)
    }

    /// The operation that failed; `None` when no single one did (configuration, waits, `Api::request`).
    pub fn operation(&self) -> Option<Operation> {
        self.0.operation
    }

    /// How many times the request was tried; 0 when it was refused before the first try.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// The sandbox the call was about.
    pub fn sandbox_id(&self) -> Option<&str> {
        self.0.sandbox_id.as_deref()
    }

    /// The command the call or stream was about, once known.
    pub fn command_id(&self) -> Option<&str> {
        self.0.command_id.as_deref()
    }

    /// The idempotency key that all tries of a failed create or fork carried. Repeating the call with it
    /// ([`CallOptions::idempotency_key`](crate::CallOptions::idempotency_key)) cannot make a second sandbox.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.0.idempotency_key.as_deref()
    }

    /// The output that had arrived when a stream broke, or that of a command that failed.
    pub fn partial_output(&self) -> Option<&PartialOutput> {
        self.0.partial_output.as_ref()
    }

    /// Where reading a broken stream can go on, if it can.
    pub fn resume_offsets(&self) -> Option<Offsets> {
        self.0.resume_offsets
    }
}

/// Text with its control characters replaced, so that it stays on one line.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.trim();
        while let Some(at) = rest.find(char::is_control) {
            f.write_str(&rest[..at])?;
            f.write_str(" ")?;
            rest = rest[at..].trim_start_matches(|c: char| c.is_control() || c == ' ');
        }
        f.write_str(rest)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", OneLine(&self.0.code), OneLine(&self.0.message))?;
        if let Some(status) = self.0.status {
            write!(f, " (status {status})")?;
        }
        if let Some(id) = &self.0.request_id {
            write!(f, " [request_id={}]", OneLine(id))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        let mut out = f.debug_struct("Error");
        out.field("kind", &self.kind()).field("code", &inner.code).field("message", &inner.message);
        out.field("delivery", &self.delivery())
            .field("attempts", &inner.attempts)
            .field("retryable", &inner.retryable);
        macro_rules! if_known {
            ($($field:ident),*) => { $(if let Some(value) = &inner.$field { out.field(stringify!($field), value); })* };
        }
        if_known!(
            status,
            request_id,
            retry_after,
            operation,
            sandbox_id,
            command_id,
            partial_output,
            resume_offsets
        );
        // Values of details come from the service and may be anything, secrets included.
        if let Some(details) = inner.details.as_ref().and_then(Value::as_object) {
            out.field("details", &details.keys().collect::<Vec<_>>());
        }
        if_known!(source);
        out.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests;
