//! What a wallet may run at once and start in a window of time.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::{
    accounts::{Account, Organisation, Plan},
    sandboxes::{active_sum, taken_sum},
    time::Millis,
};
use crate::store::{
    Order, Reader, StoreError, Table, Writer, typed,
    typed::{Derived, Record},
};

/// One start of a sandbox: a create, a fork or a resume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) wallet: String,
    pub(crate) at: Millis,
    pub(crate) id: String,
    /// Counts up from start to start of the wallet: two of them say how many lie between.
    #[serde(default)]
    pub(crate) number: u64,
}

impl Record for Start {
    const TABLE: Table = Table::Starts;
    const DERIVES: bool = true;

    fn derive(&self, derived: &mut Derived) {
        derived.expires(self, self.at.saturating_add(Window::Day.length()));
    }

    fn key(&self) -> String {
        format!("{}/{:016}/{}", starts_at(&self.wallet, self.at), self.number, self.id)
    }
}

/// A window of time that has a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Minute,
    Hour,
    Day,
}

impl Window {
    /// Every window, the shortest first.
    pub(crate) const ALL: [Window; 3] = [Window::Minute, Window::Hour, Window::Day];

    /// The window as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Window::Minute => "minute",
            Window::Hour => "hour",
            Window::Day => "day",
        }
    }

    fn length(self) -> Millis {
        match self {
            Window::Minute => 60_000,
            Window::Hour => 3_600_000,
            Window::Day => 86_400_000,
        }
    }

    /// The plan's quota for this window.
    pub(crate) fn limit(self, plan: &Plan) -> Option<u64> {
        match self {
            Window::Minute => plan.starts_per_minute,
            Window::Hour => plan.starts_per_hour,
            Window::Day => plan.starts_per_day,
        }
    }
}

/// Who pays, with everything the limits depend on.
#[derive(Clone, Debug)]
pub(crate) struct Wallet {
    pub(crate) key: String,
    pub(crate) plan: Plan,
    pub(crate) blocked: bool,
    pub(crate) account: Account,
    /// The organisation, if it is not the account itself that pays.
    pub(crate) organisation: Option<Organisation>,
}

impl Wallet {
    /// The caller's role in the organisation that pays.
    pub(crate) fn role(&self) -> Option<&str> {
        self.membership().map(|member| member.role.as_str())
    }

    fn membership(&self) -> Option<&super::accounts::Member> {
        self.organisation.as_ref()?.member(&self.account.id)
    }
}

/// How a wallet stands.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// Sandboxes in an active state.
    pub(crate) active: u64,
    /// Those, and those that are on their way to one.
    pub(crate) taken: u64,
    /// The same for the caller alone.
    pub(crate) taken_by_member: u64,
    /// Starts in each window, in the order of [`Window::ALL`].
    pub(crate) starts: [u64; 3],
    /// When the oldest start of each window leaves it.
    pub(crate) free_at: [Option<Millis>; 3],
}

/// Why nothing may be started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Blocked,
    TooManyActive,
    TooManyOfMember,
    Quota { window: Window, limit: u64, retry_after_ms: Millis },
}

impl Standing {
    /// How it stands once so many more are started.
    pub(crate) fn after(&self, more: u64) -> Self {
        Self {
            active: self.active.saturating_add(more),
            taken: self.taken.saturating_add(more),
            taken_by_member: self.taken_by_member.saturating_add(more),
            starts: self.starts.map(|starts| starts.saturating_add(more)),
            free_at: self.free_at,
        }
    }
}

/// Looks at everything a wallet has running and has started.
pub(crate) fn standing(tx: &dyn Reader, wallet: &Wallet, now: Millis) -> Result<Standing, StoreError> {
    let mut standing = Standing {
        active: typed::sum(tx, &active_sum(&wallet.key))?,
        taken: typed::sum(tx, &taken_sum(&wallet.key, None))?,
        taken_by_member: typed::sum(tx, &taken_sum(&wallet.key, Some(&wallet.account.id)))?,
        starts: [0; 3],
        free_at: [None; 3],
    };
    if let Some(last) = first_start(tx, &wallet.key, 0, Order::Descending)? {
        for (index, window) in Window::ALL.into_iter().enumerate() {
            let since = now - window.length() + 1;
            if let Some(oldest) = first_start(tx, &wallet.key, since, Order::Ascending)? {
                standing.starts[index] = last.number.saturating_sub(oldest.number) + 1;
                standing.free_at[index] = Some(oldest.at + window.length());
            }
        }
    }
    Ok(standing)
}

