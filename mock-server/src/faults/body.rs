//! A body that ends its connection in the middle.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::{Connection, End};

/// Lets `left` bytes of a body through, then ends the connection; the length that was announced stays announced.
pub(super) struct EndingBody {
    inner: Body,
    left: u64,
    end: End,
    connection: Option<Connection>,
}

impl EndingBody {
    pub(super) fn new(inner: Body, left: u64, end: End, connection: Option<Connection>) -> Self {
        Self { inner, left, end, connection }
    }
}

impl HttpBody for EndingBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.left == 0 {
            return match (self.end, &self.connection) {
                (End::Stall, _) => Poll::Pending,
                // Once what was let through is on the wire, the connection takes the whole exchange with it.
                (end, Some(connection)) => {
                    connection.end_after_flush(end);
                    Poll::Pending
                }
                (_, None) => Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::ConnectionAborted).into()))),
            };
        }
        let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(context) else { return Poll::Pending };
        let data = match frame {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            },
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        let kept = data.slice(..data.len().min(usize::try_from(self.left).unwrap_or(usize::MAX)));
        self.left -= kept.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(kept))))
    }

    fn is_end_stream(&self) -> bool {
        self.left > 0 && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
