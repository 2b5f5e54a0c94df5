//! A request body that knows whether a connection has taken the request.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    error::Error as StdError,
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
};

const WAITING: u8 = 0;
const TAKEN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Says whether a request was handed to a connection, which is when its connection first looks at its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendMark(Arc<AtomicU8>);

impl SendMark {
    /// Whether nothing was sent, and from now on nothing will be: a connection that takes the request later finds its body
    /// withdrawn.
    pub(crate) fn give_up(&self) -> bool {
        let before = self.0.compare_exchange(WAITING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire);
        matches!(before, Ok(_) | Err(GIVEN_UP))
    }

    pub(super) fn take(&self) -> bool {
        let before = self.0.compare_exchange(WAITING, TAKEN, Ordering::AcqRel, Ordering::Acquire);
        matches!(before, Ok(_) | Err(TAKEN))
    }
}

/// The body of one try.
pub(crate) struct MarkedBody {
    rest: Bytes,
    mark: SendMark,
}

impl MarkedBody {
    pub(crate) fn new(bytes: Bytes, mark: SendMark) -> Self {
        Self { rest: bytes, mark }
    }
}

impl Body for MarkedBody {
    type Data = Bytes;
    type Error = Withdrawn;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Withdrawn>>> {
        if !self.mark.take() {
            return Poll::Ready(Some(Err(Withdrawn)));
        }
        let rest = std::mem::take(&mut self.rest);
        Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))))
    }

    fn is_end_stream(&self) -> bool {
        // HTTP/1 and HTTP/2 connections both ask this right before they write the head. A request that was given up is
        // never whole, however short its body: reading on finds it withdrawn.
        self.mark.take() && self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// The caller gave up before the request was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Withdrawn;

impl fmt::Display for Withdrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the caller gave up before the request was sent")
    }
}

impl StdError for Withdrawn {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_first_wins() {
        let (taken, left) = (SendMark::default(), SendMark::default());
        assert!(taken.take() && !taken.give_up() && taken.take());
        assert!(left.give_up() && left.give_up() && !left.take());
    }

    #[test]
    fn a_request_without_a_body_is_withdrawn_too() {
        let (empty, mark) = (Bytes::new(), SendMark::default());
        assert!(MarkedBody::new(empty.clone(), SendMark::default()).is_end_stream());
        assert!(mark.give_up());
        let mut late = MarkedBody::new(empty, mark);
        assert!(!late.is_end_stream(), "the head must not be all there is");
        let polled = Pin::new(&mut late).poll_frame(&mut Context::from_waker(std::task::Waker::noop()));
        assert!(matches!(polled, Poll::Ready(Some(Err(Withdrawn)))));
    }
}
