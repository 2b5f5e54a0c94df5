//! Output of a command, wherever it is: in the memory of one that runs, or in the store.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    app::App,
    job::Job,
    reply::ApiError,
    store::typed,
    world::{
        commands::{self, Command, Kept, Process, Stream, command_key, process_key},
        sandboxes::Sandbox,
    },
};

/// A command that can be asked what it wrote.
pub(crate) enum Source {
    /// It runs, or the store does not know it.
    Live(Arc<Job>),
    /// It has ended.
    Stored(Box<Command>),
}

/// A part of a stream.
pub(crate) struct Part {
    /// Where it begins: later than asked for if what came before is not kept.
    pub(crate) offset: u64,
    pub(crate) bytes: Bytes,
    /// One past the last byte that there is.
    pub(crate) end: u64,
}

impl Part {
    /// Where to go on.
    pub(crate) fn next(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    /// Forgets what comes after an offset.
    pub(crate) fn cut_at(&mut self, end: u64) {
        self.end = self.end.min(end);
        self.offset = self.offset.min(self.end);
        self.bytes.truncate(usize::try_from(self.end - self.offset).unwrap_or(usize::MAX));
    }
}

impl Source {
    /// The command of an id.
    pub(crate) fn command(app: &App, sandbox: &Sandbox, id: &str) -> Result<Option<Self>, ApiError> {
        // The live side first: a command leaves it only once it is in the store.
        if let Some(job) = app.live(sandbox).job(id) {
            return Ok(Some(Source::Live(job)));
        }
        let stored: Option<Command> = app.read(|tx| typed::get(tx, &command_key(&sandbox.id, id)))?;
        Ok(stored.map(|command| Source::Stored(Box::new(command))))
    }

    /// The background command of a process id.
    pub(crate) fn process(app: &App, sandbox: &Sandbox, process_id: &str) -> Result<Self, ApiError> {
        let not_found = || ApiError::not_found("process");
        let process_id = process_id.parse().ok().filter(|id| *id > 0).ok_or_else(not_found)?;
        let process: Process =
            app.read(|tx| typed::get(tx, &process_key(&sandbox.id, process_id)))?.ok_or_else(not_found)?;
        Self::command(app, sandbox, &process.command)?.ok_or_else(not_found)
    }

    /// The record as it is now.
    pub(crate) fn record(&self) -> Command {
        match self {
            Source::Live(job) => job.record(),
            Source::Stored(command) => (**command).clone(),
        }
    }

    /// Up to `max` bytes of a stream from an offset on.
    pub(crate) fn part(&self, app: &App, stream: Stream, offset: u64, max: usize) -> Result<Part, ApiError> {
        match self {
            Source::Live(job) => {
                let (offset, bytes, end) = job.output(stream, offset, max);
                Ok(Part { offset, bytes, end })
            }
            Source::Stored(command) => {
                let kept = stream.kept(command);
                let offset = offset.clamp(kept.start, kept.end);
                let bytes =
                    app.read(|tx| commands::read_output(tx, &command.id, stream, kept, offset, max))?;
                Ok(Part { offset, bytes: bytes.into(), end: kept.end })
            }
        }
    }
}

impl Stream {
    /// What a record says about this stream.
    pub(crate) fn kept(self, command: &Command) -> Kept {
        match self {
            Stream::Stdout => command.stdout,
            Stream::Stderr => command.stderr,
        }
    }
}
