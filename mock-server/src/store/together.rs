//! Writers that come at once share one transaction, and with it one trip to the disk.
//!
//! Each runs its body on its own thread, one after the other, in the transaction that is open; whoever finds nobody behind
//! commits for all, and those who come meanwhile make up the next one. What a body changed that wants to be undone, or that
//! panics, is taken back, and the others of its transaction do not notice. Nobody is told anything before the commit, but
//! for a writer that is undone and saw nothing of others.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use redb::{Database, WriteTransaction};

use super::{
    Durability, StoreError, Work,
    redb_store::{Changes, failed},
};

/// So many share a transaction at the most: under writers without an end, somebody has to be told sometime.
const MOST: usize = 128;

/// Of so many lazy transactions one is durable all the same: only then are the pages that they left behind used again.
const LAZY_RUN: usize = 64;

/// The transaction that writers share.
#[derive(Default)]
pub(super) struct Together {
    /// How many are about to take [`Self::open`].
    waiting: AtomicUsize,
    open: Mutex<Option<Open>>,
    lazy: AtomicUsize,
}

struct Open {
    transaction: WriteTransaction,
    /// How many bodies have run in it.
    turns: usize,
    /// How many of them wait for it to be kept.
    members: usize,
    must_be_durable: bool,
    /// Why nothing of it may be kept.
    broken: Option<StoreError>,
    telling: Telling,
}

/// What became of a transaction; nothing yet while it is open.
#[derive(Default)]
struct News {
    outcome: Mutex<Option<Result<(), String>>>,
    told: Condvar,
}

/// Tells the members of a transaction what became of it, also if whoever was at it panics.
struct Telling(Arc<News>);

impl Telling {
    fn tell(&self, outcome: Result<(), String>) {
        lock(&self.0.outcome).get_or_insert(outcome);
        self.0.told.notify_all();
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.tell(Err("the transaction was lost".into()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Together {
    /// Runs `body` in a transaction, and returns when that is committed; on this thread, which waits.
    pub(super) fn write(
        &self,
        database: &Database,
        durability: Durability,
        body: &mut Work<'_>,
    ) -> Result<(), StoreError> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut place = lock(&self.open);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        // Taken out while it is worked on: a store that panics takes it along.
        let mut open = match place.take() {
            Some(open) => open,
            None => Open::begin(database)?,
        };
        // What it sees of them is not yet kept.
        let sees_others = open.members > 0;
        open.turns += 1;
        let mut changes = Changes::of(&open.transaction);
        let wish = panic::catch_unwind(AssertUnwindSafe(|| body(&mut changes)));
        if matches!(wish, Ok(true)) {
            open.members += 1;
            open.must_be_durable |= durability == Durability::Now;
        } else if let Err(error) = changes.undo() {
            open.broken = Some(error);
        }
        let news = open.telling.0.clone();
        // Whoever is about to take the place will be there, and commits instead.
        if self.waiting.load(Ordering::SeqCst) == 0 || open.turns >= MOST {
            self.settle(open);
        } else {
            *place = Some(open);
        }
        drop(place);
        match wish {
            Err(panic) => panic::resume_unwind(panic),
            Ok(false) if !sees_others => Ok(()),
            Ok(_) => news.wait(),
        }
    }

    fn settle(&self, open: Open) {
        let Open { mut transaction, members, must_be_durable, broken, telling, turns: _ } = open;
        let is_lazy = !must_be_durable
            && members > 0
            && !self.lazy.fetch_add(1, Ordering::Relaxed).is_multiple_of(LAZY_RUN);
        let outcome = match broken {
            Some(error) => Err(error),
            None if members == 0 => transaction.abort().map_err(failed),
            None if is_lazy => transaction
                .set_durability(redb::Durability::None)
                .map_err(failed)
                .and_then(|()| transaction.commit().map_err(failed)),
            None => transaction.commit().map_err(failed),
        };
        telling.tell(outcome.map_err(|error| match error {
            StoreError::Failed(problem) => problem,
            other => other.to_string(),
        }));
    }

    /// How many are about to join.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

impl Open {
    fn begin(database: &Database) -> Result<Self, StoreError> {
        Ok(Self {
            transaction: database.begin_write().map_err(failed)?,
            turns: 0,
            members: 0,
            must_be_durable: false,
            broken: None,
            telling: Telling(Arc::default()),
        })
    }
}

impl News {
    fn wait(&self) -> Result<(), StoreError> {
        let mut outcome = lock(&self.outcome);
        loop {
            match &*outcome {
                Some(outcome) => return outcome.clone().map_err(StoreError::Failed),
                None => outcome = self.told.wait(outcome).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}
