//! How a sandbox is stopped.

use super::{Waiting, setters::waiting_setters};
use crate::models::StopRequest;

/// How a sandbox is stopped.
///
/// ```
/// use sandboxer::Stop;
/// use std::time::Duration;
///
/// let patient = Stop::new().wait_limit(Duration::from_secs(1200));
/// let at_any_price = Stop::new().force().wait(false);
/// # let _ = (patient, at_any_price);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Stop {
    pub(crate) request: StopRequest,
    pub(crate) waiting: Waiting,
}

impl Stop {
    /// Saves the disk and waits until the sandbox is archived.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives up on saving: the last good snapshot stays, what came after it is lost.
    pub fn force(mut self) -> Self {
        self.request = self.request.force(true);
        self
    }

    waiting_setters!("archived", "10 minutes");
}
