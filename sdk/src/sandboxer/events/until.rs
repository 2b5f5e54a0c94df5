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

pub(super) type Checking = Pin<Box<dyn Future<Output = Result<bool>> + Send>>;
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
    pub(super) fn poll(&mut self, clock: &SharedClock, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            match &mut self.state {
                State::Asleep => self.state = State::Checking((self.check)()),
                State::Waiting(sleep) => {
                    ready!(sleep.as_mut().poll(context));
                    self.state = State::Asleep;
                }
                State::Checking(checking) => {
                    match ready!(checking.as_mut().poll(context)) {
                        Ok(true) => return Poll::Ready(Ok(())),
                        Ok(false) => self.failures = 0,
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
