//! Signatures: making them, and comparing them without telling how far they match.

use super::{
    error::WebhookError,
    scheme::{Scheme, check_delivery, prefix},
};
use crate::wire::Secret;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest as _, Sha256};
use std::{sync::Arc, time::SystemTime};
use subtle::{Choice, ConstantTimeEq as _};

const SIGNATURE: usize = 32;

/// Keys made from secrets, one at least; the secrets themselves are not kept.
#[derive(Clone)]
pub(super) struct Keys(Arc<Vec<Hmac<Sha256>>>);

impl Keys {
    pub(super) fn new(secrets: impl Iterator<Item = Secret>) -> Result<Self, WebhookError> {
        let keys = secrets.map(|secret| key(&secret)).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() { Err(WebhookError::NoSecret) } else { Ok(Self(Arc::new(keys))) }
    }

    pub(super) fn add(&mut self, secret: &Secret) -> Result<(), WebhookError> {
        let key = key(secret)?;
        Arc::make_mut(&mut self.0).push(key);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The first key that made one of the signatures. Every pair is compared, in full, so that the time it takes says
    /// nothing about which matched.
    pub(super) fn matching<'a>(
        &self,
        prefix: &str,
        body: &[u8],
        signatures: impl Iterator<Item = &'a str>,
    ) -> Option<usize> {
        let signatures: Vec<[u8; SIGNATURE]> = signatures.filter_map(from_hex).collect();
        let mut matching = None;
        for (index, expected) in self.sign(prefix, body).enumerate() {
            let mut matches = Choice::from(0);
            for signature in &signatures {
                matches |= expected.ct_eq(signature);
            }
            if bool::from(matches) {
                matching = matching.or(Some(index));
            }
        }
        matching
    }

    pub(super) fn headers(
        &self,
        scheme: Scheme,
        delivery: &str,
        at: SystemTime,
        body: &[u8],
    ) -> Result<HeaderMap, WebhookError> {
        let name = scheme.separate().map_or(scheme.signature_header(), |names| names.timestamp);
        let bad = |name, problem| WebhookError::BadHeader { name, problem };
        let since = at.duration_since(SystemTime::UNIX_EPOCH);
        let seconds = since.map_err(|_| bad(name, "a time before 1970 cannot be signed"))?.as_secs();
        let mut parts = Vec::with_capacity(self.len() + 1);
        let mut headers = Vec::with_capacity(3);
        match scheme.separate() {
            None => parts.push(format!("t={seconds}")),
            Some(names) => {
                check_delivery(delivery, names.delivery)?;
                if !delivery.is_empty() {
                    headers.push((names.delivery, delivery.to_owned()));
                }
                headers.push((names.timestamp, seconds.to_string()));
            }
        }
        let prefix = prefix(scheme, delivery, seconds);
        parts.extend(self.sign(&prefix, body).map(|signature| format!("v1={}", to_hex(&signature))));
        headers.push((scheme.signature_header(), parts.join(",")));
        let mut map = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers {
            let value = HeaderValue::try_from(value).map_err(|_| bad(name, "it is not a header's value"))?;
            let key = HeaderName::try_from(name).map_err(|_| bad(name, "it is not a header's name"))?;
            map.insert(key, value);
        }
        Ok(map)
    }

    fn sign(&self, prefix: &str, body: &[u8]) -> impl Iterator<Item = [u8; SIGNATURE]> {
        self.0.iter().map(move |key| {
            let mut mac = key.clone();
            mac.update(prefix.as_bytes());
            mac.update(body);
            mac.finalize().into_bytes().into()
        })
    }
}

fn key(secret: &Secret) -> Result<Hmac<Sha256>, WebhookError> {
    if secret.is_empty() {
        return Err(WebhookError::NoSecret);
    }
    Hmac::new_from_slice(secret.expose().as_bytes()).map_err(|_| WebhookError::NoSecret)
}

/// Names a body and the second it was signed in. The delivery's id stays out: it would differ between the two schemes, and
/// a delivery with both sets of headers could be played again with one of them taken away.
pub(super) fn fingerprint(seconds: u64, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{seconds}."));
    hash.update(body);
    to_hex(&hash.finalize())
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A whole signature in either case; anything shorter, longer or else is none.
fn from_hex(text: &str) -> Option<[u8; SIGNATURE]> {
    if text.len() != 2 * SIGNATURE {
        return None;
    }
    let mut bytes = [0; SIGNATURE];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(bytes)
}
