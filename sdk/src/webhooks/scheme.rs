//! The ways a delivery carries its signature, and reading them.

use super::{error::WebhookError, headers::SignatureHeaders};
use crate::generated::dialects::{Dialect, WebhookHeaders};
use std::time::{Duration, SystemTime};

/// How a delivery carries its signature. Every signature is an HMAC-SHA256 in hexadecimal whose key is the whole secret,
/// `whsec_` included.
///
/// ```
/// use sandboxer::webhooks::{Scheme, Verifier};
/// use std::time::SystemTime;
///
/// let verifier = Verifier::new("whsec_1")?.no_tolerance();
/// let verified = verifier.verify(&verifier.sign(SystemTime::UNIX_EPOCH, b"{}")?, b"{}")?;
/// assert_eq!(verified.scheme, Scheme::Signature);
/// # Ok::<(), sandboxer::webhooks::WebhookError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `Sandboxer-Signature: t=<seconds since 1970>,v1=<signature>`, over `<t>.` and the body. `v1` may stand there more
    /// than once, while a secret is rotated. Preferred to the others when several are there.
    Signature,
    /// `X-Sandboxer-Delivery`, `X-Sandboxer-Timestamp` and `X-Sandboxer-Signature: v1=<signature>`, over
    /// `<delivery>.<timestamp>.` and the body.
    Delivery,
    /// The same under boat's names: `X-Ascii-Delivery`, `X-Ascii-Timestamp`, `X-Ascii-Signature`.
    Boat,
}

/// The names of the service's headers.
pub(super) const SANDBOXER: WebhookHeaders = Dialect::Sandboxer.info().webhook_headers;

/// The names of boat's.
pub(super) const BOAT: WebhookHeaders = Dialect::Boat.info().webhook_headers;

/// What a delivery says about its signature, not believed yet.
pub(super) struct Claim<'h> {
    pub(super) scheme: Scheme,
    pub(super) delivery: Option<&'h str>,
    pub(super) seconds: u64,
    pub(super) signed_at: SystemTime,
    signatures: &'h str,
}

impl Scheme {
    /// In the order in which they are looked for.
    pub(super) const ALL: [Self; 3] = [Self::Signature, Self::Delivery, Self::Boat];

    /// The name of the header that carries the signature.
    ///
    /// ```
    /// use sandboxer::webhooks::Scheme;
    ///
    /// assert_eq!(Scheme::Boat.signature_header(), "X-Ascii-Signature");
    /// ```
    pub const fn signature_header(self) -> &'static str {
        match self {
            Self::Signature => match SANDBOXER.combined {
                Some(name) => name,
                None => SANDBOXER.signature,
            },
            Self::Delivery => SANDBOXER.signature,
            Self::Boat => BOAT.signature,
        }
    }

    /// The headers of a scheme with a header for each part.
    pub(super) const fn separate(self) -> Option<WebhookHeaders> {
        match self {
            Self::Signature => None,
            Self::Delivery => Some(SANDBOXER),
            Self::Boat => Some(BOAT),
        }
    }
}

impl<'h> Claim<'h> {
    pub(super) fn read(headers: &'h SignatureHeaders) -> Result<Self, WebhookError> {
        let (scheme, signatures) = headers.scheme()?;
        let (delivery, timestamp, named) = match scheme.separate() {
            None => (None, timestamp_part(signatures, scheme)?, scheme.signature_header()),
            Some(names) => {
                let timestamp = headers.text(names.timestamp)?;
                let timestamp = timestamp.ok_or(WebhookError::MissingHeader(names.timestamp))?;
                let delivery = headers.text(names.delivery)?;
                check_delivery(delivery.unwrap_or_default(), names.delivery)?;
                (delivery, timestamp, names.timestamp)
            }
        };
        let bad = |problem| WebhookError::BadHeader { name: named, problem };
        if timestamp.is_empty() || !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad("the timestamp is not a number of whole seconds"));
        }
        let seconds = timestamp.parse().map_err(|_| bad("the timestamp is too far away"))?;
        let signed_at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        let signed_at = signed_at.ok_or_else(|| bad("the timestamp is too far away"))?;
        let claim = Self { scheme, delivery, seconds, signed_at, signatures };
        if claim.signatures().next().is_none() {
            let name = scheme.signature_header();
            return Err(WebhookError::BadHeader { name, problem: "it has no `v1=` part" });
        }
        Ok(claim)
    }

    /// Every `v1` value, as it came.
    pub(super) fn signatures(&self) -> impl Iterator<Item = &'h str> {
        parts(self.signatures).filter(|(key, _)| *key == "v1").map(|(_, value)| value)
    }

    /// What is signed in front of the body.
    pub(super) fn prefix(&self) -> String {
        prefix(self.scheme, self.delivery.unwrap_or_default(), self.seconds)
    }
}

/// What is signed in front of the body.
pub(super) fn prefix(scheme: Scheme, delivery: &str, seconds: u64) -> String {
    match scheme {
        Scheme::Signature => format!("{seconds}."),
        Scheme::Delivery | Scheme::Boat => format!("{delivery}.{seconds}."),
    }
}

/// A dot in a delivery's id would let a signed text be cut up in more than one way: a piece of the body could pass as the
/// timestamp.
pub(super) fn check_delivery(delivery: &str, name: &'static str) -> Result<(), WebhookError> {
    if delivery.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'.') {
        return Ok(());
    }
    Err(WebhookError::BadHeader { name, problem: "an id is visible ASCII without spaces and dots" })
}

fn parts(header: &str) -> impl Iterator<Item = (&str, &str)> {
    header.split(',').filter_map(|part| part.trim().split_once('=')).map(|(key, value)| (key, value.trim()))
}

fn timestamp_part(header: &str, scheme: Scheme) -> Result<&str, WebhookError> {
    let name = scheme.signature_header();
    let mut timestamps = parts(header).filter(|(key, _)| *key == "t").map(|(_, value)| value);
    let first = timestamps.next().ok_or(WebhookError::BadHeader { name, problem: "it has no `t=` part" })?;
    if timestamps.next().is_some() {
        return Err(WebhookError::DuplicateHeader(name));
    }
    Ok(first)
}
