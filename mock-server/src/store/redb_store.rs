//! The store on `redb`: in memory, or in a file that one process at a time may open.

use std::{
    cell::OnceCell,
    fs::{OpenOptions, Permissions},
    ops::ControlFlow,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

use redb::{
    Builder, Database, DatabaseError, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    TableDefinition, WriteTransaction, backends::InMemoryBackend,
};

use super::{Durability, Order, Reader, Store, StoreError, Table, Writer};

/// Bytes of the file that are kept in memory; the default of the library is made for servers with nothing else to do.
const CACHE_BYTES: usize = 32 << 20;

/// Of so many lazy transactions one is durable all the same: only then are the pages that they left behind used again.
const LAZY_RUN: u32 = 64;

/// The embedded store.
pub(crate) struct RedbStore {
    database: Database,
    lazy: AtomicU32,
    is_kept: bool,
}

fn definition(table: Table) -> TableDefinition<'static, &'static str, &'static [u8]> {
    TableDefinition::new(table.name())
}

fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::Failed(error.to_string())
}

impl RedbStore {
    /// A store that is gone with the process.
    pub(crate) fn in_memory() -> Result<Self, StoreError> {
        let database = Builder::new()
            .set_cache_size(CACHE_BYTES)
            .create_with_backend(InMemoryBackend::new())
            .map_err(failed)?;
        Self::with_tables(database, false)
    }

    /// A store in a file, made if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let file =
            OpenOptions::new().create(true).read(true).write(true).truncate(false).mode(0o600).open(path);
        // One that an earlier version made may be open to others.
        file.and_then(|file| file.set_permissions(Permissions::from_mode(0o600))).map_err(failed)?;
        let database =
            Builder::new().set_cache_size(CACHE_BYTES).create(path).map_err(|error| match error {
                DatabaseError::DatabaseAlreadyOpen => StoreError::InUse,
                other => failed(other),
            })?;
        Self::with_tables(database, true)
    }

    fn with_tables(database: Database, is_kept: bool) -> Result<Self, StoreError> {
        let transaction = database.begin_write().map_err(failed)?;
        for table in Table::ALL {
            transaction.open_table(definition(*table)).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(Self { database, lazy: AtomicU32::new(0), is_kept })
    }
}

impl Store for RedbStore {
    fn is_kept(&self) -> bool {
        self.is_kept
    }

    fn read(&self, body: &mut dyn FnMut(&dyn Reader)) -> Result<(), StoreError> {
        let transaction = self.database.begin_read().map_err(failed)?;
        body(&Snapshot::new(transaction));
        Ok(())
    }

    fn write(
        &self,
        durability: Durability,
        body: &mut dyn FnMut(&mut dyn Writer) -> bool,
    ) -> Result<(), StoreError> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        if durability == Durability::Later
            && !self.lazy.fetch_add(1, Ordering::Relaxed).is_multiple_of(LAZY_RUN)
        {
            transaction.set_durability(redb::Durability::None).map_err(failed)?;
        }
        let mut changes = Changes(transaction);
        if body(&mut changes) {
            changes.0.commit().map_err(failed)
        } else {
            changes.0.abort().map_err(failed)
        }
    }
}

/// What a reading transaction sees. A table is opened once in it: a page of records looks up as many of them.
struct Snapshot {
    transaction: ReadTransaction,
    tables: [OnceCell<Opened>; Table::ALL.len()],
}

type Opened = ReadOnlyTable<&'static str, &'static [u8]>;

impl Snapshot {
    fn new(transaction: ReadTransaction) -> Self {
        Self { transaction, tables: [const { OnceCell::new() }; Table::ALL.len()] }
    }

    fn table(&self, table: Table) -> Result<&Opened, StoreError> {
        let cell = &self.tables[table as usize];
        match cell.get() {
            Some(opened) => Ok(opened),
            None => {
                let opened = self.transaction.open_table(definition(table)).map_err(failed)?;
                Ok(cell.get_or_init(|| opened))
            }
        }
    }
}

impl Reader for Snapshot {
    fn get(&self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        lookup(self.table(table)?, key)
    }

