//! Removals whose first try did the work and whose answer was lost.

use crate::error::{ErrorKind, Result};

/// A removal that was sent more than once and finds nothing the last time has reached what it was for: an earlier try may
/// have removed it, and its answer was lost on the way. The first try finding nothing is an error as ever.
pub(super) fn removed<T>(answer: Result<T>) -> Result<()> {
    match answer {
        Err(error) if error.kind() == ErrorKind::NotFound && error.attempts() > 1 => Ok(()),
        other => other.map(drop),
    }
}
