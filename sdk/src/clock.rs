//! The one clock: every wait, deadline and time stamp of the suite reads it, so that a test can move it.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant, SystemTime},
};

/// A sleep on a [`Clock`]; dropping it cancels it.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// A clock behind a pointer, as clients and servers keep it.
pub type SharedClock = Arc<dyn Clock>;

/// Source of time: wall time, a monotonic reading, and sleeping.
///
/// ```
/// use sandboxer::clock::{Clock, ManualClock};
/// use std::time::{Duration, SystemTime};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// async fn nap(clock: &dyn Clock) -> (SystemTime, Duration) {
///     clock.sleep(Duration::from_millis(1)).await;
///     (clock.now(), clock.elapsed())
/// }
///
/// let clock = ManualClock::new();
/// let (_, (_, elapsed)) = tokio::join!(
///     async {
///         clock.wait_for_sleepers(1).await;
///         clock.advance(Duration::from_millis(1));
///     },
///     nap(&clock),
/// );
/// assert_eq!(elapsed, Duration::from_millis(1));
/// # }
/// ```
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The wall time.
    fn now(&self) -> SystemTime;
    /// Time since an origin fixed when the clock was made; never goes back.
    fn elapsed(&self) -> Duration;
    /// Ends once `elapsed` has grown by `duration`.
    fn sleep(&self, duration: Duration) -> Sleep;
}

/// The machine's clock; sleeping needs a Tokio runtime with time enabled.
///
/// ```
/// use sandboxer::clock::{Clock, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let clock = SystemClock::new();
/// clock.sleep(std::time::Duration::from_millis(5)).await;
/// assert!(clock.elapsed() >= std::time::Duration::from_millis(5));
/// let shared = SystemClock::shared(); // as a client's builder takes it
/// assert!(shared.now() >= std::time::SystemTime::UNIX_EPOCH);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose `elapsed` starts at zero now.
    #[expect(clippy::disallowed_methods, reason = "this is the clock that others are told to use")]
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }

    /// The same, ready to be shared.
    pub fn shared() -> SharedClock {
        Arc::new(Self::new())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that others are told to use")]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock that others are told to use")]
    fn sleep(&self, duration: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A clock that stands still until a test moves it.
///
/// ```
/// use sandboxer::clock::{Clock, ManualClock};
/// use std::time::{Duration, SystemTime};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let clock = ManualClock::starting_at(SystemTime::UNIX_EPOCH);
/// let shared = clock.shared(); // as a client's builder takes it
/// let program = tokio::spawn(async move { shared.sleep(Duration::from_secs(60)).await });
/// clock.wait_for_sleep_of(Duration::from_secs(60)).await;
/// assert_eq!((clock.sleepers(), clock.next_due()), (1, Some(Duration::from_secs(60))));
/// clock.advance(Duration::from_secs(60));
/// program.await.unwrap(); // at once
/// assert_eq!(clock.now(), SystemTime::UNIX_EPOCH + Duration::from_secs(60));
/// let other = ManualClock::new();
/// assert_eq!(other.elapsed(), Duration::ZERO);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    state: Arc<Mutex<ManualState>>,
    sleepers_changed: Arc<tokio::sync::Notify>,
}

#[derive(Debug)]
struct ManualState {
    wall_origin: SystemTime,
    elapsed: Duration,
    next_sleeper: u64,
    sleepers: BTreeMap<(Duration, u64), Option<Waker>>,
}

impl ManualClock {
    /// A clock whose wall time starts at 2026-01-01T00:00:00Z.
    pub fn new() -> Self {
        Self::starting_at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600))
    }

    /// A clock whose wall time starts at `wall`.
    pub fn starting_at(wall: SystemTime) -> Self {
        Self {
            state: Arc::new(Mutex::new(ManualState {
                wall_origin: wall,
                elapsed: Duration::ZERO,
                next_sleeper: 0,
                sleepers: BTreeMap::new(),
            })),
            sleepers_changed: Arc::default(),
        }
    }

    /// The same clock, ready to be given to a client or a server.
    pub fn shared(&self) -> SharedClock {
        Arc::new(self.clone())
    }

    /// Moves time on and wakes every sleep that has come due.
    pub fn advance(&self, by: Duration) {
        let due: Vec<Waker> = {
            let mut state = self.lock();
            state.elapsed += by;
            let now = state.elapsed;
            state
                .sleepers
                .iter_mut()
                .take_while(|((deadline, _), _)| *deadline <= now)
                .filter_map(|(_, waker)| waker.take())
                .collect()
        };
        due.into_iter().for_each(Waker::wake);
    }

    /// How many sleeps are waiting.
    pub fn sleepers(&self) -> usize {
        let state = self.lock();
        state.sleepers.keys().filter(|(deadline, _)| *deadline > state.elapsed).count()
    }

    /// How long until the earliest waiting sleep is due.
    pub fn next_due(&self) -> Option<Duration> {
        let state = self.lock();
        state.sleepers.keys().find(|(deadline, _)| *deadline > state.elapsed).map(|(d, _)| *d - state.elapsed)
    }

    /// Waits until a sleep of exactly `duration` from now is waiting, so that a test can move time without racing the
    /// code under test.
    ///
    /// ```
    /// use sandboxer::clock::{Clock, ManualClock};
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let (clock, second) = (ManualClock::new(), Duration::from_secs(1));
    /// tokio::join!(clock.sleep(second), async {
    ///     clock.wait_for_sleep_of(second).await;
    ///     clock.advance(second);
    /// });
    /// # }
    /// ```
    pub async fn wait_for_sleep_of(&self, duration: Duration) {
        self.wait_until(|state| {
            let due = state.elapsed + duration;
            state.sleepers.keys().any(|(deadline, _)| *deadline == due)
        })
        .await;
    }

    /// Waits until at least `count` sleeps are waiting.
    ///
    /// ```
    /// use sandboxer::clock::{Clock, ManualClock};
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let (clock, second) = (ManualClock::new(), Duration::from_secs(1));
    /// tokio::join!(clock.sleep(second), clock.sleep(second), async {
    ///     clock.wait_for_sleepers(2).await;
    ///     clock.advance(second);
    /// });
    /// # }
    /// ```
    pub async fn wait_for_sleepers(&self, count: usize) {
        self.wait_until(|state| state.sleepers.keys().filter(|(d, _)| *d > state.elapsed).count() >= count)
            .await;
    }

    async fn wait_until(&self, reached: impl Fn(&ManualState) -> bool) {
        loop {
            let changed = self.sleepers_changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if reached(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, ManualState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        let state = self.lock();
        state.wall_origin + state.elapsed
    }

    fn elapsed(&self) -> Duration {
        self.lock().elapsed
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        let mut state = self.lock();
        let key = (state.elapsed.saturating_add(duration), state.next_sleeper);
        state.next_sleeper += 1;
        state.sleepers.insert(key, None);
        drop(state);
        self.sleepers_changed.notify_waiters();
        Box::pin(ManualSleep { clock: self.clone(), key })
    }
}

struct ManualSleep {
    clock: ManualClock,
    key: (Duration, u64),
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.lock();
        if self.key.0 <= state.elapsed {
            return Poll::Ready(());
        }
        state.sleepers.insert(self.key, Some(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        self.clock.lock().sleepers.remove(&self.key);
        self.clock.sleepers_changed.notify_waiters();
    }
}
