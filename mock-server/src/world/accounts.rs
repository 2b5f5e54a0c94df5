//! Accounts, organisations, keys with their scopes, and plans.

use serde::{Deserialize, Serialize};

use super::time::Millis;
use crate::store::{Table, typed::Record};

/// Who signs in.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
}

/// Who pays together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Organisation {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) plan: String,
    #[serde(default)]
    pub(crate) blocked: bool,
    pub(crate) members: Vec<Member>,
}

/// An account in an organisation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) account: String,
    pub(crate) role: String,
    /// How many sandboxes this member may have active in the organisation.
    #[serde(default)]
    pub(crate) max_active: Option<u64>,
}

/// An API key; only a digest of its secret is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    #[serde(default)]
    pub(crate) expires_at: Option<Millis>,
}

impl Key {
    /// Whether the key grants an action; operations without one take any valid key.
    pub(crate) fn grants(&self, action: Option<&str>) -> bool {
        action.is_none_or(|action| {
            self.actions
                .iter()
                .any(|granted| granted == "*" || granted == "account.admin" || granted == action)
        })
    }

    /// Whether the key may see a sandbox of its account.
    pub(crate) fn covers(&self, sandbox: &str) -> bool {
        self.sandboxes.as_ref().is_none_or(|listed| listed.iter().any(|id| id == sandbox))
    }
}

/// The actions of a preset, by its name.
pub(crate) fn preset(name: &str) -> Option<Vec<String>> {
    const READ_ONLY: &[&str] =
        &["sandbox.read", "file.read", "snapshot.read", "environment.read", "account.read"];
    const CI: &[&str] = &[
        "sandbox.read",
        "sandbox.create",
        "sandbox.stop",
        "sandbox.resume",
        "sandbox.delete-own",
        "exec",
        "file.read",
        "file.write",
        "account.read",
    ];
    const FULL_SANDBOX: &[&str] = &[
        "sandbox.read",
        "sandbox.create",
        "sandbox.update",
        "sandbox.stop",
        "sandbox.resume",
        "sandbox.fork",
        "sandbox.delete-own",
        "exec",
        "file.read",
        "file.write",
        "agent.prompt",
        "desktop",
        "host",
        "snapshot.read",
        "snapshot.write",
        "environment.read",
        "account.read",
    ];
    let actions = match name {
        "read-only" => READ_ONLY,
        "ci" => CI,
        "full-sandbox" => FULL_SANDBOX,
        "admin" => &["*"],
        _ => return None,
    };
    Some(actions.iter().map(|action| (*action).to_owned()).collect())
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
    /// The machine sizes it includes.
    pub(crate) types: Vec<String>,
}

impl Record for Account {
    const TABLE: Table = Table::Accounts;
    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Record for Organisation {
    const TABLE: Table = Table::Organisations;
    fn key(&self) -> String {
        self.id.clone()
    }
}

impl Record for Key {
    const TABLE: Table = Table::Keys;
    fn key(&self) -> String {
        self.digest.clone()
    }
}

impl Record for Plan {
    const TABLE: Table = Table::Plans;
    fn key(&self) -> String {
        self.key.clone()
    }
}
