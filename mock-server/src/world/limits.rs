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

    /// The first moment of it.
    fn begins(self, now: Millis) -> Millis {
        now - self.length() + 1
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
}

/// Why nothing may be started now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Blocked,
    TooManyActive,
    TooManyOfMember,
    Quota {
        window: Window,
        limit: u64,
        /// Until there is room for all of them; `None` if the quota is smaller than that.
        retry_after_ms: Option<Millis>,
    },
}

/// What somebody wants to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// How many starts that is.
    pub(crate) starts: u64,
    /// How many of the sandboxes do not count as active yet.
    pub(crate) active: u64,
}

impl Wanted {
    /// So many sandboxes that are new or stopped.
    pub(crate) fn fresh(count: u64) -> Self {
        Self { starts: count, active: count }
    }
}

/// Looks at everything a wallet has running and has started.
pub(crate) fn standing(tx: &dyn Reader, wallet: &Wallet, now: Millis) -> Result<Standing, StoreError> {
    let mut standing = Standing {
        active: typed::sum(tx, &active_sum(&wallet.key))?,
        taken: typed::sum(tx, &taken_sum(&wallet.key, None))?,
        taken_by_member: typed::sum(tx, &taken_sum(&wallet.key, Some(&wallet.account.id)))?,
        starts: [0; 3],
    };
    if let Some(last) = start_since(tx, &wallet.key, 0, Order::Descending)? {
        for (index, window) in Window::ALL.into_iter().enumerate() {
            let oldest = start_since(tx, &wallet.key, window.begins(now), Order::Ascending)?;
            if let Some(oldest) = oldest {
                standing.starts[index] = last.number.saturating_sub(oldest.number) + 1;
            }
        }
    }
    Ok(standing)
}

