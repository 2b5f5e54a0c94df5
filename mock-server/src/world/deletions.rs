//! Deletion operations.

use serde::{Deserialize, Serialize};

use super::time::{DAY, Millis};
use crate::store::{
    Table,
    typed::{Derived, Record},
};

/// What is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    #[default]
    Sandbox,
    Snapshot,
}

impl Kind {
    /// The kind as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Kind::Sandbox => "sandbox",
            Kind::Snapshot => "snapshot",
        }
    }
}

/// Why it is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reason {
    /// Somebody asked for it.
    #[default]
    Explicit,
    /// The account keeps no data.
    Zdr,
}

impl Reason {
    /// The reason as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Reason::Explicit => "explicit",
            Reason::Zdr => "zdr",
        }
    }
}

/// The deletion of something that can no longer be seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Deletion {
    pub(crate) id: String,
    /// The account that asked for it.
    pub(crate) account: String,
    #[serde(default)]
    pub(crate) kind: Kind,
    #[serde(default)]
    pub(crate) reason: Reason,
    pub(crate) target: String,
    /// The sandbox that the target is of, or that it is.
    #[serde(default)]
    pub(crate) sandbox: Option<String>,
    pub(crate) requested_at: Millis,
    #[serde(default)]
    pub(crate) completed_at: Option<Millis>,
    /// How often it was tried; not yet if 0.
    pub(crate) attempts: u64,
    /// By when the copies of the target that go on are made, while it waits for them.
    #[serde(default)]
    pub(crate) waits_until: Option<Millis>,
    /// Whether it waits until nothing builds on the target any more.
    #[serde(default)]
    pub(crate) is_kept: bool,
    /// Whether it waits until a sandbox that is starting has its disk back from the target.
    #[serde(default)]
    pub(crate) is_restored_from: bool,
}

impl Deletion {
    /// The deletion of a sandbox, not begun yet.
    pub(crate) fn of_sandbox(id: String, account: &str, sandbox: &str, now: Millis) -> Self {
        Self {
            id,
            account: account.to_owned(),
            kind: Kind::Sandbox,
            reason: Reason::Explicit,
            target: sandbox.to_owned(),
            sandbox: Some(sandbox.to_owned()),
            requested_at: now,
            completed_at: None,
            attempts: 0,
            waits_until: None,
            is_kept: false,
            is_restored_from: false,
        }
    }

    /// Its status and what it is busy with, as the service writes them.
    pub(crate) fn progress(&self) -> (&'static str, Option<&'static str>) {
        match (self.completed_at, self.attempts) {
            (Some(_), _) => ("completed", Some("completed")),
            (None, _) if self.is_kept => ("blocked", Some("kept_for_newer_snapshots")),
            (None, _) if self.is_restored_from => ("blocked", Some("waiting_for_restore")),
            (None, _) if self.waits_until.is_some() => ("blocked", Some("waiting_for_uploads")),
            (None, 0) => ("pending", None),
            (None, 1) => ("processing", Some("removing")),
            (None, _) => ("processing", Some("retrying")),
        }
    }
}

/// How long a completed one can be read, in milliseconds.
const KEPT_FOR: Millis = 30 * DAY;

/// Rows of the index that lead to the deletions that go on.
pub(crate) const OPEN_DELETIONS: &str = "open-deletion/";

impl Record for Deletion {
    const TABLE: Table = Table::Deletions;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        self.id.clone()
    }

    fn derive(&self, derived: &mut Derived) {
        match self.completed_at {
            None => derived.row(format!("{OPEN_DELETIONS}{}", self.id), &self.id),
            Some(at) => derived.expires(self, at.saturating_add(KEPT_FOR)),
        }
    }
}
