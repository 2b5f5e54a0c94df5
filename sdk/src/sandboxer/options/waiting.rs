//! How long a verb waits for what it is to bring about.

use std::time::Duration;

/// How long a verb waits for the state it is to bring about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// Whether to wait for the state.
    pub(crate) wait: bool,
    /// Whether to wait for the setup script after that.
    pub(crate) setup: bool,
    /// How long to wait in all.
    pub(crate) limit: Option<Duration>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { wait: true, setup: false, limit: None }
    }
}
