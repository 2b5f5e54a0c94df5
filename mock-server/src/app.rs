//! Everything the handlers share.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use sandboxer::clock::SharedClock;
use tokio::sync::{Notify, RwLock, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    agent::Agents,
    folders::{SCRATCH, SNAPSHOTS},
    hosting::Gateway,
    job::Job,
    memory::Watched,
    metering::Meters,
    outbound::Sender,
    router,
    runner::{Runner, Space},
    snapshots::Shelf,
    store::{Durability, Reader, Store, StoreError, Writer, typed},
    world::{
        key_uses::{self, KeyUses},
        keys::Key,
        sandboxes::{Sandbox, State},
        scenarios::{Scenario, Scenarios},
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
    /// The snapshots of their disks.
    pub(crate) shelf: Shelf,
    pub(crate) machines: Mutex<MachinesSeed>,
    /// What is wrong in this world.
    pub(crate) scenarios: Mutex<Scenarios>,
    live: Mutex<HashMap<String, Arc<Live>>>,
    /// Idempotency keys whose first call is still at work.
    pub(crate) keys_at_work: Mutex<HashSet<String>>,
    /// Told whenever the earliest auto-stop may have changed.
    pub(crate) deadlines_changed: Notify,
    /// Told whenever something was written that is not on disk yet.
    pub(crate) written_later: Notify,
    /// How often keys were used, as far as it is not written yet.
    pub(crate) key_uses: KeyUses,
    /// Told when the first of those is counted.
    pub(crate) key_uses_counted: Notify,
    /// Where it listens; nowhere yet if unset.
    pub(crate) address: OnceLock<SocketAddr>,
    /// How many such changes there were, and how many of them are on disk.
    written: AtomicU64,
    durable: tokio::sync::Mutex<u64>,
    /// Told whenever a sandbox's state has changed.
    pub(crate) happened: Notify,
    /// Told whenever it may have changed who may read what a sandbox writes, or whether its machine answers.
    pub(crate) reach_changed: watch::Sender<()>,
    /// Told whenever a machine may have become free.
    pub(crate) machine_freed: Notify,
    /// Told whenever there may be more disks to capture from time to time, or that is done more or less often.
    pub(crate) captures_changed: Notify,
    /// Told whenever the earliest export of gauges may have changed.
    pub(crate) telemetry_changed: Notify,
    /// How busy the sandboxes are.
    pub(crate) meters: Meters,
    /// Where memory is looked after.
    pub(crate) watched: Watched,
    /// The ways into sandboxes from outside.
    pub(crate) hosting: Gateway,
    /// What answers prompts, and what it is at.
    pub(crate) agents: Agents,
    /// Sends requests of the server's own.
    pub(crate) outbound: Sender,
    /// Open streams and background tasks end when this does.
    pub(crate) closing: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// What is known of a sandbox besides its record: what runs in it and who waits for it.
pub(crate) struct Live {
    state: watch::Sender<State>,
    /// Goes up whenever somebody asks for another course: what an older task was about to do is then off.
    course: AtomicU64,
    /// When it came up last, as far as this server has brought it up.
    up_since: AtomicI64,
    /// Starting a command holds it for reading; booting, stopping and deleting hold it for writing.
    pub(crate) turn: RwLock<()>,
    /// Copying the disk holds it for reading, but for a copy that is of no use once the disk is gone; removing the disk
    /// holds it for writing.
    pub(crate) disk: RwLock<()>,
    /// Saving the disk under a name holds it for reading from the first byte to the last; deleting waits for that.
    pub(crate) saves: Arc<RwLock<()>>,
    /// One at a time brings the secret files of its environment into its work folder.
    pub(crate) placing: tokio::sync::Mutex<()>,
    /// The course of the last stop that was told to give up on saving.
    forced_on: watch::Sender<Option<u64>>,
    jobs: Mutex<HashMap<String, Arc<Job>>>,
}

/// The course that a sandbox is on before anybody asks for another.
pub(crate) const FIRST_COURSE: u64 = 0;

impl Live {
    fn new(state: State) -> Self {
        Self {
            state: watch::Sender::new(state),
            course: AtomicU64::new(FIRST_COURSE),
            up_since: AtomicI64::new(0),
            turn: RwLock::new(()),
            disk: RwLock::new(()),
            saves: Arc::default(),
            placing: tokio::sync::Mutex::default(),
            forced_on: watch::Sender::new(None),
            jobs: Mutex::default(),
        }
    }

    /// Takes another course; the number is what [`Self::is_on`] wants to hear.
    pub(crate) fn turn_to_new_course(&self) -> u64 {
        self.course.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// The course that it is on.
    pub(crate) fn course(&self) -> u64 {
        self.course.load(Ordering::SeqCst)
    }

    /// It comes up now.
    pub(crate) fn came_up(&self, now: Millis) {
        self.up_since.store(now, Ordering::SeqCst);
    }

    /// When it came up last; long ago if another server brought it up.
    pub(crate) fn up_since(&self) -> Millis {
        self.up_since.load(Ordering::SeqCst)
    }

    /// Whether nobody has asked for another course since.
    pub(crate) fn is_on(&self, course: u64) -> bool {
        self.course() == course
    }

    /// Tells the stop on a course to give up on saving.
    pub(crate) fn force(&self, course: u64) {
        self.forced_on.send_replace(Some(course));
    }

    /// Whether that stop was told so.
    pub(crate) fn is_forced(&self, course: u64) -> bool {
        *self.forced_on.borrow() == Some(course)
    }

    /// Waits until it is told so.
    pub(crate) async fn forced(&self, course: u64) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.forced_on.subscribe().wait_for(|forced_on| *forced_on == Some(course)).await;
    }

    /// Waits until somebody has asked for another course and told of it.
    pub(crate) async fn off_course(&self, course: u64) {
        let mut state = self.watch();
        // The sender lives in `self`, so waiting cannot fail.
        while self.is_on(course) && state.changed().await.is_ok() {}
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
        loopback_targets: bool,
    ) -> Self {
        Self {
            outbound: Sender::new(clock.clone(), loopback_targets),
            hosting: Gateway::default(),
            meters: Meters::default(),
            watched: Watched::default(),
            clock,
            store,
            runner,
            shelf: Shelf::new(spaces.with_file_name(SNAPSHOTS)),
            spaces,
            machines: Mutex::new(machines),
            scenarios: Mutex::default(),
            live: Mutex::default(),
            keys_at_work: Mutex::default(),
            deadlines_changed: Notify::new(),
            written_later: Notify::new(),
            key_uses: KeyUses::default(),
            key_uses_counted: Notify::new(),
            address: OnceLock::new(),
            written: AtomicU64::new(0),
            durable: tokio::sync::Mutex::default(),
            happened: Notify::new(),
            reach_changed: watch::Sender::new(()),
            machine_freed: Notify::new(),
            captures_changed: Notify::new(),
            telemetry_changed: Notify::new(),
            agents: Agents::default(),
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
        self.written.fetch_add(1, Ordering::SeqCst);
        self.written_later.notify_one();
        written
    }

    /// Waits until everything written before the call is on disk, if this server keeps its data. Those that wait at once
    /// share one trip to the disk; if it fails, whoever comes next makes another.
    pub(crate) async fn make_durable(self: &Arc<Self>) -> Result<(), StoreError> {
        if !self.store.is_kept() {
            return Ok(());
        }
        let wanted = self.written.load(Ordering::SeqCst);
        let mut durable = self.durable.lock().await;
        if *durable >= wanted {
            return Ok(());
        }
        let until = self.written.load(Ordering::SeqCst);
        let app = self.clone();
        let written = tokio::task::spawn_blocking(move || app.write::<(), StoreError>(|_| Ok(()))).await;
        written.unwrap_or_else(|lost| Err(StoreError::Failed(lost.to_string())))?;
        *durable = until;
        Ok(())
    }

    /// Counts a use of a key.
    pub(crate) fn key_used(&self, key: &Key) {
        if !key.is_session() && self.key_uses.count(&key.id, self.now()) {
            self.key_uses_counted.notify_one();
        }
    }

    /// Writes how often keys were used, so that the store has every use up to now.
    pub(crate) fn write_key_uses(&self) -> Result<(), StoreError> {
        self.key_uses.flush(|counted| self.write_later(|tx| key_uses::add(tx, counted)))
    }

    /// The base URL of the API as this machine reaches it; none before the server listens.
    pub(crate) fn url(&self) -> Option<String> {
        let mut address = *self.address.get()?;
        if address.ip().is_unspecified() {
            let loopback: IpAddr = match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            };
            address.set_ip(loopback);
        }
        Some(format!("http://{address}{}", router::PREFIX))
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

    /// A folder on the disk of the sandboxes that none of them sees.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.spaces.with_file_name(SCRATCH)
    }

    /// How the machines behave now.
    pub(crate) fn machines(&self) -> MachinesSeed {
        lock(&self.machines).clone()
    }

    /// What is wrong now.
    pub(crate) fn scenarios(&self) -> Scenarios {
        lock(&self.scenarios).clone()
    }

    /// Whether the machine of a sandbox does not answer, also to what it was at already. Of that, a disk that is still restored
    /// keeps nothing back.
    pub(crate) fn is_silent(&self, sandbox: &Sandbox) -> bool {
        sandbox.state.is_up() && self.scenarios().is_on(Scenario::Unreachable, sandbox)
    }

    /// Waits until the machine of a sandbox does not answer.
    pub(crate) async fn silence(&self, sandbox: &str) {
        let mut changed = self.reach_changed.subscribe();
        loop {
            changed.borrow_and_update();
            if !self.scenarios().is_empty() {
                let found = self.read::<_, StoreError>(|tx| typed::get::<Sandbox>(tx, sandbox));
                if found.ok().flatten().is_some_and(|sandbox| self.is_silent(&sandbox)) {
                    return;
                }
            }
            // The sender lives in `self`, so waiting cannot fail.
            let _ = changed.changed().await;
        }
    }

    /// Waits for a wall time on the clock; for ever if there is none to wait for.
    pub(crate) async fn wait_until(&self, at: Option<Millis>) {
        match at {
            Some(at) => {
                self.clock.sleep(Duration::from_millis(u64::try_from(at - self.now()).unwrap_or(0))).await;
            }
            None => std::future::pending().await,
        }
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

#[cfg(test)]
mod tests {
    use crate::{store::StoreError, testing::Setting};

    #[tokio::test]
    async fn what_could_not_be_brought_to_disk_is_said_and_tried_again() {
        let set = Setting::new();
        set.app.write_later::<_, StoreError>(|_| Ok(())).unwrap();
        set.faults.set_durable(true);
        for _ in 0..2 {
            let failed = set.app.make_durable().await;
            assert!(matches!(failed, Err(StoreError::Failed(_))), "{failed:?}");
        }
        set.faults.set_durable(false);
        set.app.make_durable().await.unwrap();
        // There is nothing left that could fail.
        set.faults.set_durable(true);
        set.app.make_durable().await.unwrap();
    }
}
