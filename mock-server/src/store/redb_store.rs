//! The store on `redb`: in memory, or in a file that one process at a time may open.

use std::{
    cell::OnceCell,
    fs::{OpenOptions, Permissions},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use redb::{
    Builder, Database, DatabaseError, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    TableDefinition, WriteTransaction, backends::InMemoryBackend,
};

use tokio::{runtime::Handle, task::block_in_place};

use super::{
    Durability, Order, Reader, Span, Store, StoreError, Table, Visit, Work, Writer, together::Together,
};

/// Bytes of the file that are kept in memory; the default of the library is made for servers with nothing else to do.
const CACHE_BYTES: usize = 32 << 20;

/// The embedded store.
pub(crate) struct RedbStore {
    database: Database,
    together: Together,
    is_kept: bool,
    /// The runtime that it was opened in: its threads are the server's own.
    runtime: Option<tokio::runtime::Id>,
}

fn definition(table: Table) -> TableDefinition<'static, &'static str, &'static [u8]> {
    TableDefinition::new(table.name())
}

pub(super) fn failed(error: impl std::fmt::Display) -> StoreError {
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
        let runtime = Handle::try_current().ok().map(|runtime| runtime.id());
        Ok(Self { database, together: Together::default(), is_kept, runtime })
    }

    /// Whether this thread is one of the server's, on which other tasks wait for their turn.
    fn is_shared_thread(&self) -> bool {
        Handle::try_current().is_ok_and(|current| {
            Some(current.id()) == self.runtime
                && current.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread
        })
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

    fn write(&self, durability: Durability, body: &mut Work<'_>) -> Result<(), StoreError> {
        let mut write = || self.together.write(&self.database, durability, body);
        // What waits for the disk must not keep other tasks waiting.
        if self.is_kept && self.is_shared_thread() { block_in_place(write) } else { write() }
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

    fn walk(&self, span: Span<'_>, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        walk(self.table(span.table)?, span, visit)
    }
}

/// What one writer sees of a transaction that it may share with others, and what it has changed there.
pub(super) struct Changes<'a> {
    transaction: &'a WriteTransaction,
    /// What was there before each change, the first in front.
    before: Vec<(Table, String, Option<Vec<u8>>)>,
}

impl<'a> Changes<'a> {
    pub(super) fn of(transaction: &'a WriteTransaction) -> Self {
        Self { transaction, before: Vec::new() }
    }

    /// Takes back every change.
    pub(super) fn undo(self) -> Result<(), StoreError> {
        for (table, key, value) in self.before.into_iter().rev() {
            let mut table = self.transaction.open_table(definition(table)).map_err(failed)?;
            match value {
                Some(value) => table.insert(key.as_str(), value.as_slice()).map(drop),
                None => table.remove(key.as_str()).map(drop),
            }
            .map_err(failed)?;
        }
        Ok(())
    }
}

impl Reader for Changes<'_> {
    fn get(&self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let table = self.transaction.open_table(definition(table)).map_err(failed)?;
        lookup(&table, key)
    }

    fn walk(&self, span: Span<'_>, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let table = self.transaction.open_table(definition(span.table)).map_err(failed)?;
        walk(&table, span, visit)
    }
}