/// The first start of a wallet since a time, from the one end or the other.
fn first_start(
    tx: &dyn Reader,
    wallet: &str,
    since: Millis,
    order: Order,
) -> Result<Option<Start>, StoreError> {
    let mut found = None;
    let to = typed::after_prefix(&format!("{wallet}/"));
    typed::scan(tx, &starts_at(wallet, since), to.as_deref(), order, |_, start| {
        found = Some(start);
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Before every start of a wallet since a time, after all others.
fn starts_at(wallet: &str, since: Millis) -> String {
    format!("{wallet}/{:016}", since.max(0))
}

/// Whether the wallet may start another sandbox.
pub(crate) fn check(wallet: &Wallet, standing: &Standing, now: Millis) -> Result<(), Refusal> {
    if wallet.blocked {
        return Err(Refusal::Blocked);
    }
    if standing.taken >= wallet.plan.max_active {
        return Err(Refusal::TooManyActive);
    }
    let cap = wallet.membership().and_then(|member| member.max_active);
    if cap.is_some_and(|cap| standing.taken_by_member >= cap) {
        return Err(Refusal::TooManyOfMember);
    }
    // The longest window first: waiting a minute does not help when the day is used up.
    for (index, window) in Window::ALL.into_iter().enumerate().rev() {
        if let Some(limit) = window.limit(&wallet.plan)
            && standing.starts[index] >= limit
        {
            let free_at = standing.free_at[index].unwrap_or(now + window.length());
            return Err(Refusal::Quota { window, limit, retry_after_ms: (free_at - now).max(0) });
        }
    }
    Ok(())
}

/// Notes a start.
pub(crate) fn note_start(tx: &mut dyn Writer, wallet: &str, id: &str, now: Millis) -> Result<(), StoreError> {
    let number = first_start(&*tx, wallet, 0, Order::Descending)?.map_or(1, |last| last.number + 1);
    typed::put(tx, &Start { wallet: wallet.to_owned(), at: now, id: id.to_owned(), number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, RedbStore};

    fn wallet(per_minute: Option<u64>, per_day: Option<u64>) -> Wallet {
        let plan = Plan {
            key: "p".into(),
            name: "P".into(),
            max_active: 5,
            starts_per_minute: per_minute,
            starts_per_hour: None,
            starts_per_day: per_day,
            named_snapshots: None,
            types: vec!["default".into()],
            dollars: None,
        };
        let account = Account { id: "a".into(), login: "a".into(), plan: "p".into(), ..Account::default() };
        Wallet { key: "account/a".into(), plan, blocked: false, account, organisation: None }
    }

    #[test]
    fn a_quota_names_its_window_and_when_it_frees_up() {
        let store = RedbStore::in_memory().unwrap();
        let wallet = wallet(Some(2), Some(3));
        let look = |now| typed::read(&store, |tx| standing(tx, &wallet, now)).unwrap();
        let start = |id, now| {
            typed::write(&store, Durability::Now, |tx| note_start(tx, &wallet.key, id, now)).unwrap();
        };
        start("z", 0);
        start("a", 10_000);
        let refusal = check(&wallet, &look(20_000), 20_000).unwrap_err();
        assert_eq!(refusal, Refusal::Quota { window: Window::Minute, limit: 2, retry_after_ms: 40_000 });
        assert_eq!(check(&wallet, &look(60_000), 60_000), Ok(()));
        assert_eq!(check(&wallet, &look(60_000).after(5), 60_000), Err(Refusal::TooManyActive));
        start("3", 60_000);
        let refusal = check(&wallet, &look(61_000), 61_000).unwrap_err();
        assert_eq!(refusal, Refusal::Quota { window: Window::Day, limit: 3, retry_after_ms: 86_339_000 });
        assert_eq!(check(&wallet, &look(86_400_000), 86_400_000), Ok(()));
    }

    #[test]
    fn starts_of_one_moment_are_all_counted() {
        let store = RedbStore::in_memory().unwrap();
        let wallet = wallet(Some(9), None);
        for (count, id) in (1..).zip(["c", "a", "d", "b"]) {
            let counted = typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
                note_start(tx, &wallet.key, id, 7)?;
                Ok(standing(&*tx, &wallet, 7)?.starts)
            });
            assert_eq!(counted.unwrap(), [count; 3]);
        }
    }
}
