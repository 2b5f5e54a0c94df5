//! Which entries of worlds were planted already, so that a server which is started again with the same world leaves alone
//! what calls have made of them since.

use serde::{Deserialize, Serialize};

use super::{
    endpoints::{self, Endpoint},
    environments::{self, Environment},
    ids,
    retention::Retention,
};
use crate::store::{
    Reader, StoreError, Table, Writer,
    typed::{self, Record},
};

/// An entry that was planted.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Planted {
    /// Which entry it is, whatever it says.
    entry: String,
    /// A digest of what it said; `None` if a version planted it that kept none.
    digest: Option<String>,
}

impl Record for Planted {
    const TABLE: Table = Table::Planted;

    fn key(&self) -> String {
        self.entry.clone()
    }
}

/// The entry of an account that turns something off: one of [`SWITCHES`].
pub(crate) fn switch(account: &str, name: &str) -> String {
    format!("retention/{account}/{name}")
}

/// What an account can turn off.
pub(crate) const SWITCHES: [&str; 3] = ["all", "snapshots", "monitoring"];

/// The entry of a webhook endpoint.
pub(crate) fn endpoint(account: &str, url: &str) -> String {
    format!("endpoint/{account}/{}", endpoints::meaning(url))
}

/// The entry of an environment.
pub(crate) fn environment(owner: &str, name: &str) -> String {
    format!("environment/{owner}/{name}")
}

/// The entry that tells whether an environment is the default one of its owner.
pub(crate) fn default_environment(owner: &str, name: &str) -> String {
    format!("environment-default/{owner}/{name}")
}

/// What is known of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It has to be planted: it was not yet, or it said something else when it was.
    New,
    /// It was planted, and said the same.
    Known,
    /// A version that kept no note may have planted it: calls may have changed it since, and it is left as it is.
    Adopted,
}

/// Says in the log that an entry is left as it is although the world says something else.
pub(crate) fn pass_over(entry: &str) {
    tracing::warn!(
        %entry,
        "an older version of the server may have planted this entry of the world, and calls may have changed it since: it \
         is left as it is until the world says something else about it"
    );
}

/// Looks whether an entry has to be planted. It counts as planted from here on.
///
/// What is digested is what the world says. When that changes from one version of the server to the next, the digests that
/// are kept have to be emptied in an upgrade, or everything is planted again.
pub(crate) fn take(tx: &mut dyn Writer, entry: &str, says: &impl Serialize) -> Result<Look, StoreError> {
    let text = serde_json::to_string(says).map_err(|error| StoreError::Failed(error.to_string()))?;
    let digest = Some(ids::digest(&text));
    let before: Option<Planted> = typed::get(&*tx, entry)?;
    if before.as_ref().is_some_and(|before| before.digest == digest) {
        return Ok(Look::Known);
    }
    typed::put(tx, &Planted { entry: entry.to_owned(), digest })?;
    Ok(match before {
        Some(Planted { digest: None, .. }) => Look::Adopted,
        _ => Look::New,
    })
}

/// Forgets that an entry was planted, for one that could not be.
pub(crate) fn forget(tx: &mut dyn Writer, entry: &str) -> Result<(), StoreError> {
    typed::remove::<Planted>(tx, entry)
}

/// Takes what a store holds that may come from a world for planted, in a store of a version that did not note it.
pub(crate) fn adopt(tx: &mut dyn Writer) -> Result<(), StoreError> {
    for entry in found(&*tx)? {
        typed::put(tx, &Planted { entry, digest: None })?;
    }
    Ok(())
}

