//! What of the retention policy can be changed.

use crate::{
    error::{Error, Result},
    models::DataRetentionUpdateRequest,
};

use super::checks;

/// What must be given word for word to turn zero data retention on.
const CONFIRMATION: &str = "delete archived sandbox data";

/// What to change about what the service keeps; what is left out stays.
///
/// ```
/// use sandboxer::RetentionUpdate;
///
/// let change = RetentionUpdate::new().snapshots_off(true).monitoring_off(true);
/// let off = RetentionUpdate::new().disable(); // keeps data again
/// # drop((change, off));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct RetentionUpdate {
    request: DataRetentionUpdateRequest,
}

impl RetentionUpdate {
    /// Nothing to change yet; a verb refuses it so.
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns zero data retention on, which **deletes the data of archived sandboxes**, those there are and those to come,
    /// and cannot be taken back for them. `confirmation` must be `delete archived sandbox data`, word for word: it shows
    /// that somebody meant it.
    ///
    /// ```
    /// use sandboxer::RetentionUpdate;
    ///
    /// let change = RetentionUpdate::new().enable("delete archived sandbox data");
    /// # drop(change);
    /// ```
    pub fn enable(mut self, confirmation: impl Into<String>) -> Self {
        self.request = self.request.enabled(true).confirmation(confirmation);
        self
    }

    /// Turns zero data retention off, for sandboxes that are archived from then on: what was accepted for deletion is
    /// deleted all the same.
    pub fn disable(mut self) -> Self {
        self.request.confirmation = None;
        self.request = self.request.enabled(false);
        self
    }

    /// Whether new sandboxes are kept from having snapshots.
    pub fn snapshots_off(mut self, off: bool) -> Self {
        self.request = self.request.snapshots_off(off);
        self
    }

    /// Whether new sandboxes are kept from being measured.
    pub fn monitoring_off(mut self, off: bool) -> Self {
        self.request = self.request.monitoring_off(off);
        self
    }

    pub(super) fn request(self) -> Result<DataRetentionUpdateRequest> {
        checks::some_change(self.request == DataRetentionUpdateRequest::new())?;
        if self.request.enabled == Some(true) && self.request.confirmation.as_deref() != Some(CONFIRMATION) {
            return Err(Error::invalid_input(
                "confirmation",
                format!("must be `{CONFIRMATION}`, word for word"),
            ));
        }
        Ok(self.request)
    }
}
