//! The key that every sandbox finds in its environment: for that sandbox alone, for as long as it exists.
//!
//! Nothing is kept of it: its secret is told from the sandbox and a secret of the server's, so that making, starting and
//! deleting sandboxes writes no keys. Only what was done to it, a rotation or a revocation, is a record.

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::{
    actions, ids,
    keys::{Key, Origin},
    pins::Pin,
    sandboxes::{Sandbox, State},
    time::Millis,
};
use crate::store::{
    Reader, StoreError, Table, Writer,
    typed::{self, Record},
};

/// What it grants, but for [`KEPT_BACK`].
const PRESET: &str = "full-sandbox";

/// What environments hold: how much of it a sandbox gets is said by the environment that it uses, not by its key.
const KEPT_BACK: &str = "environment.read";

const PREFIX: &str = "sbx_live_";

/// Whether a sandbox has one: not if it has no environment or one that passes none on, nor if other members of the organisation may work in it.
pub(crate) fn is_given(sandbox: &Sandbox) -> bool {
    let has_environment = sandbox.environment.is_some() && !sandbox.withholds_key;
    sandbox.state != State::Cancelled && has_environment && !sandbox.is_open_to_members()
}

/// What was done to the key of a sandbox.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct MachineKey {
    sandbox: String,
    /// How often it was rotated.
    #[serde(default)]
    rotations: u64,
    #[serde(default)]
    revoked_at: Option<Millis>,
}

impl Record for MachineKey {
    const TABLE: Table = Table::MachineKeys;

    fn key(&self) -> String {
        self.sandbox.clone()
    }
}

/// The server's own secret, from which those of the sandboxes are told.
#[derive(Clone, Serialize, Deserialize)]
struct Root {
    secret: String,
}

const ROOT: &str = "machine-keys";

impl Record for Root {
    const TABLE: Table = Table::Meta;

    fn key(&self) -> String {
        ROOT.to_owned()
    }
}

/// Makes the server's own secret the first time.
pub(crate) fn prepare(tx: &mut dyn Writer) -> Result<(), StoreError> {
    match typed::get::<Root>(&*tx, ROOT)? {
        Some(_) => Ok(()),
        None => typed::put(tx, &Root { secret: super::keys::new_secret() }),
    }
}

fn record(tx: &(impl Reader + ?Sized), sandbox: &str) -> Result<MachineKey, StoreError> {
    let found: Option<MachineKey> = typed::get(tx, sandbox)?;
    Ok(found.unwrap_or_else(|| MachineKey { sandbox: sandbox.to_owned(), ..MachineKey::default() }))
}

/// The secret of a sandbox's key.
pub(crate) fn secret(tx: &(impl Reader + ?Sized), sandbox: &str) -> Result<String, StoreError> {
    let root: Root =
        typed::get(tx, ROOT)?.ok_or_else(|| StoreError::Failed("the store was not prepared".into()))?;
    tell(&root.secret, sandbox, record(tx, sandbox)?.rotations)
}

/// The sandbox and a keyed hash of it and of the rotation.
fn tell(root: &str, sandbox: &str, rotations: u64) -> Result<String, StoreError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(root.as_bytes())
        .map_err(|error| StoreError::Failed(error.to_string()))?;
    mac.update(format!("{sandbox}/{rotations}").as_bytes());
    let hash = ids::hex(&mac.finalize().into_bytes());
    Ok(format!("{PREFIX}{}_{}", sandbox.trim_start_matches("bx_"), &hash[..48]))
}

/// The id of a sandbox's key.
pub(crate) fn id(sandbox: &str) -> String {
    format!("sak_{}", &ids::digest(&format!("key of {sandbox}"))[..24])
}

/// The row of the index that leads to the sandbox whose key has an id.
pub(crate) fn id_row(key: &str) -> String {
    format!("machine-key/{key}")
}

/// Rows of the index that lead to the sandboxes of an account that have a key, the oldest first.
pub(crate) fn listed(account: &str) -> String {
    format!("machine-keys/{account}/")
}

/// The key of an id, if the sandbox that it is of exists.
pub(crate) fn by_id(tx: &(impl Reader + ?Sized), key: &str) -> Result<Option<Key>, StoreError> {
    let Some(sandbox) = typed::row(tx, &id_row(key))? else { return Ok(None) };
    let sandbox: Option<Sandbox> = typed::get(tx, &sandbox)?;
    sandbox.filter(is_given).map(|sandbox| of_sandbox(tx, &sandbox)).transpose()
}

