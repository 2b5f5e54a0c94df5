//! What is fixed about a call before its first try.

use crate::{
    call::{COMMAND_LIMIT_DEFAULT, CallOptions, Limit},
    error::Error,
    generated::operations::{Media, Operation, Repeat},
};
use std::{sync::Arc, time::Duration};

/// How long the service may hold a call for a sandbox that is starting.
const HOLD: Duration = Duration::from_secs(60);
/// What the way there and back, and the ending of a command, may take on top.
const MARGIN: Duration = Duration::from_secs(30);
const ATTEMPT: Duration = Duration::from_secs(60);
const TOTAL: Duration = Duration::from_secs(300);
/// Heartbeats come every 15 s: three of them missing is silence.
const ATTACH_IDLE: Duration = Duration::from_secs(45);

/// What a success is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// A JSON document.
    Json,
    /// A JSON document or nothing.
    JsonOrNothing,
    /// By the caller, piece by piece.
    Stream,
}

/// One call: its operation, ids, options and limits.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) operation: Option<Operation>,
    pub(crate) repeat: Repeat,
    pub(crate) reading: Reading,
    pub(crate) options: Arc<CallOptions>,
    pub(crate) sandbox_id: Option<String>,
    pub(crate) command_id: Option<String>,
    /// When it began, on the client's clock.
    pub(crate) started: Duration,
    /// The time the service gives the command that the call runs.
    pub(crate) command_limit: Option<Duration>,
}

impl Plan {
    pub(crate) fn of(
        operation: Operation,
        ids: &[(&'static str, &str)],
        options: Arc<CallOptions>,
        now: Duration,
    ) -> Self {
        let id = |wanted| ids.iter().find(|(name, _)| *name == wanted).map(|(_, id)| (*id).to_owned());
        let info = operation.info();
        Self {
            operation: Some(operation),
            repeat: info.repeat,
            reading: if info.media == Media::Json { Reading::Json } else { Reading::Stream },
            options,
            sandbox_id: id("sandboxId"),
            command_id: id("commandId"),
            started: now,
            command_limit: (info.repeat == Repeat::Command).then_some(COMMAND_LIMIT_DEFAULT),
        }
    }

    /// A call without an operation of its own.
    pub(crate) fn plain(repeat: Repeat, options: Arc<CallOptions>, now: Duration) -> Self {
        Self {
            operation: None,
            repeat,
            reading: Reading::JsonOrNothing,
            options,
            sandbox_id: None,
            command_id: None,
            started: now,
            command_limit: None,
        }
    }

    /// The operation's name for logs.
    pub(crate) fn name(&self) -> &'static str {
        self.operation.map_or("request", Operation::id)
    }

    /// The limit of one try.
    pub(crate) fn attempt(&self) -> Option<Duration> {
        self.options.timeouts.attempt.resolve(self.attempt_default())
    }

    fn attempt_default(&self) -> Duration {
        self.command_limit.map_or(ATTEMPT, |limit| HOLD + limit + MARGIN)
    }

    /// The limit of all tries and the waits between them.
    pub(crate) fn total(&self) -> Option<Duration> {
        let attempt = self.attempt().unwrap_or_else(|| self.attempt_default());
        let with_another = attempt.saturating_add(Duration::from_secs(60));
        let default = if self.command_limit.is_some() { with_another } else { with_another.max(TOTAL) };
        self.options.timeouts.total.resolve(default)
    }

    /// When the call ends at the latest, on the client's clock.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.total().map(|total| self.started.saturating_add(total))
    }

    /// The longest silence of a stream.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let default = match (self.operation, self.command_limit) {
            (Some(Operation::AttachCommand | Operation::EventsStream), _) => ATTACH_IDLE,
            (_, Some(limit)) => HOLD + limit + MARGIN,
            _ => ATTEMPT,
        };
        self.options.timeouts.idle.resolve(default)
    }

    /// How many times a failed try may be followed by another.
    pub(crate) fn retries(&self) -> u32 {
        self.options.retries.unwrap_or(3)
    }

    /// Adds to an error what it was about.
    pub(crate) fn label(&self, error: Error) -> Error {
        error
            .with_operation(self.operation)
            .with_sandbox_id(self.sandbox_id.clone())
            .with_command_id(self.command_id.clone())
    }
}

/// The total limit that a command call under these options will have, to fit the command's own limit to; `None` when it
/// follows the command's limit anyway, or is off.
pub(crate) fn explicit_total(options: &CallOptions) -> Option<Duration> {
    match options.timeouts.total {
        Limit::After(total) => Some(total),
        Limit::Unset | Limit::Off => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(operation: Operation, options: CallOptions) -> Plan {
        Plan::of(operation, &[("sandboxId", "bx_1")], Arc::new(options), Duration::ZERO)
    }

    fn secs(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn defaults_by_operation() {
        let read = plan(Operation::Get, CallOptions::new());
        assert_eq!((read.attempt(), read.total(), read.idle()), (secs(60), secs(300), secs(60)));
        let mut run = plan(Operation::Command, CallOptions::new());
        assert_eq!((run.attempt(), run.total()), (secs(120), secs(180)));
        run.command_limit = secs(600);
        assert_eq!((run.attempt(), run.total()), (secs(690), secs(750)));
        let stream = plan(Operation::CommandStream, CallOptions::new());
        assert_eq!((stream.reading, stream.idle()), (Reading::Stream, secs(120)));
        assert_eq!(plan(Operation::AttachCommand, CallOptions::new()).idle(), secs(45));
    }

    #[test]
    fn set_limits_win_and_off_is_off() {
        let options = CallOptions::new().attempt(Duration::from_secs(600)).idle(Limit::Off);
        let read = plan(Operation::Get, options);
        assert_eq!((read.attempt(), read.total(), read.idle()), (secs(600), secs(660), None));
        let endless = plan(Operation::Get, CallOptions::new().attempt(Limit::Off).total(Limit::Off));
        assert_eq!((endless.attempt(), endless.total(), endless.deadline()), (None, None, None));
    }
}
