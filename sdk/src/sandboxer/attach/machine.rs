//! What each frame of an attach stream means, apart from any connection.

use std::collections::VecDeque;

use bytes::Bytes;

use super::track::{News, Track};
use crate::{
    error::{Delivery, Error, ErrorKind, Offsets},
    sandboxer::{
        frame::{self, Frame},
        reconnect::Life,
    },
    stream::{Chunk, Gap, OutputStream},
};

/// Both output streams of a followed command, over any number of connections.
#[derive(Debug)]
pub(crate) struct Machine {
    stdout: Track,
    stderr: Track,
    /// Chunks on their way to the caller, each with the offset its stream has reached with it.
    ready: VecDeque<(Chunk, u64)>,
    given: Offsets,
}

/// What a frame asks for beyond the chunks it brought.
#[derive(Debug)]
pub(crate) enum Step {
    /// Read on.
    Continue(Life),
    /// The service wants a new connection.
    Reconnect,
    /// The command has ended.
    Exit(Box<Frame>),
    /// Following it failed.
    Failed(Error),
}

impl Machine {
    pub(crate) fn starting_at(offsets: Offsets) -> Self {
        Self {
            stdout: Track::starting_at(offsets.stdout),
            stderr: Track::starting_at(offsets.stderr),
            ready: VecDeque::new(),
            given: offsets,
        }
    }

    /// Where a new connection has to go on so that nothing is lost or repeated.
    pub(crate) fn wanted(&self) -> Offsets {
        Offsets::new(self.stdout.wanted(), self.stderr.wanted())
    }

    /// Where following the command can go on after a failure: both logs that are there are read from their beginning when
    /// one of them is not the one that the offsets are of, since then the other is not either.
    pub(crate) fn resumable(&self) -> Offsets {
        if self.stdout.shrunk() || self.stderr.shrunk() { Offsets::default() } else { self.wanted() }
    }

    /// Whether the end of each stream, standard output first, turned out to lie before what was asked for.
    pub(crate) fn shrunk(&self) -> (bool, bool) {
        (self.stdout.shrunk(), self.stderr.shrunk())
    }

    pub(crate) fn lossy(&self) -> bool {
        self.stdout.lossy() || self.stderr.lossy()
    }

    /// Where the chunks taken out so far end.
    pub(crate) fn given(&self) -> Offsets {
        self.given
    }

    pub(crate) fn next_chunk(&mut self) -> Option<Chunk> {
        let (chunk, reached) = self.ready.pop_front()?;
        match chunk.stream() {
            OutputStream::Stdout => self.given.stdout = reached,
            OutputStream::Stderr => self.given.stderr = reached,
        }
        Some(chunk)
    }

    /// A connection was made; it begins where it was asked to unless a frame says otherwise.
    pub(crate) fn connected(&mut self) {
        self.stdout.connected();
        self.stderr.connected();
    }

    pub(crate) fn on_frame(&mut self, frame: Frame) -> Step {
        let Some(kind) = frame.kind.as_deref() else { return Step::Failed(frame::without_type()) };
        match kind {
            "attached" => {
                let (out, err) =
                    (self.stdout.opened(frame.stdout_offset), self.stderr.opened(frame.stderr_offset));
                self.give_out(OutputStream::Stdout, out);
                self.give_out(OutputStream::Stderr, err);
                Step::Continue(Life::None)
            }
            "stdout" | "stderr" => {
                let stream = if kind == "stdout" { OutputStream::Stdout } else { OutputStream::Stderr };
                let Some(data) = frame.data.map(Bytes::from) else {
                    return Step::Failed(frame::without_data());
                };
                let track = match stream {
                    OutputStream::Stdout => &mut self.stdout,
                    OutputStream::Stderr => &mut self.stderr,
                };
                let before = track.wanted();
                let news = track.data(data, frame.next_offset);
                let life = if track.wanted() > before { Life::News } else { Life::None };
                self.give_out(stream, news);
                Step::Continue(life)
            }
            "heartbeat" => Step::Continue(Life::Heartbeat),
            "reconnect" => Step::Reconnect,
            "exit" => {
                let (out, err) =
                    (self.stdout.ended(frame.stdout_offset), self.stderr.ended(frame.stderr_offset));
                self.give_out(OutputStream::Stdout, out);
                self.give_out(OutputStream::Stderr, err);
                // Of a command that was lost only a copy from before its end is left, so a log that ends early is its own.
                if frame.is_lost() {
                    return Step::Exit(Box::new(frame));
                }
                if self.stdout.shrunk() {
                    return Step::Failed(replaced(OutputStream::Stdout, &self.stdout));
                }
                if self.stderr.shrunk() {
                    return Step::Failed(replaced(OutputStream::Stderr, &self.stderr));
                }
                Step::Exit(Box::new(frame))
            }
            "error" => Step::Failed(frame.into_error()),
            _ => Step::Continue(Life::None),
        }
    }

    fn give_out(&mut self, stream: OutputStream, news: News) {
        if let Some((from, to)) = news.gap {
            self.ready.push_back((Chunk::Gap(Gap { stream, from, to }), to));
        }
        if !news.bytes.is_empty() {
            let reached = match stream {
                OutputStream::Stdout => self.stdout.wanted(),
                OutputStream::Stderr => self.stderr.wanted(),
            };
            self.ready.push_back((Chunk::of(stream, news.bytes), reached));
        }
    }
}

/// The error of a log that is shorter than what was to be had of it.
fn replaced(stream: OutputStream, track: &Track) -> Error {
    let wanted = track.wanted();
    let message = format!(
        "the command's {stream} ends before byte {wanted}, where following it was to go on: its log was replaced, or the \
         offsets are of another command"
    );
    Error::new(ErrorKind::Unexpected, "log_replaced", message)
        .with_details(serde_json::json!({ "stream": stream.to_string(), "offset": wanted }))
        .with_delivery(Delivery::Answered)
}
