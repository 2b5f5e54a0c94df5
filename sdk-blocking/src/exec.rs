//! Running commands in a sandbox.

use sandboxer::{Command, Output, Result};

use crate::{CommandHandle, ExecStream, Sandbox};

impl Sandbox {
    /// Runs a command to its end and answers with its output and outcome.
    ///
    /// `command` is a shell line, an argument list, or a [`Command`] with folder, variables and time limit. A command
    /// that fails, or runs into its limit, is an `Ok` output; [`Output::check`] makes it an error. While the sandbox is
    /// starting the service holds the call for up to 60 s. Each stream of the output is cut at 8 MiB; stream
    /// ([`exec_stream`](Self::exec_stream)) what may be longer.
    ///
    /// It is sent again only where the service proves that it never ran, so it never runs twice. If the view's total
    /// limit is shorter than the command's, the command's is lowered to fit.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent: an empty line or list, a NUL, a limit
    /// under 1 s or over 600 s, a bad name of a variable. Otherwise what the service answered, or that it did not:
    /// [`Error::delivery`](crate::Error::delivery) says whether the command may be running. When the connection breaks,
    /// the sandbox is looked at once, for at most 5 seconds: if it is stopped, failed or gone, the error is of kind
    /// [`SandboxState`](crate::ErrorKind::SandboxState), with the break as its source.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::{Command, Outcome};
    /// use std::time::Duration;
    ///
    /// assert_eq!(sandbox.exec("echo $((40 + 2))")?.stdout_text(), "42\n");
    /// assert_eq!(sandbox.exec(["printf", "%s", "a  b"])?.check()?.stdout_text(), "a  b");
    /// let slow = sandbox.exec(Command::shell("sleep 30").timeout(Duration::from_secs(1)))?;
    /// assert_eq!(slow.outcome(), Outcome::TimedOut);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn exec(&self, command: impl Into<Command>) -> Result<Output> {
        let command = command.into();
        self.call(|sandbox| async move { sandbox.exec(command).await })
    }

    /// Runs a command and hands on its output as it is written. Returns once the command has started;
    /// a total limit that was set covers that, and ends there.
    ///
    /// What is said of [`exec`](Self::exec) about commands, holding and repeating holds here too. Once it has started
    /// nothing is repeated; a connection that breaks then is an error of the stream, and the command runs on.
    ///
    /// # Errors
    ///
    /// As [`exec`](Self::exec), and for a stream that breaks before its first frame those of [`ExecStream`].
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let mut run = sandbox.exec_stream("for i in 1 2 3; do echo $i; done")?;
    /// let mut text = String::new();
    /// for chunk in &mut run {
    ///     text += &chunk?.text();
    /// }
    /// assert_eq!(text, "1\n2\n3\n");
    /// assert!(run.wait()?.success());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn exec_stream(&self, command: impl Into<Command>) -> Result<ExecStream> {
        let command = command.into();
        let stream = self.call(|sandbox| async move { sandbox.exec_stream(command).await })?;
        Ok(ExecStream::new(self.driver().clone(), stream))
    }

    /// Starts a command in the background and answers as soon as it runs.
    ///
    /// It lives until it ends, is [killed](CommandHandle::kill) or the sandbox stops; a time limit has no effect on it.
    ///
    /// # Errors
    ///
    /// As [`exec`](Self::exec).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let command = sandbox.start("echo started; sleep 60")?;
    /// let mut attach = command.attach()?;
    /// assert_eq!(attach.next().unwrap()?.text(), "started\n");
    /// command.kill()?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn start(&self, command: impl Into<Command>) -> Result<CommandHandle> {
        let command = command.into();
        let handle = self.call(|sandbox| async move { sandbox.start(command).await })?;
        Ok(CommandHandle::new(self.clone(), handle))
    }

    /// Runs a command that may take as long as it likes, to its end, and answers with its output and outcome.
    ///
    /// It is [started](Self::start) in the background and followed over as many connections as that takes, so it neither
    /// needs a time limit nor ends with a connection; it never runs twice. The output is the first 8 MiB of each stream,
    /// what is longer is marked as truncated. A total limit of the view covers the start alone. To have the command at hand
    /// while it runs, `start` it and [`wait`](CommandHandle::wait).
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, as [`exec`](Self::exec), and for a command
    /// with a time limit, which `exec` keeps. Those of `start` and of [`CommandHandle::wait`]; the latter carry the
    /// command's id, and its `processId` in the details: the command may run on, and [`command`](Self::command) follows it.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Command;
    ///
    /// let output = sandbox.run(Command::shell("sleep 0.1; echo $WHAT; exit 3").env("WHAT", "done"))?;
    /// assert_eq!((output.exit_code(), &*output.stdout_text()), (Some(3), "done\n"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn run(&self, command: impl Into<Command>) -> Result<Output> {
        let command = command.into();
        self.call(|sandbox| async move { sandbox.run(command).await })
    }
}
