//! A command in the background.

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    attach::{Attach, Opener},
    ledger::Ledger,
    logs::LogStream,
    sandbox::AsyncSandbox,
};
use crate::{
    error::{Delivery, Error, ErrorKind, Offsets, Result},
    models::{
        AttachCommandParams, CommandHistoryParams, CommandStartedResponse, CommandStatusParams,
        CommandStatusResponse, CommandStopResponse,
    },
    output::Output,
    stream::OutputStream,
    transport::Tries,
};

/// How much of each stream [`AsyncCommand::wait`] keeps, as the service does for commands that are waited for.
const WAIT_CAP: usize = 8 << 20;

/// A command that runs in the background of a sandbox; comes from [`AsyncSandbox::start`] or
/// [`AsyncSandbox::command`].
///
/// Dropping the handle leaves the command alone; [`AsyncSandbox::command`] gives another one by its process id.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// let command = sandbox.start("echo one; echo two >&2; exit 3").await?;
/// assert!(command.pid().is_some() && command.command_id().is_some() && command.started().is_some());
/// let same = command.sandbox().command(command.process_id());
/// let output = same.wait().await?;
/// assert_eq!(output.exit_code(), Some(3));
/// assert_eq!((&*output.stdout_text(), &*output.stderr_text()), ("one\n", "two\n"));
///
/// use sandboxer::stream::OutputStream;
/// let tail = command.logs_from(OutputStream::Stdout, 2); // from its third byte on
/// assert_eq!(&tail.collect(1 << 20).await?[..], b"e\n");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AsyncCommand {
    sandbox: AsyncSandbox,
    process_id: i64,
    started: Option<Arc<CommandStartedResponse>>,
    command_id: Arc<OnceLock<String>>,
    /// How many calls to end it had an effect, or may have or get one.
    kills: Arc<AtomicUsize>,
}

impl AsyncCommand {
    pub(crate) fn new(
        sandbox: AsyncSandbox,
        process_id: i64,
        started: Option<CommandStartedResponse>,
    ) -> Self {
        let command_id = OnceLock::new();
        if let Some(id) = started.as_ref().and_then(|started| started.command_id.clone()) {
            let _ = command_id.set(id);
        }
        Self {
            sandbox,
            process_id,
            started: started.map(Arc::new),
            command_id: Arc::new(command_id),
            kills: Arc::default(),
        }
    }

    /// What the service knows it by.
    pub fn process_id(&self) -> i64 {
        self.process_id
    }

    /// Its process id inside the sandbox, if this handle comes from starting it.
    pub fn pid(&self) -> Option<i64> {
        self.started.as_ref().map(|started| started.pid)
    }

    /// Its id in the sandbox's history, if known so far: from starting it, or from an earlier look for its
    /// [`logs`](Self::logs).
    pub fn command_id(&self) -> Option<&str> {
        self.command_id.get().map(String::as_str)
    }

    /// What the service answered when it was started through this handle.
    pub fn started(&self) -> Option<&CommandStartedResponse> {
        self.started.as_deref()
    }

