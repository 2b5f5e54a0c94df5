//! Running commands in a sandbox.

use std::{pin::pin, time::Duration};

use futures_util::future::{Either, select};

use super::{
    allowance::Allowance,
    process::AsyncCommand,
    run::{ExecStream, Explain},
    sandbox::AsyncSandbox,
};
use crate::{
    command::Command,
    error::{Delivery, Error, ErrorKind, Result},
    generated::operations::Operation,
    models::{CommandAnswer, CommandRequest, CommandResponse},
    outcome::{End, Outcome},
    output::{Facts, Output},
    transport::{Tries, timed_out},
};

/// How long a command that was turned away because the sandbox was still being restored is sent again, and how often.
const RESTORING: Duration = Duration::from_secs(60);
const RESTORING_PAUSE: Duration = Duration::from_secs(1);

impl AsyncSandbox {
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
    /// [`InvalidInput`](ErrorKind::InvalidInput) before anything is sent: an empty line or list, a NUL, a limit under
    /// 1 s or over 600 s, a bad name of a variable. Otherwise what the service answered, or that it did not:
    /// [`Error::delivery`] says whether the command may be running. When the connection breaks, the sandbox is looked at
    /// once, for at most 5 seconds: if it is stopped, failed or gone, the error is of kind
    /// [`SandboxState`](ErrorKind::SandboxState), with the break as its source.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::{Command, Outcome};
    /// use std::time::Duration;
    ///
    /// assert_eq!(sandbox.exec("echo $((40 + 2))").await?.stdout_text(), "42\n");
    /// assert_eq!(sandbox.exec(["printf", "%s", "a  b"]).await?.check()?.stdout_text(), "a  b");
    /// let slow = sandbox.exec(Command::shell("sleep 30").timeout(Duration::from_secs(1))).await?;
    /// assert_eq!(slow.outcome(), Outcome::TimedOut);
    /// # Ok(()) }
    /// ```
    pub async fn exec(&self, command: impl Into<Command>) -> Result<Output> {
        self.exec_noting(command.into(), &Tries::default()).await
    }

    /// The same, with the tries of the command noted in `tries`.
    pub(crate) async fn exec_noting(&self, command: Command, tries: &Tries) -> Result<Output> {
        let request = self.command_request(&command, Operation::Command)?;
        let allowance = Allowance::of(self.api());
        match self.api().noting(tries).command(self.id(), request).await {
            Ok(CommandAnswer::Finished(answer)) => Ok(output(self.id(), answer)),
            Ok(other) => Err(self.unexpected(&other)),
            Err(cut) if cut.kind() == ErrorKind::Connection && cut.delivery() == Delivery::Unknown => {
                Err(self.within(&allowance).explain(cut).await)
            }
            Err(error) => Err(error),
        }
    }

    /// Runs a command and hands on its output as it is written. Returns once the command has started; a total limit
    /// that was set covers that, and ends there.
    ///
    /// What is said of [`exec`](Self::exec) about commands, holding and repeating holds here too. Once it has started
    /// nothing is repeated; a connection that breaks then is an error of the stream, and the command runs on.
    ///
    /// # Errors
    ///
    /// As [`exec`](Self::exec), and for a stream that breaks before its first frame those of [`ExecStream::next`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let mut run = sandbox.exec_stream("for i in 1 2 3; do echo $i; done").await?;
    /// let mut text = String::new();
    /// while let Some(chunk) = run.next().await {
    ///     text += &chunk?.text();
    /// }
    /// assert_eq!(text, "1\n2\n3\n");
    /// assert!(run.wait().await?.success());
    /// # Ok(()) }
    /// ```
    pub async fn exec_stream(&self, command: impl Into<Command>) -> Result<ExecStream> {
        let request = self.command_request(&command.into(), Operation::CommandStream)?;
        let clock = self.api().clock();
        let allowance = Allowance::of(self.api());
        let give_up = clock.elapsed().saturating_add(RESTORING);
        loop {
            let body = self.within(&allowance).api().command_stream(self.id(), request.clone()).await?;
            let sandbox = self.clone();
            let explain: Explain = Box::new(move |cut| Box::pin(sandbox.explain(cut)));
            let mut stream = ExecStream::new(Box::pin(body), self.id(), Some(explain));
            let Err(error) = self.opened(&mut stream, &allowance).await else { return Ok(stream) };
            // The service says so only of a command that never ran, and its stream had not started.
            let never_ran = error.kind() == ErrorKind::StreamFailed && error.is_retryable();
            let may_repeat =
                never_ran && stream.command_id().is_none() && self.api().options().retries != Some(0);
            let after_pause = clock.elapsed().saturating_add(RESTORING_PAUSE);
            let in_time = allowance.left(self.api()).is_none_or(|left| left > RESTORING_PAUSE);
            if !may_repeat || after_pause > give_up || !in_time {
                return Err(error.with_operation(Operation::CommandStream));
            }
            tracing::debug!(
                code = error.code(),
                "the command was turned away before it ran; sending it again"
            );
            clock.sleep(RESTORING_PAUSE).await;
        }
    }

