//! Accounts, organisations and plans.

use serde::{Deserialize, Serialize};

use super::time::Millis;
use crate::store::{
    Reader, StoreError, Table,
    typed::{self, Derived, Record},
};

/// What names the wallet of an account itself.
pub(crate) const PERSONAL: &str = "personal";

/// What people call it.
pub(crate) const PERSONAL_NAME: &str = "Personal";

/// Who signs in.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) login: String,
    #[serde(default)]
    pub(crate) email: Option<String>,
    #[serde(default)]
    pub(crate) display_name: Option<String>,
    pub(crate) plan: String,
    /// Whether its wallet is blocked, so that nothing may be started.
    #[serde(default)]
    pub(crate) blocked: bool,
    /// Whether it may be used.
    #[serde(default)]
    pub(crate) standing: AccountStanding,
    /// The wallet of creates that name none: the id of an organisation, or [`PERSONAL`]; never chosen if `None`.
    #[serde(default)]
    pub(crate) active_wallet: Option<String>,
}

/// Whether an account may be used, since when it may not, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AccountStanding {
    #[default]
    Active,
    Suspended {
        at: Millis,
        reason: Option<String>,
    },
    Closed {
        at: Millis,
    },
}

impl AccountStanding {
    /// The standing as the service writes it.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            AccountStanding::Active => "active",
            AccountStanding::Suspended { .. } => "suspended",
            AccountStanding::Closed { .. } => "closed",
        }
    }
}

/// Who pays together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Organisation {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) plan: String,
    #[serde(default)]
    pub(crate) blocked: bool,
    pub(crate) members: Vec<Member>,
    #[serde(default)]
    pub(crate) invites: Vec<Invite>,
}

impl Organisation {
    /// The member that an account is.
    pub(crate) fn member(&self, account: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.account == account)
    }
}

/// Somebody who was asked to join an organisation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Invite {
    pub(crate) id: String,
    pub(crate) email: String,
    pub(crate) created_at: Millis,
    #[serde(default)]
    pub(crate) expires_at: Option<Millis>,
}

/// An account in an organisation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) account: String,
    pub(crate) role: String,
    /// How many sandboxes this member may have active in the organisation.
    #[serde(default)]
    pub(crate) max_active: Option<u64>,
    #[serde(default)]
    pub(crate) joined_at: Option<Millis>,
}

/// What a wallet may run and start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) max_active: u64,
    #[serde(default)]
    pub(crate) starts_per_minute: Option<u64>,
    #[serde(default)]
    pub(crate) starts_per_hour: Option<u64>,
    #[serde(default)]
    pub(crate) starts_per_day: Option<u64>,
    /// How many named snapshots a wallet may have.
    #[serde(default)]
    pub(crate) named_snapshots: Option<u64>,
    /// The machine sizes it includes.
    pub(crate) types: Vec<String>,
    /// What it costs a month, in dollars; nothing is paid for it if `None`.
    #[serde(default)]
    pub(crate) dollars: Option<f64>,
}

/// Rows of the index that lead to the organisations that an account is in.
fn memberships(account: &str) -> String {
    format!("member/{account}/")
}

/// The organisations that an account is in, in the order of their ids.
pub(crate) fn organisations_of(
    tx: &(impl Reader + ?Sized),
    account: &str,
) -> Result<Vec<Organisation>, StoreError> {
    let mut found = Vec::new();
    for id in typed::rows_with_prefix(tx, &memberships(account), usize::MAX)? {
        found.extend(typed::get::<Organisation>(tx, &id)?);
    }
    Ok(found)
}

/// The organisation whose wallet creates that name none use; the account's own if `None`. One that the account has left
/// since counts no longer.
pub(crate) fn active_organisation(
    tx: &(impl Reader + ?Sized),
    account: &Account,
) -> Result<Option<Organisation>, StoreError> {
    let Some(id) = account.active_wallet.as_deref().filter(|id| *id != PERSONAL) else { return Ok(None) };
    let found: Option<Organisation> = typed::get(tx, id)?;
    Ok(found.filter(|organisation| organisation.member(&account.id).is_some()))
}

impl Record for Account {
    const TABLE: Table = Table::Accounts;
    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Record for Organisation {
    const TABLE: Table = Table::Organisations;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        self.id.clone()
    }

    fn derive(&self, derived: &mut Derived) {
        for member in &self.members {
            derived.row(format!("{}{}", memberships(&member.account), self.id), &self.id);
        }
    }
}

impl Record for Plan {
    const TABLE: Table = Table::Plans;
    fn key(&self) -> String {
        self.key.clone()
    }
}
