//! Threads that live as long as the runner and start its processes. Holders, because `--die-with-parent` follows the
//! thread that started a process and the runtime's own threads come and go; commands, because they inherit a filter that
//! the rest of the server must not have.

use std::{io, thread};

use tokio::{
    process::{Child, Command},
    runtime::Handle,
    sync::{mpsc, oneshot},
};

type Job = Box<dyn FnOnce() + Send>;

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Keeper(mpsc::Sender<Job>);

impl Keeper {
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self::start_with("sandbox-keeper", || ())?.0)
    }

    /// A thread that runs `first` before anything else; hands back what that said.
    pub(crate) fn start_with<T: Send + 'static>(
        name: &str,
        first: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<(Self, T)> {
        let (jobs, mut queue) = mpsc::channel::<Job>(16);
        let (answer, said) = std::sync::mpsc::sync_channel(1);
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Whoever waits for it is there: it waits below.
            let _ = answer.send(first());
            while let Some(job) = queue.blocking_recv() {
                job();
            }
        })?;
        let said = said.recv().map_err(io::Error::other)?;
        Ok((Self(jobs), said))
    }

    /// Starts `command` from the thread.
    pub(crate) async fn spawn(&self, mut command: Command) -> io::Result<Child> {
        let (answer, started) = oneshot::channel();
        let runtime = Handle::current();
        let job: Job = Box::new(move || {
            let _context = runtime.enter();
            let started = command.spawn();
            // May hold the command's end of a terminal.
            drop(command);
            // A caller that has gone away drops the child: a holder is ended by that, a command never gets its go-ahead.
            let _ = answer.send(started);
        });
        let gone = || io::Error::other("the thread that starts processes has ended");
        self.0.send(job).await.map_err(|_| gone())?;
        started.await.map_err(|_| gone())?
    }
}
