//! A command in the foreground, its output as it is written.

use sandboxer::{Outcome, Output, Result, stream::Chunk};

use crate::{driver::Driver, pull::Pull};

/// A running command's output, pulled piece by piece; comes from
/// [`Sandbox::exec_stream`](crate::Sandbox::exec_stream).
///
/// It is an [`Iterator`] of chunks that blocks until the next one is there and is over once the command has ended. It
/// ends in exactly one outcome, told by [`wait`](Self::wait), or in an error. If the connection breaks before the
/// service's final word, that is an error of kind [`StreamCut`](crate::ErrorKind::StreamCut) with the command's id and
/// the output so far, never a success. **The command behind a dropped or broken stream runs on** until it ends or runs
/// into its limit; to be able to come back to a command, [`start`](crate::Sandbox::start) it.
///
/// After a cut the sandbox is looked at once, for at most 5 seconds. If it is stopped, stopping, failed or gone, that is
/// why, and the error is of kind [`SandboxState`](crate::ErrorKind::SandboxState) with the cut as its source; it carries
/// the same command id and output.
///
/// Its errors are [`StreamCut`](crate::ErrorKind::StreamCut) when the connection ended, broke or fell silent for longer
/// than the idle limit (60 s + the command's limit + 30 s unless set) before the final frame,
/// [`SandboxState`](crate::ErrorKind::SandboxState) when it did because the sandbox is no more,
/// [`StreamFailed`](crate::ErrorKind::StreamFailed) when the service ends it with an error,
/// [`Unexpected`](crate::ErrorKind::Unexpected) for a line that is no frame and
/// [`TooLarge`](crate::ErrorKind::TooLarge) for one over 16 MiB. After an error it is over.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// let mut run = sandbox.exec_stream("echo one; echo two >&2")?.keep_output(1 << 20);
/// assert!(run.command_id().is_some() && run.outcome().is_none());
/// for chunk in &mut run {
///     let chunk = chunk?;
///     println!("{}: {}", chunk.stream(), chunk.text().trim_end());
/// }
/// let output = run.wait()?;
/// assert_eq!((output.exit_code(), &*output.stdout_text()), (Some(0), "one\n"));
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[must_use = "the output is read when it is asked for"]
#[derive(Debug)]
pub struct ExecStream {
    stream: Pull<sandboxer::ExecStream>,
}

impl ExecStream {
    pub(crate) fn new(driver: Driver, stream: sandboxer::ExecStream) -> Self {
        Self { stream: Pull::new(driver, stream) }
    }

    /// The command's id in the sandbox's history, if the service said.
    pub fn command_id(&self) -> Option<&str> {
        self.stream.get()?.command_id()
    }

    /// How the command ended; `None` until the stream is over, and after it failed.
    pub fn outcome(&self) -> Option<Outcome> {
        self.stream.get()?.outcome()
    }

    /// Keeps the first `cap` bytes of each stream for [`wait`](Self::wait) and for errors. What is over the cap is
    /// read and dropped, and the output counts as truncated.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let output = sandbox.exec_stream("echo abc")?.keep_output(2).wait()?;
    /// assert_eq!((&*output.stdout_text(), output.stdout_truncated()), ("ab", true));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn keep_output(mut self, cap: usize) -> Self {
        self.stream = self.stream.map(|stream| stream.keep_output(cap));
        self
    }

    /// The stream behind it, to make another one of.
    pub(crate) fn into_pull(self) -> Pull<sandboxer::ExecStream> {
        self.stream
    }

    /// Reads what is left and says how the command ended.
    ///
    /// The output in the result is what was kept: the last 64 KiB of each stream, or what
    /// [`keep_output`](Self::keep_output) asked for. Where more went by, the output is marked as truncated.
    ///
    /// # Errors
    ///
    /// Those of the stream, also when the error had been given out by it before.
    pub fn wait(self) -> Result<Output> {
        self.stream.finish(|stream| stream.wait())
    }
}

impl Iterator for ExecStream {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        self.stream.next()
    }
}