    fn scan(
        &self,
        table: Table,
        from: &str,
        to: Option<&str>,
        order: Order,
        visit: &mut dyn FnMut(&str, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        walk(self.table(table)?, from, to, order, visit)
    }
}

struct Changes(WriteTransaction);

impl Reader for Changes {
    fn get(&self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let table = self.0.open_table(definition(table)).map_err(failed)?;
        lookup(&table, key)
    }

    fn scan(
        &self,
        table: Table,
        from: &str,
        to: Option<&str>,
        order: Order,
        visit: &mut dyn FnMut(&str, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let table = self.0.open_table(definition(table)).map_err(failed)?;
        walk(&table, from, to, order, visit)
    }
}

impl Writer for Changes {
    fn put(&mut self, table: Table, key: &str, value: &[u8]) -> Result<(), StoreError> {
        let mut table = self.0.open_table(definition(table)).map_err(failed)?;
        table.insert(key, value).map_err(failed)?;
        Ok(())
    }

    fn remove(&mut self, table: Table, key: &str) -> Result<(), StoreError> {
        let mut table = self.0.open_table(definition(table)).map_err(failed)?;
        table.remove(key).map_err(failed)?;
        Ok(())
    }
}

fn lookup(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
    key: &str,
) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(table.get(key).map_err(failed)?.map(|value| value.value().to_vec()))
}

fn walk(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
    from: &str,
    to: Option<&str>,
    order: Order,
    visit: &mut dyn FnMut(&str, &[u8]) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    if to.is_some_and(|to| to <= from) {
        return Ok(());
    }
    let mut range = match to {
        Some(to) => table.range(from..to),
        None => table.range(from..),
    }
    .map_err(failed)?;
    loop {
        let entry = match order {
            Order::Ascending => range.next(),
            Order::Descending => range.next_back(),
        };
        let Some(entry) = entry else { return Ok(()) };
        let (key, value) = entry.map_err(failed)?;
        if visit(key.value(), value.value()).is_break() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(store: &RedbStore, from: &str, to: Option<&str>, order: Order) -> Vec<String> {
        let mut seen = Vec::new();
        store
            .read(&mut |tx| {
                tx.scan(Table::Sandboxes, from, to, order, &mut |key, _| {
                    seen.push(key.to_owned());
                    ControlFlow::Continue(())
                })
                .unwrap();
            })
            .unwrap();
        seen
    }

    #[test]
    fn a_kept_transaction_is_seen_and_an_undone_one_is_not() {
        let store = RedbStore::in_memory().unwrap();
        store
            .write(Durability::Now, &mut |tx| {
                for key in ["a/1", "a/2", "b/1"] {
                    tx.put(Table::Sandboxes, key, b"x").unwrap();
                }
                true
            })
            .unwrap();
        store
            .write(Durability::Now, &mut |tx| {
                tx.put(Table::Sandboxes, "c/1", b"x").unwrap();
                tx.remove(Table::Sandboxes, "a/1").unwrap();
                false
            })
            .unwrap();
        assert_eq!(keys(&store, "", None, Order::Ascending), ["a/1", "a/2", "b/1"]);
        assert_eq!(keys(&store, "a/", Some("a0"), Order::Descending), ["a/2", "a/1"]);
        assert_eq!(keys(&store, "z", Some("a"), Order::Ascending), [""; 0]);
    }

    #[test]
    fn a_file_is_opened_once_at_a_time_and_keeps_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.redb");
        let store = RedbStore::open(&path).unwrap();
        store
            .write(Durability::Later, &mut |tx| {
                tx.put(Table::Keys, "k", b"v").unwrap();
                true
            })
            .unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(RedbStore::open(&path), Err(StoreError::InUse)));
        store.write(Durability::Now, &mut |_| true).unwrap();
        drop(store);
        let again = RedbStore::open(&path).unwrap();
        let mut value = None;
        again.read(&mut |tx| value = tx.get(Table::Keys, "k").unwrap()).unwrap();
        assert_eq!(value.as_deref(), Some(&b"v"[..]));
    }
}
