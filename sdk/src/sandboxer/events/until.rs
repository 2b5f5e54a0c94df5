//! A condition that ends a stream, looked at on the side.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use crate::{
    clock::{SharedClock, Sleep},
    error::{Error, Result},
    sandboxer::reconnect::TRIES,
};

/// How a stream ends whose condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// With what is there.
    AsItIs,
    /// As it is, but what still grows gets a while to be complete.
    Settled,
    /// Like that, and it is an error if the last response is not complete then.
    Complete,
}

/// How the stream is to end, if it is to.
pub(super) type Checking = Pin<Box<dyn Future<Output = Result<Option<Finish>>> + Send>>;
pub(super) type Check = Box<dyn FnMut() -> Checking + Send>;

/// Asks the condition at once, and then at an interval from answer to question.
pub(super) struct Until {
    check: Check,
    interval: Duration,
    state: State,
    failures: u32,
}

enum State {
    Checking(Checking),
    Waiting(Sleep),
    Asleep,
}

impl Until {
    pub(super) fn new(check: Check, interval: Duration) -> Self {
        Self { check, interval, state: State::Asleep, failures: 0 }
    }

    /// Ready once the condition holds, or cannot be asked any longer.
    pub(super) fn poll(
        &mut self,
        clock: &SharedClock,
        context: &mut Context<'_>,
    ) -> Poll<Result<Finish, Error>> {
        loop {
            match &mut self.state {
                State::Asleep => self.state = State::Checking((self.check)()),
                State::Waiting(sleep) => {
                    ready!(sleep.as_mut().poll(context));
                    self.state = State::Asleep;
                }
                State::Checking(checking) => {
                    match ready!(checking.as_mut().poll(context)) {
                        Ok(Some(finish)) => return Poll::Ready(Ok(finish)),
                        Ok(None) => self.failures = 0,
                        // The events go on meanwhile.
                        Err(error) if error.is_retryable() && self.failures < TRIES => self.failures += 1,
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                    self.state = State::Waiting(clock.sleep(self.interval));
                }
            }
        }
    }
}
