//! Where an account's telemetry goes, and the happenings that wait to be exported there.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::{happenings::Happening, time::Millis};
use crate::store::{
    Reader, StoreError, Table, Writer,
    typed::{self, Derived, Record},
};

/// How long there is between two exports of gauges.
pub(crate) const GAUGES_EVERY: Duration = Duration::from_secs(60);

/// How often a happening is tried to be exported in all.
const MOST_ATTEMPTS: u32 = 5;

/// The pause after the first try that failed; each further one is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(10);

/// The longest pause that a collector may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);

/// How many happenings wait for a collector at most; the oldest make room.
const MOST_QUEUED: u64 = 1_000;

/// How many happenings go out at once.
const BATCH: usize = 100;

/// The collector of an account.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Telemetry {
    pub(crate) account: String,
    /// The collector's URL, without the paths of the signals.
    pub(crate) endpoint: String,
    pub(crate) headers: BTreeMap<String, String>,
    /// Tells one setting from the next, so that what comes of an export is not written into another one.
    pub(crate) setting: String,
    pub(crate) created_at: Millis,
    /// When the gauges are to be exported next.
    pub(crate) gauges_at: Millis,
    #[serde(default)]
    pub(crate) last_export_at: Option<Millis>,
    #[serde(default)]
    pub(crate) last_error: Option<ExportError>,
    /// How often in a row the export of happenings has failed.
    #[serde(default)]
    pub(crate) failures: u32,
    /// Happenings wait until then, if the last try failed.
    #[serde(default)]
    pub(crate) resume_at: Option<Millis>,
}

/// How an export failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExportError {
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) status: Option<u16>,
    pub(crate) at: Millis,
}

/// Rows of the index that lead to the collectors by the time of their next gauges.
pub(crate) const GAUGES: &str = "telemetry/gauges/";

impl Record for Telemetry {
    const TABLE: Table = Table::Telemetry;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        self.account.clone()
    }

    fn derive(&self, derived: &mut Derived) {
        derived.row(format!("{GAUGES}{:016}/{}", self.gauges_at.max(0), self.account), &self.account);
    }
}

/// A happening that waits to be exported.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Export {
    pub(crate) happening: Happening,
    #[serde(default)]
    pub(crate) attempts: u32,
}

/// Rows of the index that lead to the exports of each account: `telemetry/waiting/ACCOUNT/EVENT`.
pub(crate) const WAITING: &str = "telemetry/waiting/";

fn queued_sum(account: &str) -> String {
    format!("telemetry/{account}")
}

impl Record for Export {
    const TABLE: Table = Table::Exports;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        self.happening.key()
    }

    fn derive(&self, derived: &mut Derived) {
        let Happening { account, id, .. } = &self.happening;
        derived.row(format!("{WAITING}{account}/{id}"), self.key());
        derived.add(queued_sum(account), 1);
    }
}

impl Export {
    /// Queues a happening, if its account has a collector.
    pub(crate) fn queue(tx: &mut dyn Writer, happening: &Happening) -> Result<(), StoreError> {
        if tx.get(Table::Telemetry, &happening.account)?.is_none() {
            return Ok(());
        }
        if typed::sum(&*tx, &queued_sum(&happening.account))? >= MOST_QUEUED
            && let [oldest] = &waiting(&*tx, &happening.account, 1)?[..]
        {
            typed::remove::<Export>(tx, oldest)?;
        }
        typed::put(tx, &Export { happening: happening.clone(), attempts: 0 })
    }
}

fn waiting(tx: &dyn Reader, account: &str, most: usize) -> Result<Vec<String>, StoreError> {
    typed::rows_with_prefix(tx, &format!("{WAITING}{account}/"), most)
}

/// What goes out next for an account, the oldest first.
pub(crate) fn next_batch(tx: &dyn Reader, account: &str) -> Result<Vec<Export>, StoreError> {
    let mut batch = Vec::new();
    for key in waiting(tx, account, BATCH)? {
        batch.extend(typed::get::<Export>(tx, &key)?);
    }
    Ok(batch)
}

/// Takes everything away that waits for an account's collector.
pub(crate) fn drop_queue(tx: &mut dyn Writer, account: &str) -> Result<(), StoreError> {
    for key in waiting(&*tx, account, usize::MAX)? {
        typed::remove::<Export>(tx, &key)?;
    }
    Ok(())
}

/// What a collector made of an export.
pub(crate) struct Verdict {
    /// Nothing if it took it.
    pub(crate) error: Option<ExportError>,
    /// Whether the same export may be taken later.
    pub(crate) is_temporary: bool,
    /// How long the collector asks to be left alone.
    pub(crate) pause: Option<Duration>,
}

impl Telemetry {
    /// Notes what came of an export.
    pub(crate) fn note(&mut self, verdict: &Verdict, now: Millis) {
        if verdict.error.is_none() {
            self.last_export_at = Some(now);
        }
        self.last_error = verdict.error.clone();
    }

    /// Notes what came of an export of happenings, and does with them what follows from it.
    pub(crate) fn settle(
        &mut self,
        tx: &mut dyn Writer,
        batch: Vec<Export>,
        verdict: &Verdict,
        now: Millis,
    ) -> Result<(), StoreError> {
        self.note(verdict, now);
        let goes_on = verdict.error.is_some() && verdict.is_temporary;
        self.failures = if goes_on { self.failures.saturating_add(1) } else { 0 };
        self.resume_at = goes_on.then(|| {
            let doubled = FIRST_PAUSE.saturating_mul(1 << (self.failures - 1).min(10));
            let pause = verdict.pause.map_or(doubled, |asked| asked.max(doubled)).min(LONGEST_PAUSE);
            now.saturating_add(Millis::try_from(pause.as_millis()).unwrap_or(Millis::MAX))
        });
        for mut export in batch {
            export.attempts += 1;
            let is_dropped_meanwhile = tx.get(Table::Exports, &export.key())?.is_none();
            if !goes_on || export.attempts >= MOST_ATTEMPTS {
                typed::remove::<Export>(tx, &export.key())?;
            } else if !is_dropped_meanwhile {
                typed::put(tx, &export)?;
            }
        }
        Ok(())
    }
}
