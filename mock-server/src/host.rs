//! The server's thread: what is opened before the first connection, and what is closed after the last.

use std::{
    io,
    net::{SocketAddr, TcpListener as StdListener},
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use sandboxer::clock::{Clock as _, SystemClock};
use tokio::net::TcpListener;

use crate::{
    app::{App, lock},
    builder::{Choice, MockServerBuilder, StartError},
    deliveries,
    faults::{Faults, FaultyListener},
    folders::{FolderError, Folders},
    hosting, lifecycle, memory, metering,
    page::Page,
    record::Recorder,
    runner::{self, RunnerOptions},
    serve::{self, Service},
    store::{Durability, RedbStore, Store, StoreError, typed},
    telemetry,
    world::{ids, keys, machine_keys, time, upgrade::upgrade},
};

/// How long background work has to end once the server closes.
const CLOSING: Duration = Duration::from_secs(3);

/// How long a change that may wait for the disk waits for another one to go with.
const FLUSHING: Duration = Duration::from_millis(250);

/// How long the uses of keys are counted before they are written.
const COUNTING: Duration = Duration::from_secs(2);

/// What the server's thread reports once connections are accepted.
pub(crate) struct Ready {
    pub(crate) service: Service,
    pub(crate) address: SocketAddr,
    pub(crate) notice: Option<String>,
}

type ReadySender = mpsc::SyncSender<Result<Ready, StartError>>;

/// Starts the thread and waits until it accepts connections.
pub(crate) fn launch(builder: MockServerBuilder) -> Result<(Ready, JoinHandle<()>), StartError> {
    let (ready, started) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("sandboxer-mock-server".into())
        .spawn(move || run(builder, &ready))
        .map_err(StartError::Io)?;
    let gone = || StartError::Io(io::Error::other("the server's thread ended"));
    let ready = started.recv().map_err(|_| gone())??;
    Ok((ready, thread))
}

/// The server's thread, from its first line to its last.
fn run(builder: MockServerBuilder, ready: &ReadySender) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("sandboxer-mock-server-worker")
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return report(ready, StartError::Io(error)),
    };
    let folders = runtime.block_on(serve_until_closed(builder, ready));
    // Nothing may write below the folders any more when they are removed.
    runtime.shutdown_timeout(CLOSING);
    drop(folders);
}

fn report(ready: &ReadySender, error: StartError) {
    // Whoever waits for it is gone only if its thread is.
    let _ = ready.send(Err(error));
}

async fn serve_until_closed(builder: MockServerBuilder, ready: &ReadySender) -> Option<Folders> {
    let Opened { service, listener, folders, notice } = match open(builder).await {
        Ok(opened) => opened,
        Err(error) => {
            report(ready, error);
            return None;
        }
    };
    let app = service.app.clone();
    let deadlines = tokio::spawn(lifecycle::keep_deadlines(app.clone()));
    app.tasks.spawn(lifecycle::keep_up(app.clone()));
    app.tasks.spawn(lifecycle::keep_capturing(app.clone()));
    let flushing = tokio::spawn(flush(app.clone()));
    let counting = tokio::spawn(count(app.clone()));
    let delivering = tokio::spawn(deliveries::keep_delivering(app.clone()));
    let exporting = tokio::spawn(telemetry::keep_exporting(app.clone()));
    app.tasks.spawn(metering::keep_sampling(app.clone()));
    app.tasks.spawn(memory::keep_within(app.clone()));
    let address = listener.local_addr();
    let _ = ready.send(Ok(Ready { service: service.clone(), address, notice }));
    let end_commands = async || {
        for live in app.all_live() {
            live.jobs().iter().for_each(|job| job.lose());
        }
        app.runner.shutdown().await;
    };
    // Calls that wait for a command are answered while their connections are still open.
    let ended_early = async {
        app.closing.cancelled().await;
        end_commands().await;
    };
    tokio::join!(serve::serve(service, listener), ended_early);
    // A call that was on its way may have started something since.
    end_commands().await;
    app.tasks.close();
    let clock = SystemClock::new();
    tokio::select! {
        () = app.tasks.wait() => {}
        () = clock.sleep(CLOSING) => tracing::warn!("background work did not end in time"),
    }
    let _ = tokio::join!(deadlines, flushing, counting, delivering, exporting);
    // What could wait until now is written.
    let written = app.write_key_uses().and_then(|()| app.write::<(), StoreError>(|_| Ok(())));
    if let Err(error) = written {
        tracing::error!(%error, "the last changes could not be stored");
    }
    Some(folders)
}

