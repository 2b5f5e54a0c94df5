//! Snapshots on the disk: `snapshots/ID` in the server's folder holds `disk`, a copy of a sandbox's disk that nobody changes
//! any more, `inventory`, the list of its files, and, once somebody wanted to download it, `pieces`.
//!
//! A snapshot is copied under another name, gets its own, and is then stored as a record, in the transaction of what it
//! was made for; files without a record are swept when a server starts. They go in the opposite order.

mod archive;
mod capture;
mod clear;
mod inventory;
mod pieces;
mod save;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, Weak, atomic::AtomicBool},
};

use tokio::sync::{Notify, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

pub(crate) use self::{
    archive::{Totals, stream_folder},
    capture::{Captured, at_stop, capture, capture_now, disk_of, record, restore},
    clear::{begin_delete, clear_away, clear_away_later, delete_of_sandbox, lose_disk, take_up},
    inventory::{Listed, list},
    pieces::{Piece, pieces},
    save::begin_save,
};
use crate::app::lock;

/// Where the snapshots are, and who is busy with them.
pub(crate) struct Shelf {
    root: PathBuf,
    /// Reading a snapshot's files holds its lock for reading; removing them holds it for writing.
    locks: Mutex<HashMap<String, Weak<RwLock<()>>>>,
    /// One at a time removes files.
    clearing: tokio::sync::Mutex<()>,
    /// Whether somebody comes back for files that could not be removed.
    comes_back: AtomicBool,
    /// Told whenever somebody is done with a snapshot's files.
    released: Arc<Notify>,
    /// What the addresses of pieces are signed with.
    pub(crate) signing_key: OnceLock<String>,
}

impl Shelf {
    /// The snapshots in a folder.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            locks: Mutex::default(),
            clearing: tokio::sync::Mutex::default(),
            comes_back: AtomicBool::new(false),
            released: Arc::default(),
            signing_key: OnceLock::new(),
        }
    }

    /// The folder of a snapshot.
    pub(crate) fn folder(&self, id: &str) -> PathBuf {
        self.root.join(id)
    }

    /// The disk in it.
    pub(crate) fn disk(&self, id: &str) -> PathBuf {
        self.folder(id).join("disk")
    }

    /// The list of its files.
    pub(crate) fn inventory(&self, id: &str) -> PathBuf {
        self.folder(id).join("inventory")
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn lock_of(&self, id: &str) -> Arc<RwLock<()>> {
        let mut locks = lock(&self.locks);
        if let Some(held) = locks.get(id).and_then(Weak::upgrade) {
            return held;
        }
        locks.retain(|_, held| held.strong_count() > 0);
        let fresh = Arc::new(RwLock::new(()));
        locks.insert(id.to_owned(), Arc::downgrade(&fresh));
        fresh
    }

    /// Keeps the files of a snapshot from being removed.
    pub(crate) async fn hold(&self, id: &str) -> Held {
        self.held(self.lock_of(id).read_owned().await)
    }

    /// The same, unless they are being removed right now.
    fn try_hold(&self, id: &str) -> Option<Held> {
        self.lock_of(id).try_read_owned().ok().map(|guard| self.held(guard))
    }

    fn held(&self, guard: OwnedRwLockReadGuard<()>) -> Held {
        Held { _guard: guard, _tell: Tell(self.released.clone()) }
    }

    /// Keeps everybody else away, unless somebody reads the files right now. Nobody waits for a reader: one that takes its
    /// time would hold up whoever comes later as well.
    fn try_hold_alone(&self, id: &str) -> Option<OwnedRwLockWriteGuard<()>> {
        self.lock_of(id).try_write_owned().ok()
    }
}

/// The files of a snapshot, which stay for as long as this is there.
pub(crate) struct Held {
    // Dropped in this order: whoever is told finds them free.
    _guard: OwnedRwLockReadGuard<()>,
    _tell: Tell,
}

struct Tell(Arc<Notify>);

impl Drop for Tell {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
