//! What came of a command: its output and the one way in which it ended.

use std::{borrow::Cow, fmt, time::Duration};

use bytes::Bytes;
use serde_json::json;

use crate::{
    error::{Delivery, Error, ErrorKind, PartialOutput, Result},
    outcome::Outcome,
    wire::Timestamp,
};

/// The output of a command that has ended, and how it ended.
///
/// A command that fails or times out is a result like any other; [`check`](Self::check) turns everything but exit code
/// 0 into an error.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// use sandboxer::{ErrorKind, Outcome};
///
/// let output = sandbox.exec("echo out; echo err >&2; exit 3").await?;
/// assert_eq!((output.outcome(), output.exit_code()), (Outcome::Exited(3), Some(3)));
/// assert_eq!((&*output.stdout_text(), &*output.stderr_text()), ("out\n", "err\n"));
/// assert_eq!((output.stdout().len(), output.stderr().len()), (4, 4)); // bytes
/// assert!(!output.success() && !output.oom_killed() && !output.lossy());
/// assert!(!output.truncated() && !output.stdout_truncated() && !output.stderr_truncated());
/// assert!(output.command_id().is_some() && output.cwd().is_some());
/// if let (Some(began), Some(ended), Some(took)) = (output.started_at(), output.finished_at(), output.duration()) {
///     println!("from {began} to {ended}: {took:?}");
/// }
/// let failed = output.check().unwrap_err();
/// assert_eq!(failed.kind(), ErrorKind::CommandFailed);
/// assert_eq!(failed.partial_output().unwrap().stderr_text(), "err\n");
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq)]
pub struct Output {
    pub(crate) stdout: Bytes,
    pub(crate) stderr: Bytes,
    pub(crate) outcome: Outcome,
    pub(crate) facts: Facts,
}

/// What is known of a command besides its output and outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    pub(crate) sandbox_id: String,
    pub(crate) command_id: Option<String>,
    pub(crate) stdout_truncated: bool,
    pub(crate) stderr_truncated: bool,
    pub(crate) oom_killed: bool,
    pub(crate) lossy: bool,
    pub(crate) cwd: Option<String>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) finished_at: Option<Timestamp>,
}

impl Output {
    /// What it wrote to standard output.
    ///
    /// From a collected answer these are the bytes of the service's text; see [`lossy`](Self::lossy).
    pub fn stdout(&self) -> &Bytes {
        &self.stdout
    }

    /// What it wrote to standard error.
    pub fn stderr(&self) -> &Bytes {
        &self.stderr
    }

