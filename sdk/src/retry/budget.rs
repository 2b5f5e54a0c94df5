//! One budget of repeats per client, so that a failing service is not hit by a multiple of its load.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

// In tenths of a repeat.
const ONE: u64 = 10;
/// Repeats that may be made at once.
const CAPACITY: u64 = 100 * ONE;
/// A tenth of a repeat comes back in this time: ten repeats a second.
const TENTH: Duration = Duration::from_millis(10);
/// What comes back with each success.
const PER_SUCCESS: u64 = 2;

/// A bucket of repeats, shared by all views of a client.
#[derive(Debug)]
pub(crate) struct Budget(Mutex<Bucket>);

#[derive(Debug)]
struct Bucket {
    left: u64,
    at: Duration,
}

impl Budget {
    pub(crate) fn new(now: Duration) -> Self {
        Self(Mutex::new(Bucket { left: CAPACITY, at: now }))
    }

    /// Takes one repeat at `now`, if there is one.
    pub(crate) fn take(&self, now: Duration) -> bool {
        let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tenths = now.saturating_sub(bucket.at).as_millis() / TENTH.as_millis();
        let tenths = u32::try_from(tenths).unwrap_or(u32::MAX);
        bucket.left = (bucket.left + u64::from(tenths)).min(CAPACITY);
        bucket.at = bucket.at.saturating_add(TENTH * tenths);
        let enough = bucket.left >= ONE;
        if enough {
            bucket.left -= ONE;
        }
        enough
    }

    /// Notes a call that succeeded.
    pub(crate) fn success(&self) {
        let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bucket.left = (bucket.left + PER_SUCCESS).min(CAPACITY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storm_is_stopped_and_calm_refills() {
        let budget = Budget::new(Duration::ZERO);
        assert_eq!((0..1000).filter(|_| budget.take(Duration::ZERO)).count(), 100);
        (0..10).for_each(|_| budget.success());
        assert_eq!((0..1000).filter(|_| budget.take(Duration::ZERO)).count(), 2);
        assert_eq!((0..1000).filter(|_| budget.take(Duration::from_secs(1))).count(), 10);
        assert_eq!((0..1000).filter(|_| budget.take(Duration::from_secs(3600))).count(), 100);
    }
}
