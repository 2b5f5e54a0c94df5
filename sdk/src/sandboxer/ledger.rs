//! What a stream of a command's output has brought so far, and how it ended.

use crate::{
    error::{Delivery, Error, ErrorKind, Offsets, PartialOutput, Result},
    outcome::Outcome,
    output::{Facts, Output},
    stream::{
        Chunk, OutputStream,
        kept::{Kept, KeptStream},
    },
};

/// The book of one stream: output kept, facts learnt, and the one end it came to.
#[derive(Debug)]
pub(crate) struct Ledger {
    kept: Kept,
    facts: Facts,
    end: End,
}

#[derive(Debug)]
enum End {
    Open,
    Outcome(Outcome),
    /// The stream failed; its error was given out and can be told again.
    Failed {
        kind: ErrorKind,
        code: String,
        message: String,
        details: Option<serde_json::Value>,
        status: Option<u16>,
        delivery: Delivery,
        retryable: bool,
        offsets: Option<Offsets>,
    },
}

impl Ledger {
    pub(crate) fn new(sandbox_id: &str, command_id: Option<String>) -> Self {
        let facts = Facts { sandbox_id: sandbox_id.to_owned(), command_id, ..Facts::default() };
        Self { kept: Kept::tail(), facts, end: End::Open }
    }

    /// Keeps the first `cap` bytes of each stream from here on.
    pub(crate) fn keep(&mut self, cap: usize) {
        let mut before = std::mem::replace(&mut self.kept, Kept::head(cap));
        // What is missing already stays missing.
        self.facts.stdout_truncated |= before.stdout.dropped();
        self.facts.stderr_truncated |= before.stderr.dropped();
        self.kept.push(&Chunk::Stdout(before.stdout.take()));
        self.kept.push(&Chunk::Stderr(before.stderr.take()));
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) fn facts_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match &self.end {
            End::Outcome(outcome) => Some(outcome.clone()),
            _ => None,
        }
    }

    /// Whether nothing more will come.
    pub(crate) fn is_over(&self) -> bool {
        !matches!(self.end, End::Open)
    }

    /// Takes note of a chunk on its way to the caller.
    pub(crate) fn record(&mut self, chunk: &Chunk) {
        if let Chunk::Gap(gap) = chunk {
            match gap.stream {
                OutputStream::Stdout => self.facts.stdout_truncated = true,
                OutputStream::Stderr => self.facts.stderr_truncated = true,
            }
        }
        self.kept.push(chunk);
    }

    pub(crate) fn finish(&mut self, outcome: Outcome) {
        self.end = End::Outcome(outcome);
    }

    /// Ends the stream with an error that carries everything known.
    pub(crate) fn fail(&mut self, error: Error, offsets: Option<Offsets>) -> Error {
        self.end = End::Failed {
            kind: error.kind(),
            code: error.code().to_owned(),
            message: error.message().to_owned(),
            details: error.details().cloned(),
            status: error.status(),
            delivery: error.delivery(),
            retryable: error.is_retryable(),
            offsets,
        };
        self.complete(error, offsets)
    }

    fn complete(&self, error: Error, offsets: Option<Offsets>) -> Error {
        let partial = PartialOutput::new(self.kept.stdout.bytes(), self.kept.stderr.bytes());
        error
            .with_sandbox_id(Some(self.facts.sandbox_id.clone()))
            .with_command_id(self.facts.command_id.clone())
            .with_partial_output(partial)
            .with_resume_offsets(offsets)
    }

    /// What came of the command once its stream is over.
    pub(crate) fn into_output(mut self) -> Result<Output> {
        match &self.end {
            End::Outcome(outcome) => {
                let outcome = outcome.clone();
                self.facts.stdout_truncated |= self.kept.stdout.dropped();
                self.facts.stderr_truncated |= self.kept.stderr.dropped();
                let take = |kept: &mut KeptStream| kept.take();
                let (stdout, stderr) = (take(&mut self.kept.stdout), take(&mut self.kept.stderr));
                Ok(Output { stdout, stderr, outcome, facts: self.facts })
            }
            End::Failed { kind, code, message, details, status, delivery, retryable, offsets } => {
                let error = Error::new(*kind, code.clone(), message.clone())
                    .with_details(details.clone())
                    .with_status(*status)
                    .with_delivery(*delivery)
                    .with_retryable(*retryable);
                Err(self.complete(error, *offsets))
            }
            End::Open => Err(self.complete(cut(None), None)),
        }
    }
}

/// The error of a stream that ended without its final frame.
pub(crate) fn cut(cause: Option<Error>) -> Error {
    const WHAT: &str = "before its final frame, so how the command ended is not known";
    let error = match cause {
        Some(cause) => {
            let message = format!("the stream broke {WHAT}: {}", cause.message());
            Error::new(ErrorKind::StreamCut, "stream_cut", message)
                .with_status(cause.status())
                .with_operation(cause.operation())
                .with_attempts(cause.attempts())
                .with_request_id(cause.request_id().map(str::to_owned))
                .with_source(cause)
        }
        None => Error::new(ErrorKind::StreamCut, "stream_cut", format!("the stream ended {WHAT}")),
    };
    error.with_delivery(Delivery::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::kept::TAIL;

    #[test]
    fn what_was_dropped_before_keeping_began_counts_as_truncated() {
        let mut ledger = Ledger::new("bx_1", None);
        ledger.record(&Chunk::Stdout(vec![b'x'; TAIL + 1].into()));
        ledger.record(&Chunk::Stderr(vec![b'x'; TAIL].into()));
        ledger.keep(1 << 20);
        ledger.record(&Chunk::Stdout("end".into()));
        ledger.finish(Outcome::Exited(0));
        let output = ledger.into_output().unwrap();
        assert!(output.stdout_truncated() && !output.stderr_truncated());
        assert_eq!((output.stdout().len(), output.stderr().len()), (TAIL + 3, TAIL));
    }

    #[test]
    fn an_error_told_again_says_the_same() {
        let mut ledger = Ledger::new("bx_1", Some("cmd_1".to_owned()));
        let refusal = Error::new(ErrorKind::Conflict, "sandbox_not_ready", "it is archived")
            .with_status(409)
            .with_details(serde_json::json!({"state": "archived"}))
            .with_delivery(Delivery::Answered);
        let first = ledger.fail(refusal, Some(Offsets::new(3, 0)));
        let again = ledger.into_output().unwrap_err();
        assert_eq!(again.to_string(), first.to_string());
        assert_eq!((again.delivery(), again.details()), (Delivery::Answered, first.details()));
        assert_eq!((again.resume_offsets(), again.command_id()), (Some(Offsets::new(3, 0)), Some("cmd_1")));
    }
}
