//! What an account keeps of its sandboxes.

use serde::{Deserialize, Serialize};

use super::time::Millis;
use crate::store::{
    Reader, StoreError, Table,
    typed::{self, Record},
};

/// What has to be sent, word for word, to turn zero data retention on.
pub(crate) const CONFIRMATION: &str = "delete archived sandbox data";

/// What an account has turned off, and since when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Retention {
    pub(crate) account: String,
    /// Zero data retention: nothing is kept of a sandbox that stops.
    #[serde(default)]
    pub(crate) zero_at: Option<Millis>,
    /// New sandboxes keep no disk when they stop.
    #[serde(default)]
    pub(crate) snapshots_off_at: Option<Millis>,
    /// Commands and processes of new sandboxes are not recorded.
    #[serde(default)]
    pub(crate) monitoring_off_at: Option<Millis>,
}

impl Record for Retention {
    const TABLE: Table = Table::Retention;

    fn key(&self) -> String {
        self.account.clone()
    }
}

/// The policy of an account; everything is kept unless something was turned off.
pub(crate) fn of_account(tx: &(impl Reader + ?Sized), account: &str) -> Result<Retention, StoreError> {
    let found: Option<Retention> = typed::get(tx, account)?;
    Ok(found.unwrap_or_else(|| Retention { account: account.to_owned(), ..Retention::default() }))
}

/// Turns something on or off; what is on already keeps its time.
pub(crate) fn switch(since: &mut Option<Millis>, on: Option<bool>, now: Millis) {
    match on {
        Some(true) => *since = Some(since.unwrap_or(now)),
        Some(false) => *since = None,
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_keeps_its_time_and_what_is_left_out_stays() {
        let mut since = None;
        switch(&mut since, None, 1);
        assert_eq!(since, None);
        switch(&mut since, Some(true), 2);
        switch(&mut since, Some(true), 3);
        switch(&mut since, None, 4);
        assert_eq!(since, Some(2));
        switch(&mut since, Some(false), 5);
        assert_eq!(since, None);
    }
}
