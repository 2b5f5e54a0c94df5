//! URLs that let in whoever has them.

use std::fmt;

use url::Url;

/// A URL that may carry a token. Printing it shows where it leads, nothing of how it lets one in.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// let sandbox = client.create(sandboxer::Create::new()).await?;
/// let url = sandbox.host(3000).await?;
/// let port = url.to_url().port().unwrap_or_default();
/// assert_eq!(url.to_string(), format!("http://127.0.0.1:{port}/[redacted]"));
/// assert!(url.expose().starts_with(&format!("http://127.0.0.1:{port}/?_token=")));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SecretUrl(Url);

impl SecretUrl {
    /// Reads it; `None` when it is not an absolute `http` or `https` URL.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https")).map(Self)
    }

    /// All of it as text; whoever asks for it answers for where it goes.
    pub fn expose(&self) -> &str {
        self.0.as_str()
    }

    /// All of it as a URL, which prints whole.
    pub fn to_url(&self) -> Url {
        self.0.clone()
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bare = self.0.path() == "/" && self.0.query().is_none() && self.0.fragment().is_none();
        let origin = self.0.origin().ascii_serialization();
        formatter.write_str(&origin)?;
        formatter.write_str(if bare { "/" } else { "/[redacted]" })
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::SecretUrl;

    #[test]
    fn it_prints_where_it_leads_and_no_more() {
        let cases = [
            ("https://a.example:8443/p/t0ken?x=t0ken#t0ken", "https://a.example:8443/[redacted]"),
            ("https://t0ken:t0ken@a.example/", "https://a.example/"),
            ("http://127.0.0.1:9/?t0ken", "http://127.0.0.1:9/[redacted]"),
        ];
        for (text, shown) in cases {
            let url = SecretUrl::parse(text).unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("SecretUrl({shown})"));
            assert_eq!((url.expose(), url.to_url().as_str()), (text, text));
        }
        for odd in ["", "/p", "calm.example", "javascript:alert(1)", "file:///etc/passwd"] {
            assert_eq!(SecretUrl::parse(odd), None, "{odd}");
        }
    }
}
