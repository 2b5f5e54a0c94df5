//! One command from its start to its record in the history.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use sandboxer::clock::{Clock as _, SystemClock};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    app::{App, Live, lock},
    runner::{OutputRing, Running},
    store::{StoreError, typed},
    world::{
        commands::{self, Command, Kept, OUTPUT_OF_SANDBOX_LIMIT, Status, Stream},
        output_hours,
        sandboxes::Sandbox,
    },
};

/// How long a command's tree has between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// How long what a running command writes waits to be stored with what it writes next.
const KEEPING: Duration = Duration::from_millis(200);

/// A command that was started. Somebody watches over it whether or not a client still listens.
pub(crate) struct Job {
    record: Mutex<Command>,
    running: Running,
    /// Whether the history keeps it.
    is_recorded: bool,
    killed: CancellationToken,
    starved: CancellationToken,
    lost: AtomicBool,
    /// Whether the store could not take its end.
    unkept: AtomicBool,
    ended: watch::Sender<bool>,
    /// What the store has of its output: standard output, standard error.
    stored: Mutex<[Kept; 2]>,
}

/// Why the server ends a command.
#[derive(Clone, Copy)]
enum Verdict {
    Killed,
    Starved,
    TimedOut,
}

impl Job {
    /// Watches over a command that has just been started, until it has ended and is recorded.
    pub(crate) fn begin(
        app: &Arc<App>,
        live: &Arc<Live>,
        record: Command,
        running: Running,
        is_recorded: bool,
        limit: Option<Duration>,
    ) -> Arc<Self> {
        app.meters.watch(&record.sandbox);
        let job = Arc::new(Self {
            record: Mutex::new(record),
            running,
            is_recorded,
            killed: CancellationToken::new(),
            starved: CancellationToken::new(),
            lost: AtomicBool::new(false),
            unkept: AtomicBool::new(false),
            ended: watch::Sender::new(false),
            stored: Mutex::default(),
        });
        live.add_job(job.clone());
        app.tasks.spawn(job.clone().watch_over(app.clone(), live.clone(), limit));
        if is_recorded && app.store.is_kept() {
            app.tasks.spawn(job.clone().keep(app.clone()));
        }
        job
    }

    /// The command's id.
    pub(crate) fn id(&self) -> String {
        lock(&self.record).id.clone()
    }

    /// The record as it is now.
    pub(crate) fn record(&self) -> Command {
        let mut record = lock(&self.record).clone();
        if record.status == Status::Running {
            record.stdout = kept(self.running.output().stdout());
            record.stderr = kept(self.running.output().stderr());
        }
        record
    }

    /// One of its streams.
    pub(crate) fn ring(&self, stream: Stream) -> &OutputRing {
        match stream {
            Stream::Stdout => self.running.output().stdout(),
            Stream::Stderr => self.running.output().stderr(),
        }
    }

    /// Ends it with everything it started; true if it was still running when asked.
    pub(crate) async fn kill(&self) -> bool {
        let was_running = !self.has_ended();
        self.killed.cancel();
        self.ended().await;
        was_running && self.record().status == Status::Killed
    }

    /// Ends it with everything it started: its sandbox has no memory left.
    pub(crate) fn starve(&self) {
        self.starved.cancel();
    }

