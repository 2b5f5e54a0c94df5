//! Deliveries: what webhook endpoints are still to be told, and what they were told in the last 30 days.
//!
//! A delivery is written in the transaction of what it tells of, so that a server that is killed forgets none.

use std::{ops::ControlFlow, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    happenings::{BY_TIME, Happening, Kind},
    time::Millis,
};
use crate::store::{
    Order, Reader, StoreError, Table, Writer,
    typed::{self, Derived, Record},
};

/// How often a delivery is tried in all.
pub(crate) const MOST_ATTEMPTS: u32 = 8;

/// The pause after the first try; each further one is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(10);

/// How long the history goes back.
const HISTORY: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How many old records are taken away at a time.
const PRUNED_AT_ONCE: usize = 500;

/// Where a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Progress {
    /// It is to be tried, for the first time or again.
    Pending,
    /// The endpoint acknowledged it.
    Delivered,
    /// It was tried as often as it may be.
    Failed,
}

/// One happening on its way to one endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) endpoint: String,
    pub(crate) account: String,
    /// The id of the happening.
    pub(crate) event: String,
    pub(crate) kind: Kind,
    /// The body, the same bytes at each try.
    pub(crate) body: String,
    pub(crate) created_at: Millis,
    pub(crate) progress: Progress,
    /// When the next try is due, once the first has failed.
    #[serde(default)]
    pub(crate) due_at: Option<Millis>,
    #[serde(default)]
    pub(crate) attempts: Vec<Attempt>,
}

/// One try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) at: Millis,
    /// What the endpoint answered; `None` if it did not.
    #[serde(default)]
    pub(crate) status: Option<u16>,
    /// Why there was no answer.
    #[serde(default)]
    pub(crate) problem: Option<String>,
}

impl Attempt {
    /// Whether the endpoint took the delivery.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// What a webhook endpoint was told, or is still to be told, as tests see it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookDelivery {
    /// The id of the event.
    pub event: String,
    /// The type of the event, such as `sandbox.ready`.
    pub kind: String,
    /// `pending`, `delivered` or `failed`.
    pub progress: &'static str,
    /// What each try was answered, or why it was not.
    pub attempts: Vec<Result<u16, String>>,
}

impl From<Delivery> for WebhookDelivery {
    fn from(delivery: Delivery) -> Self {
        let attempts = delivery.attempts.into_iter().map(|attempt| match attempt.status {
            Some(status) => Ok(status),
            None => Err(attempt.problem.unwrap_or_default()),
        });
        Self {
            event: delivery.event,
            kind: delivery.kind.as_str().to_owned(),
            progress: match delivery.progress {
                Progress::Pending => "pending",
                Progress::Delivered => "delivered",
                Progress::Failed => "failed",
            },
            attempts: attempts.collect(),
        }
    }
}

/// Rows of the index that lead to the deliveries that were not tried yet: `delivery/first/ENDPOINT/EVENT`.
pub(crate) const FIRST: &str = "delivery/first/";

/// Rows of the index that lead to the deliveries to be tried again: `delivery/again/ENDPOINT/DUE/EVENT`.
pub(crate) const AGAIN: &str = "delivery/again/";

/// Rows of the index that lead to the deliveries that are done with: `delivery/done/CREATED/ENDPOINT/EVENT`.
const DONE: &str = "delivery/done/";

impl Record for Delivery {
    const TABLE: Table = Table::Deliveries;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        delivery_key(&self.endpoint, &self.event)
    }

    fn derive(&self, derived: &mut Derived) {
        let (endpoint, event) = (&self.endpoint, &self.event);
        let row = match (self.progress, self.due_at) {
            (Progress::Pending, None) => format!("{FIRST}{endpoint}/{event}"),
            (Progress::Pending, Some(at)) => format!("{AGAIN}{endpoint}/{:016}/{event}", at.max(0)),
            (Progress::Delivered | Progress::Failed, _) => {
                format!("{DONE}{:016}/{endpoint}/{event}", self.created_at.max(0))
            }
        };
        derived.row(row, self.key());
    }
}

/// The key of a delivery: those of an endpoint follow one another in the order of what they tell of.
pub(crate) fn delivery_key(endpoint: &str, event: &str) -> String {
    format!("{endpoint}/{event}")
}

impl Delivery {
    /// A happening on its way to an endpoint.
    pub(crate) fn new(happening: &Happening, endpoint: &str) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            account: happening.account.clone(),
            event: happening.id.clone(),
            kind: happening.kind,
            body: happening.body().to_string(),
            created_at: happening.at,
            progress: Progress::Pending,
            due_at: None,
            attempts: Vec::new(),
        }
    }

    /// Adds a try that ended at this time, and says what comes of it.
    pub(crate) fn attempted(&mut self, attempt: Attempt, now: Millis) {
        let is_acknowledged = attempt.is_acknowledged();
        self.attempts.push(attempt);
        let tries = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX);
        (self.progress, self.due_at) = match is_acknowledged {
            true => (Progress::Delivered, None),
            false if tries >= MOST_ATTEMPTS => (Progress::Failed, None),
            false => (Progress::Pending, Some(now.saturating_add(pause_after(tries)))),
        };
    }
}

