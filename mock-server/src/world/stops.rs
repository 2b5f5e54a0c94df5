//! Stop operations; old ones stay readable.

use serde::{Deserialize, Serialize};

use super::{
    sandboxes::State,
    time::{DAY, Millis},
};
use crate::store::{
    Table,
    typed::{Derived, Record},
};

/// How long one that has ended can be read, in milliseconds; the last one of a sandbox as long as the sandbox.
const KEPT_FOR: Millis = 90 * DAY;

/// How far a stop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopStatus {
    Pending,
    /// The disk could not be saved; it is tried again.
    Failing,
    Completed,
    Superseded,
}

impl StopStatus {
    /// The status as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            StopStatus::Pending => "pending",
            StopStatus::Failing => "failing",
            StopStatus::Completed => "completed",
            StopStatus::Superseded => "superseded",
        }
    }

    /// Whether the stop goes on.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, StopStatus::Pending | StopStatus::Failing)
    }
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
    /// Why saving fails, while it does.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// Whether saving was given up.
    #[serde(default)]
    pub(crate) forced: bool,
    /// The state that the sandbox is in while saving fails.
    #[serde(default)]
    pub(crate) before: Option<State>,
}

impl Stop {
    /// A stop that begins now.
    pub(crate) fn new(id: String, sandbox: &str, before: State, now: Millis) -> Self {
        Self {
            id,
            sandbox: sandbox.to_owned(),
            status: StopStatus::Pending,
            requested_at: now,
            last_attempt_at: Some(now),
            ended_at: None,
            error: None,
            forced: false,
            before: Some(before),
        }
    }

    /// Ends it.
    pub(crate) fn end(&mut self, status: StopStatus, now: Millis) {
        self.status = status;
        self.ended_at = Some(now);
        self.error = None;
    }
}

/// The key of a stop.
pub(crate) fn stop_key(sandbox: &str, stop: &str) -> String {
    format!("{sandbox}/{stop}")
}

impl Record for Stop {
    const TABLE: Table = Table::Stops;
    const DERIVES: bool = true;

    fn derive(&self, derived: &mut Derived) {
        if let Some(at) = self.ended_at {
            derived.expires(self, at.saturating_add(KEPT_FOR));
        }
    }

    fn key(&self) -> String {
        stop_key(&self.sandbox, &self.id)
    }
}
