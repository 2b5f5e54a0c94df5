//! What an upload sends: pieces from wherever they come, counted against cap and announced length.

use std::{
    error::Error as StdError,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use tokio::io::{AsyncRead, ReadBuf};

use super::too_large;
use crate::error::{Delivery, Error, ErrorKind, Result};

/// How much is read from a reader, or given to a connection, at once.
pub(super) const PIECE: usize = 64 << 10;

/// The content of one upload. Nothing is read ahead of what is asked for.
pub(super) struct Source<S> {
    stream: S,
    rest: Bytes,
    taken: u64,
    length: Option<u64>,
    cap: Option<u64>,
    ended: bool,
}

impl<S: Stream<Item = Result<Bytes>> + Unpin> Source<S> {
    pub(super) fn new(stream: S, length: Option<u64>, cap: Option<u64>) -> Self {
        Self { stream, rest: Bytes::new(), taken: 0, length, cap, ended: false }
    }

    /// The next piece, as it comes but never empty.
    async fn pull(&mut self) -> Result<Option<Bytes>> {
        while !self.ended {
            let Some(piece) = crate::stream::next(&mut self.stream).await else {
                self.ended = true;
                return match self.length {
                    Some(length) if length != self.taken => Err(wrong_length(length, self.taken)),
                    _ => Ok(None),
                };
            };
            let piece = piece?;
            if piece.is_empty() {
                continue;
            }
            self.taken += piece.len() as u64;
            if let Some(cap) = self.cap.filter(|cap| self.taken > *cap) {
                return Err(too_large(cap, Delivery::NotSent));
            }
            if let Some(length) = self.length.filter(|length| self.taken > *length) {
                return Err(wrong_length(length, self.taken));
            }
            return Ok(Some(piece));
        }
        Ok(None)
    }

    /// The next `size` bytes; fewer only at the end.
    pub(super) async fn part(&mut self, size: usize) -> Result<Bytes> {
        let mut part = BytesMut::new();
        while part.len() < size && self.more().await? {
            let count = self.rest.len().min(size - part.len());
            part.extend_from_slice(&self.rest.split_to(count));
        }
        Ok(part.freeze())
    }

    /// The next piece, at most [`PIECE`] bytes. The one that completes the announced length comes only once the source is
    /// known to end there: with it the peer would have all that was announced.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>> {
        if !self.more().await? {
            return Ok(None);
        }
        let count = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(count);
        if self.rest.is_empty() && self.length == Some(self.taken) {
            self.more().await?;
        }
        Ok(Some(piece))
    }

    /// Whether there is more; at the end the announced length is checked.
    pub(super) async fn more(&mut self) -> Result<bool> {
        if self.rest.is_empty()
            && let Some(piece) = self.pull().await?
        {
            self.rest = piece;
        }
        Ok(!self.rest.is_empty())
    }
}

fn wrong_length(length: u64, seen: u64) -> Error {
    let relation = if seen > length { "more than" } else { "less than" };
    let message = format!("the source holds {relation} the {length} bytes that were announced");
    Error::new(ErrorKind::InvalidInput, "wrong_length", message)
}

/// The source itself failed.
pub(super) fn read_failed(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
    Error::new(ErrorKind::Unexpected, "read_failed", "the source of the upload failed").with_source(cause)
}

/// A reader as a stream of pieces.
pub(super) struct Reading<R> {
    reader: R,
    space: Vec<u8>,
}

impl<R> Reading<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, space: vec![0; PIECE] }
    }
}

impl<R: AsyncRead + Unpin> Stream for Reading<R> {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let Self { reader, space } = &mut *self;
        let mut buffer = ReadBuf::new(space);
        Poll::Ready(match ready!(Pin::new(reader).poll_read(context, &mut buffer)) {
            Ok(()) if buffer.filled().is_empty() => None,
            Ok(()) => Some(Ok(Bytes::copy_from_slice(buffer.filled()))),
            Err(error) => Some(Err(read_failed(error))),
        })
    }
}

/// A caller's stream with its errors as ours.
pub(super) struct Mapped<S>(pub(super) S);

impl<S, E> Stream for Mapped<S>
where
    S: Stream<Item = std::result::Result<Bytes, E>> + Unpin,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        Pin::new(&mut self.0).poll_next(context).map(|item| item.map(|item| item.map_err(read_failed)))
    }
}
