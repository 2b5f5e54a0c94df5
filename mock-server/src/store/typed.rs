//! Typed records over the tables, as JSON: a newer version may add fields, an older one skips what it does not know.
//!
//! Records are found by their keys, or by rows of the index that [`Record::derive`] names; how many there are of a kind
//! is a sum that is kept with them.

use std::{collections::BTreeMap, ops::ControlFlow};

use serde::{Serialize, de::DeserializeOwned};

use super::{Durability, Order, Reader, Store, StoreError, Table, Writer};
use crate::world::time::Millis;

/// A record of one table.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// Where records of this type are kept.
    const TABLE: Table;

    /// Whether [`Self::derive`] says anything.
    const DERIVES: bool = false;

    /// The key it is kept under.
    fn key(&self) -> String;

    /// What follows from the record: rows by which it is found and sums that it counts in. [`put`] and [`remove`] keep
    /// them true, so that no question about many records has to look at all of them.
    fn derive(&self, _derived: &mut Derived) {}
}

/// What follows from one record.
#[derive(Debug, Default)]
pub(crate) struct Derived {
    rows: BTreeMap<String, String>,
    sums: BTreeMap<String, i64>,
}

impl Derived {
    fn of<R: Record>(record: Option<&R>) -> Self {
        let mut derived = Self::default();
        if let Some(record) = record {
            record.derive(&mut derived);
        }
        derived
    }

    /// The record has a life that ends then; the upkeep takes it away in the hour after. Its table must be one that
    /// `lifecycle::upkeep` knows.
    pub(crate) fn expires<R: Record>(&mut self, record: &R, at: Millis) {
        let key = record.key();
        let name = R::TABLE.name();
        self.row(format!("{}{name}/{key}", expiring_at(at)), format!("{name}/{key}"));
    }

    /// A row of the index: a key that [`rows`] and [`row`] find, and what it leads to.
    pub(crate) fn row(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.rows.insert(key.into(), value.into());
    }

    /// Adds to a sum that [`sum`] reads.
    pub(crate) fn add(&mut self, sum: impl Into<String>, by: u64) {
        *self.sums.entry(sum.into()).or_default() += i64::try_from(by).unwrap_or(i64::MAX);
    }

    /// Brings the store from what followed from the record before to what follows from it now.
    fn replace(self, before: Self, tx: &mut dyn Writer) -> Result<(), StoreError> {
        for key in before.rows.keys().filter(|key| !self.rows.contains_key(*key)) {
            tx.remove(Table::Index, key)?;
        }
        for (key, value) in self.rows.iter().filter(|(key, value)| before.rows.get(*key) != Some(value)) {
            tx.put(Table::Index, key, value.as_bytes())?;
        }
        let mut changes = self.sums;
        for (key, by) in before.sums {
            *changes.entry(key).or_default() -= by;
        }
        for (key, by) in changes.into_iter().filter(|(_, by)| *by != 0) {
            let now = read_sum(tx, &key)?.saturating_add(by);
            match now {
                0 => tx.remove(Table::Sums, &key)?,
                _ => tx.put(Table::Sums, &key, now.to_string().as_bytes())?,
            }
        }
        Ok(())
    }
}

/// Rows of the index that lead to records with a life, those that end first in front.
pub(crate) const EXPIRING: &str = "expires/";

/// Before every such row of a time, after those of earlier ones.
pub(crate) fn expiring_at(at: Millis) -> String {
    format!("{EXPIRING}{:016}/", at.max(0))
}

fn read_sum(tx: &(impl Reader + ?Sized), key: &str) -> Result<i64, StoreError> {
    let text = tx.get(Table::Sums, key)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(text.and_then(|text| text.parse().ok()).unwrap_or(0))
}

/// A sum over records, by the name that they count in it under.
pub(crate) fn sum(tx: &(impl Reader + ?Sized), key: &str) -> Result<u64, StoreError> {
    read_sum(tx, key).map(|sum| u64::try_from(sum).unwrap_or(0))
}

