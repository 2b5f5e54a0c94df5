//! Stop operations; old ones stay readable.

use serde::{Deserialize, Serialize};

use super::time::Millis;
use crate::store::{Table, typed::Record};

/// How far a stop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopStatus {
    Pending,
    Completed,
    Superseded,
}

/// One stop of a sandbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Stop {
    pub(crate) id: String,
    pub(crate) sandbox: String,
    pub(crate) status: StopStatus,
    pub(crate) requested_at: Millis,
    #[serde(default)]
    pub(crate) last_attempt_at: Option<Millis>,
    #[serde(default)]
    pub(crate) ended_at: Option<Millis>,
}

/// The key of a stop.
pub(crate) fn stop_key(sandbox: &str, stop: &str) -> String {
    format!("{sandbox}/{stop}")
}

impl Record for Stop {
    const TABLE: Table = Table::Stops;
    fn key(&self) -> String {
        stop_key(&self.sandbox, &self.id)
    }
}