    /// Standard output as text, with U+FFFD for what is not UTF-8.
    pub fn stdout_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stdout)
    }

    /// Standard error as text, with U+FFFD for what is not UTF-8.
    pub fn stderr_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stderr)
    }

    /// How it ended.
    pub fn outcome(&self) -> Outcome {
        self.outcome.clone()
    }

    /// Its exit code, if it exited by itself.
    pub fn exit_code(&self) -> Option<i32> {
        match self.outcome {
            Outcome::Exited(code) => Some(code),
            _ => None,
        }
    }

    /// Whether it exited with code 0.
    pub fn success(&self) -> bool {
        self.outcome.is_success()
    }

    /// This output if the command exited with code 0, else an error.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::CommandFailed`] with the code `command_failed`; its
    /// [`partial_output`](Error::partial_output) is this output, its [`details`](Error::details) hold `outcome`
    /// (`exited`, `signalled`, `timed_out`, `stopped` or `lost`), `exitCode` and `signal`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// assert_eq!(sandbox.exec("echo hi").await?.check()?.stdout_text(), "hi\n");
    /// assert!(sandbox.exec("exit 1").await?.check().is_err());
    /// # Ok(()) }
    /// ```
    pub fn check(self) -> Result<Self> {
        if self.success() {
            return Ok(self);
        }
        let (outcome, exit_code, signal) = match &self.outcome {
            Outcome::Exited(code) => ("exited", Some(*code), None),
            Outcome::Signalled(signal) => ("signalled", None, Some(signal.as_str())),
            Outcome::TimedOut => ("timed_out", None, None),
            Outcome::Stopped => ("stopped", None, None),
            Outcome::Lost => ("lost", None, None),
        };
        let details = json!({"outcome": outcome, "exitCode": exit_code, "signal": signal});
        let sandbox_id = Some(self.facts.sandbox_id).filter(|id| !id.is_empty());
        Err(Error::new(
            ErrorKind::CommandFailed,
            "command_failed",
            format!("the command {}", ended(&self.outcome)),
        )
        .with_delivery(Delivery::Answered)
        .with_details(details)
        .with_sandbox_id(sandbox_id)
        .with_command_id(self.facts.command_id)
        .with_partial_output(PartialOutput::new(self.stdout, self.stderr)))
    }

    /// Whether standard output lacks a part: the service or this client kept no more, or its log had a gap.
    pub fn stdout_truncated(&self) -> bool {
        self.facts.stdout_truncated
    }

    /// Whether standard error lacks a part.
    pub fn stderr_truncated(&self) -> bool {
        self.facts.stderr_truncated
    }

    /// Whether either stream lacks a part.
    pub fn truncated(&self) -> bool {
        self.facts.stdout_truncated || self.facts.stderr_truncated
    }

    /// Whether the command, or one it started, was ended because memory ran out, and it failed.
    pub fn oom_killed(&self) -> bool {
        self.facts.oom_killed
    }

    /// Whether byte offsets show that the service replaced bytes that are not UTF-8. The logs of the command still
    /// have them exactly.
    ///
    /// Only following a background command has offsets to compare; elsewhere this is `false`.
    pub fn lossy(&self) -> bool {
        self.facts.lossy
    }

    /// The command's id in the sandbox's history.
    pub fn command_id(&self) -> Option<&str> {
        self.facts.command_id.as_deref()
    }

    /// The folder it ran in, if the service said.
    pub fn cwd(&self) -> Option<&str> {
        self.facts.cwd.as_deref()
    }

    /// When it started, by the service's clock.
    pub fn started_at(&self) -> Option<&Timestamp> {
        self.facts.started_at.as_ref()
    }

    /// When it ended, by the service's clock.
    pub fn finished_at(&self) -> Option<&Timestamp> {
        self.facts.finished_at.as_ref()
    }

    /// How long it ran, if the service said when it started and ended.
    pub fn duration(&self) -> Option<Duration> {
        let started = self.facts.started_at.as_ref()?.to_system_time()?;
        let finished = self.facts.finished_at.as_ref()?.to_system_time()?;
        finished.duration_since(started).ok()
    }
}

fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited(_) => outcome.to_string(),
        other => format!("was {other}"),
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Output")
            .field("outcome", &self.outcome)
            .field("stdout", &Preview(&self.stdout))
            .field("stderr", &Preview(&self.stderr))
            .field("command_id", &self.facts.command_id)
            .field("truncated", &self.truncated())
            .field("lossy", &self.lossy())
            .finish_non_exhaustive()
    }
}

/// Bytes in a debug text: the beginning and how many there are.
pub(crate) struct Preview<'a>(pub(crate) &'a [u8]);

impl fmt::Debug for Preview<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 200;
        let shown = &self.0[..self.0.len().min(SHOWN)];
        write!(formatter, "{:?}", String::from_utf8_lossy(shown))?;
        if self.0.len() > SHOWN {
            write!(formatter, "... ({} bytes)", self.0.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Signal;

    fn output(outcome: Outcome) -> Output {
        let facts = Facts { command_id: Some("cmd_1".into()), sandbox_id: "bx_1".into(), ..Facts::default() };
        Output { stdout: "out".into(), stderr: "err".into(), outcome, facts }
    }

    #[test]
    fn only_exit_code_0_passes_the_check() {
        assert!(output(Outcome::Exited(0)).check().is_ok());
        let outcomes = [
            Outcome::Exited(2),
            Outcome::Signalled(Signal::new("SIGSEGV")),
            Outcome::TimedOut,
            Outcome::Lost,
        ];
        for outcome in outcomes {
            let error = output(outcome.clone()).check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::CommandFailed, "{outcome:?}");
            assert_eq!(error.partial_output().unwrap().stdout, "out");
            assert_eq!(error.partial_output().unwrap().stderr, "err");
            assert_eq!(error.command_id(), Some("cmd_1"));
            assert_eq!(error.sandbox_id(), Some("bx_1"));
        }
        let error = output(Outcome::Exited(2)).check().unwrap_err();
        assert_eq!(error.details().unwrap()["exitCode"], 2);
        assert_eq!(error.to_string(), "command_failed: the command exited with 2");
    }

    #[test]
    fn debug_is_bounded() {
        let mut big = output(Outcome::Exited(0));
        big.stdout = vec![b'x'; 1 << 20].into();
        let shown = format!("{big:?}");
        assert!(shown.len() < 700 && shown.contains("1048576 bytes"), "{shown}");
    }
}
