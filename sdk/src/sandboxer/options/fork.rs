//! How a copy of a sandbox differs from it.

use super::{
    Waiting,
    setters::{made_setters, start_setters, waiting_setters},
};
use crate::models::ForkRequest;

/// How a copy of a sandbox differs from it; what is left out is inherited, but for the time until it stops by itself,
/// which is an hour unless set.
///
/// ```
/// use sandboxer::Fork;
/// use std::time::Duration;
///
/// let options = Fork::new()
///     .kind("large")
///     .ttl(Duration::from_secs(1800)) // or `no_ttl`
///     .name("copy")
///     .env("CI", "1")
///     .envs([("TZ", "UTC")])
///     .environment("ci") // or `no_env`
///     .monitoring(false)
///     .fail_fast()
///     .wait(true)
///     .wait_limit(Duration::from_secs(120));
/// let alone = Fork::new().no_ttl().no_env();
/// # let _ = (options, alone);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Fork {
    pub(crate) request: ForkRequest,
    pub(crate) waiting: Waiting,
    pub(crate) name: Option<String>,
}

impl Fork {
    /// A copy with everything inherited.
    pub fn new() -> Self {
        Self::default()
    }

    start_setters!();
    made_setters!();
    waiting_setters!("ready", "5 minutes");
}
