//! Why a delivery was not accepted.

use std::{fmt, time::Duration};

/// Why a delivery was not accepted, or could not be signed. Neither `Debug` nor `Display` shows a secret, a signature or
/// a piece of the body.
///
/// ```
/// use sandboxer::webhooks::{Verifier, WebhookError};
///
/// let verifier = Verifier::new("whsec_1")?;
/// let error = verifier.verify(&http::HeaderMap::new(), b"{}").unwrap_err();
/// assert_eq!(error, WebhookError::MissingHeader("Sandboxer-Signature"));
/// assert!(!error.is_authentic());
/// # Ok::<(), WebhookError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookError {
    /// No secret was given, or one of them is empty: anybody could sign with that.
    NoSecret,
    /// The delivery lacks this header.
    MissingHeader(&'static str),
    /// This header, or its `t=` part, is there more than once; which one counts would be a guess.
    DuplicateHeader(&'static str),
    /// This header cannot be read.
    BadHeader {
        /// The header.
        name: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// None of the signatures was made with one of the secrets over exactly these bytes.
    NoMatchingSignature,
    /// Signed longer ago than the tolerance allows.
    TooOld {
        /// The time since it was signed.
        age: Duration,
    },
    /// Signed further in the future than the tolerance allows; one of the two machines has a wrong clock.
    TooNew {
        /// The time until it will have been signed.
        ahead: Duration,
    },
    /// The replay guard has seen exactly this delivery before.
    Replayed,
    /// The signature is good, the body is not an event.
    BadPayload {
        /// What is wrong with it.
        problem: String,
    },
}

impl WebhookError {
    /// Whether the bytes come from somebody who knows a secret. True for [`TooOld`](Self::TooOld), [`TooNew`](Self::TooNew),
    /// [`Replayed`](Self::Replayed) and [`BadPayload`](Self::BadPayload), which are looked at only after the signature.
    ///
    /// ```
    /// use sandboxer::{clock::Clock as _, clock::SystemClock, webhooks::{Verifier, WebhookError}};
    ///
    /// let verifier = Verifier::new("whsec_1")?;
    /// let headers = verifier.sign(SystemClock::new().now(), b"not json")?;
    /// let error = verifier.parse(&headers, b"not json").unwrap_err();
    /// assert!(error.is_authentic());
    /// # Ok::<(), WebhookError>(())
    /// ```
    pub const fn is_authentic(&self) -> bool {
        matches!(self, Self::TooOld { .. } | Self::TooNew { .. } | Self::Replayed | Self::BadPayload { .. })
    }
}

impl fmt::Display for WebhookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSecret => f.write_str("no webhook secret is given, or an empty one"),
            Self::MissingHeader(name) => write!(f, "the header `{name}` is missing"),
            Self::DuplicateHeader(name) => write!(f, "the header `{name}` says it more than once"),
            Self::BadHeader { name, problem } => write!(f, "the header `{name}` cannot be read: {problem}"),
            Self::NoMatchingSignature => f.write_str("no signature matches the body and a secret"),
            Self::TooOld { age } => write!(f, "signed {} s ago, too long", age.as_secs()),
            Self::TooNew { ahead } => write!(f, "signed {} s in the future, too far", ahead.as_secs()),
            Self::Replayed => f.write_str("exactly this delivery was accepted before"),
            Self::BadPayload { problem } => write!(f, "the body is not a webhook event: {problem}"),
        }
    }
}

impl std::error::Error for WebhookError {}
