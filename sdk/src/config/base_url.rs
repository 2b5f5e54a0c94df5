//! Where the service is, and what belongs to it.

use crate::error::{Error, Result};
use url::{Host, Url};

/// The checked base URL: http or https, a host, a path without a trailing slash, and nothing else.
#[derive(Clone, Debug)]
pub(crate) struct BaseUrl {
    url: Url,
    text: String,
}

impl BaseUrl {
    /// Checks `text`; `allow_plain_http` lets http go beyond this machine.
    pub(crate) fn parse(text: &str, allow_plain_http: bool) -> Result<Self> {
        let refuse = |problem: &str| Error::config("base_url", problem);
        // The text itself stays out of the messages: what was passed by mistake may be a secret.
        let mut url = Url::parse(text.trim()).map_err(|error| {
            refuse("not an absolute URL such as https://sandboxer.com/api/v1").with_source(error)
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse("the scheme is https, or http on this machine"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("user names and passwords are not taken; the key goes to `api_key`"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("a query or fragment has no place in it"));
        }
        if url.scheme() == "http" && !allow_plain_http && !is_loopback(&url) {
            return Err(refuse(
                "plain http beyond this machine would show the key to everybody on the way; use https, or `allow_plain_http`",
            ));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        let text = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { url, text })
    }

    /// The URL without a trailing slash.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether connections to it need trusted certificates.
    pub(crate) fn is_loopback_http(&self) -> bool {
        self.url.scheme() == "http" && is_loopback(&self.url)
    }

    /// Whether both this and `url` are plain http on this machine.
    pub(crate) fn is_loopback_beside(&self, url: &Url) -> bool {
        self.is_loopback_http() && url.scheme() == "http" && is_loopback(url)
    }

    /// Whether `url` has the scheme, host and port of this one.
    pub(crate) fn is_same_origin(&self, url: &Url) -> bool {
        url.origin() == self.url.origin()
    }

    /// The URL of `path`: one relative to this URL, or an absolute one of the same origin.
    pub(crate) fn join(&self, path: &str) -> Result<Url> {
        let refuse = |problem: &str| Error::invalid_input("path", problem);
        if path.chars().any(char::is_control) || path.contains('\\') {
            return Err(refuse("control characters and backslashes are not taken"));
        }
        let dotted = |segment: &str| {
            let decoded = percent_encoding::percent_decode_str(segment).decode_utf8_lossy();
            matches!(&*decoded, "." | "..")
        };
        // Parsing would take them away without a word, and the request would go to another resource.
        if path.split(['?', '#']).next().is_some_and(|path| path.split('/').any(dotted)) {
            return Err(refuse("`.` and `..` segments are not taken"));
        }
        let url = if path.contains("://") && Url::parse(path).is_ok() {
            Url::parse(path).map_err(|error| refuse("not a URL").with_source(error))?
        } else {
            if path.starts_with("//") {
                return Err(refuse("a path starts with one slash"));
            }
            let relative = path.trim_start_matches('/');
            Url::parse(&format!("{}/{relative}", self.text))
                .map_err(|error| refuse("not a path").with_source(error))?
        };
        if !self.is_same_origin(&url) {
            return Err(refuse("another origin than the base URL's; the key is not sent there"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("user names and passwords are not taken"));
        }
        Ok(url)
    }
}

/// Whether a URL names this machine itself.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_ones_lose_their_trailing_slash() {
        for (text, expected) in [
            ("https://sandboxer.com/api/v1/", "https://sandboxer.com/api/v1"),
            ("https://sandboxer.com", "https://sandboxer.com"),
            ("http://127.0.0.1:8080/api/v1", "http://127.0.0.1:8080/api/v1"),
            ("http://[::1]:1", "http://[::1]:1"),
            ("http://localhost:1/", "http://localhost:1"),
        ] {
            assert_eq!(BaseUrl::parse(text, false).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn bad_ones_are_refused_and_not_repeated() {
        for text in [
            "",
            "sandboxer.com",
            "ftp://sandboxer.com",
            "https://u:p@sandboxer.com",
            "https://sandboxer.com?x=hush",
            "https://sandboxer.com#hush",
            "http://sandboxer.com",
            "http://192.168.0.1",
            "http://10.0.0.1:80",
            "https://",
        ] {
            let error = BaseUrl::parse(text, false).unwrap_err();
            assert!(error.to_string().contains("base_url"), "{text}");
            assert!(!error.to_string().contains("hush"));
        }
        assert!(BaseUrl::parse("http://192.168.0.1", true).is_ok());
    }

    #[test]
    fn joins_stay_on_the_origin() {
        let base = BaseUrl::parse("http://127.0.0.1:80/api/v1", false).unwrap();
        for (path, expected) in [
            ("/me", "http://127.0.0.1/api/v1/me"),
            ("me?x=1", "http://127.0.0.1/api/v1/me?x=1"),
            ("http://127.0.0.1/other", "http://127.0.0.1/other"),
        ] {
            assert_eq!(base.join(path).unwrap().as_str(), expected);
        }
        for path in [
            "https://127.0.0.1/me",
            "http://127.0.0.1:81/",
            "http://evil.example/",
            "//evil.example/",
            "/../me",
            "/a/%2e%2e/me",
            "http://127.0.0.1/api/v1/sandboxes/../me",
            "http://127.0.0.1/api/v1/sandboxes/.%2E",
            "/a\n",
            "\\\\evil.example\\",
            "http://u:p@127.0.0.1/",
        ] {
            assert!(base.join(path).is_err(), "{path}");
        }
    }
}
