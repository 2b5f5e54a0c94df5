//! The lines, by topic, and what several topics share.

mod account;
mod agents;
mod client;
mod commands;
mod environments;
mod files;
mod lifecycle;
mod lists;
mod sandboxes;
mod snapshots;
mod waits;
mod ways_in;
mod webhooks;

use std::time::Duration;

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A text of so many characters.
pub(crate) fn long(characters: usize) -> String {
    "x".repeat(characters)
}
