//! Removals whose first try did the work and whose answer was lost.

use crate::error::{Delivery, ErrorKind, Result};

/// A removal that finds nothing after an earlier try of it may have had an effect has reached what it was for: that try
/// removed it, and said so to nobody. Finding nothing is an error as ever if no earlier try can have done anything.
pub(super) fn removed<T>(answer: Result<T>) -> Result<()> {
    match answer {
        // The service answered the last try, so the doubt is about one before it.
        Err(error) if error.kind() == ErrorKind::NotFound && error.delivery() == Delivery::Unknown => Ok(()),
        other => other.map(drop),
    }
}
