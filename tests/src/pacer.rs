//! A clock for one call at a time: waits between tries are over at once, limits of tries run out only when told to.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, SystemTime},
};

use sandboxer::clock::{Clock, SharedClock, Sleep};

/// Moves time on by each wait and writes down what was slept for.
///
/// It relies on the order in which a call of the low-level client sleeps: the limit of a try, then, if there is to be
/// another, the wait for it, and so on.
#[derive(Clone, Debug, Default)]
pub struct Pacer(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    elapsed: Duration,
    sleeps: Vec<Duration>,
    /// When the limit of the try under way is over, and who waits for it.
    limit: Duration,
    waker: Option<Waker>,
}

impl Pacer {
    /// 2026-01-01T00:00:00Z, a Thursday, on which the clock starts.
    pub const START: Duration = Duration::from_secs(1_767_225_600);

    /// The same clock, ready to be given to a client.
    pub fn shared(&self) -> SharedClock {
        Arc::new(self.clone())
    }

    /// Lets the limit of the try under way run out.
    pub fn expire(&self) {
        let mut state = self.lock();
        state.elapsed = state.elapsed.max(state.limit);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// The limits of all tries so far.
    pub fn limits(&self) -> Vec<Duration> {
        self.lock().sleeps.iter().copied().step_by(2).collect()
    }

    /// The waits between them.
    pub fn waits(&self) -> Vec<Duration> {
        self.lock().sleeps.iter().copied().skip(1).step_by(2).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for Pacer {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Self::START + self.elapsed()
    }

    fn elapsed(&self) -> Duration {
        self.lock().elapsed
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        let mut state = self.lock();
        let is_wait = state.sleeps.len() % 2 == 1;
        state.sleeps.push(duration);
        let end = state.elapsed.saturating_add(duration);
        if is_wait {
            state.elapsed = end;
            Box::pin(std::future::ready(()))
        } else {
            state.limit = end;
            Box::pin(TryLimit { pacer: self.clone(), end })
        }
    }
}

struct TryLimit {
    pacer: Pacer,
    end: Duration,
}

impl Future for TryLimit {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.pacer.lock();
        if state.elapsed >= self.end {
            return Poll::Ready(());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
