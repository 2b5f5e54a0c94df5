//! How long sandboxes ran, and what that costs.

use serde::{Deserialize, Serialize};

use super::{sandboxes::machine_class, time::Millis};
use crate::store::{Reader, StoreError, Table, Writer, typed, typed::Record};

/// How many seconds a dollar buys.
pub(crate) const SECONDS_PER_DOLLAR: u64 = 100_000;

/// One span in which a sandbox ran on one machine size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) sandbox: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) from: Millis,
    /// `None` while it runs.
    #[serde(default)]
    pub(crate) to: Option<Millis>,
}

impl Record for Span {
    const TABLE: Table = Table::Usage;
    fn key(&self) -> String {
        format!("{}/{:016}", self.sandbox, self.from.max(0))
    }
}

/// Notes that a sandbox has begun to run.
pub(crate) fn begin(tx: &mut dyn Writer, sandbox: &str, kind: &str, at: Millis) -> Result<(), StoreError> {
    typed::put(tx, &Span { sandbox: sandbox.to_owned(), kind: kind.to_owned(), from: at, to: None })
}

/// Notes that it has ended; nothing if it was not running.
pub(crate) fn end(tx: &mut dyn Writer, sandbox: &str, at: Millis) -> Result<(), StoreError> {
    for mut span in typed::with_prefix::<Span>(tx, &format!("{sandbox}/"))? {
        if span.to.is_none() {
            span.to = Some(at.max(span.from));
            typed::put(tx, &span)?;
        }
    }
    Ok(())
}

/// What was used in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Used {
    /// Seconds, the size's multiplier applied, rounded to whole ones.
    pub(crate) seconds: u64,
    /// What they cost, to six decimals.
    pub(crate) dollars: f64,
    /// Whether the sandbox runs now.
    pub(crate) running: bool,
}

/// Adds up the parts of all spans that lie in the window; the edges count pro rata.
pub(crate) fn used(
    tx: &dyn Reader,
    sandbox: &str,
    since: Millis,
    until: Millis,
    now: Millis,
) -> Result<Used, StoreError> {
    let spans = typed::with_prefix::<Span>(tx, &format!("{sandbox}/"))?;
    let weighted: f64 = spans
        .iter()
        .map(|span| {
            let from = span.from.max(since);
            let to = span.to.unwrap_or(now).min(until);
            let (over, under) = machine_class(&span.kind).multiplier;
            (to - from).max(0) as f64 / 1000.0 * f64::from(over) / f64::from(under)
        })
        .sum();
    let seconds = weighted.round().max(0.0) as u64;
    Ok(Used { seconds, dollars: dollars(seconds), running: spans.iter().any(|span| span.to.is_none()) })
}

fn dollars(seconds: u64) -> f64 {
    (seconds as f64 / SECONDS_PER_DOLLAR as f64 * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, RedbStore};

    const MINUTE: Millis = 60_000;

    fn add(store: &RedbStore, kind: &str, from: Millis, to: Option<Millis>) {
        typed::write::<_, StoreError>(store, Durability::Now, |tx| {
            begin(tx, "bx_a", kind, from)?;
            to.map_or(Ok(()), |to| end(tx, "bx_a", to))
        })
        .unwrap();
    }

    fn used_in(store: &RedbStore, since: Millis, until: Millis, now: Millis) -> Used {
        typed::read(store, |tx| used(tx, "bx_a", since, until, now)).unwrap()
    }

    #[test]
    fn ten_minutes_of_a_large_machine_are_1200_seconds() {
        let store = RedbStore::in_memory().unwrap();
        add(&store, "large", 0, Some(10 * MINUTE));
        let all = used_in(&store, 0, 20 * MINUTE, 20 * MINUTE);
        assert_eq!(all, Used { seconds: 1200, dollars: 0.012, running: false });
        // Window edges split pro rata; stopped time never counts.
        assert_eq!(used_in(&store, 5 * MINUTE, 7 * MINUTE, 20 * MINUTE).seconds, 240);
        assert_eq!(used_in(&store, 12 * MINUTE, 20 * MINUTE, 20 * MINUTE).seconds, 0);
        assert_eq!(used_in(&store, 7 * MINUTE, 5 * MINUTE, 20 * MINUTE).seconds, 0);
    }

    #[test]
    fn spans_of_different_sizes_add_up_and_an_open_one_counts_to_now() {
        let store = RedbStore::in_memory().unwrap();
        add(&store, "small", 0, Some(MINUTE));
        add(&store, "xlarge", 2 * MINUTE, None);
        let all = used_in(&store, 0, 100 * MINUTE, 2 * MINUTE + 9_000);
        assert_eq!(all, Used { seconds: 80, dollars: 0.0008, running: true });
    }
}
