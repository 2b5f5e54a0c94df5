//! URLs that let in whoever has them.

use std::fmt;

use url::Url;

/// A URL that may carry a token. Printing it shows where it leads, nothing of how it lets one in.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # use {sandboxer::Operation, sandboxer_mock_server::{MockServer, Reply}};
/// # let server = MockServer::start(); let client = server.client();
/// # server.on(Operation::HostPort).reply(Reply::json(serde_json::json!({
/// #     "ok": true, "type": "port.hosted", "port": 3000, "url": "https://calm-3000.box.example/?_token=hush"})));
/// let url = client.sandbox("bx_22222222").host(3000).await?;
/// assert_eq!(url.to_string(), "https://calm-3000.box.example/[redacted]");
/// assert_eq!(url.expose(), "https://calm-3000.box.example/?_token=hush");
/// assert_eq!(url.to_url().host_str(), Some("calm-3000.box.example"));
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
