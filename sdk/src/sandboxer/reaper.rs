//! Clean-up that outlives the future it belongs to: one bounded queue a client.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{runtime::Handle, sync::Notify};

use super::{Api, sandbox::AsyncSandbox};
use crate::{
    call::{CallOptions, Timeouts},
    error::{ErrorKind, Result},
    models::{CreateSandboxRequest, DeleteSandboxParams, ForkRequest},
    transport::{Shared, Tries},
};

/// How many clean-ups may wait; one more is refused, with an error in the log that names the sandbox.
const CAPACITY: usize = 1024;
/// How many clean-ups run at once.
const WORKERS: usize = 4;
/// How often a clean-up is tried, each try with the call's own repeats.
const TRIES: u32 = 2;
const PAUSE: Duration = Duration::from_secs(5);

/// What is to be deleted, or stopped.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// This sandbox.
    Sandbox(String),
    /// This sandbox is to be stopped.
    Stop(String),
    /// Whatever this call made: sent again with the same key it tells the id.
    Replay { key: String, call: Box<Target> },
    /// A create, to be replayed.
    Create { request: Box<CreateSandboxRequest> },
    /// A fork, to be replayed.
    Fork { source: String, request: Box<ForkRequest> },
}

/// A clean-up with the options of the view that owes it.
#[derive(Debug)]
struct Job {
    target: Target,
    options: CallOptions,
}

/// The queue of one client's clean-ups. Workers start with the first job, on the Tokio runtime it is handed over in.
#[derive(Debug, Default)]
pub(crate) struct Reaper {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Job>,
    workers: usize,
    running: usize,
}

impl Reaper {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn submit(shared: &Arc<Shared>, job: Job) {
    let mut state = shared.reaper().lock();
    if state.queue.len() >= CAPACITY {
        tracing::error!(target = %job.target, "too many clean-ups are waiting; this one is dropped");
        return;
    }
    state.queue.push_back(job);
    if state.workers >= WORKERS {
        return;
    }
    // Outside a runtime the job waits for the next one that is handed over inside, or for `close`.
    let Ok(runtime) = Handle::try_current() else { return };
    state.workers += 1;
    drop(state);
    let worker = Worker(shared.clone());
    runtime.spawn(async move {
        while let Some(running) = Running::take(&worker.0) {
            running.finish().await;
        }
    });
}

/// Runs what waits and waits for what runs, until nothing is left.
pub(crate) async fn drain(shared: &Arc<Shared>) {
    let reaper = shared.reaper();
    loop {
        let changed = reaper.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if let Some(running) = Running::take(shared) {
            running.finish().await;
        } else if reaper.lock().running == 0 {
            return;
        } else {
            changed.await;
        }
    }
}

/// A worker's place; given back even when its runtime ends under it.
struct Worker(Arc<Shared>);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.reaper().lock().workers -= 1;
    }
}

/// A job at work; one that is cut short goes back into the queue.
struct Running {
    shared: Arc<Shared>,
    job: Option<Job>,
}

impl Running {
    fn take(shared: &Arc<Shared>) -> Option<Self> {
        let mut state = shared.reaper().lock();
        let job = state.queue.pop_front()?;
        state.running += 1;
        Some(Self { shared: shared.clone(), job: Some(job) })
    }

    async fn finish(mut self) {
        for attempt in 1.. {
            let Some(job) = &mut self.job else { return };
            match job.run(&self.shared).await {
                Ok(()) => break,
                Err(error)
                    if attempt < TRIES && (error.is_retryable() || error.kind() == ErrorKind::Timeout) =>
                {
                    self.shared.clock().sleep(PAUSE).await;
                }
                Err(error) => {
                    tracing::warn!(target = %job.target, code = error.code(), "a clean-up failed for good");
                    break;
                }
            }
        }
        self.job = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.shared.reaper().lock();
        state.running -= 1;
        if let Some(job) = self.job.take() {
            state.queue.push_front(job);
        }
        drop(state);
        self.shared.reaper().changed.notify_waiters();
    }
}

impl Job {
    async fn run(&mut self, shared: &Arc<Shared>) -> Result<()> {
        let api = Api::new(shared.clone(), self.options.clone());
        if let Target::Replay { key, call } = &self.target {
            let api = api.with(CallOptions::new().idempotency_key(key.as_str()));
            let id = match &**call {
                Target::Create { request } => api.create((**request).clone()).await?.sandbox.id,
                Target::Fork { source, request } => api.fork(source, (**request).clone()).await?.id,
                Target::Sandbox(id) => id.clone(),
                Target::Stop(_) | Target::Replay { .. } => return Ok(()),
            };
            self.target = Target::Sandbox(id);
        }
        if let Target::Stop(id) = &self.target {
            return AsyncSandbox::new(&api, id, None).stop_now().await;
        }
        let Target::Sandbox(id) = &self.target else { return Ok(()) };
        match api.delete_sandbox(id, DeleteSandboxParams::new()).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => {
                tracing::debug!(sandbox_id = %id, "cleaned up");
                Ok(())
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sandbox(id) => formatter.write_str(id),
            Self::Stop(id) => write!(formatter, "the stop of {id}"),
            Self::Replay { key, .. } => write!(formatter, "what was made with the key {key}"),
            Self::Create { .. } => formatter.write_str("a create"),
            Self::Fork { source, .. } => write!(formatter, "a fork of {source}"),
        }
    }
}

/// Owes the deletion of what it is armed with; dropped, it hands that to the reaper.
pub(crate) struct Guard {
    shared: Arc<Shared>,
    options: CallOptions,
    target: Option<Target>,
    /// Of the call that is to be replayed.
    tries: Option<Tries>,
}

impl Guard {
    pub(crate) fn new(api: &Api) -> Self {
        // The caller's limits were for the caller's call, and its key is the target's.
        let options = CallOptions {
            timeouts: Timeouts::new(),
            retries: None,
            idempotency_key: None,
            ..api.options().clone()
        };
        Self { shared: api.shared().clone(), options, target: None, tries: None }
    }

    pub(crate) fn arm(&mut self, target: Target) {
        self.target = Some(target);
        self.tries = None;
    }

    /// Arms it with a call to be replayed, which is owed only if one of its `tries` may have made something.
    pub(crate) fn arm_replay(&mut self, tries: &Tries, target: Target) {
        self.arm(target);
        self.tries = Some(tries.clone());
    }

    pub(crate) fn disarm(&mut self) {
        self.target = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.tries.as_ref().is_some_and(|tries| !tries.may_have_acted()) {
            return;
        }
        if let Some(target) = self.target.take() {
            tracing::debug!(target = %target, "handing a clean-up to the background");
            submit(&self.shared, Job { target, options: self.options.clone() });
        }
    }
}
