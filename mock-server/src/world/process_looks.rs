//! The last look at the processes of a sandbox, for questions that come while it is stopped.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::time::{DAY, Millis};
use crate::store::{
    Table,
    typed::{Derived, Record},
};

/// How long it is kept, in milliseconds.
const KEPT_FOR: Millis = 7 * DAY;

/// What was seen.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ProcessLook {
    pub(crate) sandbox: String,
    #[serde(rename = "sampledAt")]
    pub(crate) at: Millis,
    /// How many processes there were.
    pub(crate) total: usize,
    /// The busiest of them, as they are shown.
    pub(crate) processes: Vec<Value>,
}

impl ProcessLook {
    fn ends_at(&self) -> Millis {
        self.at.saturating_add(KEPT_FOR)
    }

    /// Whether it is still shown.
    pub(crate) fn is_kept(&self, now: Millis) -> bool {
        now <= self.ends_at()
    }
}

impl Record for ProcessLook {
    const TABLE: Table = Table::Samples;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        self.sandbox.clone()
    }

    fn derive(&self, derived: &mut Derived) {
        derived.expires(self, self.ends_at());
    }
}
