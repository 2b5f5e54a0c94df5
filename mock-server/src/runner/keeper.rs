//! One thread that lives as long as the runner and starts every holder: `--die-with-parent` follows the thread that
//! started a process, and the runtime's own threads come and go.

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
        let (jobs, mut queue) = mpsc::channel::<Job>(16);
        thread::Builder::new().name("sandbox-keeper".to_owned()).spawn(move || {
            while let Some(job) = queue.blocking_recv() {
                job();
            }
        })?;
        Ok(Self(jobs))
    }

    /// Starts `command` from the thread.
    pub(crate) async fn spawn(&self, mut command: Command) -> io::Result<Child> {
        let (answer, started) = oneshot::channel();
        let runtime = Handle::current();
        let job: Job = Box::new(move || {
            let _context = runtime.enter();
            // A caller that has gone away drops the child, which ends it.
            let _ = answer.send(command.spawn());
        });
        let gone = || io::Error::other("the thread that starts sandboxes has ended");
        self.0.send(job).await.map_err(|_| gone())?;
        started.await.map_err(|_| gone())?
    }
}
