//! When a sandbox stops by itself.

use std::time::Duration;

use crate::wire::Patch;

/// When a sandbox stops by itself.
///
/// ```
/// use sandboxer::Ttl;
/// use std::time::Duration;
///
/// assert_eq!(Ttl::from(Duration::from_secs(1800)), Ttl::After(Duration::from_secs(1800)));
/// assert_eq!(Ttl::from(None), Ttl::Never);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// It runs until it is stopped.
    Never,
    /// After this long, 1 second to 30 days; fractions of a second are rounded up.
    After(Duration),
}

impl Ttl {
    pub(crate) fn patch(self) -> Patch<i64> {
        match self {
            Self::Never => Patch::Null,
            Self::After(after) => {
                let seconds = after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0));
                Patch::Value(i64::try_from(seconds).unwrap_or(i64::MAX))
            }
        }
    }
}

impl From<Duration> for Ttl {
    fn from(after: Duration) -> Self {
        Self::After(after)
    }
}

impl From<Option<Duration>> for Ttl {
    fn from(after: Option<Duration>) -> Self {
        after.map_or(Self::Never, Self::After)
    }
}
