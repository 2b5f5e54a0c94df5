//! What the page hides: keys and tokens, wherever they stand.

mod known;
mod patterns;

use http::{HeaderName, HeaderValue, header};
use serde_json::Value;

use self::known::Known;
use crate::text::head;

/// What stands in the place of a secret.
const HIDDEN: &str = "••••";

/// Hides what looks like a secret, and what the server knows to be one.
#[derive(Default)]
pub(super) struct Mask {
    known: Known,
}

impl Mask {
    /// One that hides these besides; what is very short is not looked for.
    pub(super) fn of<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        Self { known: Known::new(secrets) }
    }

    /// Text of any kind without its secrets.
    pub(super) fn text(&self, text: &str) -> String {
        patterns::hide(&self.known.hide(text))
    }

    /// About the first `most` bytes of a text.
    pub(super) fn first(&self, text: &str, most: usize) -> String {
        let part = head(text, most);
        if part.len() < text.len() { self.start_of_text(part) } else { self.text(part) }
    }

    /// The start of a text whose end was cut off, without the beginning of a word there: what begins a secret would not be
    /// known for one.
    pub(super) fn start_of_text(&self, text: &str) -> String {
        /// Longer than what patterns take for too little of a secret.
        const LONGEST: usize = 32;
        let before = text.trim_end_matches(|one: char| one.is_ascii_alphanumeric() || "_-".contains(one));
        self.text(if text.len() - before.len() < LONGEST { before } else { text })
    }

    /// The end of a text whose beginning was cut off. It is shown from the first space on: the end of a secret alone would
    /// not be known for one.
    pub(super) fn end_of_text(&self, bytes: &[u8]) -> String {
        const LONGEST: usize = 1024;
        let bytes = &bytes[self.known.begun(bytes, LONGEST)..];
        let start =
            bytes.iter().position(u8::is_ascii_whitespace).unwrap_or(LONGEST).min(LONGEST).min(bytes.len());
        self.text(&String::from_utf8_lossy(&bytes[start..]))
    }

    /// About the first `most` bytes of a value.
    pub(super) fn json(&self, value: &Value, most: usize) -> String {
        // What is quoted in a string is written otherwise once the string itself is quoted.
        let masked = self.strings(value, &mut { most }).to_string();
        let shown = self.known.hide(head(&masked, most));
        // The lines of a private key may be strings of their own.
        if shown.contains("-----BEGIN ") { patterns::hide(&shown) } else { shown.into_owned() }
    }

    /// A value whose strings are masked, as far as there is room for it, and all that is secret by its name.
    fn strings(&self, value: &Value, room: &mut usize) -> Value {
        match value {
            Value::String(text) => {
                let masked = self.first(text, *room);
                *room = room.saturating_sub(text.len());
                masked.into()
            }
            Value::Array(items) => {
                items.iter().map_while(|item| (*room > 0).then(|| self.strings(item, room))).collect()
            }
            Value::Object(fields) => fields
                .iter()
                .map_while(|(name, value)| {
                    *room = room.saturating_sub(name.len());
                    (*room > 0).then(|| {
                        let is_secret = !value.is_null() && !value.is_boolean() && patterns::is_name(name);
                        let shown = if is_secret { HIDDEN.into() } else { self.strings(value, room) };
                        (patterns::hide(name), shown)
                    })
                })
                .collect(),
            other => other.clone(),
        }
    }

    /// The path and query of a request.
    pub(super) fn target(&self, path: &str, query: Option<&str>) -> String {
        let Some(query) = query else { return self.text(path) };
        let shown = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, _)) if is_secret_name(name) => format!("{name}={HIDDEN}"),
            _ => self.text(pair),
        });
        format!("{}?{}", self.text(path), shown.collect::<Vec<_>>().join("&"))
    }

    /// The value of a header.
    pub(super) fn header_value(&self, name: &HeaderName, value: &HeaderValue) -> String {
        let is_secret = [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE].contains(name)
            || is_secret_name(name.as_str());
        match is_secret {
            true => HIDDEN.to_owned(),
            false => self.text(&String::from_utf8_lossy(value.as_bytes())),
        }
    }

    /// A URL: what follows the path is not shown, nor who signs in with it.
    pub(super) fn url(&self, url: &str) -> String {
        match url::Url::parse(url) {
            Ok(mut parsed) => {
                let has_query = parsed.query().is_some_and(|query| !query.is_empty());
                let has_user = !parsed.username().is_empty() || parsed.password().is_some();
                parsed.set_query(None);
                parsed.set_fragment(None);
                // Fails only for addresses that cannot have either.
                let _ = parsed.set_username("");
                let _ = parsed.set_password(None);
                let mut shown = self.text(parsed.as_str());
                if has_user {
                    shown = shown.replacen("://", &format!("://{HIDDEN}@"), 1);
                }
                if has_query { format!("{shown}?{HIDDEN}") } else { shown }
            }
            Err(_) => HIDDEN.to_owned(),
        }
    }
}

