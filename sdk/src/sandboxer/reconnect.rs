//! How long a stream that is followed over many connections keeps trying, and how fast.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

use crate::error::Error;

/// How many connections or questions in a row may bring nothing before it is given up.
pub(crate) const TRIES: u32 = 10;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The longest wait that the service may ask for: as long as a call may take.
const LONGEST_HINT: Duration = Duration::from_secs(300);

/// A connection that lived this long was no part of a storm; after it pauses begin short again.
const STEADY: Duration = Duration::from_secs(10);

/// What a connection has brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Life {
    /// Nothing at all.
    #[default]
    None,
    /// The service is there.
    Heartbeat,
    /// Output or events that were not there before.
    News,
}

/// The pauses between tries, and how many are left.
#[derive(Debug)]
pub(crate) struct Reconnects {
    tries: u32,
    pauses: ExponentialBackoff,
    life: Life,
    since: Duration,
    /// The least pause between connections, as the service last asked for.
    retry: Duration,
    cut: Cut,
}

/// Makes the error of a stream that cannot be gone on with, out of what ended its last connection.
pub(crate) type Cut = fn(Option<Error>) -> Error;

impl Reconnects {
    pub(crate) fn new(now: Duration, cut: Cut) -> Self {
        Self { tries: 0, pauses: pauses(), life: Life::None, since: now, retry: Duration::ZERO, cut }
    }

    /// A connection was made.
    pub(crate) fn connected(&mut self, now: Duration) {
        (self.life, self.since) = (Life::None, now);
    }

    /// The connection brought something.
    pub(crate) fn alive(&mut self, life: Life) {
        self.life = self.life.max(life);
    }

    /// The service set the least pause between connections.
    pub(crate) fn set_retry(&mut self, retry: Duration) {
        self.retry = retry;
    }

    /// A question was answered; after `fresh` ones pauses begin short again.
    pub(crate) fn answered(&mut self, fresh: bool) {
        self.tries = 0;
        if fresh {
            self.pauses = pauses();
        }
    }

    /// How long to wait before the next question after an answer that brought nothing new, though there is more.
    pub(crate) fn pause(&mut self) -> Duration {
        self.pauses.next().unwrap_or(LONGEST_PAUSE)
    }

    /// A connection or question ended with nothing more to come: how long to wait before the next, or the error to end
    /// with.
    pub(crate) fn lost(&mut self, now: Duration, cause: Option<Error>) -> Result<Duration, Error> {
        let life = std::mem::take(&mut self.life);
        if life > Life::None {
            self.tries = 0;
        }
        // Heartbeats alone can come in a storm of short connections.
        let lived = now.saturating_sub(self.since);
        if life == Life::News || (life == Life::Heartbeat && lived >= STEADY) {
            self.pauses = pauses();
        }
        self.tries += 1;
        if self.tries > TRIES {
            return Err((self.cut)(cause));
        }
        // A hint of the service is waited for in full, or not at all.
        let hint = cause.as_ref().and_then(Error::retry_after).unwrap_or_default();
        let asked = hint.max(self.retry);
        if asked > LONGEST_HINT {
            return Err((self.cut)(cause).with_retry_after(asked));
        }
        Ok(self.pauses.next().unwrap_or(LONGEST_PAUSE).max(asked))
    }
}

/// Pauses that double, each lengthened at random by up to its own length.
fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .without_max_times()
        .with_jitter()
        .with_jitter_seed(uuid::Uuid::new_v4().as_u64_pair().1)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn cut(cause: Option<Error>) -> Error {
        let error = Error::new(ErrorKind::StreamCut, "stream_cut", "the stream broke");
        match cause {
            Some(cause) => error.with_status(cause.status()).with_source(cause),
            None => error,
        }
    }

    fn reconnects() -> Reconnects {
        Reconnects::new(Duration::ZERO, cut)
    }

    #[test]
    fn pauses_grow_and_news_make_them_short_again() {
        let mut reconnects = self::reconnects();
        let bounds = [100, 200, 400, 800, 1600, 3200, 5000, 5000];
        for bound in bounds.map(Duration::from_millis) {
            let pause = reconnects.lost(Duration::ZERO, None).unwrap();
            assert!((bound..=2 * bound).contains(&pause), "{pause:?} for {bound:?}");
        }
        reconnects.alive(Life::News);
        assert!(reconnects.lost(Duration::ZERO, None).unwrap() <= Duration::from_millis(200));
    }

    #[test]
    fn heartbeats_keep_it_alive_but_a_storm_slow() {
        let mut reconnects = self::reconnects();
        for _ in 0..50 {
            reconnects.connected(Duration::ZERO);
            reconnects.alive(Life::Heartbeat);
            reconnects.lost(Duration::from_secs(1), None).unwrap();
        }
        assert!(reconnects.lost(Duration::from_secs(1), None).unwrap() >= LONGEST_PAUSE);
        reconnects.connected(Duration::ZERO);
        reconnects.alive(Life::Heartbeat);
        assert!(reconnects.lost(STEADY, None).unwrap() <= 2 * FIRST_PAUSE);
    }

    #[test]
    fn the_budget_ends_with_the_last_cause() {
        let mut reconnects = self::reconnects();
        for _ in 0..TRIES {
            reconnects.lost(Duration::ZERO, None).unwrap();
        }
        let cause = Error::new(ErrorKind::Server, "http_503", "busy").with_status(503);
        let error = reconnects.lost(Duration::ZERO, Some(cause)).unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::StreamCut, Some(503)));
        assert!(std::error::Error::source(&error).is_some_and(|cause| cause.to_string().contains("busy")));
    }

    #[test]
    fn what_the_service_asks_for_is_the_least() {
        let mut reconnects = self::reconnects();
        reconnects.set_retry(Duration::from_secs(30));
        assert_eq!(reconnects.lost(Duration::ZERO, None).unwrap(), Duration::from_secs(30));
        let busy = |seconds| {
            Error::new(ErrorKind::RateLimited, "rate_limited", "later")
                .with_retry_after(Duration::from_secs(seconds))
        };
        assert_eq!(reconnects.lost(Duration::ZERO, Some(busy(90))).unwrap(), Duration::from_secs(90));
        let error = reconnects.lost(Duration::ZERO, Some(busy(301))).unwrap_err();
        assert_eq!(
            (error.kind(), error.retry_after()),
            (ErrorKind::StreamCut, Some(Duration::from_secs(301)))
        );
        assert!(std::error::Error::source(&error).is_some_and(|cause| cause.to_string().contains("later")));
        reconnects.set_retry(Duration::ZERO);
        assert!(reconnects.lost(Duration::ZERO, None).unwrap() >= FIRST_PAUSE);
        reconnects.set_retry(Duration::from_secs(301));
        let error = reconnects.lost(Duration::ZERO, None).unwrap_err();
        assert_eq!(
            (error.kind(), error.retry_after()),
            (ErrorKind::StreamCut, Some(Duration::from_secs(301)))
        );
    }
}
