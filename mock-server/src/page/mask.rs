//! What the page hides: keys and tokens, wherever they stand.

use std::{borrow::Cow, sync::LazyLock};

use http::{HeaderName, HeaderValue, header};
use regex_lite::Regex;

/// What stands in the place of a secret.
pub(super) const HIDDEN: &str = "••••";

/// What secrets look like in running text, and what is left of each.
const PATTERNS: [(&str, &str); 7] = [
    // API keys, of people and of machines; signing secrets; share codes.
    (r"\b(sbx_live_|whsec_|bsh_)[A-Za-z0-9_\-]+", "${1}••••"),
    (r#"(?i)\b(authorization["']?\s*[:=]\s*["']?[a-z]+\s+)[^\s"']+"#, "${1}••••"),
    (r#"(?i)\b(bearer\s+)[^\s"']{6,}"#, "${1}••••"),
    // Parameters of addresses.
    (
        r#"(?i)([?&;]_?[a-z0-9_.\-]*(?:token|signature|secret|key|password|passwd|code|sig)=)[^&\s"'<>#]+"#,
        "${1}••••",
    ),
    // User and password in an address.
    (r"(://)[^/\s@:]*:[^/\s@]+@", "${1}••••@"),
    // Settings as people write them in front of a command or into a file.
    (
        r#"(?i)\b([a-z0-9_]*(?:api_?key|token|secret|password|passwd|access_key|private_key)["']?\s*[=:]\s*["']?)[^\s"'&;]+"#,
        "${1}••••",
    ),
    (r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|\z)", "${1}••••${2}"),
];

static HIDING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let compiled = PATTERNS.iter().map(|(pattern, rest)| Some((Regex::new(pattern).ok()?, *rest)));
    compiled.flatten().collect()
});

/// Text of any kind without what looks like a secret in it.
pub(super) fn text(text: &str) -> String {
    let mut shown = Cow::Borrowed(text);
    for (pattern, rest) in HIDING.iter() {
        if let Cow::Owned(changed) = pattern.replace_all(&shown, *rest) {
            shown = Cow::Owned(changed);
        }
    }
    shown.into_owned()
}

/// The path and query of a request.
pub(super) fn target(path: &str, query: Option<&str>) -> String {
    let Some(query) = query else { return text(path) };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret_name(name) => format!("{name}={HIDDEN}"),
        _ => text(pair),
    });
    format!("{}?{}", text(path), shown.collect::<Vec<_>>().join("&"))
}

/// The value of a header.
pub(super) fn header_value(name: &HeaderName, value: &HeaderValue) -> String {
    let is_secret = [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE].contains(name)
        || is_secret_name(name.as_str());
    match is_secret {
        true => HIDDEN.to_owned(),
        false => text(&String::from_utf8_lossy(value.as_bytes())),
    }
}

/// A URL: what follows the path is not shown, nor who signs in with it.
pub(super) fn url(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(mut parsed) => {
            let has_query = parsed.query().is_some_and(|query| !query.is_empty());
            let has_user = !parsed.username().is_empty() || parsed.password().is_some();
            parsed.set_query(None);
            parsed.set_fragment(None);
            // Fails only for addresses that cannot have either.
            let _ = parsed.set_username("");
            let _ = parsed.set_password(None);
            let mut shown = text(parsed.as_str());
            if has_user {
                shown = shown.replacen("://", &format!("://{HIDDEN}@"), 1);
            }
            if has_query { format!("{shown}?{HIDDEN}") } else { shown }
        }
        Err(_) => HIDDEN.to_owned(),
    }
}

/// Whether what goes by this name is not for show.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["token", "secret", "signature", "password", "passwd", "code", "sig", "auth"]
        .iter()
        .any(|part| name.contains(part))
        || name.ends_with("key") && name != "idempotency-key"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_one() {
        assert_eq!(HIDING.len(), PATTERNS.len());
    }

    #[test]
    fn requests_and_addresses_keep_their_secrets() {
        let shown = target("/api/v1/x", Some("access_token=abc&page=2&Signature=q"));
        assert_eq!(shown, "/api/v1/x?access_token=••••&page=2&Signature=••••");
        assert_eq!(url("https://me:pw@example.com/in?x=1#y"), "https://••••@example.com/in?••••");
        assert_eq!(url("https://example.com/in"), "https://example.com/in");
        for name in ["authorization", "cookie", "x-sandboxer-token", "x-api-key", "webhook-signature"] {
            let name = HeaderName::from_static(name);
            assert_eq!(header_value(&name, &HeaderValue::from_static("abc")), HIDDEN, "{name}");
        }
        let name = HeaderName::from_static("idempotency-key");
        assert_eq!(header_value(&name, &HeaderValue::from_static("abc")), "abc");
    }

    #[test]
    fn secrets_are_hidden_in_running_text() {
        for (given, shown) in [
            ("key sbx_live_abc123 end", "key sbx_live_•••• end"),
            ("curl -H 'Authorization: Bearer abc.def' x", "curl -H 'Authorization: Bearer ••••' x"),
            ("GET /x?_token=abc&y=1", "GET /x?_token=••••&y=1"),
            ("https://me:pass@host/x", "https://••••@host/x"),
            ("SECRET_TOKEN=abcdef run", "SECRET_TOKEN=•••• run"),
            ("\"password\": \"hunter2\"}", "\"password\": \"••••\"}"),
            ("basic usage and a token in prose", "basic usage and a token in prose"),
            ("bsh_0123 sent", "bsh_•••• sent"),
            ("whsec_0123456789", "whsec_••••"),
            ("nothing to hide = here: at all", "nothing to hide = here: at all"),
        ] {
            assert_eq!(text(given), shown);
        }
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----";
        assert!(!text(key).contains("abc"));
        assert!(!text(&key[..40]).contains("abc"));
    }
}
