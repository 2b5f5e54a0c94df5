//! How long sandboxes ran, and what that costs.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{
    sandboxes::{Sandbox, machine_class},
    time::{DAY, Millis},
};
use crate::store::{
    Order, Reader, StoreError, Table, Writer,
    typed::{self, Derived, Record},
};

/// How many seconds a dollar buys.
pub(crate) const SECONDS_PER_DOLLAR: u64 = 100_000;

/// How long what a deleted sandbox used still counts for its wallet, in milliseconds.
const COUNTED: Millis = DAY;

/// One span in which a sandbox ran on one machine size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) sandbox: String,
    /// The wallet that pays: `account/ID` or `organisation/ID`.
    #[serde(default)]
    pub(crate) wallet: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) from: Millis,
    /// `None` while it runs.
    #[serde(default)]
    pub(crate) to: Option<Millis>,
    /// Whether the sandbox is gone.
    #[serde(default)]
    pub(crate) is_orphan: bool,
}

/// Rows of the index that lead to what a wallet paid for, what ended first in front and what goes on at the end.
fn paid(wallet: &str) -> String {
    format!("used/{wallet}/")
}

impl Record for Span {
    const TABLE: Table = Table::Usage;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        format!("{}/{:016}", self.sandbox, self.from.max(0))
    }

    fn derive(&self, derived: &mut Derived) {
        let to = self.to.unwrap_or(Millis::MAX);
        // All that the sum needs: a wallet may have had many sandboxes.
        let terms = format!("{} {}", self.from, self.kind);
        derived.row(format!("{}{to:019}/{}", paid(&self.wallet), self.key()), terms);
        if let (true, Some(to)) = (self.is_orphan, self.to) {
            derived.expires(self, to.saturating_add(COUNTED));
        }
    }
}

/// Notes that a sandbox has begun to run.
pub(crate) fn begin(tx: &mut dyn Writer, sandbox: &str, kind: &str, at: Millis) -> Result<(), StoreError> {
    let wallet = typed::get::<Sandbox>(&*tx, sandbox)?.map(|sandbox| sandbox.wallet()).unwrap_or_default();
    let (sandbox, kind) = (sandbox.to_owned(), kind.to_owned());
    typed::put(tx, &Span { sandbox, wallet, kind, from: at, to: None, is_orphan: false })
}

/// Whether a sandbox has run at all.
pub(crate) fn has_run(tx: &(impl Reader + ?Sized), sandbox: &str) -> Result<bool, StoreError> {
    let (prefix, mut has_run) = (format!("{sandbox}/"), false);
    let to = typed::after_prefix(&prefix);
    typed::scan::<Span>(tx, &prefix, to.as_deref(), Order::Ascending, |_, _| {
        has_run = true;
        ControlFlow::Break(())
    })?;
    Ok(has_run)
}

/// Notes that it has ended; nothing if it was not running.
pub(crate) fn end(tx: &mut dyn Writer, sandbox: &str, at: Millis) -> Result<(), StoreError> {
    for mut span in typed::with_prefix::<Span>(&*tx, &format!("{sandbox}/"))? {
        if span.to.is_none() {
            span.to = Some(at.max(span.from));
            typed::put(tx, &span)?;
        }
    }
    Ok(())
}

/// Forgets what a sandbox that is gone has used, as soon as its wallet's last day does not reach it any more.
pub(crate) fn forget(tx: &mut dyn Writer, sandbox: &str, at: Millis) -> Result<(), StoreError> {
    for mut span in typed::with_prefix::<Span>(&*tx, &format!("{sandbox}/"))? {
        let to = *span.to.get_or_insert(at.max(span.from));
        span.is_orphan = true;
        match to.saturating_add(COUNTED) <= at {
            true => typed::remove::<Span>(tx, &span.key())?,
            false => typed::put(tx, &span)?,
        }
    }
    Ok(())
}

/// What a wallet used: in the last 24 hours, and what runs now since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PaidFor {
    pub(crate) last_day: u64,
    pub(crate) live: u64,
}

/// Adds up what a wallet pays for, in seconds, each machine size's multiplier applied.
pub(crate) fn paid_for(
    tx: &(impl Reader + ?Sized),
    wallet: &str,
    now: Millis,
) -> Result<PaidFor, StoreError> {
    let prefix = paid(wallet);
    let since = now - DAY;
    let (mut last_day, mut live) = (0.0, 0.0);
    let from = format!("{prefix}{:019}/", since.max(0));
    typed::rows(tx, &from, typed::after_prefix(&prefix).as_deref(), Order::Ascending, |row, terms| {
        let to = row[prefix.len()..].split('/').next().and_then(|to| to.parse().ok()).unwrap_or(now);
        if let Some((from, kind)) = terms.split_once(' ')
            && let Ok(from) = from.parse::<Millis>()
        {
            let is_live = to == Millis::MAX;
            last_day += weighted(kind, from.max(since), to.min(now));
            live += if is_live { weighted(kind, from, now) } else { 0.0 };
        }
        ControlFlow::Continue(())
    })?;
    Ok(PaidFor { last_day: whole(last_day), live: whole(live) })
}

/// The seconds of a time on a machine of a size, its multiplier applied.
fn weighted(kind: &str, from: Millis, to: Millis) -> f64 {
    let (over, under) = machine_class(kind).multiplier;
    (to - from).max(0) as f64 / 1000.0 * f64::from(over) / f64::from(under)
}

fn whole(seconds: f64) -> u64 {
    seconds.round().max(0.0) as u64
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
    let seconds = spans
        .iter()
        .map(|span| weighted(&span.kind, span.from.max(since), span.to.unwrap_or(now).min(until)))
        .sum();
    let seconds = whole(seconds);
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

    #[test]
    fn a_wallet_pays_for_a_day_and_for_what_runs() {
        let store = RedbStore::in_memory().unwrap();
        let look = |now| typed::read(&store, |tx| paid_for(tx, "", now)).unwrap();
        add(&store, "large", 0, Some(10 * MINUTE));
        assert_eq!(look(20 * MINUTE), PaidFor { last_day: 1200, live: 0 });
        // Half of it was more than a day ago.
        assert_eq!(look(DAY + 5 * MINUTE), PaidFor { last_day: 600, live: 0 });
        add(&store, "small", 20 * MINUTE, None);
        assert_eq!(look(22 * MINUTE), PaidFor { last_day: 1260, live: 60 });
        let write = |at| {
            typed::write::<_, StoreError>(&store, Durability::Now, |tx| forget(tx, "bx_a", at)).unwrap();
        };
        // A deleted sandbox has been paid for all the same.
        write(22 * MINUTE);
        assert_eq!(look(30 * MINUTE), PaidFor { last_day: 1260, live: 0 });
        write(DAY + 30 * MINUTE);
        assert_eq!(look(30 * MINUTE), PaidFor::default());
    }
}
