//! Runs async work for callers that wait: spawned on a thread of our own, waited for on a plain channel.
//!
//! `block_on` and its kin panic inside an async program, and work handed to a runtime the caller itself blocks never
//! ends. A thread of our own avoids both: from wherever the call comes, the caller merely blocks.

use std::{
    any::Any,
    cell::Cell,
    fmt,
    future::{Future, poll_fn},
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Mutex, OnceLock, PoisonError, mpsc},
    task::{Context, Poll, Waker},
    thread,
};

use sandboxer::{Delivery, Error, ErrorKind, Result};
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};
use tracing::{Instrument as _, instrument::WithSubscriber as _};

/// A runtime on one thread, started with the first call and shared by clones; it ends with the last of them.
#[derive(Clone, Default)]
pub(crate) struct Driver(Arc<Core>);

#[derive(Default)]
struct Core {
    running: OnceLock<Running>,
    starting: Mutex<()>,
}

struct Running {
    handle: Handle,
    /// Its drop ends the thread. Nobody joins it: that would block, or deadlock if the last clone dies on it.
    _stop: oneshot::Sender<()>,
}

thread_local! {
    /// Which driver this thread belongs to. Plain data, so that it can be read while a thread is being torn down.
    static OWNER: Cell<usize> = const { Cell::new(0) };
}

impl Driver {
    /// Runs `work` to its end and gives back its result; a panic in it goes on in the caller.
    pub(crate) fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.wait(work)?
    }

    /// Runs `work` to its end. It fails only where `work` cannot be run at all.
    pub(crate) fn wait<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.start(work)?.wait()
    }

    /// Starts `work`, to be waited for later.
    pub(crate) fn start<T, F>(&self, work: F) -> Result<Started<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        if OWNER.get() == self.id() {
            let message = "a blocking call was made on the thread that would have to serve it";
            return Err(Error::local(
                ErrorKind::InvalidInput,
                Delivery::NotSent,
                "would_deadlock",
                message,
                None,
            ));
        }
        let running = self.running()?;
        let (answer, answered) = mpsc::sync_channel(1);
        let work = async move {
            // There is room for the one answer; where nobody waits any more, nobody misses it.
            let _ = answer.send(caught(work).await);
        };
        running.handle.spawn(work.in_current_span().with_current_subscriber());
        Ok(Started { answered, _driver: self.clone() })
    }

    /// What `poll` says on the caller's own thread, if it has not to wait for it: going to the runtime's thread and back
    /// costs more than most items of a stream do.
    pub(crate) fn ready<T>(&self, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        let running = self.0.running.get().filter(|_| OWNER.get() != self.id())?;
        // In a thread that is being torn down the runtime cannot be entered any more.
        if Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed()) {
            return None;
        }
        let _inside = running.handle.enter();
        match poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            // Whoever polls next says whom to wake.
            Poll::Pending => None,
        }
    }

    /// Drops `value` on the runtime, where what it holds of connections belongs.
    pub(crate) fn discard(&self, value: impl Send + 'static) {
        match self.0.running.get() {
            Some(running) => drop(running.handle.spawn(async move { drop(value) })),
            None => drop(value),
        }
    }

    fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    fn running(&self) -> Result<&Running> {
        let core = &*self.0;
        if let Some(running) = core.running.get() {
            return Ok(running);
        }
        let _starting = core.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = core.running.get() {
            return Ok(running);
        }
        let running = start(self.id()).map_err(|cause| {
            let message = "the client's own thread cannot be started";
            Error::local(ErrorKind::Config, Delivery::NotSent, "runtime_unavailable", message, Some(cause))
        })?;
        Ok(core.running.get_or_init(|| running))
    }
}

/// Work that runs on the driver, which lives at least until this is dropped.
pub(crate) struct Started<T> {
    answered: mpsc::Receiver<thread::Result<T>>,
    _driver: Driver,
}

impl<T> Started<T> {
    /// Waits for the end of the work; a panic in it goes on in the caller.
    pub(crate) fn wait(self) -> Result<T> {
        match self.answered.recv() {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(mpsc::RecvError) => {
                let message = "the client's own thread has ended";
                Err(Error::local(ErrorKind::Closed, Delivery::Unknown, "runtime_stopped", message, None))
            }
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Driver").field("started", &self.0.running.get().is_some()).finish()
    }
}

/// Starts the thread. The runtime is made and ended on it: dropping one inside an async program would panic.
fn start(owner: usize) -> io::Result<Running> {
    let (stop, stopped) = oneshot::channel::<()>();
    let (report, reported) = mpsc::sync_channel(1);
    thread::Builder::new().name("sandboxer-blocking".into()).spawn(move || {
        OWNER.set(owner);
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(report.send(Err(error))),
        };
        let _ = report.send(Ok(runtime.handle().clone()));
        let _ = runtime.block_on(stopped);
        runtime.shutdown_background();
    })?;
    let handle = reported.recv().unwrap_or_else(|_| Err(io::Error::other("it ended at once")))?;
    Ok(Running { handle, _stop: stop })
}

/// The output of `work`, or what it panicked with.
async fn caught<F: Future>(work: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut work = Box::pin(work);
    // After a panic the work is dropped and never polled again, so nobody sees it half-changed.
    poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

#[cfg(test)]
mod tests;
