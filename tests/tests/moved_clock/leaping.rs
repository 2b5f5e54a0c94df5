//! A clock that leaps over every pause, so that minutes of waiting take no time and each pause can be looked at.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    thread,
    time::{Duration, SystemTime},
};

use sandboxer::clock::{Clock, ManualClock, SharedClock, Sleep};

/// The longest sleep that counts as a pause; longer ones are limits, which only run out when a pause leaps past them or
/// the test says so.
const LONGEST_PAUSE: Duration = Duration::from_secs(12);

/// A clock on which a pause is over as soon as somebody waits for it. While a request is on its way there is no pause, so
/// time stands still; limits that come due on the way of a pause come due in their turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaping {
    manual: ManualClock,
    pauses: Arc<Mutex<Vec<Duration>>>,
}

impl Leaping {
    /// It stands at zero.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The same clock, for a client.
    pub(crate) fn shared(&self) -> SharedClock {
        Arc::new(self.clone())
    }

    /// The pauses begun so far.
    pub(crate) fn pauses(&self) -> Vec<Duration> {
        self.pauses.lock().unwrap().clone()
    }

    /// Waits until the next sleep to end is one that ends exactly `due` from now.
    pub(crate) fn await_sleep(&self, due: Duration) {
        while self.manual.next_due() != Some(due) {
            thread::yield_now();
        }
    }

    /// Moves the clock by `due` once somebody waits for exactly that, from a thread of its own.
    pub(crate) fn expire(&self, due: Duration) {
        let clock = self.clone();
        thread::spawn(move || {
            clock.await_sleep(due);
            clock.advance(due);
        });
    }

    /// Moves the clock now.
    pub(crate) fn advance(&self, by: Duration) {
        self.manual.advance(by);
    }
}

impl Clock for Leaping {
    fn now(&self) -> SystemTime {
        self.manual.now()
    }

    fn elapsed(&self) -> Duration {
        self.manual.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        let sleep = self.manual.sleep(duration);
        if duration > LONGEST_PAUSE {
            return sleep;
        }
        self.pauses.lock().unwrap().push(duration);
        Box::pin(Leap { manual: self.manual.clone(), sleep })
    }
}

struct Leap {
    manual: ManualClock,
    sleep: Sleep,
}

impl Future for Leap {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.sleep.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        // To whatever is due first: it may be a limit that ends this pause early.
        self.manual.advance(self.manual.next_due().unwrap_or_default());
        let ended = self.sleep.as_mut().poll(context);
        if ended.is_pending() {
            context.waker().wake_by_ref();
        }
        ended
    }
}
