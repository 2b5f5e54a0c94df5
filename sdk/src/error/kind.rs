//! The two questions a program asks first: what went wrong, and may it have happened all the same.

use std::fmt;

/// What went wrong, for a program to branch on.
///
/// ```
/// use sandboxer::{AsyncSandboxer, ErrorKind};
///
/// let refused = AsyncSandboxer::builder().api_key("key").base_url("ftp://example.com").build().unwrap_err();
/// assert_eq!(refused.kind(), ErrorKind::Config);
/// assert!(refused.to_string().contains("base_url"));
///
/// let unsure = |kind: ErrorKind| matches!(kind, ErrorKind::Connection | ErrorKind::Timeout | ErrorKind::StreamCut);
/// assert!(!unsure(refused.kind()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The client cannot be built from what it was given: no key, a bad base URL, no trusted certificates.
    Config,
    /// An argument was refused before anything was sent; the message names the field and what is allowed.
    InvalidInput,
    /// The service that was chosen by its [`Dialect`](crate::Dialect) does not have the operation; nothing was sent.
    Unsupported,
    /// 400, or another 4xx without a kind of its own: the service refused the request.
    BadRequest,
    /// 401: the key is missing or unknown to the service.
    Authentication,
    /// 402: the wallet is empty or blocked.
    PaymentRequired,
    /// 403: the key or the account may not do this.
    PermissionDenied,
    /// 404: there is nothing of that id that this key may see.
    NotFound,
    /// 409: the resource is in a state that cannot take the request.
    Conflict,
    /// 429: a rate, a quota or a limit of active sandboxes is used up.
    RateLimited,
    /// 5xx: the service failed.
    Server,
    /// An answer that is not what the API promises: a redirect, a body that cannot be read, `ok: false` under a success.
    Unexpected,
    /// An answer, or one line of a stream, is longer than this client takes.
    TooLarge,
    /// No connection, or it broke before the answer was complete.
    Connection,
    /// A time limit of this client ran out; the message says which one and how long it was.
    Timeout,
    /// A stream ended, broke or fell silent before its final frame.
    StreamCut,
    /// The service ended a stream with an error frame.
    StreamFailed,
    /// A command ended in another way than exit code 0, and the caller asked for that to be an error.
    CommandFailed,
    /// The sandbox is in a state from which the one waited for cannot be reached.
    SandboxState,
    /// What was waited for did not happen within the limit of the wait.
    WaitTimeout,
    /// The client was closed.
    Closed,
}

impl ErrorKind {
    /// The kind an answer with this status is reported as.
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            401 => Self::Authentication,
            402 => Self::PaymentRequired,
            403 => Self::PermissionDenied,
            404 => Self::NotFound,
            409 => Self::Conflict,
            429 => Self::RateLimited,
            400..=499 => Self::BadRequest,
            500..=599 => Self::Server,
            _ => Self::Unexpected,
        }
    }
}

/// How far a failed call got.
///
/// For a call that was tried more than once this speaks of all its tries: `NotSent` only if none of them reached the
/// service.
///
/// ```
/// use sandboxer::{AsyncSandboxer, Delivery, ErrorKind};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// // Nothing listens on port 1, so nothing can have run.
/// let client = AsyncSandboxer::builder().api_key("key").base_url("http://127.0.0.1:1").retries(0).build().unwrap();
/// let error = client.api().request(http::Method::GET, "/me", Default::default()).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Connection);
/// assert_eq!(error.delivery(), Delivery::NotSent);
/// assert!(error.is_retryable());
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delivery {
    /// Nothing reached the service: refused before sending, connection refused, name not resolved, TLS or proxy failed,
    /// or the service said that it had not looked at the request.
    NotSent,
    /// The service answered.
    Answered,
    /// The request may have reached the service, and its whole answer never came back.
    Unknown,
}

impl Delivery {
    /// The delivery of a call from that of its earlier tries and of its last one.
    pub(crate) fn after(earlier: Option<Self>, last: Self) -> Self {
        match (earlier, last) {
            (_, Self::Answered) => Self::Answered,
            (Some(Self::Unknown), _) | (_, Self::Unknown) => Self::Unknown,
            (Some(Self::Answered), Self::NotSent) => Self::Answered,
            (Some(Self::NotSent) | None, Self::NotSent) => Self::NotSent,
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSent => "not sent",
            Self::Answered => "answered",
            Self::Unknown => "unknown",
        })
    }
}
