//! Typed records over the tables, as JSON: a newer version may add fields, an older one skips what it does not know.

use std::ops::ControlFlow;

use serde::{Serialize, de::DeserializeOwned};

use super::{Durability, Order, Reader, Store, StoreError, Table, Writer};

/// A record of one table.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// Where records of this type are kept.
    const TABLE: Table;

    /// The key it is kept under.
    fn key(&self) -> String;
}

/// Reads one record.
pub(crate) fn get<R: Record>(tx: &(impl Reader + ?Sized), key: &str) -> Result<Option<R>, StoreError> {
    tx.get(R::TABLE, key)?.map(|bytes| decode(R::TABLE, key, &bytes)).transpose()
}

/// Writes one record under its own key.
pub(crate) fn put<R: Record>(tx: &mut dyn Writer, record: &R) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec(record).map_err(|error| StoreError::Failed(error.to_string()))?;
    tx.put(R::TABLE, &record.key(), &bytes)
}

/// Takes one record away.
pub(crate) fn remove<R: Record>(tx: &mut dyn Writer, key: &str) -> Result<(), StoreError> {
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
