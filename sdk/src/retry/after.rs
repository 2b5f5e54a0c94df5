//! Reads `Retry-After`.

use http::{HeaderMap, header::RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// How long the service asks to wait: whole seconds, or a date against `now`. Anything else, negative numbers included, is
/// as if nothing had been said; a date in the past is no wait.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit are a very long wait, not none.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_dates_and_junk() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
        let cases = [
            ("0", Some(0)),
            ("90", Some(90)),
            (" 7 ", Some(7)),
            ("1000000000", Some(1_000_000_000)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sunday, 06-Nov-94 08:49:39 GMT", Some(2)),
            ("Sun Nov  6 08:49:40 1994", Some(3)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("-5", None),
            ("1.5", None),
            ("1e9", None),
            ("soon", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            assert_eq!(retry_after(&headers, now), expected.map(Duration::from_secs), "{text:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
