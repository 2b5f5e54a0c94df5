//! API keys, the tokens of people who are signed in, and what both may see and do.

use serde::{Deserialize, Serialize};

use super::{
    actions::{ADMIN, EVERYTHING},
    ids,
    time::{DAY, Millis},
};
use crate::store::{
    Order, Reader, StoreError, Table, Writer,
    typed::{self, Derived, Record},
};

/// How long a revoked key can still be read, in milliseconds: as long as its uses are counted.
const REMEMBERED: Millis = 30 * DAY;

/// How long before its end a key is said to end soon, in milliseconds.
const SOON: Millis = 7 * DAY;

/// Where a key comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// Given to the server when it was started: good for that run.
    #[default]
    Given,
    /// Made by a call, or given and rotated or revoked by one: it is kept.
    Made,
    /// A person signed in.
    Session,
    /// The server gave it to a sandbox; it is told from the sandbox and kept nowhere.
    Machine,
}

/// An API key or the token of a person who is signed in; only a digest of its secret is kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) digest: String,
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: Option<String>,
    pub(crate) account: String,
    /// What it grants; `*` grants everything.
    pub(crate) actions: Vec<String>,
    /// The sandboxes it may see; all if `None`.
    #[serde(default)]
    pub(crate) sandboxes: Option<Vec<String>>,
    /// The ids of the environments it may see; all if `None`.
    #[serde(default)]
    pub(crate) environments: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) expires_at: Option<Millis>,
    #[serde(default)]
    pub(crate) origin: Origin,
    #[serde(default)]
    pub(crate) created_at: Millis,
    #[serde(default)]
    pub(crate) revoked_at: Option<Millis>,
    #[serde(default)]
    pub(crate) last_used_at: Option<Millis>,
    /// The first characters of its secret and the last four, for people.
    #[serde(default)]
    pub(crate) shown: (String, String),
}

impl Key {
    /// Whether a person is signed in with it.
    pub(crate) fn is_session(&self) -> bool {
        self.origin == Origin::Session
    }

    /// Whether the key grants an action; operations without one take any valid key.
    pub(crate) fn grants(&self, action: Option<&str>) -> bool {
        self.is_session()
            || action.is_none_or(|action| {
                self.actions
                    .iter()
                    .any(|granted| granted == EVERYTHING || granted == ADMIN || granted == action)
            })
    }

    /// Whether the key may see a sandbox of its account.
    pub(crate) fn covers(&self, sandbox: &str) -> bool {
        is_listed(self.sandboxes.as_deref(), sandbox)
    }

    /// Whether the key may see and use an environment of its account, by its id.
    pub(crate) fn covers_environment(&self, environment: &str) -> bool {
        is_listed(self.environments.as_deref(), environment)
    }

    /// Whether it may do less than the account's own people: such keys do not see the others.
    pub(crate) fn is_restricted(&self) -> bool {
        !self.grants(Some(ADMIN)) || self.sandboxes.is_some() || self.environments.is_some()
    }

    /// Whether it grants everything for ever, as keys did before they had scopes.
    pub(crate) fn is_legacy(&self) -> bool {
        !self.is_restricted() && self.expires_at.is_none() && self.actions == [EVERYTHING]
    }

    /// Whether its time is over.
    pub(crate) fn has_expired(&self, now: Millis) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Whether its time will be over soon.
    pub(crate) fn expires_soon(&self, now: Millis) -> bool {
        !self.has_expired(now) && self.expires_at.is_some_and(|at| at <= now + SOON)
    }

    /// Gives it a secret.
    pub(crate) fn set_secret(&mut self, secret: &str) {
        self.digest = ids::digest(secret);
        self.shown = shown(secret);
    }
}

fn is_listed(reach: Option<&[String]>, id: &str) -> bool {
    reach.is_none_or(|listed| listed.iter().any(|known| known == id))
}

/// What may be shown of a secret: its first characters and its last four, and less of one that is short.
fn shown(secret: &str) -> (String, String) {
    let length = secret.chars().count();
    let first = (length / 4).min(12);
    let last = if length >= 16 { 4 } else { 0 };
    (secret.chars().take(first).collect(), secret.chars().skip(length - last).collect())
}

