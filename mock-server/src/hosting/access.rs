//! Who may come in: by the name that was asked for, and by the token where not everybody may.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, Uri, header, uri::PathAndQuery};
use sha2::{Digest as _, Sha256};

use crate::cookies::cookies;

/// The query parameter of a private address.
pub(crate) const TOKEN_QUERY: &str = "_token";

/// The header that carries the token where a client cannot, or would rather not, put it into an address.
pub(super) const TOKEN_HEADER: &str = "x-sandboxer-token";

/// The cookies that carry it begin like that. Cookies are not told apart by port, so each door has a name of its own.
const COOKIE: &str = "sandboxer_token_";

/// The name of a door's cookie.
pub(super) fn cookie_name(outside: u16) -> String {
    format!("{COOKIE}{outside}")
}

/// Whether a request may be meant for this door: a page elsewhere that had its own name resolve to this machine would
/// otherwise be let in. `own` is the first part of the door's name below `localhost`.
pub(super) fn is_meant(host: Option<&str>, own: &str) -> bool {
    // Clients of old do not say.
    let Some(host) = host else { return true };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    match name.strip_suffix(".localhost") {
        Some(label) => label == own,
        None => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
    }
}

/// How the token came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Query,
    Header,
    Cookie,
}

/// Whether a request shows the token, and how.
pub(super) fn shown(uri: &Uri, headers: &HeaderMap, token: &str, outside: u16) -> Option<Shown> {
    let wanted = Sha256::digest(token.as_bytes());
    let is_it = |given: &[u8]| {
        // In the same time whatever was given.
        let given = Sha256::digest(given);
        given.iter().zip(wanted.iter()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    };
    let queried = uri.query().unwrap_or_default().split('&').any(|pair| {
        pair.split_once('=').is_some_and(|(name, value)| name == TOKEN_QUERY && is_it(value.as_bytes()))
    });
    if queried {
        return Some(Shown::Query);
    }
    if headers.get_all(TOKEN_HEADER).iter().any(|value| is_it(value.as_bytes())) {
        return Some(Shown::Header);
    }
    let name = cookie_name(outside);
    let carried = cookies(headers).any(|(known, value)| known == name && is_it(value.as_bytes()));
    carried.then_some(Shown::Cookie)
}

/// Takes every token out of the headers: a program inside has no use for it, and other doors' cookies come along as well.
pub(super) fn strip_headers(headers: &mut HeaderMap) {
    headers.remove(TOKEN_HEADER);
    if !cookies(headers).any(|(name, _)| name.starts_with(COOKIE)) {
        return;
    }
    let kept: Vec<String> = cookies(headers)
        .filter(|(name, _)| !name.starts_with(COOKIE))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    headers.remove(header::COOKIE);
    if let Ok(value) = HeaderValue::try_from(kept.join("; "))
        && !kept.is_empty()
    {
        headers.insert(header::COOKIE, value);
    }
}

/// The path and query without the token; a program may well have a parameter of that name for itself.
pub(super) fn stripped(uri: &Uri, token: &str) -> PathAndQuery {
    let path = uri.path();
    let is_token =
        |pair: &&str| pair.strip_prefix(TOKEN_QUERY).and_then(|rest| rest.strip_prefix('=')) == Some(token);
    let text = match uri.query() {
        None => path.to_owned(),
        Some(query) => {
            let kept: Vec<&str> = query.split('&').filter(|pair| !is_token(pair)).collect();
            let is_bare = kept.is_empty() && query.split('&').any(|pair| is_token(&pair));
            if is_bare { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
        }
    };
    // Made of parts of one that was valid; the request line of `OPTIONS *` is the one that has no path.
    PathAndQuery::try_from(text).unwrap_or_else(|_| PathAndQuery::from_static("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_and_the_doors_own_are_meant() {
        for host in [
            "127.0.0.1:4000",
            "127.0.0.1",
            "localhost:4000",
            "[::1]:4000",
            "calm-ash-3000.localhost:4000",
            "CALM-ash-3000.LOCALHOST",
        ] {
            assert!(is_meant(Some(host), "calm-ash-3000"), "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example", "old-name-3000.localhost", "192.0.2.1", "", "[::2]"]
        {
            assert!(!is_meant(Some(host), "calm-ash-3000"), "{host}");
        }
        assert!(is_meant(None, "x"));
    }

    #[test]
    fn a_token_is_found_where_it_may_be_and_taken_out() {
        let uri: Uri = "/a//b?x=1&_token=hush&y".parse().unwrap();
        let mut headers = HeaderMap::new();
        assert_eq!(shown(&uri, &headers, "hush", 7), Some(Shown::Query));
        assert_eq!(shown(&uri, &headers, "hus", 7), None);
        assert_eq!(stripped(&uri, "hush"), "/a//b?x=1&y");
        assert_eq!(stripped(&uri, "other"), "/a//b?x=1&_token=hush&y");
        assert_eq!(stripped(&"/?_token=hush".parse().unwrap(), "hush"), "/");
        assert_eq!(stripped(&"/?".parse().unwrap(), "hush"), "/?");
        headers.insert(
            header::COOKIE,
            HeaderValue::from_static("a=1; sandboxer_token_7=hush; sandboxer_token_8=x; b=2"),
        );
        let bare: Uri = "/".parse().unwrap();
        assert_eq!(shown(&bare, &headers, "hush", 7), Some(Shown::Cookie));
        assert_eq!(shown(&bare, &headers, "hush", 8), None);
        strip_headers(&mut headers);
        assert_eq!(headers[header::COOKIE], "a=1; b=2");
        headers.insert(TOKEN_HEADER, HeaderValue::from_static("hush"));
        assert_eq!(shown(&bare, &headers, "hush", 8), Some(Shown::Header));
        strip_headers(&mut headers);
        assert!(!headers.contains_key(TOKEN_HEADER));
    }
}
