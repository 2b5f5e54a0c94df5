//! A started command: its streams, its input, its end.

use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::watch,
};

use super::{CommandSpec, Exit, OutputRing, PtySize};

/// A command that was started. Clones are the same command; dropping them all leaves it running.
#[derive(Clone, Debug)]
pub struct Running(Arc<Handle>);

/// Exists once per command however many clones of [`Running`] there are, so that its drop means: nobody reads any more.
#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.output.stdout.release();
        self.0.output.stderr.release();
    }
}

/// What a runner's own tasks hold of a command.
pub(crate) struct Shared {
    pid: u32,
    pub(crate) output: Output,
    stdin: Mutex<Option<Stdin>>,
    exit: watch::Sender<Option<Exit>>,
    control: Arc<dyn Control>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("pid", &self.pid)
            .field("exit", &*self.exit.borrow())
            .finish_non_exhaustive()
    }
}

/// What differs between runners once a command runs.
pub(crate) trait Control: Send + Sync + 'static {
    /// Tells the terminal its new size.
    fn resize(&self, size: PtySize) -> io::Result<()>;
    /// Sends a signal to the whole tree.
    fn signal(&self, signal: i32) -> BoxFuture<'_, io::Result<()>>;
    /// Ends the whole tree.
    fn kill_tree(&self, grace: Duration) -> BoxFuture<'_, ()>;
}

/// Both output streams of a command.
#[derive(Clone, Debug)]
pub struct Output {
    stdout: OutputRing,
    stderr: OutputRing,
}

impl Output {
    pub(crate) fn for_spec(spec: &CommandSpec) -> Self {
        let ring = || OutputRing::new(spec.output, spec.output_limit);
        Self { stdout: ring(), stderr: ring() }
    }

    /// Standard output; with a terminal, everything.
    pub fn stdout(&self) -> &OutputRing {
        &self.stdout
    }

    /// Standard error; with a terminal, empty.
    pub fn stderr(&self) -> &OutputRing {
        &self.stderr
    }
}

impl Shared {
    pub(crate) fn new(
        pid: u32,
        output: Output,
        stdin: Option<Stdin>,
        control: Arc<dyn Control>,
    ) -> Arc<Self> {
        let exit = watch::Sender::new(None);
        Arc::new(Self { pid, output, stdin: Mutex::new(stdin), exit, control })
    }

    /// Closes both streams, then tells everybody how the command ended.
    pub(crate) fn finish(&self, exit: Exit) {
        self.output.stdout.close();
        self.output.stderr.close();
        self.exit.send_replace(Some(exit));
    }

    pub(crate) fn running(self: &Arc<Self>) -> Running {
        Running(Arc::new(Handle(self.clone())))
    }
}

impl Running {
    fn shared(&self) -> &Shared {
        &self.0.0
    }

    /// The main process's id: the sandbox's own numbering where there is one, else the host's.
    pub fn pid(&self) -> u32 {
        self.shared().pid
    }

    /// What it writes.
    pub fn output(&self) -> &Output {
        &self.shared().output
    }

    /// Its input, once, if the command was started with one.
    pub fn take_stdin(&self) -> Option<Stdin> {
        self.shared().stdin.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Gives its terminal another size.
    ///
    /// # Errors
    /// `Unsupported` if it has no terminal.
    pub fn resize(&self, size: PtySize) -> io::Result<()> {
        self.shared().control.resize(size)
    }

    /// Sends a signal to every process of the command.
    ///
    /// # Errors
    /// `InvalidInput` for a number that is no standard signal.
    pub async fn signal(&self, signal: i32) -> io::Result<()> {
        self.shared().control.signal(signal).await
    }

    /// Ends every process of the command: TERM to all, KILL to what is left after `grace`. Returns when all are gone.
    ///
    /// Once begun it is carried through, even if the future is dropped.
    pub async fn kill_tree(&self, grace: Duration) {
        self.shared().control.kill_tree(grace).await;
    }

    /// Waits for the main process to end and for the output to be complete: all that was written up to the end, and what
    /// a background child wrote within 250 ms of it.
    pub async fn wait(&self) -> Exit {
        let mut exit = self.shared().exit.subscribe();
        // The sender lives in `shared`, which `self` keeps alive.
        match exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit) {
            Some(exit) => exit,
            None => std::future::pending().await,
        }
    }

    /// How it ended, if [`wait`](Self::wait) would return at once.
    pub fn try_exit(&self) -> Option<Exit> {
        *self.shared().exit.borrow()
    }
}

/// The writing end of a command's input; dropping it closes it.
pub struct Stdin {
    inner: Pin<Box<dyn AsyncWrite + Send>>,
    terminal: bool,
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdin").field("terminal", &self.terminal).finish_non_exhaustive()
    }
}

impl Stdin {
    pub(crate) fn pipe(inner: impl AsyncWrite + Send + 'static) -> Self {
        Self { inner: Box::pin(inner), terminal: false }
    }

    pub(crate) fn terminal(inner: impl AsyncWrite + Send + 'static) -> Self {
        Self { inner: Box::pin(inner), terminal: true }
    }

    /// Writes all of `data`, waiting while the command does not read.
    ///
    /// # Errors
    /// `BrokenPipe` when the command has closed its input.
    pub async fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.inner.write_all(data).await?;
        self.inner.flush().await
    }

    /// End of input. On a terminal this is the end-of-file character, which a program in raw mode may read as a byte.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub async fn close(mut self) -> io::Result<()> {
        if self.terminal {
            const END_OF_TRANSMISSION: u8 = 4;
            self.write(&[END_OF_TRANSMISSION]).await?;
        }
        self.inner.shutdown().await
    }
}