    /// Its sandbox goes away: however it ends now, nobody will know how.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::SeqCst);
    }

    /// Whether it has ended and is recorded.
    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Whether its end was to be recorded and could not be: nobody is to be told of it.
    pub(crate) fn is_unkept(&self) -> bool {
        self.unkept.load(Ordering::SeqCst)
    }

    /// Waits until it has ended and is recorded.
    pub(crate) async fn ended(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }

    async fn watch_over(self: Arc<Self>, app: Arc<App>, live: Arc<Live>, limit: Option<Duration>) {
        let verdict = tokio::select! {
            biased;
            _ = self.running.wait() => None,
            () = self.killed.cancelled() => Some(Verdict::Killed),
            () = self.starved.cancelled() => Some(Verdict::Starved),
            () = at_limit(&app, limit) => Some(Verdict::TimedOut),
        };
        match verdict {
            None => {}
            // There is no time to lose.
            Some(Verdict::Starved) => self.running.kill_tree(Duration::ZERO).await,
            Some(Verdict::Killed | Verdict::TimedOut) => self.running.kill_tree(GRACE).await,
        }
        let exit = self.running.wait().await;
        {
            let mut record = lock(&self.record);
            record.exit_code = exit.code;
            record.signal = exit.signal;
            record.oom_killed = exit.oom_killed || matches!(verdict, Some(Verdict::Starved));
            record.finished_at = Some(app.now());
            record.stdout = kept(self.running.output().stdout());
            record.stderr = kept(self.running.output().stderr());
            record.status = match verdict {
                _ if self.lost.load(Ordering::SeqCst) => Status::Lost,
                Some(Verdict::Killed | Verdict::Starved) => Status::Killed,
                Some(Verdict::TimedOut) => Status::TimedOut,
                None if exit.signal.is_some() => Status::Killed,
                None => Status::Exited,
            };
        }
        let stored = self.is_recorded
            && self
                .store_aside(&app)
                .await
                .map_err(|error| tracing::error!(%error, "a record is lost"))
                .is_ok();
        // Nobody is told of an end that a server that is killed would forget.
        if self.is_recorded {
            let durable = if stored { app.make_durable().await } else { Ok(()) };
            if let Err(error) = &durable {
                tracing::error!(%error, "the end of a command could not be brought to disk");
            }
            self.unkept.store(!stored || durable.is_err(), Ordering::SeqCst);
        }
        self.ended.send_replace(true);
        // Without a history the live side is all that later questions about a background command can be answered from.
        if stored || lock(&self.record).process_id.is_none() {
            live.forget_job(&self.id());
        }
    }

    /// Copies what it writes to the store while it runs, so that little of it is lost with a server that is killed.
    async fn keep(self: Arc<Self>, app: Arc<App>) {
        // About real disks and real kills, not about modelled time.
        let clock = SystemClock::new();
        loop {
            let [stdout, stderr] = lock(&self.stored).map(|kept| kept.end);
            tokio::select! {
                () = grown(self.ring(Stream::Stdout), stdout) => {}
                () = grown(self.ring(Stream::Stderr), stderr) => {}
                () = self.ended() => return,
                () = app.closing.cancelled() => return,
            }
            clock.sleep(KEEPING).await;
            if self.has_ended() {
                return;
            }
            if let Err(error) = self.store_aside(&app).await {
                tracing::error!(%error, "the output of a running command is not kept");
                return;
            }
        }
    }

    /// [`Self::store`] on a thread for it: much output takes a while to be measured.
    async fn store_aside(self: &Arc<Self>, app: &Arc<App>) -> Result<(), StoreError> {
        let (job, app) = (self.clone(), app.clone());
        let stored = tokio::task::spawn_blocking(move || job.store(&app)).await;
        stored.unwrap_or_else(|lost| Err(StoreError::Failed(lost.to_string())))
    }

    /// Brings the store up to date with its record and its output.
    fn store(&self, app: &App) -> Result<(), StoreError> {
        // Held until all is written: what is written last must be what is true last.
        let mut stored = lock(&self.stored);
        let mut record = self.record();
        let now = [record.stdout, record.stderr];
        let parts = [Stream::Stdout, Stream::Stderr].map(|stream| {
            let (was, is) = (stored[stream as usize], stream.kept(&record));
            let from = was.end.max(is.start);
            let max = usize::try_from(is.end.saturating_sub(from)).unwrap_or(0);
            // The ring may have let go of more since.
            let chunk = self.ring(stream).read_at(from, max);
            let max = usize::try_from(is.end.saturating_sub(chunk.offset)).unwrap_or(0);
            (stream, was, is, chunk.offset, chunk.bytes.slice(..chunk.bytes.len().min(max)))
        });
        let packed = match record.history_ends {
            None => parts.iter().map(|(.., bytes)| output_hours::packed(bytes)).sum(),
            Some(_) => 0,
        };
        let ends = app.write_later(|tx| {
            // The sandbox may have been deleted meanwhile; then its history is gone with it.
            let Some(sandbox) = typed::get::<Sandbox>(&*tx, &record.sandbox)? else { return Ok(None) };
            if !output_hours::take(tx, &sandbox.account, packed, app.now())? {
                record.history_ends = Some(stored.map(|kept| kept.end));
            }
            for (stream, was, is, from, bytes) in &parts {
                commands::keep_output(tx, &record.id, *stream, *from, bytes)?;
                commands::drop_output(tx, &record.id, *stream, *was, is.start)?;
            }
            typed::put(tx, &record)?;
            commands::drop_oldest_output(tx, &record.sandbox, OUTPUT_OF_SANDBOX_LIMIT)?;
            Ok::<_, StoreError>(record.history_ends)
        })?;
        lock(&self.record).history_ends = ends;
        *stored = now;
        Ok(())
    }

    /// A part of its output: where it begins, the bytes, and how far the stream has come.
    pub(crate) fn output(&self, stream: Stream, offset: u64, max: usize) -> (u64, Bytes, u64) {
        let chunk = self.ring(stream).read_at(offset, max);
        (chunk.offset, chunk.bytes, chunk.end)
    }
}

/// Resolves when a stream has grown past `end`; never if it has ended.
async fn grown(ring: &OutputRing, end: u64) {
    match ring.is_closed() {
        true => std::future::pending().await,
        false => ring.changed_since(end).await,
    }
}

async fn at_limit(app: &App, limit: Option<Duration>) {
    match limit {
        Some(limit) => app.clock.sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// What is kept of a stream.
fn kept(ring: &OutputRing) -> Kept {
    Kept { start: ring.start(), end: ring.end(), written: ring.received() }
}
