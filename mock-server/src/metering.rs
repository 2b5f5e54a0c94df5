//! How busy sandboxes are: looks at their processes, one when somebody asks and one every half a minute.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use sandboxer::clock::{Clock as _, SystemClock};
use serde_json::Value;
use tokio::sync::Notify;

use crate::{
    app::{App, lock},
    runner::ProcessSample,
    space,
    store::{StoreError, typed},
    strays, view,
    world::{
        commands::{Command, Status},
        metrics::{self, Load},
        process_looks::ProcessLook,
        sandboxes::{Sandbox, State, machine_class},
        time::Millis,
    },
};

/// How much time there is between two samples. A moment more than half a minute, since other things are done every half
/// minute and a test tells sleeps apart by their length.
pub(crate) const PERIOD: Duration = Duration::from_millis(30_001);

/// Real time between two looks that a load can be told from, at the least and at the most.
const APART: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));

/// How big a disk is said to be: there is no bound on what a sandbox may write, and the service names no size.
const DISK: u64 = 40 << 30;

/// How many files and folders are looked at to tell how much of it is used.
const MOST_FILES: u64 = 50_000;

const MIB: f64 = 1024.0 * 1024.0;

/// Stored samples keep this many processes and characters of a command line.
const SAMPLE_PROCESSES: usize = 12;
const SAMPLE_CHARACTERS: usize = 120;

/// What was seen at the last looks.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    /// Real time: processes use that, whatever the server's clock says.
    clock: SystemClock,
    looks: Mutex<HashMap<String, Arc<Look>>>,
    /// The sandboxes in which something has run.
    watched: Mutex<HashSet<String>>,
    begun: Notify,
}

/// The processes of a sandbox at a moment.
#[derive(Debug)]
struct Look {
    at: Duration,
    processes: Vec<ProcessSample>,
}

impl Meters {
    /// Something has begun to run in a sandbox: it is looked at from now on.
    pub(crate) fn watch(&self, sandbox: &str) {
        let mut watched = lock(&self.watched);
        if !watched.contains(sandbox) {
            watched.insert(sandbox.to_owned());
            self.begun.notify_one();
        }
    }

    /// Stops looking at a sandbox, and forgets what was seen.
    pub(crate) fn unwatch(&self, sandbox: &str) {
        lock(&self.watched).remove(sandbox);
        lock(&self.looks).remove(sandbox);
    }

    /// The same, unless something may have begun to run there since it was seen that nothing does.
    fn unwatch_if<E>(&self, sandbox: &str, is_still: impl FnOnce() -> Result<bool, E>) -> Result<(), E> {
        // Whoever begins something waits for this, and has made the sandbox ready before.
        let mut watched = lock(&self.watched);
        if is_still()? {
            watched.remove(sandbox);
            lock(&self.looks).remove(sandbox);
        }
        Ok(())
    }
}

/// The load of a sandbox, in percent and in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) load: Load,
    pub(crate) memory: (u64, u64),
    pub(crate) disk: (u64, u64),
}

/// Measures the load of a sandbox now: since the last look if that was a moment ago, else over a tenth of a second.
pub(crate) async fn measure(app: &App, sandbox: &Sandbox) -> io::Result<Measured> {
    Ok(measure_with(app, sandbox, || {}).await?.0)
}