    /// Follows its output from the beginning. See [`Attach`].
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) for an unknown process, [`Conflict`](ErrorKind::Conflict) when the sandbox is
    /// stopped, and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Outcome;
    ///
    /// let command = sandbox.start("for n in 1 2 3; do echo step $n; done").await?;
    /// let mut attach = command.attach().await?;
    /// while let Some(chunk) = attach.next().await {
    ///     print!("{}", chunk?.text());
    /// }
    /// assert_eq!(attach.outcome(), Some(Outcome::Exited(0)));
    /// assert_eq!(attach.offsets().stdout, 21);
    /// # Ok(()) }
    /// ```
    pub async fn attach(&self) -> Result<Attach> {
        self.attach_from(Offsets::default()).await
    }

    /// Follows its output from these byte offsets on, such as those of an [`Attach`] that was dropped or failed.
    ///
    /// They have to be offsets of this command: those of a longer log are an error of kind
    /// [`Unexpected`](ErrorKind::Unexpected) with the code `log_replaced` once the command has ended.
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let command = sandbox.start("printf 'abc'").await?;
    /// let offsets = sandboxer::Offsets::new(1, 0);
    /// assert_eq!(command.attach_from(offsets).await?.wait().await?.stdout_text(), "bc");
    /// # Ok(()) }
    /// ```
    pub async fn attach_from(&self, offsets: Offsets) -> Result<Attach> {
        let ledger = Ledger::new(self.sandbox.id(), self.command_id().map(str::to_owned));
        let clock = self.sandbox.api().clock().clone();
        Attach::open(self.opener(), offsets, ledger, self.kills.clone(), clock).await
    }

    fn opener(&self) -> Opener {
        let (sandbox, process_id) = (self.sandbox.clone(), self.process_id);
        Box::new(move |offsets| {
            let sandbox = sandbox.clone();
            Box::pin(async move {
                let request = AttachCommandParams::new()
                    .stdout_offset(wire_offset(offsets.stdout))
                    .stderr_offset(wire_offset(offsets.stderr));
                let body = sandbox.api().attach_command(sandbox.id(), process_id, request).await?;
                Ok(Box::pin(body) as _)
            })
        })
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
    /// As [`attach`](Self::attach) and [`Attach::next`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let command = sandbox.start("echo done; exit 4").await?;
    /// let output = command.wait().await?;
    /// assert_eq!((output.exit_code(), &*output.stdout_text()), (Some(4), "done\n"));
    /// # Ok(()) }
    /// ```
    pub async fn wait(&self) -> Result<Output> {
        self.attach().await?.keep_output(WAIT_CAP).wait().await
    }

    /// Reads whether it runs and what it wrote: the last 8 MiB of each stream, or what `options` ask for.
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::models::CommandStatusParams;
    ///
    /// let command = sandbox.start("echo hello").await?;
    /// command.wait().await?;
    /// let status = command.status(CommandStatusParams::new().tail_bytes(3)).await?;
    /// assert_eq!((status.running, status.exit_code, status.stdout.as_str()), (false, Some(0), "lo\n"));
    /// # Ok(()) }
    /// ```
    pub async fn status(&self, options: CommandStatusParams) -> Result<CommandStatusResponse> {
        self.sandbox.api().command_status(self.sandbox.id(), self.process_id, options).await
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Outcome;
    ///
    /// let command = sandbox.start("sleep 60").await?;
    /// assert!(command.kill().await?.signaled);
    /// assert_eq!(command.wait().await?.outcome(), Outcome::Stopped);
    /// # Ok(()) }
    /// ```
    pub async fn kill(&self) -> Result<CommandStopResponse> {
        // A follower may see the end before this call is answered, so the note is made first.
        let mut note = KillNote::new(&self.kills);
        let api = self.sandbox.api().noting(&note.tries);
        let answer = api.stop_command(self.sandbox.id(), self.process_id).await;
        if let Ok(answer) = &answer {
            // What is found ended by a later try may have been ended by an earlier one.
            note.had_effect = Some(answer.signaled || note.tries.in_doubt());
        }
        answer
    }

    /// Reads the kept output of one stream, byte for byte, from the beginning to as far as it goes now.
    ///
    /// It works also while the sandbox is stopped. The service keeps a copy it renews every 30 seconds while the command
    /// runs, and needs the sandbox's monitoring to be on. A handle made by process id alone finds the command's id in
    /// the history first, among the newest background commands.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::stream::OutputStream;
    ///
    /// let command = sandbox.start(r"printf '\377\000'").await?;
    /// command.wait().await?;
    /// let bytes = command.logs(OutputStream::Stdout).collect(1 << 20).await?;
    /// assert_eq!(&bytes[..], [0xFF, 0x00]);
    /// # Ok(()) }
    /// ```
    pub fn logs(&self, stream: OutputStream) -> LogStream {
        LogStream::new(self.clone(), stream, 0)
    }

    /// Reads the kept output of one stream from a byte offset on, as [`logs`](Self::logs) does from the beginning.
    pub fn logs_from(&self, stream: OutputStream, offset: u64) -> LogStream {
        LogStream::new(self.clone(), stream, offset)
    }

    /// The sandbox it runs in.
    pub fn sandbox(&self) -> &AsyncSandbox {
        &self.sandbox
    }

    /// The command's id, looked up in the history when it is not known.
    pub(crate) async fn find_command_id(&self) -> Result<String> {
        if let Some(id) = self.command_id.get() {
            return Ok(id.clone());
        }
        let (mut cursor, mut seen) = (None::<String>, HashSet::new());
        loop {
            let mut request = CommandHistoryParams::new().mode("detached").limit(100);
            request.cursor.clone_from(&cursor);
            let page = self.sandbox.api().command_history(self.sandbox.id(), request).await?;
            // Newest first: a process id that came up again belongs to its last holder.
            if let Some(found) =
                page.commands.into_iter().find(|record| record.process_id == Some(self.process_id))
            {
                return Ok(self.command_id.get_or_init(|| found.command_id).clone());
            }
            // A cursor that comes again would lead round in a circle.
            cursor = page.next_cursor.filter(|next| seen.insert(next.clone()));
            if cursor.is_none() {
                let message = format!(
                    "the sandbox's history has no background command with process id {}",
                    self.process_id
                );
                return Err(Error::new(ErrorKind::NotFound, "command_not_found", message)
                    .with_delivery(Delivery::Answered)
                    .with_sandbox_id(Some(self.sandbox.id().to_owned())));
            }
        }
    }
}

/// The note of one call to end a command; taken back when the call is over, or was dropped, and cannot have had an effect.
struct KillNote<'a> {
    kills: &'a AtomicUsize,
    tries: Tries,
    /// What a success said of its effect.
    had_effect: Option<bool>,
}

impl<'a> KillNote<'a> {
    fn new(kills: &'a AtomicUsize) -> Self {
        kills.fetch_add(1, Ordering::AcqRel);
        Self { kills, tries: Tries::default(), had_effect: None }
    }
}

impl Drop for KillNote<'_> {
    fn drop(&mut self) {
        if !self.had_effect.unwrap_or_else(|| self.tries.may_have_acted()) {
            self.kills.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// An offset as the service takes it.
pub(crate) fn wire_offset(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

impl fmt::Debug for AsyncCommand {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AsyncCommand")
            .field("sandbox", &self.sandbox.id())
            .field("process_id", &self.process_id)
            .field("command_id", &self.command_id())
            .finish_non_exhaustive()
    }
}
