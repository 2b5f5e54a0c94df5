//! One connection's messages, with a limit on its silence.

use std::{
    task::{Context, Poll, ready},
    time::Duration,
};

use super::{MAX_MESSAGE, SseDecoder, SseItem};
use crate::{
    clock::{SharedClock, Sleep},
    error::{Delivery, Error, ErrorKind},
    stream::ByteSource,
};

/// The messages of one `text/event-stream` body.
///
/// Half a message at the end is none. Any byte ends a silence, those of comments too; only waiting counts as silence, not
/// a reader that does not ask.
pub(crate) struct Messages {
    source: Option<ByteSource>,
    decoder: SseDecoder,
    clock: SharedClock,
    idle: Option<Duration>,
    silence: Option<Sleep>,
    alive: bool,
}

/// Why no further message came.
#[derive(Debug)]
pub(crate) enum MessageError {
    /// The bytes broke off or fell silent.
    Broken(Error),
    /// A message is too long; the rest of the body is not read.
    TooLong(Error),
}

impl Messages {
    /// The messages after the one with the id `last_id`.
    pub(crate) fn new(
        source: ByteSource,
        last_id: Option<&str>,
        clock: SharedClock,
        idle: Option<Duration>,
    ) -> Self {
        Self {
            source: Some(source),
            decoder: SseDecoder::after(last_id),
            clock,
            idle,
            silence: None,
            alive: false,
        }
    }

    /// The id in effect, as [`SseDecoder::last_id`] tells it.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.decoder.last_id()
    }

    /// Whether anything has come at all.
    pub(crate) fn alive(&self) -> bool {
        self.alive
    }

    /// The next item; `None` once the body is over. After an error nothing follows.
    pub(crate) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<SseItem, MessageError>>> {
        loop {
            match self.decoder.next_item() {
                Ok(Some(item)) => return Poll::Ready(Some(Ok(item))),
                Ok(None) => {}
                Err(_) => {
                    self.source = None;
                    self.decoder.piece.clear();
                    let message = format!("a message of the stream is longer than {} MiB", MAX_MESSAGE >> 20);
                    let error = Error::new(ErrorKind::TooLarge, "message_too_long", message);
                    return Poll::Ready(Some(Err(MessageError::TooLong(
                        error.with_delivery(Delivery::Answered),
                    ))));
                }
            }
            let Some(source) = &mut self.source else { return Poll::Ready(None) };
            match source.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(piece))) => {
                    self.silence = None;
                    self.alive |= !piece.is_empty();
                    self.decoder.push(piece);
                    continue;
                }
                Poll::Ready(end) => {
                    self.source = None;
                    self.silence = None;
                    let error = end.and_then(Result::err).map(|error| Err(MessageError::Broken(error)));
                    return Poll::Ready(error);
                }
                Poll::Pending => {}
            }
            let Some(idle) = self.idle else { return Poll::Pending };
            let silence = self.silence.get_or_insert_with(|| self.clock.sleep(idle));
            ready!(silence.as_mut().poll(context));
            self.source = None;
            let error = crate::transport::timed_out("idle", idle).with_delivery(Delivery::Unknown);
            return Poll::Ready(Some(Err(MessageError::Broken(error))));
        }
    }
}
