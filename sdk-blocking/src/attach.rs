//! Following a background command over as many connections as it takes.

use sandboxer::{Offsets, Outcome, Output, Result, stream::Chunk};

use crate::{driver::Driver, pull::Pull};

/// The output of a background command, pulled piece by piece from a byte offset on; comes from
/// [`CommandHandle::attach`](crate::CommandHandle::attach).
///
/// It is an [`Iterator`] of chunks that blocks until the next one is there and is over once the command has ended. When
/// the connection is cut, falls silent for longer than the idle limit (45 s unless set; the service promises a
/// heartbeat every 15 s) or is ended by the service after its ten minutes, it goes on over a new one from the byte it
/// had reached: nothing is lost and nothing comes twice. Output that the service itself no longer has comes as a
/// [`Chunk::Gap`]; a log that ends before that byte is another one, and an error with the code `log_replaced`, but for a
/// command that was [lost](crate::Outcome::Lost), whose output counts as truncated then. Ten connections in a row that
/// bring neither output nor a heartbeat end it with an error of kind [`StreamCut`](crate::ErrorKind::StreamCut), which
/// says where to go on; the pauses between them grow from a tenth of a second to ten, or are as long as the service asks
/// for; asked to wait for more than five minutes it ends at once with that error.
///
/// Its other errors are what the service answered when a new connection was refused for good (the sandbox stopped or is
/// gone); [`StreamFailed`](crate::ErrorKind::StreamFailed) when the service ends the stream with an error;
/// [`Unexpected`](crate::ErrorKind::Unexpected) with the code `log_replaced` when the command ends and its log is
/// shorter than the offset it was followed from, unless it was lost; [`Unexpected`](crate::ErrorKind::Unexpected) or
/// [`TooLarge`](crate::ErrorKind::TooLarge) for a line that cannot be read. Each carries the output so far and the
/// [offsets](crate::Error::resume_offsets) to go on from. After an error it is over.
///
/// Dropping it leaves the command alone.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// use sandboxer_blocking::{Offsets, Outcome};
///
/// let command = sandbox.start("echo one; echo two >&2")?;
/// let mut output = command.attach()?.keep_output(1 << 20);
/// for chunk in &mut output {
///     print!("{}", chunk?.text());
/// }
/// assert_eq!(output.offsets(), Offsets::new(4, 4)); // where another one could go on
/// assert_eq!(output.outcome(), Some(Outcome::Exited(0)));
/// assert!(!output.lossy());
/// assert_eq!(output.wait()?.stdout_text(), "one\n");
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[must_use = "the output is read when it is asked for"]
#[derive(Debug)]
pub struct Attach {
    stream: Pull<sandboxer::Attach>,
    /// Before the last pull, should it have panicked.
    offsets: Offsets,
}

impl Attach {
    pub(crate) fn new(driver: Driver, stream: sandboxer::Attach) -> Self {
        Self { offsets: stream.offsets(), stream: Pull::new(driver, stream) }
    }

    /// The byte offsets right after the last chunk that was pulled: following the command from here later
    /// ([`attach_from`](crate::CommandHandle::attach_from)) gives what comes next.
    pub fn offsets(&self) -> Offsets {
        self.stream.get().map_or(self.offsets, sandboxer::Attach::offsets)
    }

    /// How the command ended; `None` until the stream is over, and after it failed.
    pub fn outcome(&self) -> Option<Outcome> {
        self.stream.get()?.outcome()
    }

    /// Whether byte offsets show so far that the service replaced bytes that are not UTF-8; the command's
    /// [`logs`](crate::CommandHandle::logs) have them exactly.
    pub fn lossy(&self) -> bool {
        self.stream.get().is_some_and(sandboxer::Attach::lossy)
    }

    /// Keeps the first `cap` bytes of each stream for [`wait`](Self::wait) and for errors. What is over the cap is
    /// read and dropped, and the output counts as truncated.
    pub fn keep_output(mut self, cap: usize) -> Self {
        self.stream = self.stream.map(|stream| stream.keep_output(cap));
        self
    }

    /// The stream behind it, to make another one of.
    pub(crate) fn into_pull(self) -> Pull<sandboxer::Attach> {
        self.stream
    }

    /// Reads what is left and says how the command ended.
    ///
    /// The output in the result is what was kept: the last 64 KiB of each stream, or what
    /// [`keep_output`](Self::keep_output) asked for. Where more went by, or a part was missing, it is marked as
    /// truncated.
    ///
    /// # Errors
    ///
    /// Those of the stream, also when the error had been given out by it before.
    pub fn wait(self) -> Result<Output> {
        self.stream.finish(|stream| stream.wait())
    }
}

impl Iterator for Attach {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        self.offsets = self.offsets();
        self.stream.next()
    }
}
