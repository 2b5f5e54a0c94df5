//! Named snapshots: disks that a wallet keeps under a name.

use serde::{Deserialize, Serialize};

use super::time::Millis;
use crate::store::{
    Reader, StoreError, Table,
    typed::{self, Derived, Record},
};

/// Names that stand for something else.
pub(crate) const RESERVED: [&str; 8] = ["latest", "tree", "pull", "rm", "save", "current", "self", "new"];

/// How many a wallet has without paying for them, and what each more costs a month.
pub(crate) const FREE: u64 = 10;
pub(crate) const MONTHLY_DOLLARS: f64 = 1.7;

/// How far the save that was asked for last is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Saving,
    Ready,
    Failed,
}

impl Status {
    /// The status as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Status::Saving => "saving",
            Status::Ready => "ready",
            Status::Failed => "failed",
        }
    }
}

/// A named snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NamedSnapshot {
    /// The wallet that keeps it: `account/ID` or `organisation/ID`.
    pub(crate) wallet: String,
    pub(crate) name: String,
    /// Who asked for the last save.
    pub(crate) account: String,
    pub(crate) status: Status,
    /// Why the last save failed.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// The sandbox of the last save.
    pub(crate) source: String,
    /// The size of its machine.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// When the last save began.
    pub(crate) created_at: Millis,
    /// What it gives now: the last save that succeeded.
    #[serde(default)]
    pub(crate) snapshot: Option<String>,
    #[serde(default)]
    pub(crate) bytes: Option<u64>,
}

/// Rows of the index that lead to the saves that go on.
pub(crate) const SAVING: &str = "saving/";

/// The key of a named snapshot.
pub(crate) fn named_key(wallet: &str, name: &str) -> String {
    format!("{wallet}/{name}")
}

impl Record for NamedSnapshot {
    const TABLE: Table = Table::NamedSnapshots;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        named_key(&self.wallet, &self.name)
    }

    fn derive(&self, derived: &mut Derived) {
        if self.status == Status::Saving {
            derived.row(format!("{SAVING}{}", self.key()), self.key());
        }
    }
}

/// All of a wallet, the newest first.
pub(crate) fn of_wallet(tx: &dyn Reader, wallet: &str) -> Result<Vec<NamedSnapshot>, StoreError> {
    let mut all: Vec<NamedSnapshot> = typed::with_prefix(tx, &format!("{wallet}/"))?;
    all.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| b.name.cmp(&a.name)));
    Ok(all)
}
