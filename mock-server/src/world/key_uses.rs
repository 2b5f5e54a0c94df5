//! How often keys are used: counted in memory, written now and then, by UTC day.

use std::{collections::HashMap, mem, sync::Mutex};

use serde::{Deserialize, Serialize};

use super::{
    keys,
    time::{DAY, Millis},
};
use crate::{
    app::lock,
    store::{
        Order, Reader, StoreError, Table, Writer,
        typed::{self, Derived, Record},
    },
};

/// How many days count, this one included.
pub(crate) const WINDOW_DAYS: i64 = 30;

/// The uses of a key on one day.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Uses {
    key: String,
    /// Days since 1970.
    day: i64,
    requests: u64,
    last_at: Millis,
}

impl Record for Uses {
    const TABLE: Table = Table::KeyUses;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        uses_key(&self.key, self.day)
    }

    fn derive(&self, derived: &mut Derived) {
        derived.expires(self, (self.day + WINDOW_DAYS).saturating_mul(DAY));
    }
}

fn uses_key(key: &str, day: i64) -> String {
    format!("{key}/{:06}", day.max(0))
}

/// Takes one day of a key's uses away, by the key it is kept under.
pub(crate) fn forget(tx: &mut dyn Writer, key: &str) -> Result<(), StoreError> {
    typed::remove::<Uses>(tx, key)
}

/// Uses that are not written yet.
#[derive(Debug, Default)]
pub(crate) struct KeyUses {
    counted: Mutex<HashMap<(String, i64), (u64, Millis)>>,
    /// Held while they are written, so that nobody reads in between.
    writing: Mutex<()>,
}

impl KeyUses {
    /// Counts one request; true if it is the first since the last writing.
    pub(crate) fn count(&self, key: &str, now: Millis) -> bool {
        let mut counted = lock(&self.counted);
        let was_empty = counted.is_empty();
        let uses = counted.entry((key.to_owned(), now.div_euclid(DAY))).or_default();
        *uses = (uses.0 + 1, uses.1.max(now));
        was_empty
    }

    /// Writes what was counted, with `write`; what could not be written is written the next time.
    pub(crate) fn flush(
        &self,
        write: impl FnOnce(&HashMap<(String, i64), (u64, Millis)>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let _writing = lock(&self.writing);
        let taken = mem::take(&mut *lock(&self.counted));
        if taken.is_empty() {
            return Ok(());
        }
        let written = write(&taken);
        if written.is_err() {
            let mut counted = lock(&self.counted);
            for (of, (requests, last_at)) in taken {
                let uses = counted.entry(of).or_default();
                *uses = (uses.0 + requests, uses.1.max(last_at));
            }
        }
        written
    }
}

/// Adds uses to those of before.
pub(crate) fn add(
    tx: &mut dyn Writer,
    counted: &HashMap<(String, i64), (u64, Millis)>,
) -> Result<(), StoreError> {
    for ((key, day), (requests, last_at)) in counted {
        let before = typed::get::<Uses>(&*tx, &uses_key(key, *day))?;
        let mut uses =
            before.unwrap_or_else(|| Uses { key: key.clone(), day: *day, requests: 0, last_at: 0 });
        uses.requests += requests;
        uses.last_at = uses.last_at.max(*last_at);
        typed::put(tx, &uses)?;
        // The days are forgotten one after the other, the last use is not.
        if let Some(mut used) = keys::by_id(&*tx, key)? {
            used.last_used_at = used.last_used_at.max(Some(*last_at));
            typed::put(tx, &used)?;
        }
    }
    Ok(())
}

/// How often a key was used in the window that ends today, and when it was used last as far as its days tell.
pub(crate) fn of_key(
    tx: &(impl Reader + ?Sized),
    key: &str,
    now: Millis,
) -> Result<(u64, Option<Millis>), StoreError> {
    let first = now.div_euclid(DAY) - WINDOW_DAYS + 1;
    let to = typed::after_prefix(&format!("{key}/"));
    let (mut requests, mut last) = (0, None);
    typed::scan::<Uses>(tx, &format!("{key}/"), to.as_deref(), Order::Ascending, |_, uses| {
        if uses.day >= first {
            requests += uses.requests;
        }
        last = last.max(Some(uses.last_at));
        std::ops::ControlFlow::Continue(())
    })?;
    Ok((requests, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, RedbStore};

    #[test]
    fn thirty_days_count_and_nothing_is_lost_between_two_writings() {
        let store = RedbStore::in_memory().unwrap();
        let uses = KeyUses::default();
        let write = |counted: &HashMap<_, _>| typed::write(&store, Durability::Now, |tx| add(tx, counted));
        let read = |now| typed::read(&store, |tx| of_key(tx, "k", now)).unwrap();
        assert!(uses.count("k", DAY - 1));
        assert!(!uses.count("k", DAY));
        uses.flush(|_| Err(StoreError::InUse)).unwrap_err();
        assert_eq!(read(DAY), (0, None));
        uses.flush(write).unwrap();
        uses.count("k", DAY + 5);
        uses.count("other", DAY + 7);
        uses.flush(write).unwrap();
        assert_eq!(read(DAY + 9), (3, Some(DAY + 5)));
        assert_eq!(read(30 * DAY - 1).0, 3);
        assert_eq!(read(30 * DAY).0, 2);
        assert_eq!(read(31 * DAY).0, 0);
    }
}
