//! Following a background command over as many connections as it takes.

mod machine;
#[cfg(test)]
mod tests;
mod track;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use futures_core::Stream;

use self::machine::{Machine, Step};
use super::{
    frame::Frame,
    ledger::{self, Ledger},
    reconnect::Reconnects,
};
use crate::{
    clock::{SharedClock, Sleep},
    error::{Error, Offsets, Result},
    outcome::Outcome,
    output::Output,
    stream::{
        ByteSource, Chunk,
        frames::{FrameError, Frames},
    },
};

/// Opens a connection at given offsets.
pub(crate) type Opener = Box<dyn FnMut(Offsets) -> Opening + Send>;
pub(crate) type Opening = Pin<Box<dyn Future<Output = Result<ByteSource>> + Send>>;

/// The output of a background command, pulled piece by piece from a byte offset on; comes from
/// [`AsyncCommand::attach`](crate::AsyncCommand::attach).
///
/// When the connection is cut, falls silent for longer than the idle limit (45 s unless set; the service promises a
/// heartbeat every 15 s) or is ended by the service after its ten minutes, it goes on over a new one from the byte it
/// had reached: nothing is lost and nothing comes twice. Output that the service itself no longer has comes as a
/// [`Chunk::Gap`]; a log that ends before that byte is another one, and an error with the code `log_replaced`, but for a
/// command that was [lost](crate::Outcome::Lost), whose output counts as truncated then. Ten connections in a row that
/// bring neither output nor a heartbeat end it with an error of kind [`StreamCut`](crate::ErrorKind::StreamCut), which
/// says where to go on; the pauses between them grow from a tenth of a second to ten, or are as long as the service asks
/// for; asked to wait for more than five minutes it ends at once with that error.
///
/// Dropping it leaves the command alone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// use sandboxer::{Offsets, Outcome};
///
/// let command = sandbox.start("echo one; echo two >&2").await?;
/// let mut output = command.attach().await?.keep_output(1 << 20);
/// while let Some(chunk) = output.next().await {
///     print!("{}", chunk?.text());
/// }
/// assert_eq!(output.offsets(), Offsets::new(4, 4)); // where another one could go on
/// assert_eq!(output.outcome(), Some(Outcome::Exited(0)));
/// assert!(!output.lossy());
/// assert_eq!(output.wait().await?.stdout_text(), "one\n");
/// # Ok(()) }
/// ```
#[must_use = "the output is read when it is asked for"]
pub struct Attach {
    connection: Connection,
    opener: Opener,
    machine: Machine,
    ledger: Ledger,
    kills: Arc<AtomicUsize>,
    clock: SharedClock,
    reconnects: Reconnects,
    failure: Option<Error>,
}

enum Connection {
    Open(Frames<Frame>),
    Pausing(Sleep),
    Opening(Opening),
    Over,
}

impl Attach {
    /// Opens the first connection, so that an unknown command is an error of the call that attaches.
    pub(crate) async fn open(
        mut opener: Opener,
        from: Offsets,
        ledger: Ledger,
        kills: Arc<AtomicUsize>,
        clock: SharedClock,
    ) -> Result<Self> {
        let source = opener(from).await?;
        Ok(Self {
            connection: Connection::Open(Frames::new(source)),
            opener,
            machine: Machine::starting_at(from),
            ledger,
            kills,
            reconnects: Reconnects::new(clock.elapsed(), ledger::cut),
            failure: None,
            clock,
        })
    }

    /// The byte offsets right after the last chunk that was pulled: following the command from here later
    /// ([`attach_from`](crate::AsyncCommand::attach_from)) gives what comes next.
    pub fn offsets(&self) -> Offsets {
        self.machine.given()
    }

    /// How the command ended; `None` until the stream is over, and after it failed.
    pub fn outcome(&self) -> Option<Outcome> {
        self.ledger.outcome()
    }

    /// Whether byte offsets show so far that the service replaced bytes that are not UTF-8; the command's
    /// [`logs`](crate::AsyncCommand::logs) have them exactly.
    pub fn lossy(&self) -> bool {
        self.machine.lossy()
    }

    /// Keeps the first `cap` bytes of each stream for [`wait`](Self::wait) and for errors. What is over the cap is
    /// read and dropped, and the output counts as truncated.
    pub fn keep_output(mut self, cap: usize) -> Self {
        self.ledger.keep(cap);
        self
    }