/// The first start of a wallet since a time, or the last.
fn start_since(
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

/// When that start of a wallet was that is in this place since a time, counted from 1; the last if there are fewer. They are
/// numbered, so that few of them are looked at, however many there are.
fn time_of_nth(
    tx: &dyn Reader,
    wallet: &str,
    since: Millis,
    place: u64,
) -> Result<Option<Millis>, StoreError> {
    let first = start_since(tx, wallet, since, Order::Ascending)?;
    let last = start_since(tx, wallet, since, Order::Descending)?;
    let (Some(mut found), Some(last)) = (first, last) else { return Ok(None) };
    let number = found.number.saturating_add(place.saturating_sub(1)).min(last.number);
    // It is not before `found`, and not after this.
    let mut end = last.at;
    while found.at < end {
        let middle = end - (end - found.at) / 2;
        match start_since(tx, wallet, middle, Order::Ascending)? {
            Some(later) if later.number <= number => found = later,
            _ => end = middle - 1,
        }
    }
    Ok(Some(found.at))
}

/// Before every start of a wallet since a time, after all others.
fn starts_at(wallet: &str, since: Millis) -> String {
    format!("{wallet}/{:016}", since.max(0))
}

/// Why the wallet may not start so many sandboxes more; `None` if it may. Those that are on their way count against what
/// may be active, so that no more can become active than the plan allows.
pub(crate) fn refusal(
    tx: &dyn Reader,
    wallet: &Wallet,
    standing: &Standing,
    wanted: Wanted,
    now: Millis,
) -> Result<Option<Refusal>, StoreError> {
    if wallet.blocked {
        return Ok(Some(Refusal::Blocked));
    }
    // What is active already is so whatever the plan says by now.
    let is_too_many = |taken: u64, most: u64| wanted.active > 0 && taken.saturating_add(wanted.active) > most;
    if is_too_many(standing.taken, wallet.plan.max_active) {
        return Ok(Some(Refusal::TooManyActive));
    }
    let cap = wallet.membership().and_then(|member| member.max_active);
    if cap.is_some_and(|cap| is_too_many(standing.taken_by_member, cap)) {
        return Ok(Some(Refusal::TooManyOfMember));
    }
    // The window that has room last is the one that matters, and of two alike the longer one.
    let mut last: Option<(Millis, Window, u64)> = None;
    for (window, used) in Window::ALL.into_iter().zip(standing.starts).rev() {
        let Some(limit) = window.limit(&wallet.plan) else { continue };
        let too_many = used.saturating_add(wanted.starts).saturating_sub(limit);
        if too_many == 0 {
            continue;
        }
        let free_at = match wanted.starts > limit {
            true => Millis::MAX,
            false => {
                // There is room once so many have left the window, the oldest first.
                let leaving = time_of_nth(tx, &wallet.key, window.begins(now), too_many)?;
                leaving.unwrap_or(now).saturating_add(window.length())
            }
        };
        if last.is_none_or(|(at, ..)| free_at > at) {
            last = Some((free_at, window, limit));
        }
    }
    Ok(last.map(|(free_at, window, limit)| {
        let retry_after_ms = (free_at < Millis::MAX).then(|| (free_at - now).max(0));
        Refusal::Quota { window, limit, retry_after_ms }
    }))
}

/// Notes a start.
pub(crate) fn note_start(tx: &mut dyn Writer, wallet: &str, id: &str, now: Millis) -> Result<(), StoreError> {
    let number = start_since(&*tx, wallet, 0, Order::Descending)?.map_or(1, |last| last.number + 1);
    typed::put(tx, &Start { wallet: wallet.to_owned(), at: now, id: id.to_owned(), number })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::store::{Durability, RedbStore, Span, Visit};

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
        let look = |count, now| {
            let wanted = Wanted::fresh(count);
            let refused = |tx: &dyn Reader| refusal(tx, &wallet, &standing(tx, &wallet, now)?, wanted, now);
            typed::read::<_, StoreError>(&store, refused).unwrap()
        };
        let quota = |window, limit, retry_after_ms| Some(Refusal::Quota { window, limit, retry_after_ms });
        let start = |id, now| {
            typed::write(&store, Durability::Now, |tx| note_start(tx, &wallet.key, id, now)).unwrap();
        };
        start("z", 0);
        start("a", 10_000);
        assert_eq!(look(1, 20_000), quota(Window::Minute, 2, Some(40_000)));
        assert_eq!(look(1, 60_000), None);
        assert_eq!(look(6, 60_000), Some(Refusal::TooManyActive));
        start("3", 60_000);
        assert_eq!(look(1, 61_000), quota(Window::Day, 3, Some(86_339_000)));
        assert_eq!(look(1, 86_400_000), None);
    }

    #[test]
    fn several_at_once_wait_until_there_is_room_for_all_of_them() {
        let store = RedbStore::in_memory().unwrap();
        let look = |wallet: &Wallet, count, now| {
            let wanted = Wanted::fresh(count);
            let refused = |tx: &dyn Reader| refusal(tx, wallet, &standing(tx, wallet, now)?, wanted, now);
            match typed::read::<_, StoreError>(&store, refused).unwrap() {
                Some(Refusal::Quota { window, retry_after_ms, .. }) => Some((window, retry_after_ms)),
                None => None,
                other => panic!("{other:?}"),
            }
        };
        for (id, at) in [("a", 1_000), ("b", 2_000), ("c", 3_000)] {
            typed::write(&store, Durability::Now, |tx| note_start(tx, "account/a", id, at)).unwrap();
        }
        let four = wallet(Some(4), None);
        assert_eq!(look(&four, 1, 5_000), None);
        assert_eq!(look(&four, 2, 5_000), Some((Window::Minute, Some(56_000))));
        assert_eq!(look(&four, 4, 5_000), Some((Window::Minute, Some(58_000))));
        assert_eq!(look(&four, 4, 63_000), None);
        // More than the quota is never allowed.
        assert_eq!(look(&four, 5, 5_000), Some((Window::Minute, None)));
        assert_eq!(look(&four, 5, 500_000), Some((Window::Minute, None)));
        // A plan that allows less than is used already, and one whose day has room before its minute.
        assert_eq!(look(&wallet(Some(1), None), 1, 5_000), Some((Window::Minute, Some(58_000))));
        let day = 86_400_000;
        typed::write(&store, Durability::Now, |tx| note_start(tx, "account/a", "d", day)).unwrap();
        assert_eq!(look(&wallet(Some(1), Some(4)), 1, day + 500), Some((Window::Minute, Some(59_500))));
    }

    /// Counts the records that are looked at.
    struct Counting<'a> {
        inner: &'a dyn Reader,
        seen: Cell<u64>,
    }

    impl Reader for Counting<'_> {
        fn get(&self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
            self.seen.set(self.seen.get() + 1);
            self.inner.get(table, key)
        }

        fn walk(&self, span: Span<'_>, visit: &mut Visit<'_>) -> Result<(), StoreError> {
            self.inner.walk(span, &mut |key, value| {
                self.seen.set(self.seen.get() + 1);
                visit(key, value)
            })
        }
    }

    #[test]
    fn a_quota_that_is_far_overrun_costs_no_more_than_another() {
        const STARTS: u64 = 2000;
        let store = RedbStore::in_memory().unwrap();
        let mut times = Vec::new();
        typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
            let mut at = 7;
            for number in 0..STARTS {
                // Several at a time, a few apart, and long nothing.
                at += match number % 100 {
                    0 => 400_000,
                    1..60 => 0,
                    _ => 11,
                };
                note_start(tx, "account/a", &format!("{:04}", STARTS - number), at)?;
                times.push(at);
            }
            Ok(())
        })
        .unwrap();
        let now = times[times.len() - 1];
        typed::read::<_, StoreError>(&store, |tx| {
            for limit in [1, 2, 41, 99, 100, 101, 1000, 1899, 1999, 2000] {
                let counting = Counting { inner: tx, seen: Cell::new(0) };
                let wallet = wallet(None, Some(limit));
                let standing = standing(&counting, &wallet, now)?;
                let refused = refusal(&counting, &wallet, &standing, Wanted::fresh(1), now)?;
                // Of those that are there, one less than the limit may be left.
                let leaving = times[usize::try_from(STARTS - limit).unwrap()];
                let retry_after_ms = Some(leaving + 86_400_000 - now);
                assert_eq!(refused, Some(Refusal::Quota { window: Window::Day, limit, retry_after_ms }));
                assert!(counting.seen.get() < 50, "{} for a limit of {limit}", counting.seen.get());
            }
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn what_is_active_already_takes_no_place() {
        let store = RedbStore::in_memory().unwrap();
        let wallet = wallet(Some(1), None);
        let standing = |taken| Standing { active: taken, taken, taken_by_member: taken, starts: [0; 3] };
        let look = |taken, active| {
            let wanted = Wanted { starts: 1, active };
            typed::read::<_, StoreError>(&store, |tx| refusal(tx, &wallet, &standing(taken), wanted, 0))
        };
        assert_eq!(look(5, 1).unwrap(), Some(Refusal::TooManyActive));
        assert_eq!(look(5, 0).unwrap(), None);
        assert_eq!(look(9, 0).unwrap(), None);
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
