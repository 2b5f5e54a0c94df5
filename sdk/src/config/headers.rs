//! Which request headers a caller may set.

use crate::error::{Error, Result};
use http::{HeaderName, HeaderValue};

/// Headers that the client fills in, and what to use instead.
const FILLED: [(&str, &str); 19] = [
    ("authorization", "the key goes to `api_key`"),
    ("x-sandboxer-org", "use `org`"),
    ("x-boat-org", "use `org`"),
    ("last-event-id", "use `cursor`"),
    ("idempotency-key", "use `idempotency_key`"),
    ("x-sandboxer-confirm-delete", "deleting fills it in"),
    ("x-ascii-confirm-delete", "deleting fills it in"),
    ("x-sandboxer-attempt", "it counts the tries"),
    ("user-agent", "use `user_agent_suffix`"),
    ("accept", "it belongs to the operation"),
    ("content-type", "it belongs to the operation"),
    ("content-length", "it belongs to the body"),
    ("transfer-encoding", "it belongs to the body"),
    ("host", "it belongs to the base URL"),
    ("connection", "it belongs to the connection"),
    ("upgrade", "it belongs to the connection"),
    ("te", "it belongs to the connection"),
    ("trailer", "it belongs to the body"),
    ("expect", "it belongs to the connection"),
];

/// Checks one header of a caller. Values are marked sensitive, since tokens of gateways travel there.
pub(crate) fn checked(name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let field = format!("header {name:?}");
    let parsed = HeaderName::from_bytes(name.as_bytes())
        .map_err(|error| Error::invalid_input(&field, "not a header name").with_source(error))?;
    if let Some((_, instead)) = FILLED.iter().find(|(filled, _)| *filled == parsed.as_str()) {
        return Err(Error::invalid_input(&field, format!("this client fills it in; {instead}")));
    }
    Ok((parsed, value_of(&field, value)?))
}

/// Checks the value of a header named `field` in messages.
pub(crate) fn value_of(field: &str, value: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(value).map_err(|error| {
        Error::invalid_input(field, "not a header value: visible characters only").with_source(error)
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Checks an organisation's id or name.
pub(crate) fn org(org: &str) -> Result<HeaderValue> {
    if org.trim().is_empty() {
        return Err(Error::invalid_input("org", "an organisation's id, its name, or `personal`"));
    }
    let mut value = value_of("org", org)?;
    value.set_sensitive(false);
    Ok(value)
}

/// Checks an idempotency key.
pub(crate) fn idempotency_key(key: &str) -> Result<HeaderValue> {
    if key.is_empty() || key.len() > 255 || !key.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(Error::invalid_input("idempotency_key", "1 to 255 visible ASCII characters"));
    }
    value_of("idempotency_key", key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filled_headers_are_refused_in_any_case() {
        for name in ["Authorization", "AUTHORIZATION", "x-Sandboxer-Org", "Content-Length", "bad name", ""] {
            assert!(checked(name, "v").is_err(), "{name}");
        }
        assert!(checked("X-Trace", "a\r\nb: c").is_err());
        assert!(checked("X-Trace", "v").unwrap().1.is_sensitive());
    }

    #[test]
    fn keys_and_organisations() {
        assert!(idempotency_key(&"k".repeat(255)).is_ok());
        for bad in ["", " ", "ä", &"k".repeat(256)] {
            assert!(idempotency_key(bad).is_err());
        }
        assert!(org("team_1").is_ok() && org("My Team").is_ok() && org(" ").is_err());
    }
}
