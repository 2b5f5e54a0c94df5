//! Share codes: what lets any account create sandboxes from a named snapshot. Only a digest of a code is kept.

use serde::{Deserialize, Serialize};

use super::{ids, time::Millis};
use crate::store::{
    Reader, StoreError, Table,
    typed::{self, Derived, Record},
};

/// How a code begins. A named snapshot's name has no underscore.
pub(crate) const CODE_PREFIX: &str = "bsh_";

/// How many characters of a code are shown in lists.
const SHOWN: usize = 10;

/// A share code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) id: String,
    /// The key of the named snapshot.
    pub(crate) named: String,
    pub(crate) digest: String,
    pub(crate) prefix: String,
    pub(crate) created_at: Millis,
    #[serde(default)]
    pub(crate) uses: u64,
    #[serde(default)]
    pub(crate) used_at: Option<Millis>,
    #[serde(default)]
    pub(crate) revoked_at: Option<Millis>,
}

impl Share {
    /// A new code, and its record.
    pub(crate) fn new(named: &str, now: Millis) -> (String, Self) {
        let code = format!("{CODE_PREFIX}{}", uuid::Uuid::new_v4().simple());
        let share = Self {
            id: ids::in_order("shr", now),
            named: named.to_owned(),
            digest: ids::digest(&code),
            prefix: code[..SHOWN].to_owned(),
            created_at: now,
            uses: 0,
            used_at: None,
            revoked_at: None,
        };
        (code, share)
    }
}

/// The key of a share.
pub(crate) fn share_key(named: &str, id: &str) -> String {
    format!("{named}/{id}")
}

fn code_row(digest: &str) -> String {
    format!("share-code/{digest}")
}

impl Record for Share {
    const TABLE: Table = Table::Shares;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        share_key(&self.named, &self.id)
    }

    fn derive(&self, derived: &mut Derived) {
        derived.row(code_row(&self.digest), self.key());
    }
}

/// The share of a code, if it still works.
pub(crate) fn of_code(tx: &dyn Reader, code: &str) -> Result<Option<Share>, StoreError> {
    let share: Option<Share> = match typed::row(tx, &code_row(&ids::digest(code)))? {
        Some(key) => typed::get(tx, &key)?,
        None => None,
    };
    Ok(share.filter(|share| share.revoked_at.is_none()))
}
