//! Texts that must not be printed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A text that gives access to something: a key, a token, or a URL that carries one. Printing it shows `[redacted]`; it is
/// serialized as it is, since that is how it travels.
///
/// ```
/// use sandboxer::wire::Secret;
///
/// let secret = Secret::new("hush");
/// assert_eq!((secret.expose(), format!("{secret} {secret:?}").contains("hush")), ("hush", false));
/// assert!(!secret.is_empty());
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` from being printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself; whoever asks for it answers for where it goes.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is no text.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;
    use crate::generated::models::Sandbox;

    #[test]
    fn a_secret_is_never_printed_and_travels_whole() {
        let text = r#"{"id":"bx_1","state":"ready","desktopUrl":"https://d/?access_token=s3cr3t"}"#;
        let sandbox: Sandbox = serde_json::from_str(text).unwrap();
        let url = sandbox.desktop_url.as_ref().unwrap();
        assert_eq!(url.expose(), "https://d/?access_token=s3cr3t");
        assert!(!format!("{sandbox:?}{url}").contains("s3cr3t"));
        assert_eq!(serde_json::to_string(&sandbox).unwrap(), text);
        assert!(Secret::default().is_empty());
    }
}
