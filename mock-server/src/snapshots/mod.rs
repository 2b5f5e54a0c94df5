//! Snapshots on the disk: `snapshots/ID` in the server's folder holds `disk`, a copy of a sandbox's disk that nobody changes
//! any more, `inventory`, the list of its files, and, once somebody wanted to download it, `pieces`.
//! Files that have not changed since the snapshot that it builds on are in both under one number.
//!
//! A snapshot is copied under another name, gets its own, and is then stored as a record, in the transaction of what it
//! was made for; files without a record are swept when a server starts. They go in the opposite order.

mod archive;
mod capture;
mod clear;
mod inventory;
mod pieces;
mod rolling;
mod save;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, Weak, atomic::AtomicBool},
};

use tokio::sync::{Notify, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

pub(crate) use self::{
    archive::{Totals, stream_folder},
    capture::{Captured, Keep, at_stop, capture_now, disk_of, record, restore},
    clear::{
        begin_delete, clear_away, clear_away_later, delete_of_sandbox, hide_of_sandbox, lose_disk, take_up,
    },
    inventory::{Listed, list},
    pieces::{Piece, pieces},
    rolling::{Kept, Rolling, capture_rolling, promise, thin},
    save::begin_save,
};
use crate::{app::lock, world::time::Millis};

/// Where the snapshots are, and who is busy with them.
pub(crate) struct Shelf {
    root: PathBuf,
    /// Reading a snapshot's files holds its lock for reading; removing them holds it for writing.
    locks: Mutex<HashMap<String, Weak<RwLock<()>>>>,
    /// Until when those stay whose addresses somebody was given.
    promised: Mutex<HashMap<String, Millis>>,
    /// One at a time removes files.
    clearing: tokio::sync::Mutex<()>,
    /// Whether somebody comes back for files that could not be removed.
    comes_back: AtomicBool,
    /// Who waits for readers of files that are to be removed.
    released: Arc<Released>,
    /// What the addresses of pieces are signed with.
    pub(crate) signing_key: OnceLock<String>,
}

impl Shelf {
    /// The snapshots in a folder.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            locks: Mutex::default(),
            promised: Mutex::default(),
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
        self.held(id, self.lock_of(id).read_owned().await)
    }

    /// The same, unless they are being removed right now.
    fn try_hold(&self, id: &str) -> Option<Held> {
        self.lock_of(id).try_read_owned().ok().map(|guard| self.held(id, guard))
    }

    fn held(&self, id: &str, guard: OwnedRwLockReadGuard<()>) -> Held {
        Held { _guard: guard, _tell: Tell(id.to_owned(), self.released.clone()) }
    }

    /// Remembers that somebody was given the addresses of a snapshot's pieces, which are good until then.
    fn promise(&self, id: &str, until: Millis, now: Millis) {
        let mut promised = lock(&self.promised);
        promised.retain(|_, until| *until > now);
        promised.insert(id.to_owned(), until);
    }

    /// Whether such addresses are good.
    fn is_promised(&self, id: &str, now: Millis) -> bool {
        lock(&self.promised).get(id).is_some_and(|until| *until > now)
    }

    /// Keeps everybody else away, unless somebody reads the files right now. Nobody waits for a reader: one that takes its
    /// time would hold up whoever comes later as well.
    fn try_hold_alone(&self, id: &str) -> Option<OwnedRwLockWriteGuard<()>> {
        self.lock_of(id).try_write_owned().ok()
    }

    /// [`Self::try_hold_alone`]; whoever reads the files tells when that is over.
    fn try_hold_alone_or_wait(&self, id: &str) -> Option<OwnedRwLockWriteGuard<()>> {
        let alone = self.try_hold_alone(id).or_else(|| {
            lock(&self.released.awaited).insert(id.to_owned());
            // It may have been over just before that.
            self.try_hold_alone(id)
        });
        if alone.is_some() {
            lock(&self.released.awaited).remove(id);
        }
        alone
    }
}

/// What whoever removes files waits for.
#[derive(Default)]
struct Released {
    /// The snapshots whose readers somebody waits for.
    awaited: Mutex<HashSet<String>>,
    /// Told whenever one of those is done.
    told: Notify,
}

/// The files of a snapshot, which stay for as long as this is there.
pub(crate) struct Held {
    // Dropped in this order: whoever is told finds them free.
    _guard: OwnedRwLockReadGuard<()>,
    _tell: Tell,
}

struct Tell(String, Arc<Released>);

impl Drop for Tell {
    fn drop(&mut self) {
        if lock(&self.1.awaited).remove(&self.0) {
            self.1.told.notify_one();
        }
    }
}