/// Brings to disk what was written without waiting for it, so that a server that is killed forgets little.
async fn flush(app: Arc<App>) {
    // About real disks and real kills, not about modelled time.
    let clock = SystemClock::new();
    loop {
        tokio::select! {
            () = app.written_later.notified() => {}
            () = app.closing.cancelled() => return,
        }
        tokio::select! {
            () = clock.sleep(FLUSHING) => {}
            () = app.closing.cancelled() => return,
        }
        if let Err(error) = app.make_durable().await {
            tracing::error!(%error, "changes could not be brought to disk");
        }
    }
}

/// Writes how often keys were used, so that no request waits for that.
async fn count(app: Arc<App>) {
    let clock = SystemClock::new();
    loop {
        tokio::select! {
            () = app.key_uses_counted.notified() => {}
            () = app.closing.cancelled() => return,
        }
        tokio::select! {
            () = clock.sleep(COUNTING) => {}
            () = app.closing.cancelled() => return,
        }
        let counting = app.clone();
        let written = tokio::task::spawn_blocking(move || counting.write_key_uses()).await;
        if let Ok(Err(error)) = written {
            tracing::error!(%error, "the uses of keys could not be stored");
        }
    }
}

struct Opened {
    service: Service,
    listener: FaultyListener,
    folders: Folders,
    notice: Option<String>,
}

async fn open(builder: MockServerBuilder) -> Result<Opened, StartError> {
    let MockServerBuilder {
        listen,
        world,
        runner,
        network,
        data_dir,
        clock,
        loopback_targets,
        agent,
        page_hosts,
        ..
    } = builder;
    let listener = listen_on(listen).map_err(|error| StartError::Listen(listen, error))?;
    let listener = TcpListener::from_std(listener).map_err(StartError::Io)?;
    let faults = Faults::new(clock.clone());
    let recorder = Recorder::new(clock.clone());
    let listener = FaultyListener::new(listener, faults.wire()).map_err(StartError::Io)?;
    let folders = match &data_dir {
        Some(folder) => Folders::kept(folder),
        None => Folders::temporary(),
    }
    .map_err(|error| match error {
        FolderError::InUse(folder) => StartError::DataInUse(folder),
        FolderError::Io(folder, error) => StartError::Folder(folder, error),
    })?;
    let store = open_store(&folders)?;
    let (runner, notice) = match runner {
        Choice::Own(runner) => (runner, None),
        Choice::Kind(kind) => {
            let options = RunnerOptions::new(clock.clone())
                .network(network)
                .hide(folders.root())
                .scratch(folders.scratch());
            runner::open(kind, &options)
                .await
                .map_err(|error| StartError::Runner(format!("--runner {kind}: {error}")))?
        }
    };
    typed::write(&*store, Durability::Now, upgrade).map_err(|error| StartError::Store(error.to_string()))?;
    let now = time::now(&*clock);
    let planted = typed::write(&*store, Durability::Now, |tx| {
        // Keys are good for the run they were given to.
        keys::forget_given(tx, &world.given())?;
        machine_keys::prepare(tx)?;
        world.plant(tx, now)
    });
    planted.map_err(|error| StartError::Store(error.to_string()))?;
    let first_key = world.keys.first().map(|key| ids::digest(&key.secret)).unwrap_or_default();
    let page = Arc::new(Page::new(page_hosts, first_key));
    let (scenarios, agents) = (world.scenarios(), world.agents);
    let app = Arc::new(App::new(clock, store, runner, folders.spaces(), world.machines, loopback_targets));
    let _ = app.address.set(listener.local_addr());
    *lock(&app.scenarios) = scenarios;
    app.agents.set(agents);
    if let Some(agent) = agent {
        app.agents.install(agent);
    }
    lifecycle::take_up(&app).map_err(|error| StartError::Store(error.to_string()))?;
    hosting::take_up(&app).map_err(|error| StartError::Store(error.to_string()))?;
    Ok(Opened { service: Service::new(app, faults, recorder, page), listener, folders, notice })
}

fn listen_on(address: SocketAddr) -> io::Result<StdListener> {
    let listener = StdListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn open_store(folders: &Folders) -> Result<Box<dyn Store>, StartError> {
    let store = match folders.store() {
        Some(path) => RedbStore::open(&path),
        None => RedbStore::in_memory(),
    };
    match store {
        Ok(store) => Ok(Box::new(store)),
        Err(StoreError::InUse) => Err(StartError::DataInUse(folders.root().to_owned())),
        Err(error) => Err(StartError::Store(error.to_string())),
    }
}