fn found(tx: &dyn Reader) -> Result<Vec<String>, StoreError> {
    let mut entries = Vec::new();
    for kept in typed::with_prefix::<Retention>(tx, "")? {
        entries.extend(SWITCHES.map(|name| switch(&kept.account, name)));
    }
    for known in typed::with_prefix::<Endpoint>(tx, "")? {
        entries.push(endpoint(&known.account, &known.url));
    }
    for known in typed::with_prefix::<Environment>(tx, "")? {
        // The one that everybody begins with is there without a world, too, until something is changed about it.
        let is_as_made = known.name == environments::BASE && known.latest == 1 && known.deleted_at.is_none();
        if known.id == environments::seeded_id(&known.owner, &known.name) && !is_as_made {
            entries.push(environment(&known.owner, &known.name));
            entries.push(default_environment(&known.owner, &known.name));
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        store::{Durability, RedbStore},
        world::{
            seed::WorldSeed,
            upgrade::{UpgradeError, upgrade},
        },
    };

    #[test]
    fn an_entry_is_planted_once_for_each_thing_that_it_says() {
        let store = RedbStore::in_memory().unwrap();
        typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
            let mut told = Vec::new();
            for says in ["one", "one", "two", "one", "one"] {
                told.push(take(tx, "e", &says)?);
            }
            assert_eq!(told, [Look::New, Look::Known, Look::New, Look::New, Look::Known]);
            assert_eq!(take(tx, "other", &"one")?, Look::New);
            forget(tx, "e")?;
            assert_eq!(take(tx, "e", &"one")?, Look::New);
            typed::put(tx, &Planted { entry: "found".into(), digest: None })?;
            let told = ["one", "one", "two"].map(|says| take(tx, "found", &says));
            assert_eq!(
                told.into_iter().collect::<Result<Vec<_>, _>>()?,
                [Look::Adopted, Look::Known, Look::New]
            );
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn what_an_older_version_planted_stays_as_calls_have_left_it() {
        let world = |env: &str| {
            let text = format!(
                "
                [[accounts]]
                login = 'local'
                zero_data_retention = true
                [[webhooks]]
                url = 'https://hooks.example/in'
                secret = 'of the world'
                [[environments]]
                name = 'gone'
                [[environments]]
                name = 'ci'
                env = '{env}'
                [[environments]]
                name = 'base'
                env = 'B=1'
                "
            );
            WorldSeed::from_toml(&text).unwrap()
        };
        let account = ids::account("local");
        let owner = format!("account/{account}");
        let store = RedbStore::in_memory().unwrap();
        typed::write::<_, UpgradeError>(&store, Durability::Now, |tx| {
            // As it was planted, and as calls have changed it.
            let mut ci = environments::blank(environments::seeded_id(&owner, "ci"), &owner, "ci", 1);
            ci = environments::make(tx, ci, environments::Contents::default(), 1)?;
            let gone = environments::blank(environments::seeded_id(&owner, "gone"), &owner, "gone", 1);
            let mut gone = environments::make(tx, gone, environments::Contents::default(), 1)?;
            gone.deleted_at = Some(2);
            typed::put(tx, &gone)?;
            environments::ensure_default(tx, &owner, 1)?;
            typed::put(tx, &Retention { account: account.clone(), ..Retention::default() })?;
            typed::put(tx, &Endpoint::new(&account, None, "https://hooks.example/in", Vec::new(), 1))?;
            tx.put(Table::Meta, "layout", b"2")?;
            upgrade(tx)?;
            let contents = |tx: &dyn Reader, name: &str| {
                let found = environments::by_name(tx, &owner, name)?;
                found.map(|it| Ok::<_, StoreError>(environments::latest(tx, &it)?.contents.env)).transpose()
            };
            for _ in 0..2 {
                world("A=1").plant(tx, 5)?;
                assert_eq!(typed::get::<Retention>(&*tx, &account)?.unwrap().zero_at, None);
                assert_ne!(endpoints::of_account(&*tx, &account)?[0].secret, "of the world");
                assert_eq!(contents(&*tx, "ci")?.as_deref(), Some(""));
                assert_eq!(contents(&*tx, "gone")?, None);
                // Nothing says that this one was planted.
                assert_eq!(contents(&*tx, "base")?.as_deref(), Some("B=1"));
            }
            world("A=2").plant(tx, 6)?;
            assert_eq!(contents(&*tx, "ci")?.as_deref(), Some("A=2"));
            assert_eq!(environments::versions(&*tx, &ci.id)?.len(), 2);
            Ok(())
        })
        .unwrap();
    }
}