/// The keys of an account's sandboxes, the oldest first.
pub(crate) fn of_account(tx: &(impl Reader + ?Sized), account: &str) -> Result<Vec<Key>, StoreError> {
    let ids = typed::rows_with_prefix(tx, &listed(account), usize::MAX)?;
    let sandboxes = typed::get_all::<Sandbox>(tx, &ids)?;
    sandboxes.iter().filter(|sandbox| is_given(sandbox)).map(|sandbox| of_sandbox(tx, sandbox)).collect()
}

/// The key of a sandbox, with its digest, as it is now.
pub(crate) fn of_sandbox(tx: &(impl Reader + ?Sized), sandbox: &Sandbox) -> Result<Key, StoreError> {
    let mut actions = actions::preset(PRESET).unwrap_or_default();
    actions.retain(|action| action != KEPT_BACK);
    let mut key = Key {
        id: id(&sandbox.id),
        name: Some(format!("sandbox {}", sandbox.id)),
        account: sandbox.account.clone(),
        actions,
        sandboxes: Some(vec![sandbox.id.clone()]),
        // It does not come by what another one holds by a resume.
        environments: Some(Pin::of(sandbox).iter().map(|pin| pin.environment().to_owned()).collect()),
        origin: Origin::Machine,
        created_at: sandbox.created_at,
        revoked_at: record(tx, &sandbox.id)?.revoked_at,
        ..Key::default()
    };
    key.set_secret(&secret(tx, &sandbox.id)?);
    Ok(key)
}

/// The key that a secret is of, if it is one of a sandbox that exists.
pub(crate) fn of_secret(tx: &(impl Reader + ?Sized), given: &str) -> Result<Option<Key>, StoreError> {
    let Some((tail, _)) = given.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')) else {
        return Ok(None);
    };
    let sandbox: Option<Sandbox> = typed::get(tx, &format!("bx_{tail}"))?;
    let Some(sandbox) = sandbox.filter(is_given) else { return Ok(None) };
    let key = of_sandbox(tx, &sandbox)?;
    // Digests are compared: how far they agree says nothing about the secrets.
    Ok((key.digest == ids::digest(given)).then_some(key))
}

/// The sandbox that a key is of.
pub(crate) fn sandbox_of(key: &Key) -> Option<&str> {
    match key.origin {
        Origin::Machine => key.sandboxes.as_ref()?.first().map(String::as_str),
        _ => None,
    }
}

/// Gives the key of a sandbox another secret, which commands that start from now on find.
pub(crate) fn rotate(tx: &mut dyn Writer, sandbox: &str) -> Result<String, StoreError> {
    let mut key = record(&*tx, sandbox)?;
    key.rotations += 1;
    typed::put(tx, &key)?;
    secret(&*tx, sandbox)
}

/// Ends the key of a sandbox.
pub(crate) fn revoke(tx: &mut dyn Writer, sandbox: &str, now: Millis) -> Result<(), StoreError> {
    let mut key = record(&*tx, sandbox)?;
    key.revoked_at = Some(key.revoked_at.unwrap_or(now));
    typed::put(tx, &key)
}

/// Forgets what was done to the key of a sandbox that is gone.
pub(crate) fn forget(tx: &mut dyn Writer, sandbox: &str) -> Result<(), StoreError> {
    typed::remove::<MachineKey>(tx, sandbox)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, RedbStore};

    #[test]
    fn a_secret_is_good_for_its_sandbox_until_it_is_rotated() {
        let store = RedbStore::in_memory().unwrap();
        typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
            prepare(tx)?;
            for id in ["bx_23456789", "bx_abcdefgh"] {
                typed::put(tx, &Sandbox { environment: Some("base".into()), ..Sandbox::new(id, "acc", 0) })?;
            }
            let first = secret(&*tx, "bx_23456789")?;
            let other = secret(&*tx, "bx_abcdefgh")?;
            assert_ne!(first[18..], other[18..]);
            let key = of_secret(&*tx, &first)?.unwrap();
            assert!(key.covers("bx_23456789") && !key.covers("bx_abcdefgh") && key.grants(Some("exec")));
            assert!(!key.grants(Some("account.admin")));
            let forged = format!("{}{}", &first[..18], &other[18..]);
            for bad in [forged.as_str(), "sbx_live_nothing_0", "sbx_live_23456789_", "sbx_live_23456789"] {
                assert!(of_secret(&*tx, bad)?.is_none(), "{bad}");
            }
            let second = rotate(tx, "bx_23456789")?;
            assert!(of_secret(&*tx, &first)?.is_none());
            assert_eq!(of_secret(&*tx, &second)?.unwrap().id, key.id);
            revoke(tx, "bx_23456789", 7)?;
            assert_eq!(of_secret(&*tx, &second)?.unwrap().revoked_at, Some(7));
            Ok(())
        })
        .unwrap();
    }
}