/// The same, with the look that it is told from; `beside` is called right before that look and right after it.
async fn measure_with(
    app: &App,
    sandbox: &Sandbox,
    mut beside: impl FnMut() + Send,
) -> io::Result<(Measured, Arc<Look>)> {
    let meters = &app.meters;
    let last = lock(&meters.looks).get(&sandbox.id).cloned();
    let is_useful = |look: &Arc<Look>| {
        let age = meters.clock.elapsed().saturating_sub(look.at);
        APART.0 <= age && age <= APART.1
    };
    let before = match last.filter(is_useful) {
        Some(look) => look,
        None => {
            let look = Arc::new(look(app, &sandbox.id).await?);
            meters.clock.sleep(APART.0).await;
            look
        }
    };
    beside();
    let now = Arc::new(look(app, &sandbox.id).await?);
    beside();
    lock(&meters.looks).insert(sandbox.id.clone(), now.clone());
    // One that was deleted during the look was forgotten before it.
    if app.read(|tx| typed::get::<Sandbox>(tx, &sandbox.id)).map_err(io::Error::other)?.is_none() {
        meters.unwatch(&sandbox.id);
    }
    let root = app.space(&sandbox.id).root;
    let used = tokio::task::spawn_blocking(move || match space::tree_size_within(&root, MOST_FILES) {
        Ok(size) => Ok(size.allocated),
        // Nothing has been written yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    });
    let used = used.await.map_err(io::Error::other)??;
    let class = machine_class(&sandbox.kind);
    let memory = u64::from(class.memory_gb) << 30;
    let resident = now.processes.iter().map(|process| process.memory_mb * MIB).sum::<f64>() as u64;
    let (busy, moved) = between(&before, &now);
    let load = Load {
        cpu: percent(busy, f64::from(class.vcpu)),
        mem: percent(resident as f64, memory as f64),
        disk: percent(used as f64, DISK as f64),
        io: moved,
    };
    Ok((Measured { load, memory: (resident, memory), disk: (used, DISK) }, now))
}

async fn look(app: &App, id: &str) -> io::Result<Look> {
    let processes = app.runner.processes(&app.space(id)).await?;
    Ok(Look { at: app.meters.clock.elapsed(), processes })
}

fn percent(part: f64, whole: f64) -> f64 {
    (part / whole * 100.0).clamp(0.0, 100.0)
}

/// Processors that were busy between two looks, and bytes a second that were read and written. Of a process that has ended
/// meanwhile nothing is known any more.
fn between(before: &Look, now: &Look) -> (f64, f64) {
    let seconds = now.at.saturating_sub(before.at).as_secs_f64();
    if seconds <= 0.0 {
        return (0.0, 0.0);
    }
    let known: HashMap<u32, &ProcessSample> =
        before.processes.iter().map(|process| (process.pid, process)).collect();
    let (mut busy, mut moved) = (Duration::ZERO, 0);
    for process in &now.processes {
        // A lower figure than before is that of a later process of the same number.
        let earlier = known.get(&process.pid).filter(|earlier| earlier.cpu_time <= process.cpu_time);
        busy += process.cpu_time - earlier.map_or(Duration::ZERO, |earlier| earlier.cpu_time);
        moved += process.io_bytes.saturating_sub(earlier.map_or(0, |earlier| earlier.io_bytes));
    }
    (busy.as_secs_f64() / seconds, moved as f64 / seconds)
}

/// Samples every sandbox that is monitored and in which something has run, for as long as the server runs.
pub(crate) async fn keep_sampling(app: Arc<App>) {
    loop {
        if lock(&app.meters.watched).is_empty() {
            tokio::select! {
                () = app.meters.begun.notified() => {}
                () = app.closing.cancelled() => return,
            }
        }
        if !app.sleep(PERIOD).await {
            return;
        }
        let watched: Vec<String> = lock(&app.meters.watched).iter().cloned().collect();
        for id in watched {
            if let Err(error) = sample(&app, &id).await {
                tracing::debug!(sandbox = %id, %error, "a sandbox could not be sampled");
            }
            if app.closing.is_cancelled() {
                return;
            }
        }
    }
}

/// Whether there is something to be seen of a sandbox, now or soon: the scripts that one that is starting waits for run already,
/// and what runs in one that is being stopped runs on if its disk cannot be saved.
fn goes_on(sandbox: &Sandbox) -> bool {
    let state = sandbox.state;
    sandbox.monitoring && (state.is_up() || state.is_starting() || state == State::Archiving)
}

async fn sample(app: &App, id: &str) -> io::Result<()> {
    let find = || app.read(|tx| typed::get::<Sandbox>(tx, id)).map_err(io::Error::other);
    let sandbox = match find()?.filter(goes_on) {
        Some(sandbox) if sandbox.state.is_up() && !app.scenarios().cut_off(&sandbox) => sandbox,
        Some(_) => return Ok(()),
        // The next command that runs in it brings it back.
        None => return app.meters.unwatch_if(id, || Ok(find()?.is_none_or(|sandbox| !goes_on(&sandbox)))),
    };
    let at = app.now();
    let live = app.live(&sandbox);
    let mut commands: Vec<Command> = Vec::new();
    // Those that began before the look, and those that ended after it: the processes of both are in it.
    let note_commands = || {
        for job in live.jobs() {
            let record = job.record();
            let ran = record.status == Status::Running || record.finished_at.is_some_and(|end| end >= at);
            if ran && commands.iter().all(|known| known.id != record.id) {
                commands.push(record);
            }
        }
    };
    let (measured, look) = measure_with(app, &sandbox, note_commands).await?;
    // What has passed since the look makes no process of it older.
    let clock = &app.meters.clock;
    let now = clock.now();
    let machine_time = now.checked_sub(clock.elapsed().saturating_sub(look.at)).unwrap_or(now);
    let strays = strays::among(&look.processes, &commands, machine_time, at);
    let seen = process_look(id, at, look.processes.clone());
    let written = app.write_later(|tx| {
        // One that was deleted meanwhile must leave nothing behind.
        if typed::get::<Sandbox>(&*tx, id)?.is_none_or(|sandbox| !sandbox.state.is_up()) {
            return Ok(());
        }
        metrics::add(tx, id, at, measured.load)?;
        strays::note(tx, id, strays, at)?;
        typed::put(tx, &seen)
    });
    written.map_err(|error: StoreError| io::Error::other(error))
}

/// The busiest processes, as they are kept for questions that come while a sandbox is stopped.
pub(crate) fn process_look(sandbox: &str, at: Millis, mut processes: Vec<ProcessSample>) -> ProcessLook {
    let total = processes.len();
    processes.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent));
    let processes = processes
        .iter()
        .take(SAMPLE_PROCESSES)
        .map(|process| {
            let mut shown = view::process(process, None, SAMPLE_CHARACTERS);
            // Told of living ones only.
            shown["startedAt"] = Value::Null;
            shown
        })
        .collect();
    ProcessLook { sandbox: sandbox.to_owned(), at, total, processes }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            OnceLock,
            atomic::{AtomicUsize, Ordering},
        },
        time::SystemTime,
    };

    use futures_util::future::BoxFuture;

    use super::*;
    use crate::{
        handlers::commands::begin_for_agent,
        runner::{CommandSpec, Runner, RunnerError, Running, Script, ScriptedRunner, Space},
        testing::Setting,
    };

    fn process(pid: u32, cpu: u64, io_bytes: u64) -> ProcessSample {
        ProcessSample {
            pid,
            parent: 1,
            user: "user".into(),
            started_at: SystemTime::UNIX_EPOCH,
            cpu_percent: 0.0,
            memory_mb: 1.0,
            command: "x".into(),
            cpu_time: Duration::from_millis(cpu),
            io_bytes,
        }
    }

    #[test]
    fn a_load_is_what_was_used_between_two_looks() {
        let before =
            Look { at: Duration::from_secs(10), processes: vec![process(2, 500, 100), process(3, 9000, 7)] };
        // The first went on, the second was followed by another of its number, the third is new.
        let processes = vec![process(2, 1500, 300), process(3, 200, 10), process(4, 800, 0)];
        let now = Look { at: Duration::from_secs(12), processes };
        assert_eq!(between(&before, &now), (1.0, 105.0));
        assert_eq!(between(&now, &now), (0.0, 0.0));
        assert_eq!((percent(3.0, 2.0), percent(1.0, 4.0)), (100.0, 25.0));
    }

    #[tokio::test]
    async fn a_look_at_a_sandbox_that_was_deleted_meanwhile_is_not_kept() {
        let set = Setting::new();
        let app = &set.app;
        let sandbox = set.sandbox(State::Ready).await;
        measure(app, &sandbox).await.unwrap();
        assert!(lock(&app.meters.looks).contains_key("bx_1"));
        set.write(|tx| typed::remove::<Sandbox>(tx, "bx_1"));
        measure(app, &sandbox).await.unwrap();
        assert!(lock(&app.meters.looks).is_empty());
    }

    #[tokio::test]
    async fn one_that_is_starting_or_stopping_stays_watched_and_one_that_has_stopped_does_not() {
        for (state, stays) in [(State::Cloning, true), (State::Archiving, true), (State::Archived, false)] {
            let set = Setting::new();
            set.sandbox(state).await;
            set.app.meters.watch("bx_1");
            sample(&set.app, "bx_1").await.unwrap();
            assert_eq!(lock(&set.app.meters.watched).contains("bx_1"), stays);
        }
    }

    /// A runner whose command ends while its processes are looked at.
    struct Ending {
        scripts: ScriptedRunner,
        app: OnceLock<Arc<App>>,
        looks: AtomicUsize,
    }

    impl Runner for Ending {
        fn name(&self) -> &'static str {
            "ending"
        }
        fn limitations(&self) -> Option<String> {
            None
        }
        fn prepare<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, io::Result<()>> {
            self.scripts.prepare(space)
        }
        fn spawn<'a>(
            &'a self,
            space: &'a Space,
            spec: CommandSpec,
        ) -> BoxFuture<'a, Result<Running, RunnerError>> {
            self.scripts.spawn(space, spec)
        }
        fn end_space<'a>(&'a self, space_id: &'a str) -> BoxFuture<'a, ()> {
            self.scripts.end_space(space_id)
        }
        fn processes<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, io::Result<Vec<ProcessSample>>> {
            Box::pin(async move {
                let app = self.app.get().unwrap();
                let sandbox = app.read::<_, StoreError>(|tx| typed::get::<Sandbox>(tx, &space.id));
                let jobs = app.live(&sandbox.unwrap().unwrap()).jobs();
                // The second look is the one that counts.
                if self.looks.fetch_add(1, Ordering::SeqCst) == 1 {
                    self.scripts.end_space(&space.id).await;
                    for job in &jobs {
                        job.ended().await;
                    }
                }
                let started_at = app.meters.clock.now() - Duration::from_secs(60);
                let main = jobs.iter().filter_map(|job| job.record().pid);
                let main = main.map(|pid| ProcessSample { started_at, ..process(pid, 0, 0) });
                let left = ProcessSample { started_at, ..process(77, 0, 0) };
                Ok(main.chain([left]).collect())
            })
        }
        fn shutdown(&self) -> BoxFuture<'_, ()> {
            self.scripts.shutdown()
        }
    }

    #[tokio::test]
    async fn a_command_that_ends_during_a_look_is_no_process_of_its_own() {
        let mut runner = None;
        let set = Setting::with_runner(|clock| {
            let scripts = ScriptedRunner::new(clock.shared());
            scripts.on("", Script::new().never_end());
            let ending = Arc::new(Ending { scripts, app: OnceLock::new(), looks: AtomicUsize::new(0) });
            runner = Some(ending.clone());
            ending
        });
        assert!(runner.unwrap().app.set(set.app.clone()).is_ok());
        let sandbox = set.sandbox(State::Ready).await;
        let job = begin_for_agent(&set.app, &sandbox.id, "work".into()).await;
        let job = job.map_err(|error| error.message().to_owned()).unwrap();
        assert!(!job.has_ended());
        sample(&set.app, &sandbox.id).await.unwrap();
        assert!(job.has_ended());
        let strays = set.app.read(|tx| strays::running(tx, &sandbox.id)).unwrap();
        let pids: Vec<_> = strays.iter().map(|stray| stray.pid).collect();
        assert_eq!(pids, [Some(77)]);
    }

    #[tokio::test]
    async fn looks_go_with_their_sandbox() {
        let set = Setting::new();
        let app = &set.app;
        let sandbox = set.sandbox(State::Ready).await;
        app.meters.watch("bx_1");
        measure(app, &sandbox).await.unwrap();
        crate::lifecycle::begin_delete(app, &sandbox, "a").unwrap();
        assert!(lock(&app.meters.looks).is_empty() && lock(&app.meters.watched).is_empty());
    }
}