impl Writer for Changes<'_> {
    fn put(&mut self, table: Table, key: &str, value: &[u8]) -> Result<(), StoreError> {
        let mut opened = self.transaction.open_table(definition(table)).map_err(failed)?;
        let before = opened.insert(key, value).map_err(failed)?.map(|value| value.value().to_vec());
        self.before.push((table, key.to_owned(), before));
        Ok(())
    }

    fn remove(&mut self, table: Table, key: &str) -> Result<(), StoreError> {
        let mut opened = self.transaction.open_table(definition(table)).map_err(failed)?;
        let before = opened.remove(key).map_err(failed)?.map(|value| value.value().to_vec());
        self.before.push((table, key.to_owned(), before));
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
    Span { from, to, order, .. }: Span<'_>,
    visit: &mut Visit<'_>,
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
    use std::ops::ControlFlow;

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
    fn writers_at_once_share_a_transaction_and_each_undoes_its_own() {
        use std::{sync::mpsc, thread};

        let folder = tempfile::tempdir().unwrap();
        let store = RedbStore::open(&folder.path().join("state.redb")).unwrap();
        let write = |kept: bool, key: &str| {
            store.write(Durability::Now, &mut |tx| {
                for changed in [key, "shared"] {
                    tx.put(Table::Keys, changed, key.as_bytes()).unwrap();
                }
                tx.remove(Table::Keys, "old").unwrap();
                kept
            })
        };
        store
            .write(Durability::Now, &mut |tx| {
                tx.put(Table::Keys, "old", b"old").unwrap();
                true
            })
            .unwrap();
        let get = |key: &str| {
            let mut value = None;
            store.read(&mut |tx| value = tx.get(Table::Keys, key).unwrap()).unwrap();
            value.map(|value| String::from_utf8(value).unwrap())
        };
        thread::scope(|scope| {
            let (at_work, begun) = mpsc::channel();
            let first = scope.spawn({
                let (store, write) = (&store, &write);
                move || {
                    store
                        .write(Durability::Now, &mut |tx| {
                            tx.put(Table::Keys, "first", b"first").unwrap();
                            at_work.send(()).unwrap();
                            while store.together.waiting() < 3 {
                                thread::yield_now();
                            }
                            true
                        })
                        .unwrap();
                    write(false, "last")
                }
            });
            begun.recv().unwrap();
            let others =
                ["undone", "kept", "undone too"].map(|key| scope.spawn(move || write(key == "kept", key)));
            for other in others {
                other.join().unwrap().unwrap();
            }
            first.join().unwrap().unwrap();
        });
        for (key, value) in [("first", "first"), ("kept", "kept"), ("shared", "kept")] {
            assert_eq!(get(key).as_deref(), Some(value));
        }
        for gone in ["old", "undone", "undone too", "last"] {
            assert_eq!(get(gone), None);
        }
    }

    type Body<'a> = &'a (dyn Fn(&mut dyn Writer) -> bool + Sync);

    /// Lets writers in once a first one has changed something and so many wait behind it; what became of them, the first
    /// in front.
    fn behind_another<const MANY: usize>(
        store: &RedbStore,
        writers: [Body<'_>; MANY],
    ) -> Vec<std::thread::Result<Result<(), StoreError>>> {
        use std::{sync::mpsc, thread};

        thread::scope(|scope| {
            let (at_work, begun) = mpsc::channel();
            let first = scope.spawn(move || {
                store.write(Durability::Now, &mut |tx| {
                    tx.put(Table::Keys, "first", b"first").unwrap();
                    at_work.send(()).unwrap();
                    while store.together.waiting() < MANY {
                        thread::yield_now();
                    }
                    true
                })
            });
            begun.recv().unwrap();
            let others =
                writers.map(|writer| scope.spawn(move || store.write(Durability::Now, &mut |tx| writer(tx))));
            std::iter::once(first).chain(others).map(thread::ScopedJoinHandle::join).collect()
        })
    }

    #[test]
    fn a_writer_that_panics_is_undone_and_no_other() {
        let store = RedbStore::in_memory().unwrap();
        let outcomes = behind_another(
            &store,
            [
                &|tx| {
                    for key in ["half", "first"] {
                        tx.put(Table::Keys, key, b"x").unwrap();
                    }
                    panic!("on purpose")
                },
                &|tx| tx.put(Table::Keys, "kept", b"x").is_ok(),
            ],
        );
        let outcomes: Vec<_> =
            outcomes.into_iter().map(|outcome| outcome.ok().map(|told| told.is_ok())).collect();
        assert_eq!(outcomes, [Some(true), None, Some(true)]);
        store
            .write(Durability::Now, &mut |tx| {
                for (key, value) in
                    [("half", None), ("first", Some(b"first".to_vec())), ("kept", Some(b"x".to_vec()))]
                {
                    assert_eq!(tx.get(Table::Keys, key).unwrap(), value, "{key}");
                }
                true
            })
            .unwrap();
    }

    /// A disk that can be taken away.
    #[derive(Debug, Default)]
    struct Failing {
        memory: InMemoryBackend,
        is_gone: std::sync::Arc<std::sync::atomic::AtomicBool>,
    }

    impl Failing {
        fn check(&self) -> std::io::Result<()> {
            match self.is_gone.load(std::sync::atomic::Ordering::SeqCst) {
                true => Err(std::io::Error::other("the disk is gone")),
                false => Ok(()),
            }
        }
    }

    impl redb::StorageBackend for Failing {
        fn len(&self) -> std::io::Result<u64> {
            self.memory.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
            self.memory.read(offset, out)
        }

        fn set_len(&self, len: u64) -> std::io::Result<()> {
            self.check()?;
            self.memory.set_len(len)
        }

        fn sync_data(&self) -> std::io::Result<()> {
            self.check()?;
            self.memory.sync_data()
        }

        fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
            self.check()?;
            self.memory.write(offset, data)
        }
    }

    #[test]
    fn nobody_goes_by_what_another_wrote_and_the_disk_did_not_take() {
        let disk = Failing::default();
        let is_gone = disk.is_gone.clone();
        let store = RedbStore::with_tables(Builder::new().create_with_backend(disk).unwrap(), true).unwrap();
        let outcomes = behind_another(
            &store,
            [&|tx| {
                // It would say that the name is taken.
                assert_eq!(tx.get(Table::Keys, "first").unwrap().as_deref(), Some(&b"first"[..]));
                is_gone.store(true, std::sync::atomic::Ordering::SeqCst);
                false
            }],
        );
        for outcome in outcomes {
            let told = outcome.unwrap();
            assert!(matches!(told, Err(StoreError::Failed(_))), "{told:?}");
        }
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
