//! Server-sent events out of bytes that arrive in pieces: the one seam to the decoder.

mod messages;
#[cfg(test)]
mod tests;

use std::{num::NonZeroUsize, time::Duration};

use bytes::Bytes;
use sse_core::{SseDecoder as Decoder, SseEvent};

pub(crate) use messages::{MessageError, Messages};

/// The most bytes that the data of one message may have, and its name and its id each.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;

const LIMIT: NonZeroUsize = NonZeroUsize::new(MAX_MESSAGE).expect("not zero");

/// What a stream says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SseItem {
    /// A message with data; data can be the empty text.
    Message {
        /// Its name; `message` where it has none.
        name: String,
        /// Its lines of data, joined by line feeds.
        data: String,
    },
    /// How long to wait before the next connection.
    Retry(Duration),
}

/// A message grew over the decoder's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageTooLong;

/// Decoder of `text/event-stream` by the rules of the WHATWG, in linear time and bounded memory. A message counts once the
/// blank line after it was read, and so does its id.
#[derive(Debug)]
pub(crate) struct SseDecoder {
    inner: Decoder,
    piece: Bytes,
}

impl SseDecoder {
    /// A decoder for a new connection that goes on after the message with this id.
    pub(crate) fn after(last_id: Option<&str>) -> Self {
        Self::with_limit(last_id, LIMIT)
    }

    fn with_limit(last_id: Option<&str>, limit: NonZeroUsize) -> Self {
        let mut inner = Decoder::with_limit(limit);
        inner.reconnect_with_id(last_id.filter(|id| !id.is_empty()).map(Into::into));
        Self { inner, piece: Bytes::new() }
    }

    /// Takes the next piece; the items of the one before must have been taken out.
    pub(crate) fn push(&mut self, piece: Bytes) {
        debug_assert!(self.piece.is_empty(), "items are taken out before the next piece comes");
        self.piece = piece;
    }

    /// The next item, or `None` when more bytes are needed.
    pub(crate) fn next_item(&mut self) -> Result<Option<SseItem>, MessageTooLong> {
        match self.inner.next(&mut self.piece) {
            None => Ok(None),
            Some(Ok(SseEvent::Message(message))) => {
                Ok(Some(SseItem::Message { name: message.event.into_owned(), data: message.data }))
            }
            Some(Ok(SseEvent::Retry(milliseconds))) => {
                Ok(Some(SseItem::Retry(Duration::from_millis(milliseconds.into()))))
            }
            Some(Err(_)) => Err(MessageTooLong),
        }
    }

    /// The id in effect after what was decoded so far: that of the last whole block which had one, or the one the
    /// connection began with. `None` where there was none, or an empty one took it back.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.inner.last_event_id().map(|id| &**id)
    }
}
