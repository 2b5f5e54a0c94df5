//! The headers that carry signatures, taken out of whatever holds a request's headers.

use super::{
    error::WebhookError,
    scheme::{BOAT, SANDBOXER, Scheme},
};
use http::HeaderMap;
use std::collections::{BTreeMap, HashMap};

const NAMES: [&str; 7] = [
    Scheme::Signature.signature_header(),
    SANDBOXER.signature,
    SANDBOXER.timestamp,
    SANDBOXER.delivery,
    BOAT.signature,
    BOAT.timestamp,
    BOAT.delivery,
];

/// The signature headers of one delivery, whatever the web framework keeps headers in. Names are compared without regard
/// to case; all other headers are left out. It is made from an [`http::HeaderMap`], from pairs, or from a map, and every
/// method of [`Verifier`](super::Verifier) takes those directly.
///
/// ```
/// use sandboxer::webhooks::{SignatureHeaders, Verifier};
/// use std::{collections::HashMap, time::{Duration, SystemTime}};
///
/// let verifier = Verifier::new("whsec_1")?;
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
/// let signed = verifier.sign(now, b"{}")?; // an http::HeaderMap
/// verifier.verify_at(&signed, b"{}", now)?;
///
/// let value = signed["sandboxer-signature"].to_str()?;
/// verifier.verify_at([("SANDBOXER-SIGNATURE", value)], b"{}", now)?;
/// verifier.verify_at(&HashMap::from([("sandboxer-signature", value)]), b"{}", now)?;
///
/// // A map that holds a list for each name.
/// let lists = HashMap::from([("sandboxer-signature", vec![value])]);
/// let pairs = lists.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
/// verifier.verify_at(SignatureHeaders::from_pairs(pairs), b"{}", now)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SignatureHeaders {
    found: [Found; NAMES.len()],
}

#[derive(Clone, Debug, Default)]
enum Found {
    #[default]
    Nothing,
    Once(Vec<u8>),
    Often,
}

impl SignatureHeaders {
    /// Takes them out of (name, value) pairs, of text or of bytes. A name that comes twice is remembered as an error.
    ///
    /// ```
    /// use sandboxer::webhooks::{SignatureHeaders, Verifier, WebhookError};
    ///
    /// let twice = SignatureHeaders::from_pairs([("Sandboxer-Signature", "t=1,v1=aa"), ("sandboxer-signature", "t=2,v1=bb")]);
    /// let error = Verifier::new("whsec_1")?.verify(twice, b"{}").unwrap_err();
    /// assert_eq!(error, WebhookError::DuplicateHeader("Sandboxer-Signature"));
    /// # Ok::<(), WebhookError>(())
    /// ```
    pub fn from_pairs<N: AsRef<str>, V: AsRef<[u8]>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut headers = Self::default();
        for (name, value) in pairs {
            headers.add(name.as_ref(), value.as_ref());
        }
        headers
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        if let Some(at) = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name)) {
            self.found[at] = match self.found[at] {
                Found::Nothing => Found::Once(value.to_vec()),
                Found::Once(_) | Found::Often => Found::Often,
            };
        }
    }

    /// The header's text without space around it; `None` when it is not there or empty.
    pub(super) fn text(&self, name: &'static str) -> Result<Option<&str>, WebhookError> {
        let found =
            NAMES.iter().position(|known| *known == name).map_or(&Found::Nothing, |at| &self.found[at]);
        match found {
            Found::Nothing => Ok(None),
            Found::Often => Err(WebhookError::DuplicateHeader(name)),
            Found::Once(value) => {
                let text = std::str::from_utf8(value)
                    .map_err(|_| WebhookError::BadHeader { name, problem: "it is not text" })?;
                Ok(Some(text.trim()).filter(|text| !text.is_empty()))
            }
        }
    }

    /// The scheme to verify by: the first, in order of preference, whose signature is there.
    pub(super) fn scheme(&self) -> Result<(Scheme, &str), WebhookError> {
        for scheme in Scheme::ALL {
            if let Some(signature) = self.text(scheme.signature_header())? {
                return Ok((scheme, signature));
            }
        }
        // Half a set says which one was meant.
        for scheme in [Scheme::Delivery, Scheme::Boat] {
            if let Some(names) = scheme.separate()
                && (self.text(names.timestamp)?.is_some() || self.text(names.delivery)?.is_some())
            {
                return Err(WebhookError::MissingHeader(scheme.signature_header()));
            }
        }
        Err(WebhookError::MissingHeader(Scheme::Signature.signature_header()))
    }
}

impl From<&HeaderMap> for SignatureHeaders {
    fn from(headers: &HeaderMap) -> Self {
        Self::from_pairs(headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())))
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> From<&[(N, V)]> for SignatureHeaders {
    fn from(pairs: &[(N, V)]) -> Self {
        Self::from_pairs(pairs.iter().map(|(name, value)| (name, value)))
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> From<&Vec<(N, V)>> for SignatureHeaders {
    fn from(pairs: &Vec<(N, V)>) -> Self {
        Self::from(pairs.as_slice())
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>, const COUNT: usize> From<[(N, V); COUNT]> for SignatureHeaders {
    fn from(pairs: [(N, V); COUNT]) -> Self {
        Self::from_pairs(pairs)
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>, S> From<&HashMap<N, V, S>> for SignatureHeaders {
    fn from(headers: &HashMap<N, V, S>) -> Self {
        Self::from_pairs(headers)
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> From<&BTreeMap<N, V>> for SignatureHeaders {
    fn from(headers: &BTreeMap<N, V>) -> Self {
        Self::from_pairs(headers)
    }
}

impl From<&SignatureHeaders> for SignatureHeaders {
    fn from(headers: &SignatureHeaders) -> Self {
        headers.clone()
    }
}
