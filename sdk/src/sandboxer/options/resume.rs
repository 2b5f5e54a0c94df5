//! How a stopped sandbox is brought back.

use super::{
    Waiting,
    setters::{start_setters, waiting_setters},
};
use crate::models::ResumeRequest;

/// How a stopped sandbox is brought back; what is left out stays as it was.
///
/// ```
/// use sandboxer::Resume;
/// use std::time::Duration;
///
/// let options = Resume::new()
///     .kind("large")
///     .ttl(Duration::from_secs(1800)) // or `no_ttl`
///     .env("CI", "1")
///     .envs([("TZ", "UTC")])
///     .environment("ci") // or `no_env`
///     .fail_fast()
///     .wait(true)
///     .wait_limit(Duration::from_secs(120));
/// let alone = Resume::new().no_ttl().no_env();
/// # let _ = (options, alone);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Resume {
    pub(crate) request: ResumeRequest,
    pub(crate) waiting: Waiting,
}

impl Resume {
    /// Everything as it was.
    pub fn new() -> Self {
        Self::default()
    }

    start_setters!();
    waiting_setters!("ready", "5 minutes");
}