    /// Waits until the stream's command has started, for as long as the allowance lasts.
    async fn opened(&self, stream: &mut ExecStream, allowance: &Allowance) -> Result<()> {
        let opening = stream.open();
        let Some(left) = allowance.left(self.api()) else { return opening.await };
        match select(pin!(opening), self.api().clock().sleep(left)).await {
            Either::Left((opened, _)) => opened,
            Either::Right(((), _)) => {
                let total = self.explicit_total().unwrap_or(left);
                Err(timed_out("total", total)
                    .with_delivery(Delivery::Unknown)
                    .with_sandbox_id(Some(self.id().to_owned())))
            }
        }
    }

    /// Starts a command in the background and answers as soon as it runs.
    ///
    /// It lives until it ends, is [killed](AsyncCommand::kill) or the sandbox stops; a time limit has no effect on it.
    ///
    /// # Errors
    ///
    /// As [`exec`](Self::exec).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let command = sandbox.start("echo started; sleep 60").await?;
    /// let mut attach = command.attach().await?;
    /// assert_eq!(attach.next().await.unwrap()?.text(), "started\n");
    /// command.kill().await?;
    /// # Ok(()) }
    /// ```
    pub async fn start(&self, command: impl Into<Command>) -> Result<AsyncCommand> {
        let command = command.into();
        let mut request = self.command_request(&command, Operation::Command)?.detached(true);
        // The view's total limit is for the call; what it starts lives on.
        request.timeout_seconds = request.timeout_seconds.filter(|_| command.limit().is_some());
        match self.api().command(self.id(), request).await? {
            CommandAnswer::Started(answer) => {
                Ok(AsyncCommand::new(self.clone(), answer.process_id, Some(answer)))
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// Runs a command that may take as long as it likes, to its end, and answers with its output and outcome.
    ///
    /// It is [started](Self::start) in the background and followed over as many connections as that takes, so it neither
    /// needs a time limit nor ends with a connection; it never runs twice. The output is the first 8 MiB of each stream,
    /// what is longer is marked as truncated. A total limit of the view covers the start alone.
    ///
    /// When the returned future is dropped, the command runs on: the sandbox's [`history`](Self::history) has it, with the
    /// process id to follow or [kill](AsyncCommand::kill) it by ([`command`](Self::command)). To have that at hand from the
    /// beginning, `start` it and [`wait`](AsyncCommand::wait).
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](ErrorKind::InvalidInput) before anything is sent, as [`exec`](Self::exec), and for a command with a
    /// time limit, which `exec` keeps. Those of `start` and of [`AsyncCommand::wait`]; the latter carry the command's id,
    /// and its `processId` in the details: the command may run on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Command;
    ///
    /// let output = sandbox.run(Command::shell("sleep 0.1; echo $WHAT; exit 3").env("WHAT", "done")).await?;
    /// assert_eq!((output.exit_code(), &*output.stdout_text()), (Some(3), "done\n"));
    /// # Ok(()) }
    /// ```
    pub async fn run(&self, command: impl Into<Command>) -> Result<Output> {
        let command = command.into();
        if command.limit().is_some() {
            let problem = "a command that is run has no time limit; `exec` keeps one";
            return Err(Error::invalid_input("timeout", problem).with_sandbox_id(Some(self.id().to_owned())));
        }
        let started = self.start(command).await?;
        started.wait().await.map_err(|error| running_on(error, &started))
    }

    fn command_request(&self, command: &Command, operation: Operation) -> Result<CommandRequest> {
        let label =
            |error: Error| error.with_operation(operation).with_sandbox_id(Some(self.id().to_owned()));
        let checked =
            command.checked().map_err(|bad| label(Error::invalid_input(&bad.field, bad.problem)))?;
        let seconds = self.api().fit_command_limit(checked.limit).map_err(label)?;
        let mut request = CommandRequest::new(checked.line);
        request.cwd = checked.cwd;
        if checked.limit.is_some() || Duration::from_secs(seconds.into()) < crate::call::COMMAND_LIMIT_DEFAULT
        {
            request.timeout_seconds = Some(seconds.into());
        }
        if !checked.env.is_empty() {
            request.env = Some(checked.env.into_iter().collect());
        }
        Ok(request)
    }

    /// The service ran the command in another way than it was asked to.
    fn unexpected(&self, answer: &CommandAnswer) -> Error {
        let (what, command_id) = match answer {
            CommandAnswer::Finished(answer) => ("finished", answer.command_id.clone()),
            CommandAnswer::Started(answer) => ("started in the background", answer.command_id.clone()),
            CommandAnswer::Other(_) => ("answered in a way this client does not know", None),
        };
        Error::new(ErrorKind::Unexpected, "unexpected_response", format!("the command was {what}"))
            .with_delivery(Delivery::Answered)
            .with_operation(Operation::Command)
            .with_sandbox_id(Some(self.id().to_owned()))
            .with_command_id(command_id)
    }
}

/// The error of a command that may run on, with what it is found by.
fn running_on(error: Error, command: &AsyncCommand) -> Error {
    let command_id = error.command_id().or(command.command_id()).map(str::to_owned);
    let error = error.with_sandbox_id(Some(command.sandbox().id().to_owned())).with_command_id(command_id);
    let mut details = match error.details() {
        None => serde_json::Map::new(),
        Some(serde_json::Value::Object(details)) => details.clone(),
        Some(_) => return error,
    };
    details.insert("processId".to_owned(), command.process_id().into());
    error.with_details(serde_json::Value::Object(details))
}

fn output(sandbox_id: &str, answer: CommandResponse) -> Output {
    let outcome = Outcome::from_end(End {
        timed_out: answer.timed_out,
        lost: false,
        signal: answer.signal.as_deref(),
        exit_code: answer.exit_code,
        success: Some(answer.success),
    });
    let facts = Facts {
        sandbox_id: sandbox_id.to_owned(),
        command_id: answer.command_id,
        stdout_truncated: answer.stdout_truncated == Some(true),
        stderr_truncated: answer.stderr_truncated == Some(true),
        oom_killed: answer.oom_killed == Some(true),
        lossy: false,
        cwd: answer.cwd,
        started_at: answer.started_at,
        finished_at: answer.finished_at,
    };
    Output { stdout: answer.stdout.into(), stderr: answer.stderr.into(), outcome, facts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_becomes_an_output() {
        let answer: CommandResponse = serde_json::from_value(serde_json::json!({
            "ok": true, "type": "command.finished", "success": false, "commandId": "cmd_1", "exitCode": null,
            "signal": "SIGKILL", "oomKilled": true, "stdout": "é", "stderr": "", "stdoutTruncated": true,
            "timedOut": false, "cwd": "/tmp",
            "startedAt": "2026-01-01T00:00:00.000Z", "finishedAt": "2026-01-01T00:00:01.500Z",
        }))
        .unwrap();
        let output = output("bx_1", answer);
        assert_eq!(output.outcome().to_string(), "ended by SIGKILL");
        assert_eq!(
            (output.exit_code(), output.command_id(), output.cwd()),
            (None, Some("cmd_1"), Some("/tmp"))
        );
        assert!(output.oom_killed() && output.stdout_truncated() && !output.stderr_truncated());
        assert_eq!(output.stdout_text(), "é");
        assert_eq!(output.duration(), Some(Duration::from_millis(1500)));
    }
}
