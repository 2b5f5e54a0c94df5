//! Deletion operations.

use serde::{Deserialize, Serialize};

use super::time::Millis;
use crate::store::{Table, typed::Record};

/// The deletion of a sandbox that can no longer be seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Deletion {
    pub(crate) id: String,
    /// The account that asked for it.
    pub(crate) account: String,
    pub(crate) target: String,
    pub(crate) requested_at: Millis,
    #[serde(default)]
    pub(crate) completed_at: Option<Millis>,
    pub(crate) attempts: u64,
}

impl Record for Deletion {
    const TABLE: Table = Table::Deletions;
    fn key(&self) -> String {
        self.id.clone()
    }
}
