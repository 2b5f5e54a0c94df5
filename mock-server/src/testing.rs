//! What tests of the server's insides have in common: a service on a store that can be made to fail.

use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use sandboxer::clock::{Clock as _, ManualClock, SystemClock};
use tempfile::TempDir;

use crate::{
    app::{App, lock},
    folders::{SCRATCH, SNAPSHOTS},
    runner::{Runner, Script, ScriptedRunner},
    store::{Durability, Reader, RedbStore, Span, Store, StoreError, Table, Visit, Work, Writer, typed},
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
        Self::with_runner(|clock| {
            let runner = ScriptedRunner::new(clock.shared());
            runner.on("", Script::new().exit(0));
            Arc::new(runner)
        })
    }

    /// The same, with commands that do something else.
    pub(crate) fn with_runner(runner: impl FnOnce(&ManualClock) -> Arc<dyn Runner>) -> Self {
        let (clock, faults) = (ManualClock::new(), Arc::<StoreFaults>::default());
        let folder = tempfile::tempdir().unwrap();
        let spaces = folder.path().join("spaces");
        std::fs::create_dir(&spaces).unwrap();
        for beside in [SNAPSHOTS, SCRATCH] {
            std::fs::create_dir(spaces.with_file_name(beside)).unwrap();
        }
        let store = Box::new(FaultyStore(RedbStore::in_memory().unwrap(), faults.clone()));
        let app = App::new(clock.shared(), store, runner(&clock), spaces, MachinesSeed::default(), false);
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

/// What a store fails with, and how often it was changed.
#[derive(Default)]
pub(crate) struct StoreFaults {
    writes: AtomicUsize,
    durable: AtomicBool,
    removing: Mutex<Option<Table>>,
}

impl StoreFaults {
    /// How many transactions there were that could change something.
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

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

    fn write(&self, durability: Durability, body: &mut Work<'_>) -> Result<(), StoreError> {
        self.1.writes.fetch_add(1, Ordering::SeqCst);
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

    fn walk(&self, span: Span<'_>, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.tx.walk(span, visit)
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
