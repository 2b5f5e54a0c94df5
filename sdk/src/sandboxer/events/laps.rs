//! Finds out that a walk from cursor to cursor goes round in a circle, in constant memory.

/// Keeps one cursor of the walk for others to be compared with, another one after 1, 2, 4 and so on steps, so that sooner
/// or later it is one of the circle and the walk comes round to it.
#[derive(Debug, Default)]
pub(super) struct Laps {
    kept: Option<String>,
    steps: u64,
    lap: u64,
}

impl Laps {
    /// Takes a step to `cursor`; whether the walk is known to have been there.
    pub(super) fn comes_again(&mut self, cursor: &str) -> bool {
        if self.kept.as_deref() == Some(cursor) {
            return true;
        }
        self.steps += 1;
        if self.steps > self.lap {
            self.kept = Some(cursor.to_owned());
            self.lap = self.lap.saturating_mul(2).max(1);
            self.steps = 0;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_and_straight_walks_are_none() {
        let mut straight = Laps::default();
        assert!((0..10_000).all(|step| !straight.comes_again(&step.to_string())));
        for (lead, length) in [(0, 1), (0, 2), (3, 1), (7, 5), (100, 13)] {
            let mut laps = Laps::default();
            let walk = (0..).map(|step: u64| if step < lead { step } else { lead + (step - lead) % length });
            let found = walk.take(1000).position(|place| laps.comes_again(&place.to_string()));
            let found = found.unwrap() as u64;
            assert!(found >= lead + length && found <= 4 * (lead + length), "{lead}, {length}: {found}");
        }
    }
}