/// What a row of the index leads to.
pub(crate) fn row(tx: &(impl Reader + ?Sized), key: &str) -> Result<Option<String>, StoreError> {
    Ok(tx.get(Table::Index, key)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Visits the rows of the index whose keys lie in a range until told to stop: the key, and what it leads to.
pub(crate) fn rows(
    tx: &(impl Reader + ?Sized),
    from: &str,
    to: Option<&str>,
    order: Order,
    mut visit: impl FnMut(&str, &str) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    tx.scan(Table::Index, from, to, order, &mut |key, bytes| visit(key, &String::from_utf8_lossy(bytes)))
}

/// The records under these keys, in their order; those that are gone are left out.
pub(crate) fn get_all<R: Record>(tx: &(impl Reader + ?Sized), keys: &[String]) -> Result<Vec<R>, StoreError> {
    keys.iter().filter_map(|key| get(tx, key).transpose()).collect()
}

/// What the rows whose keys begin with a prefix lead to, in the order of the keys; at most so many.
pub(crate) fn rows_with_prefix(
    tx: &(impl Reader + ?Sized),
    prefix: &str,
    most: usize,
) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    if most > 0 {
        rows(tx, prefix, after_prefix(prefix).as_deref(), Order::Ascending, |_, value| {
            found.push(value.to_owned());
            if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    Ok(found)
}

/// Empties a table.
pub(crate) fn clear(tx: &mut dyn Writer, table: Table) -> Result<(), StoreError> {
    remove_prefix(tx, table, "")
}

/// Takes away every key of a table that begins with a prefix.
pub(crate) fn remove_prefix(tx: &mut dyn Writer, table: Table, prefix: &str) -> Result<(), StoreError> {
    let mut keys = Vec::new();
    tx.scan(table, prefix, after_prefix(prefix).as_deref(), Order::Ascending, &mut |key, _| {
        keys.push(key.to_owned());
        ControlFlow::Continue(())
    })?;
    keys.iter().try_for_each(|key| tx.remove(table, key))
}

/// Takes away every record whose key begins with a prefix, and what follows from them.
pub(crate) fn remove_all<R: Record>(tx: &mut dyn Writer, prefix: &str) -> Result<(), StoreError> {
    for record in with_prefix::<R>(&*tx, prefix)? {
        remove::<R>(tx, &record.key())?;
    }
    Ok(())
}

/// What comes next after a prefix, up to a slash, in the keys of the rows that begin with it: each once, in order. The
/// cost grows with how many there are, and not with how many rows each has.
pub(crate) fn next_parts(tx: &(impl Reader + ?Sized), prefix: &str) -> Result<Vec<String>, StoreError> {
    let (mut found, mut from) = (Vec::new(), prefix.to_owned());
    let to = after_prefix(prefix);
    loop {
        let mut part = None;
        rows(tx, &from, to.as_deref(), Order::Ascending, |key, _| {
            part = key[prefix.len()..].split('/').next().map(str::to_owned);
            ControlFlow::Break(())
        })?;
        let Some(part) = part else { return Ok(found) };
        let Some(next) = after_prefix(&format!("{prefix}{part}/")) else { return Ok(found) };
        found.push(part);
        from = next;
    }
}

/// Derives everything of a table anew, after all rows and sums of its records were taken away.
pub(crate) fn derive_again<R: Record>(tx: &mut dyn Writer) -> Result<(), StoreError> {
    for record in with_prefix::<R>(tx, "")? {
        Derived::of(Some(&record)).replace(Derived::default(), tx)?;
    }
    Ok(())
}

/// Reads one record.
pub(crate) fn get<R: Record>(tx: &(impl Reader + ?Sized), key: &str) -> Result<Option<R>, StoreError> {
    tx.get(R::TABLE, key)?.map(|bytes| decode(R::TABLE, key, &bytes)).transpose()
}

/// Writes one record under its own key, and what follows from it.
pub(crate) fn put<R: Record>(tx: &mut dyn Writer, record: &R) -> Result<(), StoreError> {
    let key = record.key();
    if R::DERIVES {
        let before: Option<R> = get(tx, &key)?;
        Derived::of(Some(record)).replace(Derived::of(before.as_ref()), tx)?;
    }
    let bytes = serde_json::to_vec(record).map_err(|error| StoreError::Failed(error.to_string()))?;
    tx.put(R::TABLE, &key, &bytes)
}

/// Takes one record away, and what follows from it.
pub(crate) fn remove<R: Record>(tx: &mut dyn Writer, key: &str) -> Result<(), StoreError> {
    if R::DERIVES {
        let before: Option<R> = get(tx, key)?;
        Derived::default().replace(Derived::of(before.as_ref()), tx)?;
    }
    tx.remove(R::TABLE, key)
}

/// Visits the records whose keys lie in a range until told to stop.
pub(crate) fn scan<R: Record>(
    tx: &(impl Reader + ?Sized),
    from: &str,
    to: Option<&str>,
    order: Order,
    mut visit: impl FnMut(&str, R) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let mut problem = None;
    tx.scan(R::TABLE, from, to, order, &mut |key, bytes| match decode(R::TABLE, key, bytes) {
        Ok(record) => visit(key, record),
        Err(error) => {
            problem = Some(error);
            ControlFlow::Break(())
        }
    })?;
    problem.map_or(Ok(()), Err)
}

/// Every record whose key begins with a prefix, in the order of the keys.
pub(crate) fn with_prefix<R: Record>(
    tx: &(impl Reader + ?Sized),
    prefix: &str,
) -> Result<Vec<R>, StoreError> {
    let mut found = Vec::new();
    scan(tx, prefix, after_prefix(prefix).as_deref(), Order::Ascending, |_, record| {
        found.push(record);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// The first key after all keys that begin with a prefix; `None` for the empty prefix.
pub(crate) fn after_prefix(prefix: &str) -> Option<String> {
    let mut characters: Vec<char> = prefix.chars().collect();
    let last = characters.pop()?;
    characters.push(char::from_u32(u32::from(last) + 1)?);
    Some(characters.into_iter().collect())
}

fn decode<R: DeserializeOwned>(table: Table, key: &str, bytes: &[u8]) -> Result<R, StoreError> {
    serde_json::from_slice(bytes).map_err(|error| StoreError::Corrupt {
        table: table.name(),
        key: key.to_owned(),
        problem: error.to_string(),
    })
}

/// Runs `body` on a snapshot and hands its answer back.
pub(crate) fn read<T, E: From<StoreError>>(
    store: &dyn Store,
    body: impl FnOnce(&dyn Reader) -> Result<T, E>,
) -> Result<T, E> {
    let mut body = Some(body);
    let mut answer = None;
    store.read(&mut |tx| answer = body.take().map(|body| body(tx)))?;
    answer.unwrap_or_else(|| Err(StoreError::Failed("the transaction did not run".into()).into()))
}

/// Runs `body` in a transaction that is kept if it succeeds and undone if it fails.
pub(crate) fn write<T, E: From<StoreError>>(
    store: &dyn Store,
    durability: Durability,
    body: impl FnOnce(&mut dyn Writer) -> Result<T, E>,
) -> Result<T, E> {
    let mut body = Some(body);
    let mut answer = None;
    store.write(durability, &mut |tx| {
        answer = body.take().map(|body| body(tx));
        matches!(answer, Some(Ok(_)))
    })?;
    answer.unwrap_or_else(|| Err(StoreError::Failed("the transaction did not run".into()).into()))
}