/// Whether what goes by this name is not for show.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["token", "secret", "signature", "password", "passwd", "code", "sig", "auth"]
        .iter()
        .any(|part| name.contains(part))
        || name.ends_with("pass")
        || name.ends_with("key") && name != "idempotency-key"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_and_addresses_keep_their_secrets() {
        let mask = Mask::default();
        let shown = mask.target("/api/v1/x", Some("access_token=abc&page=2&Signature=q"));
        assert_eq!(shown, "/api/v1/x?access_token=••••&page=2&Signature=••••");
        assert_eq!(mask.url("https://me:pw@example.com/in?x=1#y"), "https://••••@example.com/in?••••");
        assert_eq!(mask.url("https://example.com/in"), "https://example.com/in");
        for name in
            ["authorization", "cookie", "x-sandboxer-token", "x-api-key", "webhook-signature", "x-db-pass"]
        {
            let name = HeaderName::from_static(name);
            assert_eq!(mask.header_value(&name, &HeaderValue::from_static("abc")), HIDDEN, "{name}");
        }
        let name = HeaderName::from_static("idempotency-key");
        assert_eq!(mask.header_value(&name, &HeaderValue::from_static("abc")), "abc");
    }

    #[test]
    fn what_is_known_is_hidden_however_it_is_quoted() {
        let mask = Mask::of(["my \"own\" words", "hunter2"]);
        let event = json!({"input": ["say my \"own\" words", {"env": "DB_PASS=\"a b\" hunter2"}], "of": 5});
        assert_eq!(
            mask.json(&event, 999),
            r#"{"input":["say ••••",{"env":"DB_PASS=\"••••\" ••••"}],"of":5}"#
        );
        assert_eq!(mask.json(&json!(["a".repeat(50), "b"]), 40), format!("[\"{}", "a".repeat(38)));
        assert_eq!(mask.target("/x/hunter2", Some("path=hunter2")), "/x/••••?path=••••");
        assert_eq!(mask.url("https://hunter2.example.com/hunter2"), "https://••••.example.com/••••");
    }

    #[test]
    fn what_a_field_is_called_tells_whether_it_is_secret() {
        let mask = Mask::of(["12345678"]);
        for (given, shown) in [
            (
                json!({"db_password": "two words", "inputTokens": 5, "pass": true}),
                r#"{"db_password":"••••","inputTokens":5,"pass":true}"#,
            ),
            (json!({"apiKey": ["a", {"b": 1}], "secret": 7}), r#"{"apiKey":"••••","secret":"••••"}"#),
            (
                json!({"Authorization": "Basic abc", "at": 12_345_678}),
                r#"{"Authorization":"••••","at":••••}"#,
            ),
            (json!({"sbx_live_abc": "line\nsbx_live_abc"}), r#"{"sbx_live_••••":"line\nsbx_live_••••"}"#),
            (json!(["-----BEGIN PRIVATE KEY-----", "abc"]), r#"["-----BEGIN PRIVATE KEY-----••••"#),
        ] {
            assert_eq!(mask.json(&given, 999), shown);
        }
    }

    #[test]
    fn what_was_cut_off_is_not_shown() {
        let mask = Mask::of(["correct horse battery", "hunter2"]);
        for (given, most, shown) in [
            ("is ghp_0123456789abcdef0123 now", 20, "is "),
            ("is ghp_0123456789abcdef0123456789abcdef now", 38, "is ghp_••••"),
            ("say hunter2", 10, "say "),
            ("a correct horse battery", 12, "a ••••"),
            ("whole words", 11, "whole words"),
            ("Bearer abcdefgh", 11, "Bearer "),
        ] {
            assert_eq!(mask.first(given, most), shown, "{given}");
        }
        for (given, shown) in
            [("rse battery and hunter2", " and ••••"), ("ter2 and hunter2", " and ••••"), ("nospace", "")]
        {
            assert_eq!(mask.end_of_text(given.as_bytes()), shown);
        }
    }
}
