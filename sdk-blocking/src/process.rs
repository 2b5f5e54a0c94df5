//! A command in the background.

use std::{fmt, future::Future};

use sandboxer::{
    AsyncCommand, Offsets, Output, Result,
    models::{CommandStartedResponse, CommandStatusParams, CommandStatusResponse, CommandStopResponse},
    stream::OutputStream,
};

use crate::{Attach, LogStream, Sandbox};

/// A command that runs in the background of a sandbox; comes from [`Sandbox::start`] or [`Sandbox::command`].
///
/// Dropping the handle leaves the command alone; [`Sandbox::command`] gives another one by its process id.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// let command = sandbox.start("echo one; echo two >&2; exit 3")?;
/// assert!(command.pid().is_some() && command.command_id().is_some() && command.started().is_some());
/// let same = command.sandbox().command(command.process_id());
/// let output = same.wait()?;
/// assert_eq!(output.exit_code(), Some(3));
/// assert_eq!((&*output.stdout_text(), &*output.stderr_text()), ("one\n", "two\n"));
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[derive(Clone)]
pub struct CommandHandle {
    inner: AsyncCommand,
    sandbox: Sandbox,
}

impl CommandHandle {
    pub(crate) fn new(sandbox: Sandbox, inner: AsyncCommand) -> Self {
        Self { inner, sandbox }
    }

    fn call<T, F, Fut>(&self, verb: F) -> Result<T>
    where
        F: FnOnce(AsyncCommand) -> Fut,
        Fut: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        self.sandbox.driver().run(verb(self.inner.clone()))
    }

    /// What the service knows it by.
    pub fn process_id(&self) -> i64 {
        self.inner.process_id()
    }

    /// Its process id inside the sandbox, if this handle comes from starting it.
    pub fn pid(&self) -> Option<i64> {
        self.inner.pid()
    }

    /// Its id in the sandbox's history, if known so far: from starting it, or from an earlier look for its
    /// [`logs`](Self::logs).
    pub fn command_id(&self) -> Option<&str> {
        self.inner.command_id()
    }

    /// What the service answered when it was started through this handle.
    pub fn started(&self) -> Option<&CommandStartedResponse> {
        self.inner.started()
    }

    /// Follows its output from the beginning. See [`Attach`].
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) for an unknown process, [`Conflict`](crate::ErrorKind::Conflict) when the
    /// sandbox is stopped, and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let command = sandbox.start("echo hello")?;
    /// let chunks = command.attach()?.collect::<sandboxer_blocking::Result<Vec<_>>>()?;
    /// assert_eq!(chunks[0].text(), "hello\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn attach(&self) -> Result<Attach> {
        self.attach_from(Offsets::default())
    }

    /// Follows its output from these byte offsets on, such as those of an [`Attach`] that was dropped or failed.
    ///
    /// They have to be offsets of this command: those of a longer log are an error of kind
    /// [`Unexpected`](crate::ErrorKind::Unexpected) with the code `log_replaced` once the command has ended.
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let command = sandbox.start("printf 'abc'")?;
    /// let offsets = sandboxer_blocking::Offsets::new(1, 0);
    /// assert_eq!(command.attach_from(offsets)?.wait()?.stdout_text(), "bc");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn attach_from(&self, offsets: Offsets) -> Result<Attach> {
        let attach = self.call(|command| async move { command.attach_from(offsets).await })?;
        Ok(Attach::new(self.sandbox.driver().clone(), attach))
    }

    /// Waits for its end and answers with its output from the beginning, the first 8 MiB of each stream; what is longer
    /// is marked as truncated. For more, [`attach`](Self::attach) with a cap of your own, or read the
    /// [`logs`](Self::logs).
    ///
    /// A command that [`kill`](Self::kill) of this handle or a clone ended has the outcome
    /// [`Stopped`](crate::Outcome::Stopped).
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach) and [`Attach`].
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let command = sandbox.start("echo working; exit 3")?;
    /// assert_eq!(command.wait()?.exit_code(), Some(3));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn wait(&self) -> Result<Output> {
        self.call(|command| async move { command.wait().await })
    }

    /// Reads whether it runs and what it wrote: the last 8 MiB of each stream, or what `options` ask for.
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::models::CommandStatusParams;
    ///
    /// let command = sandbox.start("echo hello")?;
    /// command.wait()?;
    /// let status = command.status(CommandStatusParams::new().tail_bytes(3))?;
    /// assert_eq!((status.running, status.exit_code, status.stdout.as_str()), (false, Some(0), "lo\n"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn status(&self, options: CommandStatusParams) -> Result<CommandStatusResponse> {
        self.call(|command| async move { command.status(options).await })
    }

    /// Ends it with everything it started: SIGTERM, and SIGKILL after 5 seconds. Answers when it is gone;
    /// `signaled` in the answer is false when it had ended before. Where the answer to a first try was lost, that may have
    /// been this call's own doing: if a signal ended it, [`wait`](Self::wait) then says
    /// [`Stopped`](crate::Outcome::Stopped).
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Outcome;
    ///
    /// let command = sandbox.start("sleep 600")?;
    /// assert!(command.kill()?.signaled);
    /// assert_eq!(command.wait()?.outcome(), Outcome::Stopped);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn kill(&self) -> Result<CommandStopResponse> {
        self.call(|command| async move { command.kill().await })
    }

    /// Reads the kept output of one stream, byte for byte, from the beginning to as far as it goes now.
    ///
    /// It works also while the sandbox is stopped. The service keeps a copy it renews every 30 seconds while the command
    /// runs, and needs the sandbox's monitoring to be on. A handle made by process id alone finds the command's id in
    /// the history first, among the newest background commands.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::stream::OutputStream;
    ///
    /// let command = sandbox.start(r"printf '\377\000'")?;
    /// command.wait()?;
    /// let bytes = command.logs(OutputStream::Stdout).read_all(1 << 20)?;
    /// assert_eq!(&bytes[..], [0xFF, 0x00]);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn logs(&self, stream: OutputStream) -> LogStream {
        self.logs_from(stream, 0)
    }

    /// Reads the kept output of one stream from a byte offset on, as [`logs`](Self::logs) does from the beginning.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::stream::{Chunk, OutputStream};
    ///
    /// let command = sandbox.start("printf abc")?;
    /// command.wait()?;
    /// let mut logs = command.logs_from(OutputStream::Stdout, 1);
    /// assert_eq!(logs.next().unwrap()?, Chunk::Stdout("bc".into()));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn logs_from(&self, stream: OutputStream, offset: u64) -> LogStream {
        LogStream::new(self.sandbox.driver().clone(), self.inner.logs_from(stream, offset))
    }

    /// The sandbox it runs in.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl fmt::Debug for CommandHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CommandHandle")
            .field("sandbox", &self.sandbox.id())
            .field("process_id", &self.process_id())
            .field("command_id", &self.command_id())
            .finish_non_exhaustive()
    }
}
