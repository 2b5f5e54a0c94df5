//! Everything the handlers share.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sandboxer::clock::SharedClock;
use tokio::sync::{Notify, RwLock, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    job::Job,
    runner::{Runner, Space},
    store::{Durability, Reader, Store, StoreError, Writer, typed},
    world::{
        sandboxes::{Sandbox, State},
        seed::MachinesSeed,
        time::{self, Millis},
    },
};

/// The running service.
pub(crate) struct App {
    pub(crate) clock: SharedClock,
    pub(crate) store: Box<dyn Store>,
    pub(crate) runner: Arc<dyn Runner>,
    /// Below it every sandbox has a folder of its id.
    pub(crate) spaces: PathBuf,
    pub(crate) machines: Mutex<MachinesSeed>,
    live: Mutex<HashMap<String, Arc<Live>>>,
    /// Idempotency keys whose first call is still at work.
    pub(crate) keys_at_work: Mutex<HashSet<String>>,
    /// Told whenever the earliest auto-stop may have changed.
    pub(crate) deadlines_changed: Notify,
    /// Told whenever something was written that is not on disk yet.
    pub(crate) written_later: Notify,
    /// Told whenever a machine may have become free.
    pub(crate) machine_freed: Notify,
    /// Open streams and background tasks end when this does.
    pub(crate) closing: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// What is known of a sandbox besides its record: what runs in it and who waits for it.
pub(crate) struct Live {
    state: watch::Sender<State>,
    /// Goes up whenever somebody asks for another course: what an older task was about to do is then off.
    course: AtomicU64,
    /// Starting a command holds it for reading; booting, stopping and deleting hold it for writing.
    pub(crate) turn: RwLock<()>,
    /// Copying the disk holds it for reading; removing the disk holds it for writing.
    pub(crate) disk: RwLock<()>,
    /// A stop that was told to give up on saving.
    pub(crate) forced: Notify,
    jobs: Mutex<HashMap<String, Arc<Job>>>,
    /// How many bytes of output the store holds of it; `None` until somebody counted.
    pub(crate) output_kept: Mutex<Option<u64>>,
}

impl Live {
    fn new(state: State) -> Self {
        Self {
            state: watch::Sender::new(state),
            course: AtomicU64::new(0),
            turn: RwLock::new(()),
            disk: RwLock::new(()),
            forced: Notify::new(),
            jobs: Mutex::default(),
            output_kept: Mutex::default(),
        }
    }

    /// Takes another course; the number is what [`Self::is_on`] wants to hear.
    pub(crate) fn turn_to_new_course(&self) -> u64 {
        self.course.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Whether nobody has asked for another course since.
    pub(crate) fn is_on(&self, course: u64) -> bool {
        self.course.load(Ordering::SeqCst) == course
    }

    /// Tells whoever waits for a state.
    pub(crate) fn announce(&self, state: State) {
        self.state.send_replace(state);
    }

    /// Watches the state.
    pub(crate) fn watch(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Adds a command that runs.
    pub(crate) fn add_job(&self, job: Arc<Job>) {
        let id = job.id();
        lock(&self.jobs).insert(id, job);
    }

    /// Forgets a command whose record and output are in the store.
    pub(crate) fn forget_job(&self, command: &str) {
        lock(&self.jobs).remove(command);
    }

    /// A command that runs, or that has ended and is recorded nowhere else.
    pub(crate) fn job(&self, command: &str) -> Option<Arc<Job>> {
        lock(&self.jobs).get(command).cloned()
    }

    /// Every such command.
    pub(crate) fn jobs(&self) -> Vec<Arc<Job>> {
        lock(&self.jobs).values().cloned().collect()
    }

    /// Forgets every command.
    pub(crate) fn clear_jobs(&self) {
        lock(&self.jobs).clear();
    }
}

/// Locks, whatever happened to the thread that held the lock before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl App {
    /// A service that knows nothing yet.
    pub(crate) fn new(
        clock: SharedClock,
        store: Box<dyn Store>,
        runner: Arc<dyn Runner>,
        spaces: PathBuf,
        machines: MachinesSeed,
    ) -> Self {
        Self {
            clock,
            store,
            runner,
            spaces,
            machines: Mutex::new(machines),
            live: Mutex::default(),
            keys_at_work: Mutex::default(),
            deadlines_changed: Notify::new(),
            written_later: Notify::new(),
            machine_freed: Notify::new(),
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// The wall time.
    pub(crate) fn now(&self) -> Millis {
        time::now(&*self.clock)
    }

    /// Looks at the store.
    pub(crate) fn read<T, E: From<StoreError>>(
        &self,
        body: impl FnOnce(&dyn Reader) -> Result<T, E>,
    ) -> Result<T, E> {
        typed::read(&*self.store, body)
    }

    /// Changes the store; on disk when this returns.
    pub(crate) fn write<T, E: From<StoreError>>(
        &self,
        body: impl FnOnce(&mut dyn Writer) -> Result<T, E>,
    ) -> Result<T, E> {
        typed::write(&*self.store, Durability::Now, body)
    }

    /// Changes the store; on disk with the next change that must be, at the latest a moment later.
    pub(crate) fn write_later<T, E: From<StoreError>>(
        &self,
        body: impl FnOnce(&mut dyn Writer) -> Result<T, E>,
    ) -> Result<T, E> {
        let written = typed::write(&*self.store, Durability::Later, body);
        self.written_later.notify_one();
        written
    }

    /// The live side of a sandbox, made from its record the first time.
    pub(crate) fn live(&self, sandbox: &Sandbox) -> Arc<Live> {
        lock(&self.live)
            .entry(sandbox.id.clone())
            .or_insert_with(|| Arc::new(Live::new(sandbox.state)))
            .clone()
    }

    /// Forgets a sandbox that is gone.
    pub(crate) fn forget(&self, id: &str) -> Option<Arc<Live>> {
        lock(&self.live).remove(id)
    }

    /// The live sides of all sandboxes.
    pub(crate) fn all_live(&self) -> Vec<Arc<Live>> {
        lock(&self.live).values().cloned().collect()
    }

    /// A sandbox's folders.
    pub(crate) fn space(&self, id: &str) -> Space {
        Space::new(id, self.spaces.join(id))
    }

    /// How the machines behave now.
    pub(crate) fn machines(&self) -> MachinesSeed {
        lock(&self.machines).clone()
    }

    /// Sleeps on the clock; ends early, with false, when the server closes.
    pub(crate) async fn sleep(&self, duration: Duration) -> bool {
        if duration.is_zero() {
            return !self.closing.is_cancelled();
        }
        tokio::select! {
            () = self.clock.sleep(duration) => true,
            () = self.closing.cancelled() => false,
        }
    }
}
