//! How long to wait before the next try when the service does not say.

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);

/// Waits drawn evenly from 0 up to a bound that doubles from 0.5 s to 8 s, so that clients that failed together do not
/// come back together.
#[derive(Debug)]
pub(crate) struct Backoff {
    bounds: ExponentialBackoff,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        let bounds =
            ExponentialBuilder::default().with_min_delay(FIRST).with_max_delay(LONGEST).without_max_times();
        Self { bounds: bounds.build() }
    }

    /// The next wait, at least `floor`.
    pub(crate) fn next(&mut self, floor: Duration) -> Duration {
        let bound = self.bounds.next().unwrap_or(LONGEST).min(LONGEST);
        bound.mul_f64(fraction()).max(floor)
    }
}

/// An even draw from 0 up to 1.
fn fraction() -> f64 {
    let random = uuid::Uuid::new_v4().as_u64_pair().1 << 2; // the top two bits of that half are fixed
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_stay_below_the_bound_and_above_the_floor() {
        for _ in 0..200 {
            let mut backoff = Backoff::new();
            for bound in [500, 1000, 2000, 4000, 8000, 8000, 8000] {
                assert!(backoff.next(Duration::ZERO) <= Duration::from_millis(bound));
            }
            assert!(Backoff::new().next(Duration::from_secs(2)) == Duration::from_secs(2));
        }
    }

    #[test]
    fn draws_are_even() {
        let draws: Vec<f64> = (0..4000).map(|_| fraction()).collect();
        assert!(draws.iter().all(|d| (0.0..1.0).contains(d)));
        let mean = draws.iter().sum::<f64>() / 4000.0;
        assert!((0.46..0.54).contains(&mean), "{mean}");
    }
}
