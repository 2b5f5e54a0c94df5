//! Points in time as the service writes them.

use std::{fmt, time::SystemTime};

use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// A point in time, kept as the service wrote it: usually RFC 3339, but any text is read and written back unchanged.
///
/// ```
/// use sandboxer::wire::Timestamp;
/// use std::time::{Duration, SystemTime};
///
/// let at: Timestamp = serde_json::from_str(r#""2026-01-01T00:00:00.500Z""#)?;
/// assert_eq!(at.as_str(), "2026-01-01T00:00:00.500Z");
/// assert_eq!(at.to_system_time(), Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_225_600_500)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(String);

impl Timestamp {
    /// The text as it stands on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The point in time; `None` when the text is not RFC 3339 or too far away for this machine's clock.
    pub fn to_system_time(&self) -> Option<SystemTime> {
        let time = OffsetDateTime::parse(self.0.trim(), &Rfc3339).ok()?;
        let distance = (time - OffsetDateTime::UNIX_EPOCH).unsigned_abs();
        if time >= OffsetDateTime::UNIX_EPOCH {
            SystemTime::UNIX_EPOCH.checked_add(distance)
        } else {
            SystemTime::UNIX_EPOCH.checked_sub(distance)
        }
    }
}

impl From<String> for Timestamp {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Timestamp {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;
    use std::time::{Duration, SystemTime};

    #[test]
    fn rfc_3339_is_a_point_in_time() {
        let at = |text: &str| Timestamp::from(text).to_system_time();
        let expected = SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_225_600_250);
        assert_eq!(at("2026-01-01T00:00:00.250Z"), Some(expected));
        assert_eq!(at("2026-01-01T02:00:00.250+02:00"), Some(expected));
        assert_eq!(at("1969-12-31T23:59:59Z"), Some(SystemTime::UNIX_EPOCH - Duration::from_secs(1)));
    }

    #[test]
    fn any_text_is_kept() {
        for text in ["", "yesterday", "2026-13-45T99:00:00Z", "\u{0}"] {
            let time: Timestamp = serde_json::from_value(text.into()).unwrap();
            assert_eq!(time.to_system_time(), None, "{text:?}");
            assert_eq!(time.as_str(), text);
        }
    }
}
