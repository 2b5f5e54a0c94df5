//! Who may see the page: by the name that was asked for, and by the token that the server printed.

use std::net::IpAddr;

use http::{header, request};
use percent_encoding::percent_decode_str;
use sha2::{Digest as _, Sha256};

use crate::cookies::cookies;

/// The query parameter of the address that the server prints.
pub(super) const TOKEN_QUERY: &str = "token";

/// The cookie's name begins like that of hosted ports' tokens, which no program in a sandbox is ever shown.
const COOKIE: &str = "sandboxer_token_page_";

/// The name of the cookie; cookies are not told apart by port.
fn cookie_name(port: u16) -> String {
    format!("{COOKIE}{port}")
}

/// Whether a request is meant for this server: a page elsewhere that had its own name resolve to this machine would
/// otherwise be let in. `more` are the names that are allowed besides those of this machine itself.
pub(super) fn is_meant(head: &request::Parts, more: &[String]) -> bool {
    let host = match head.uri.authority() {
        Some(authority) => authority.as_str(),
        None => {
            let mut hosts = head.headers.get_all(header::HOST).iter();
            match (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) {
                (Some(host), None) => host,
                _ => return false,
            }
        }
    };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let name = name.trim_end_matches('.');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        || more.iter().any(|allowed| name.eq_ignore_ascii_case(allowed))
}

/// How the token came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Query,
    Cookie,
}

/// Whether a request shows the token, and how.
pub(super) fn shown(head: &request::Parts, token: &str, port: u16) -> Option<Shown> {
    let wanted = Sha256::digest(token.as_bytes());
    let is_it = |given: &str| {
        // In the same time whatever was given.
        let given = Sha256::digest(given.as_bytes());
        given.iter().zip(wanted.iter()).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    };
    if parameters(head).any(|(name, value)| name == TOKEN_QUERY && is_it(&value)) {
        return Some(Shown::Query);
    }
    let name = cookie_name(port);
    cookies(&head.headers).any(|(known, value)| known == name && is_it(value)).then_some(Shown::Cookie)
}

/// The cookie that lets in whoever has shown the token; it ends with the browser, or with the server.
pub(super) fn cookie(token: &str, port: u16) -> String {
    format!("{}={token}; Path=/; HttpOnly; SameSite=Strict", cookie_name(port))
}

/// The parameters of an address, decoded.
pub(super) fn parameters(head: &request::Parts) -> impl Iterator<Item = (String, String)> {
    head.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('=')).map(
        |(name, value)| {
            let value = value.replace('+', " ");
            (name.to_owned(), percent_decode_str(&value).decode_utf8_lossy().into_owned())
        },
    )
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(uri: &str, headers: &[(&str, &str)]) -> request::Parts {
        let request =
            headers.iter().fold(Request::get(uri), |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_names_of_this_machine_are_meant() {
        let is = |host: &str| is_meant(&head("/", &[("host", host)]), &["box.lan".into()]);
        for good in
            ["localhost:80", "127.0.0.1:9", "[::1]:9", "LOCALHOST", "127.8.9.1", "localhost.", "Box.lan:1"]
        {
            assert!(is(good), "{good}");
        }
        for bad in
            ["evil.example", "localhost.evil.example", "10.0.0.1", "", "a.localhost", "127.0.0.1.nip.io:80"]
        {
            assert!(!is(bad), "{bad}");
        }
        assert!(!is_meant(&head("/", &[]), &[]));
        assert!(!is_meant(&head("/", &[("host", "localhost"), ("host", "evil.example")]), &[]));
        assert!(is_meant(&head("http://localhost:1/", &[]), &[]));
        assert!(!is_meant(&head("http://evil.example/", &[("host", "localhost")]), &[]));
    }

    #[test]
    fn the_token_is_shown_in_the_query_or_in_this_ports_cookie() {
        let is = |uri: &str, cookie: &str| shown(&head(uri, &[("cookie", cookie)]), "abc", 9);
        assert_eq!(is("/?a=b&token=abc", ""), Some(Shown::Query));
        assert_eq!(is("/", "x=y; sandboxer_token_page_9=abc"), Some(Shown::Cookie));
        for (uri, cookie) in
            [("/?token=ab", ""), ("/?token=", ""), ("/", "sandboxer_token_page_8=abc"), ("/", "")]
        {
            assert_eq!(is(uri, cookie), None, "{uri} {cookie}");
        }
    }
}