/// Milliseconds between the end of the try of this number and the next one.
fn pause_after(tries: u32) -> Millis {
    let doubled = FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(20));
    Millis::try_from(doubled.as_millis()).unwrap_or(Millis::MAX)
}

/// The delivery of an endpoint that is next to be tried for the first time.
pub(crate) fn next_first(tx: &dyn Reader, endpoint: &str) -> Result<Option<Delivery>, StoreError> {
    let keys = typed::rows_with_prefix(tx, &format!("{FIRST}{endpoint}/"), 1)?;
    keys.first().map_or(Ok(None), |key| typed::get(tx, key))
}

/// The keys of the first deliveries of an endpoint that are to be tried again, at most so many, and when each is due.
pub(crate) fn next_again(
    tx: &dyn Reader,
    endpoint: &str,
    most: usize,
) -> Result<Vec<(String, Millis)>, StoreError> {
    let prefix = format!("{AGAIN}{endpoint}/");
    let mut found = Vec::new();
    typed::rows(tx, &prefix, typed::after_prefix(&prefix).as_deref(), Order::Ascending, |key, delivery| {
        let due = key[prefix.len()..].split('/').next().and_then(|at| at.parse().ok()).unwrap_or(0);
        found.push((delivery.to_owned(), due));
        if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

/// Takes away every delivery of an endpoint, those of the past too.
pub(crate) fn drop_all(tx: &mut dyn Writer, endpoint: &str) -> Result<(), StoreError> {
    for delivery in typed::with_prefix::<Delivery>(tx, &format!("{endpoint}/"))? {
        typed::remove::<Delivery>(tx, &delivery.key())?;
    }
    Ok(())
}

/// Takes away some of what is older than the history goes back; says whether there may be more.
pub(crate) fn prune(tx: &mut dyn Writer, now: Millis) -> Result<bool, StoreError> {
    let deliveries = too_old(&*tx, DONE, now, PRUNED_AT_ONCE)?;
    for key in &deliveries {
        typed::remove::<Delivery>(tx, key)?;
    }
    let happenings = too_old(&*tx, BY_TIME, now, PRUNED_AT_ONCE)?;
    for key in &happenings {
        typed::remove::<Happening>(tx, key)?;
    }
    Ok(deliveries.len().max(happenings.len()) == PRUNED_AT_ONCE)
}

/// Whether [`prune`] would find anything.
pub(crate) fn has_too_old(tx: &dyn Reader, now: Millis) -> Result<bool, StoreError> {
    Ok(!too_old(tx, DONE, now, 1)?.is_empty() || !too_old(tx, BY_TIME, now, 1)?.is_empty())
}

fn too_old(tx: &dyn Reader, rows: &str, now: Millis, most: usize) -> Result<Vec<String>, StoreError> {
    let kept = now.saturating_sub(Millis::try_from(HISTORY.as_millis()).unwrap_or(Millis::MAX)).max(0);
    let mut found = Vec::new();
    typed::rows(tx, rows, Some(&format!("{rows}{kept:016}/")), Order::Ascending, |_, key| {
        found.push(key.to_owned());
        if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16) -> Attempt {
        Attempt { at: 0, status: Some(status), problem: None }
    }

    fn fresh() -> Delivery {
        Delivery {
            endpoint: "wh_1".into(),
            account: "acc_1".into(),
            event: "evt_1".into(),
            kind: Kind::Ready,
            body: "{}".into(),
            created_at: 0,
            progress: Progress::Pending,
            due_at: None,
            attempts: Vec::new(),
        }
    }

    #[test]
    fn eight_tries_with_pauses_that_double() {
        let mut delivery = fresh();
        let mut pauses = Vec::new();
        for _ in 0..MOST_ATTEMPTS {
            assert_eq!(delivery.progress, Progress::Pending);
            delivery.attempted(answered(500), 1_000);
            pauses.extend(delivery.due_at.map(|due| (due - 1_000) / 1_000));
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640]);
        assert_eq!((delivery.progress, delivery.attempts.len()), (Progress::Failed, 8));
    }

    #[test]
    fn any_answer_of_the_200s_acknowledges_and_nothing_else_does() {
        for status in [200, 204, 299] {
            let mut delivery = fresh();
            delivery.attempted(answered(status), 0);
            assert_eq!(delivery.progress, Progress::Delivered, "{status}");
        }
        for status in [199, 300, 302, 304, 404, 410, 500] {
            let mut delivery = fresh();
            delivery.attempted(answered(status), 0);
            assert_eq!(delivery.progress, Progress::Pending, "{status}");
        }
        let mut unanswered = fresh();
        unanswered.attempted(Attempt { at: 0, status: None, problem: Some("refused".into()) }, 0);
        assert_eq!(unanswered.progress, Progress::Pending);
    }
}