    /// The next piece of output; `None` once the command has ended.
    ///
    /// # Errors
    ///
    /// [`StreamCut`](crate::ErrorKind::StreamCut) when the budget of connections is used up; what the service answered
    /// when a new connection was refused for good (the sandbox stopped or is gone);
    /// [`StreamFailed`](crate::ErrorKind::StreamFailed) when the service ends the stream with an error;
    /// [`Unexpected`](crate::ErrorKind::Unexpected) with the code `log_replaced` when the command ends and its log is
    /// shorter than the offset it was followed from, unless it was lost; [`Unexpected`](crate::ErrorKind::Unexpected) or
    /// [`TooLarge`](crate::ErrorKind::TooLarge) for a line that cannot be read. Each carries the output so far and the
    /// [offsets](Error::resume_offsets) to go on from. After an error it is over.
    pub async fn next(&mut self) -> Option<Result<Chunk>> {
        crate::stream::next(self).await
    }

    /// Reads what is left and says how the command ended.
    ///
    /// The output in the result is what was kept: the last 64 KiB of each stream, or what
    /// [`keep_output`](Self::keep_output) asked for. Where more went by, or a part was missing, it is marked as
    /// truncated.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next), also when the error had been given out by it before.
    pub async fn wait(mut self) -> Result<Output> {
        while let Some(chunk) = self.next().await {
            chunk?;
        }
        self.ledger.into_output()
    }

    fn poll_connection(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.connection {
            Connection::Over => {}
            Connection::Pausing(sleep) => {
                ready!(sleep.as_mut().poll(context));
                self.connection = Connection::Opening((self.opener)(self.machine.wanted()));
            }
            Connection::Opening(opening) => match ready!(opening.as_mut().poll(context)) {
                Ok(source) => {
                    self.machine.connected();
                    self.reconnects.connected(self.clock.elapsed());
                    self.connection = Connection::Open(Frames::new(source));
                }
                Err(error) if error.is_retryable() => self.lost(Some(error)),
                Err(error) => self.fail(error),
            },
            Connection::Open(frames) => match ready!(frames.poll_next(context)) {
                Some(Ok(frame)) => self.on_frame(frame),
                Some(Err(FrameError::Bad(error))) => self.fail(error),
                Some(Err(FrameError::Broken(error))) => self.lost(Some(error)),
                None => self.lost(None),
            },
        }
        Poll::Ready(())
    }

    fn on_frame(&mut self, frame: Frame) {
        match self.machine.on_frame(frame) {
            Step::Continue(life) => self.reconnects.alive(life),
            Step::Reconnect => self.lost(None),
            Step::Failed(error) => self.fail(error),
            Step::Exit(frame) => {
                let outcome = frame.outcome();
                let killed = self.kills.load(Ordering::Acquire) > 0;
                self.ledger.finish(if killed { outcome.after_kill() } else { outcome });
                let facts = self.ledger.facts_mut();
                facts.lossy = self.machine.lossy();
                let (stdout, stderr) = self.machine.shrunk();
                facts.stdout_truncated |= stdout;
                facts.stderr_truncated |= stderr;
                frame.describe(facts);
                self.connection = Connection::Over;
            }
        }
    }

    /// The connection is gone; another is made after a pause, within the budget.
    fn lost(&mut self, cause: Option<Error>) {
        match self.reconnects.lost(self.clock.elapsed(), cause) {
            Ok(pause) => {
                tracing::debug!(?pause, "an attach connection ended; going on over a new one");
                self.connection = Connection::Pausing(self.clock.sleep(pause));
            }
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: Error) {
        self.ledger.facts_mut().lossy = self.machine.lossy();
        self.failure = Some(self.ledger.fail(error, Some(self.machine.resumable())));
        self.connection = Connection::Over;
    }
}

impl Stream for Attach {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(chunk) = self.machine.next_chunk() {
                self.ledger.record(&chunk);
                return Poll::Ready(Some(Ok(chunk)));
            }
            if let Some(error) = self.failure.take() {
                return Poll::Ready(Some(Err(error)));
            }
            if matches!(self.connection, Connection::Over) {
                return Poll::Ready(None);
            }
            ready!(self.poll_connection(context));
        }
    }
}

impl fmt::Debug for Attach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Attach")
            .field("offsets", &self.offsets())
            .field("outcome", &self.outcome())
            .finish_non_exhaustive()
    }
}
