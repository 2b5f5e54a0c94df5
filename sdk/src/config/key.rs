//! The API key, which cannot be printed.

use crate::error::{Error, Result};
use http::HeaderValue;
use std::fmt;

/// An API key. `Debug` shows that there is one and nothing of it; it has no `Display`.
///
/// ```
/// use sandboxer::ApiKey;
///
/// assert_eq!(format!("{:?}", ApiKey::from("sbx_live_1")), "ApiKey(redacted)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// The key itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The value of the `Authorization` header, marked sensitive.
    pub(crate) fn bearer(&self) -> Result<HeaderValue> {
        let usable = !self.0.is_empty() && self.0.bytes().all(|b| b.is_ascii_graphic());
        let value = usable.then(|| HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()).flatten();
        let mut value = value.ok_or_else(|| {
            Error::config("api_key", "an API key is one or more visible ASCII characters, without spaces")
        })?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// `bytes` without any copy of the key in it, in case a peer echoes it.
    pub(crate) fn redact(&self, bytes: bytes::Bytes) -> bytes::Bytes {
        // A key of a few characters would be found in innocent text.
        if self.0.len() < 8 || memchr::memmem::find(&bytes, self.0.as_bytes()).is_none() {
            return bytes;
        }
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = &bytes[..];
        while let Some(at) = memchr::memmem::find(rest, self.0.as_bytes()) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(b"[redacted]");
            rest = &rest[at + self.0.len()..];
        }
        out.extend_from_slice(rest);
        out.into()
    }
}

impl From<String> for ApiKey {
    fn from(key: String) -> Self {
        Self(key)
    }
}

impl From<&str> for ApiKey {
    fn from(key: &str) -> Self {
        Self(key.to_owned())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_sensitive_and_odd_keys_are_refused() {
        assert!(ApiKey::from("abc").bearer().unwrap().is_sensitive());
        for odd in ["", "a b", "a\nb", "schlüssel"] {
            let error = ApiKey::from(odd).bearer().unwrap_err();
            assert!(odd.is_empty() || !error.to_string().contains(odd));
        }
    }

    #[test]
    fn an_echoed_key_is_taken_out() {
        let key = ApiKey::from("sbx_live_secret");
        assert_eq!(key.redact("a sbx_live_secret b sbx_live_secret".into()), "a [redacted] b [redacted]");
        assert_eq!(key.redact("nothing".into()), "nothing");
    }
}
