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
            End::Failed { kind, code, message, offsets } => {
                let error = Error::new(*kind, code.clone(), message.clone()).with_delivery(Delivery::Unknown);
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
