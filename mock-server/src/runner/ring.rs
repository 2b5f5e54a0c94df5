//! A command's output stream: bytes at absolute offsets, bounded in memory, read by any number of readers.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::Notify;

use super::OutputMode;

/// How far a stream under back-pressure may pass its limit once its command has ended: more than any pipe holds, so that
/// a slow reader never costs the last bytes.
const ENDING_ALLOWANCE: usize = 2 * 1024 * 1024;

/// One output stream. Clones are the same stream.
#[derive(Clone, Debug)]
pub struct OutputRing(Arc<Shared>);

/// A piece of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Where `bytes` begin; later than asked for when older bytes were not kept.
    pub offset: u64,
    /// The bytes; empty when there are none yet, or none any more.
    pub bytes: Bytes,
    /// Where the kept stream ended when this was read.
    pub end: u64,
    /// Whether the stream was complete when this was read.
    pub closed: bool,
}

impl Chunk {
    /// The offset to ask for next.
    pub fn next_offset(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    grown: Notify,
    room: Notify,
}

#[derive(Debug)]
struct State {
    bytes: VecDeque<u8>,
    start: u64,
    received: u64,
    consumed: u64,
    consumers: usize,
    mode: OutputMode,
    limit: usize,
    allowance: usize,
    closed: bool,
}

impl State {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// Takes as much of `data` as there is room for; `None` means: wait for the reader.
    fn accept(&mut self, data: &[u8]) -> Option<usize> {
        let (taken, kept) = match self.mode {
            OutputMode::KeepFirst => {
                (data.len(), self.limit.saturating_sub(self.bytes.len()).min(data.len()))
            }
            OutputMode::KeepLast => (data.len(), data.len()),
            OutputMode::Backpressure => {
                let unread = (self.end() - self.consumed.clamp(self.start, self.end())) as usize;
                let room = (self.limit.max(1) + self.allowance).saturating_sub(unread).min(data.len());
                if room == 0 {
                    return None;
                }
                (room, room)
            }
        };
        self.received += taken as u64;
        self.bytes.extend(&data[..kept]);
        let surplus = self.bytes.len().saturating_sub(self.limit);
        let droppable = match self.mode {
            OutputMode::KeepFirst => 0,
            OutputMode::KeepLast => surplus,
            OutputMode::Backpressure => surplus.min(self.consumed.saturating_sub(self.start) as usize),
        };
        self.bytes.drain(..droppable);
        self.start += droppable as u64;
        Some(taken)
    }
}

impl OutputRing {
    /// An empty stream that keeps `limit` bytes the way `mode` says.
    pub fn new(mode: OutputMode, limit: usize) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                bytes: VecDeque::new(),
                start: 0,
                received: 0,
                consumed: 0,
                consumers: 0,
                mode,
                limit,
                allowance: 0,
                closed: false,
            }),
            grown: Notify::new(),
            room: Notify::new(),
        }))
    }

    /// Offset of the oldest byte that is kept.
    pub fn start(&self) -> u64 {
        self.lock().start
    }

    /// Offset after the newest byte that is kept.
    pub fn end(&self) -> u64 {
        self.lock().end()
    }

    /// How many bytes the command wrote, kept or not.
    pub fn received(&self) -> u64 {
        self.lock().received
    }

    /// Whether the stream is complete: nothing will be added.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Whether bytes were lost to the limit, at either end.
    pub fn truncated(&self) -> bool {
        let state = self.lock();
        state.start > 0 || state.received > state.end()
    }

    /// Up to `max` bytes from `offset` on.
    pub fn read_at(&self, offset: u64, max: usize) -> Chunk {
        let state = self.lock();
        let end = state.end();
        let offset = offset.clamp(state.start, end);
        let skip = (offset - state.start) as usize;
        let count = max.min(state.bytes.len() - skip);
        let (front, back) = state.bytes.as_slices();
        let mut bytes = Vec::with_capacity(count);
        let in_front = front.get(skip..).unwrap_or_default();
        bytes.extend_from_slice(&in_front[..count.min(in_front.len())]);
        let in_back = &back[skip.saturating_sub(front.len())..];
        bytes.extend_from_slice(&in_back[..count - bytes.len()]);
        Chunk { offset, bytes: bytes.into(), end, closed: state.closed }
    }

    /// Resolves when the stream has grown past `end` or is complete.
    pub async fn changed_since(&self, end: u64) {
        loop {
            let grown = self.0.grown.notified();
            tokio::pin!(grown);
            grown.as_mut().enable();
            {
                let state = self.lock();
                if state.closed || state.end() > end {
                    return;
                }
            }
            grown.await;
        }
    }

    /// Registers the reader that paces a stream under back-pressure, starting at `offset`.
    ///
    /// One reader paces; other readers may lose bytes to it. When the last consumer is dropped the stream goes on without
    /// pacing and keeps its latest bytes, so that the command never blocks for ever.
    pub fn consumer(&self, offset: u64) -> Consumer {
        self.lock().consumers += 1;
        Consumer { ring: self.clone(), offset }
    }

    /// Adds output; waits for the reader under back-pressure. What comes after the close is dropped.
    pub async fn write(&self, mut data: &[u8]) {
        while !data.is_empty() {
            let room = self.0.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            let taken = {
                let mut state = self.lock();
                if state.closed {
                    return;
                }
                state.accept(data)
            };
            match taken {
                Some(taken) => {
                    data = &data[taken..];
                    self.0.grown.notify_waiters();
                }
                None => room.await,
            }
        }
    }

    /// The command has ended: take in what its pipes still hold, however slow the reader is.
    pub(crate) fn ending(&self) {
        self.lock().allowance = ENDING_ALLOWANCE;
        self.0.room.notify_waiters();
    }

    /// Completes the stream.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.0.grown.notify_waiters();
        self.0.room.notify_waiters();
    }

    /// Ends pacing when nobody is left who could read.
    pub(crate) fn release(&self) {
        let mut state = self.lock();
        if state.mode == OutputMode::Backpressure && state.consumers == 0 {
            state.mode = OutputMode::KeepLast;
        }
        drop(state);
        self.0.room.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reader that a stream under back-pressure waits for; dropping it ends the pacing.
#[derive(Debug)]
pub struct Consumer {
    ring: OutputRing,
    offset: u64,
}

impl Consumer {
    /// Everything before `offset` has been read and need not be kept for this reader.
    pub fn consume_to(&mut self, offset: u64) {
        self.offset = self.offset.max(offset);
        {
            let mut state = self.ring.lock();
            state.consumed = state.consumed.max(self.offset);
        }
        self.ring.0.room.notify_waiters();
    }

    /// The next piece, at most `max` bytes, waiting for one if need be; `None` when the stream is complete and read.
    pub async fn next(&mut self, max: usize) -> Option<Chunk> {
        loop {
            let chunk = self.ring.read_at(self.offset, max);
            if !chunk.bytes.is_empty() {
                self.consume_to(chunk.next_offset());
                return Some(chunk);
            }
            if chunk.closed {
                return None;
            }
            self.ring.changed_since(chunk.end).await;
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.ring.lock().consumers -= 1;
        self.ring.release();
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
