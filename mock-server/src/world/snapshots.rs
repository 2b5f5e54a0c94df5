//! Snapshots: captures of a sandbox's disk. Those of one sandbox form chains, in which each builds on the one before; those
//! behind a name stand alone.

use std::{collections::BTreeMap, ops::ControlFlow};

use serde::{Deserialize, Serialize};

use super::{sandboxes::place, time::Millis};
use crate::store::{
    Order, Reader, StoreError, Table,
    typed::{self, Derived, Record},
};

/// A completed snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    pub(crate) sandbox: String,
    /// The account that created the sandbox.
    pub(crate) account: String,
    /// The organisation that paid for it.
    #[serde(default)]
    pub(crate) organisation: Option<String>,
    /// When the capture began.
    pub(crate) created_at: Millis,
    pub(crate) completed_at: Millis,
    pub(crate) chain: String,
    /// Its place in the chain, counted from 0.
    pub(crate) generation: u64,
    /// The one that it builds on.
    #[serde(default)]
    pub(crate) previous: Option<String>,
    /// The size of the machine.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The sandbox's own variables.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// The files on the disk that came from the sandbox's environment.
    #[serde(default)]
    pub(crate) secret_files: Vec<String>,
    /// How many files the disk had, and how many bytes in them.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// How many bytes are not in the one that it builds on.
    pub(crate) added_bytes: u64,
    /// Whether it was captured while the sandbox was up, as is done from time to time: it goes when there are newer ones.
    #[serde(default)]
    pub(crate) is_rolling: bool,
    /// The key of the named snapshot that it is behind.
    #[serde(default)]
    pub(crate) pinned: Option<String>,
    /// Since when it cannot be seen any more.
    #[serde(default)]
    pub(crate) deleted_at: Option<Millis>,
    /// The deletion operation that stands for that.
    #[serde(default)]
    pub(crate) deletion: Option<String>,
}

impl Snapshot {
    /// Whether it is in the lists.
    pub(crate) fn is_listed(&self) -> bool {
        self.pinned.is_none() && self.deleted_at.is_none()
    }
}

/// Rows of the index that lead to the listed snapshots of an owner, the oldest first: `sandbox/ID`, `account/ID`, or
/// `organisation/ID/ACCOUNT` for those of the account's sandboxes that an organisation pays for.
pub(crate) fn listed(owner: &str) -> String {
    format!("snapshots/{owner}/")
}

/// Rows of the index that lead to snapshots whose files are still to be removed.
pub(crate) const GONE: &str = "snapshot-gone/";

/// Rows of the index that lead to the listed snapshots of a sandbox that were captured while it was up, the oldest first.
pub(crate) fn rolling(sandbox: &str) -> String {
    format!("snapshots-rolling/{sandbox}/")
}

fn in_chain(chain: &str, generation: u64) -> String {
    format!("snapshot-chain/{chain}/{generation:010}")
}

impl Record for Snapshot {
    const TABLE: Table = Table::Snapshots;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        self.id.clone()
    }

    fn derive(&self, derived: &mut Derived) {
        derived.row(in_chain(&self.chain, self.generation), &self.id);
        if self.deleted_at.is_some() {
            derived.row(format!("{GONE}{}", self.id), &self.id);
        }
        if !self.is_listed() {
            return;
        }
        let place = place(self.created_at, &self.id);
        let organisation = self.organisation.as_ref().map(|id| format!("organisation/{id}/{}", self.account));
        let owners = [Some(format!("sandbox/{}", self.sandbox)), Some(format!("account/{}", self.account))];
        for owner in owners.into_iter().chain([organisation]).flatten() {
            derived.row(format!("{}{place}", listed(&owner)), &self.id);
        }
        if self.is_rolling {
            derived.row(format!("{}{place}", rolling(&self.sandbox)), &self.id);
        }
    }
}

/// The newest listed snapshot of a sandbox.
pub(crate) fn latest(tx: &dyn Reader, sandbox: &str) -> Result<Option<Snapshot>, StoreError> {
    newest(tx, &listed(&format!("sandbox/{sandbox}")), |_| true)
}

/// The newest of those that stay until somebody deletes them.
pub(crate) fn latest_lasting(tx: &dyn Reader, sandbox: &str) -> Result<Option<Snapshot>, StoreError> {
    newest(tx, &listed(&format!("sandbox/{sandbox}")), |snapshot| !snapshot.is_rolling)
}

/// The newest of those that were captured while the sandbox was up.
pub(crate) fn latest_rolling(tx: &dyn Reader, sandbox: &str) -> Result<Option<Snapshot>, StoreError> {
    newest(tx, &rolling(sandbox), |_| true)
}

/// The newest that will do of those that the rows below a prefix lead to.
fn newest(
    tx: &dyn Reader,
    prefix: &str,
    will_do: impl Fn(&Snapshot) -> bool,
) -> Result<Option<Snapshot>, StoreError> {
    let mut found = Ok(None);
    typed::rows(tx, prefix, typed::after_prefix(prefix).as_deref(), Order::Descending, |_, id| {
        found = typed::get::<Snapshot>(tx, id);
        match &found {
            Ok(snapshot) if !snapshot.as_ref().is_some_and(&will_do) => {
                found = Ok(None);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        }
    })?;
    found
}

/// Whether another builds on it.
pub(crate) fn is_built_on(tx: &dyn Reader, snapshot: &Snapshot) -> Result<bool, StoreError> {
    let from = in_chain(&snapshot.chain, snapshot.generation + 1);
    let to = typed::after_prefix(&format!("snapshot-chain/{}/", snapshot.chain));
    let mut is_built_on = false;
    typed::rows(tx, &from, to.as_deref(), Order::Ascending, |_, _| {
        is_built_on = true;
        ControlFlow::Break(())
    })?;
    Ok(is_built_on)
}

/// A snapshot and those that it builds on, the first first.
pub(crate) fn chain(tx: &dyn Reader, snapshot: &Snapshot) -> Result<Vec<Snapshot>, StoreError> {
    let (from, to) = (in_chain(&snapshot.chain, 0), in_chain(&snapshot.chain, snapshot.generation + 1));
    let mut ids = Vec::new();
    typed::rows(tx, &from, Some(&to), Order::Ascending, |_, id| {
        ids.push(id.to_owned());
        ControlFlow::Continue(())
    })?;
    let found = ids.iter().map(|id| typed::get(tx, id)).collect::<Result<Vec<_>, _>>()?;
    Ok(found.into_iter().flatten().collect())
}
