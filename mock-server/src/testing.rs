//! What tests of the server's insides have in common: a service on a store that can be made to fail.

use std::{
    future::Future,
    ops::ControlFlow,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sandboxer::clock::{Clock as _, ManualClock, SystemClock};
use tempfile::TempDir;

use crate::{
    app::{App, lock},
    folders::{SCRATCH, SNAPSHOTS},
    runner::{Script, ScriptedRunner},
    store::{Durability, Order, Reader, RedbStore, Store, StoreError, Table, Writer, typed},
    world::{
        sandboxes::{Sandbox, State},
        seed::MachinesSeed,
    },
};

/// No test waits longer unless something hangs.
const GUARD: Duration = Duration::from_secs(60);

/// A service without a network, whose commands all end at once, with a clock that stands still.
pub(crate) struct Setting {
    pub(crate) app: Arc<App>,
    pub(crate) clock: ManualClock,
    pub(crate) faults: Arc<StoreFaults>,
    _folder: TempDir,
}

impl Setting {
    pub(crate) fn new() -> Self {
        let (clock, faults) = (ManualClock::new(), Arc::<StoreFaults>::default());
        let folder = tempfile::tempdir().unwrap();
        let spaces = folder.path().join("spaces");
        std::fs::create_dir(&spaces).unwrap();
        for beside in [SNAPSHOTS, SCRATCH] {
            std::fs::create_dir(spaces.with_file_name(beside)).unwrap();
        }
        let store = Box::new(FaultyStore(RedbStore::in_memory().unwrap(), faults.clone()));
        let runner = ScriptedRunner::new(clock.shared());
        runner.on("", Script::new().exit(0));
        let app = App::new(clock.shared(), store, Arc::new(runner), spaces, MachinesSeed::default(), false);
        Self { app: Arc::new(app), clock, faults, _folder: folder }
    }

    /// A sandbox in this state.
    pub(crate) async fn sandbox(&self, state: State) -> Sandbox {
        let mut sandbox = Sandbox::new("bx_1", "acc_1", self.app.now());
        sandbox.state = state;
        self.write(|tx| typed::put(tx, &sandbox));
        self.app.runner.prepare(&self.app.space(&sandbox.id)).await.unwrap();
        sandbox
    }

    /// Changes records.
    pub(crate) fn write(&self, change: impl FnOnce(&mut dyn Writer) -> Result<(), StoreError>) {
        self.app.write(change).unwrap();
    }

    /// A record as it is now.
    pub(crate) fn get<R: typed::Record>(&self, key: &str) -> Option<R> {
        self.app.read::<_, StoreError>(|tx| typed::get(tx, key)).unwrap()
    }
}

/// Runs into a panic instead of hanging.
pub(crate) async fn guarded<T>(work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        () = SystemClock::new().sleep(GUARD) => panic!("hangs"),
    }
}

/// Asks again until the answer is yes.
pub(crate) async fn until(reached: impl Fn() -> bool) {
    guarded(async {
        while !reached() {
            SystemClock::new().sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// What a store fails with.
#[derive(Default)]
pub(crate) struct StoreFaults {
    durable: AtomicBool,
    removing: Mutex<Option<Table>>,
}

impl StoreFaults {
    /// Every transaction that must be on disk.
    pub(crate) fn set_durable(&self, fails: bool) {
        self.durable.store(fails, Ordering::SeqCst);
    }

    /// Every transaction that takes something out of this table.
    pub(crate) fn set_removing(&self, table: Option<Table>) {
        *lock(&self.removing) = table;
    }
}

/// A store that claims to be kept.
struct FaultyStore(RedbStore, Arc<StoreFaults>);

impl Store for FaultyStore {
    fn is_kept(&self) -> bool {
        true
    }

    fn read(&self, body: &mut dyn FnMut(&dyn Reader)) -> Result<(), StoreError> {
        self.0.read(body)
    }

    fn write(
        &self,
        durability: Durability,
        body: &mut dyn FnMut(&mut dyn Writer) -> bool,
    ) -> Result<(), StoreError> {
        if durability == Durability::Now && self.1.durable.load(Ordering::SeqCst) {
            return Err(StoreError::Failed("the disk is full".into()));
        }
        let removing = *lock(&self.1.removing);
        self.0.write(durability, &mut |tx| body(&mut FaultyWriter { tx, removing }))
    }
}

struct FaultyWriter<'a> {
    tx: &'a mut dyn Writer,
    removing: Option<Table>,
}

impl Reader for FaultyWriter<'_> {
    fn get(&self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.tx.get(table, key)
    }

    fn scan(
        &self,
        table: Table,
        from: &str,
        to: Option<&str>,
        order: Order,
        visit: &mut dyn FnMut(&str, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.tx.scan(table, from, to, order, visit)
    }
}

impl Writer for FaultyWriter<'_> {
    fn put(&mut self, table: Table, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.tx.put(table, key, value)
    }

    fn remove(&mut self, table: Table, key: &str) -> Result<(), StoreError> {
        match self.removing == Some(table) {
            true => Err(StoreError::Failed("the disk is full".into())),
            false => self.tx.remove(table, key),
        }
    }
}