/// A new secret.
pub(crate) fn new_secret() -> String {
    format!("sbx_live_{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

/// The row of the index that leads to the key of an id.
fn id_row(id: &str) -> String {
    format!("key/{id}")
}

/// Rows of the index that lead to the keys of an account that are listed, the oldest first.
fn listed(account: &str) -> String {
    format!("keys/{account}/")
}

impl Record for Key {
    const TABLE: Table = Table::Keys;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        self.digest.clone()
    }

    fn derive(&self, derived: &mut Derived) {
        if self.is_session() {
            return;
        }
        derived.row(id_row(&self.id), &self.digest);
        match self.revoked_at {
            None => {
                let place = format!("{:016}/{}", self.created_at.max(0), self.id);
                derived.row(format!("{}{place}", listed(&self.account)), &self.digest);
            }
            Some(at) => derived.expires(self, at.saturating_add(REMEMBERED)),
        }
    }
}

/// The key of an id, revoked or not.
pub(crate) fn by_id(tx: &(impl Reader + ?Sized), id: &str) -> Result<Option<Key>, StoreError> {
    match typed::row(tx, &id_row(id))? {
        Some(digest) => typed::get(tx, &digest),
        None => Ok(None),
    }
}

/// The keys of an account that are not revoked, the newest first.
pub(crate) fn of_account(tx: &(impl Reader + ?Sized), account: &str) -> Result<Vec<Key>, StoreError> {
    let mut digests = typed::rows_with_prefix(tx, &listed(account), usize::MAX)?;
    digests.reverse();
    let mut keys = Vec::new();
    for digest in digests {
        keys.extend(typed::get::<Key>(tx, &digest)?);
    }
    Ok(keys)
}

/// Ends a key; nothing if it has ended already.
pub(crate) fn revoke(tx: &mut dyn Writer, mut key: Key, now: Millis) -> Result<(), StoreError> {
    if key.is_session() {
        return typed::remove::<Key>(tx, &key.digest);
    }
    key.revoked_at = Some(key.revoked_at.unwrap_or(now));
    key.origin = Origin::Made;
    typed::put(tx, &key)
}

/// Gives a key another secret; the old one ends.
pub(crate) fn rotate(tx: &mut dyn Writer, mut key: Key, secret: &str) -> Result<Key, StoreError> {
    typed::remove::<Key>(tx, &key.digest)?;
    key.set_secret(secret);
    key.origin = Origin::Made;
    typed::put(tx, &key)?;
    Ok(key)
}

/// Writes a key that the server was given; what calls have made of it since stands.
pub(crate) fn plant(tx: &mut dyn Writer, mut key: Key) -> Result<(), StoreError> {
    if !key.is_session()
        && let Some(known) = by_id(&*tx, &key.id)?
    {
        if known.origin == Origin::Made {
            return Ok(());
        }
        key.created_at = known.created_at;
    }
    typed::put(tx, &key)
}

/// Takes away the keys of an earlier run that this one was not given.
pub(crate) fn forget_given(tx: &mut dyn Writer, given: &[String]) -> Result<(), StoreError> {
    let mut old = Vec::new();
    typed::scan::<Key>(&*tx, "", None, Order::Ascending, |_, key| {
        if matches!(key.origin, Origin::Given | Origin::Session) && !given.contains(&key.digest) {
            old.push(key.digest);
        }
        std::ops::ControlFlow::Continue(())
    })?;
    old.iter().try_for_each(|digest| typed::remove::<Key>(tx, digest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, RedbStore};

    fn key(secret: &str, origin: Origin) -> Key {
        let mut key = Key { id: ids::key(secret), account: "a".into(), origin, ..Key::default() };
        key.set_secret(secret);
        key
    }

    #[test]
    fn little_of_a_secret_is_shown_and_nothing_of_the_middle() {
        assert_eq!(shown("sbx_live_0123456789abcdef0123456789abcdef"), ("sbx_live_0".into(), "cdef".into()));
        assert_eq!(shown("key-alice"), ("ke".into(), String::new()));
        assert_eq!(shown(""), (String::new(), String::new()));
        assert_eq!(new_secret().len(), 9 + 64);
    }

    #[test]
    fn what_was_revoked_or_rotated_stays_so_when_the_server_is_given_the_key_again() {
        let store = RedbStore::in_memory().unwrap();
        typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
            for secret in ["one", "two", "three"] {
                plant(tx, key(secret, Origin::Given))?;
            }
            plant(tx, key("token", Origin::Session))?;
            assert_eq!(of_account(&*tx, "a")?.len(), 3);
            revoke(tx, key("one", Origin::Given), 5)?;
            rotate(tx, key("two", Origin::Given), "another")?;
            forget_given(tx, &[ids::digest("one"), ids::digest("two")])?;
            plant(tx, key("one", Origin::Given))?;
            plant(tx, key("two", Origin::Given))?;
            let left: Vec<_> = of_account(&*tx, "a")?.into_iter().map(|key| key.digest).collect();
            assert_eq!(left, [ids::digest("another")]);
            assert_eq!(by_id(&*tx, &ids::key("one"))?.unwrap().revoked_at, Some(5));
            assert!(typed::get::<Key>(&*tx, &ids::digest("token"))?.is_none());
            assert!(by_id(&*tx, &ids::key("three"))?.is_none());
            Ok(())
        })
        .unwrap();
    }
}
