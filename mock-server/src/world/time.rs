//! Wall times as the records and the answers write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sandboxer::clock::Clock;
use time::{OffsetDateTime, format_description::well_known::Rfc3339, macros::format_description};

/// Milliseconds since 1970.
pub(crate) type Millis = i64;

/// An hour.
pub(crate) const HOUR: Millis = 60 * 60 * 1000;

/// A day.
pub(crate) const DAY: Millis = 24 * HOUR;

/// The clock's wall time.
pub(crate) fn now(clock: &dyn Clock) -> Millis {
    of(clock.now())
}

/// A wall time as milliseconds; times before 1970 count as 1970.
pub(crate) fn of(time: SystemTime) -> Millis {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

/// A time as the service writes it: ISO 8601, UTC, with milliseconds.
pub(crate) fn iso(at: Millis) -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000_000)
        .ok()
        .and_then(|time| time.format(format).ok())
        .unwrap_or_else(|| "1970-01-01T00:00:00.000Z".to_owned())
}

/// Reads an ISO 8601 time, or seconds since 1970.
pub(crate) fn parse(text: &str) -> Option<Millis> {
    if let Ok(seconds) = text.parse::<f64>() {
        let millis = seconds * 1000.0;
        // Beyond this a float does not hold whole milliseconds, and no date is meant.
        return (millis.is_finite() && (0.0..9e15).contains(&millis)).then_some(millis as Millis);
    }
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    Millis::try_from(time.unix_timestamp_nanos() / 1_000_000).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read_back() {
        assert_eq!(iso(1_767_225_600_042), "2026-01-01T00:00:00.042Z");
        assert_eq!(parse("2026-01-01T00:00:00.042Z"), Some(1_767_225_600_042));
        assert_eq!(parse("2026-01-01T01:00:00+01:00"), Some(1_767_225_600_000));
        assert_eq!(parse("1767225600"), Some(1_767_225_600_000));
        assert_eq!(parse("yesterday"), None);
        assert_eq!(parse("-5"), None);
        assert_eq!(parse("1e300"), None);
    }
}
