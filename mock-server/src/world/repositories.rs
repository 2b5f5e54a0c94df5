//! Repositories at GitHub that an account can reach: as many as the world was given, since there is no GitHub here.

use serde::{Deserialize, Serialize};

use super::time::Millis;
use crate::store::{
    Reader, StoreError, Table,
    typed::{self, Record},
};

/// The branch that is checked out when none is named.
pub(crate) const DEFAULT_BRANCH: &str = "main";

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repository {
    /// The account that can reach it.
    pub(crate) account: String,
    /// Its number at GitHub; numbers go up with time.
    pub(crate) number: u64,
    pub(crate) full_name: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    /// The account at GitHub that the service's app is installed for, and of which kind it is.
    pub(crate) installation: String,
    pub(crate) installation_kind: String,
    pub(crate) is_private: bool,
    pub(crate) permissions: String,
    #[serde(default)]
    pub(crate) pushed_at: Option<Millis>,
    /// The folder on this machine that it is checked out from; not checked out at all if `None`.
    #[serde(default)]
    pub(crate) path: Option<String>,
}

impl Repository {
    /// Its number as calls name it.
    pub(crate) fn database_id(&self) -> String {
        self.number.to_string()
    }

    /// Its name without its owner's.
    pub(crate) fn name(&self) -> &str {
        self.full_name.rsplit('/').next().unwrap_or(&self.full_name)
    }
}

/// A repository that an environment brings along, as it was when it was selected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Selected {
    pub(crate) repository: Repository,
    pub(crate) branch: String,
    /// What is run once it is checked out.
    #[serde(default)]
    pub(crate) setup_script: Option<String>,
    /// Whether the sandbox waits for that.
    #[serde(default)]
    pub(crate) setup_blocking: bool,
}

impl Record for Repository {
    const TABLE: Table = Table::Repositories;

    fn key(&self) -> String {
        format!("{}{:020}", of_account(&self.account), self.number)
    }
}

/// Before the keys of an account's repositories, which come in the order of their numbers.
pub(crate) fn of_account(account: &str) -> String {
    format!("{account}/")
}

/// The key of the repository of a number, as calls write it; `None` for what is no number as we write them.
pub(crate) fn key_of(account: &str, database_id: &str) -> Option<String> {
    let number: u64 = database_id.parse().ok()?;
    (number.to_string() == database_id).then(|| format!("{}{number:020}", of_account(account)))
}

/// A repository that an account can reach.
pub(crate) fn find(
    tx: &dyn Reader,
    account: &str,
    database_id: &str,
) -> Result<Option<Repository>, StoreError> {
    match key_of(account, database_id) {
        Some(key) => typed::get(tx, &key),
        None => Ok(None),
    }
}
