//! What a server starts with: plans, accounts, organisations, keys and the behaviour of its machines.

use std::{fmt, path::Path, time::Duration};

use serde::Deserialize;

use super::{accounts, ids, sandboxes::MACHINE_CLASSES, time::Millis};
use crate::store::{StoreError, Writer, typed};

/// The plan that accounts have when they name none: no start quotas, every machine size.
pub(crate) const DEFAULT_PLAN: &str = "local";

/// The account that keys given without one belong to.
pub(crate) const DEFAULT_LOGIN: &str = "local";

/// What a server starts with, read from a world file or put together in code.
///
/// A world file is TOML, or JSON of the same shape when its name ends in `.json`:
///
/// ```
/// # let text = r#"
/// [machines]
/// boot_delay_ms = 0        # how long a sandbox stays in provisioning
/// stop_delay_ms = 0        # how long a stop stays pending
/// count = 20               # how many sandboxes can be up at once; leave out for no bound
/// paused = false           # true answers every start with out_of_capacity
///
/// [[plans]]
/// key = "trial"
/// name = "Trial"
/// active_sandboxes = 2
/// starts_per_minute = 5    # per_hour and per_day alike; leave out for no quota
/// types = ["small", "default"]
///
/// [[accounts]]
/// login = "alice"
/// email = "alice@example.com"
/// plan = "trial"           # leave out for a plan without quotas
///
/// [[accounts]]
/// login = "bob"
/// blocked = true           # every start is answered with billing_required
///
/// [[organisations]]
/// name = "Acme"
/// members = [{ account = "alice", role = "owner" }, { account = "bob", active_sandboxes = 1 }]
///
/// [[keys]]
/// secret = "sbx_live_alice"
/// account = "alice"
/// preset = "full-sandbox"  # or read-only, ci, admin; or: actions = ["sandbox.read", "exec"]
/// # "#;
/// # sandboxer_mock_server::WorldSeed::from_toml(text).unwrap();
/// ```
///
/// A key without `preset` and `actions` grants everything. `sandboxes = ["bx_…"]` limits a key to some sandboxes and
/// `expires_in_seconds` ends it. Unknown fields are refused.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct WorldSeed {
    /// How the machines behave.
    #[serde(default)]
    pub machines: MachinesSeed,
    /// The plans there are, besides the one without quotas.
    #[serde(default)]
    pub plans: Vec<PlanSeed>,
    /// The accounts there are.
    #[serde(default)]
    pub accounts: Vec<AccountSeed>,
    /// The organisations there are.
    #[serde(default)]
    pub organisations: Vec<OrganisationSeed>,
    /// The keys there are.
    #[serde(default)]
    pub keys: Vec<KeySeed>,
}

/// How the machines behave.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MachinesSeed {
    /// Milliseconds that a sandbox stays in `provisioning`.
    #[serde(default)]
    pub boot_delay_ms: u64,
    /// Milliseconds that a stop stays pending.
    #[serde(default)]
    pub stop_delay_ms: u64,
    /// How many sandboxes can be up at once; no bound if `None`.
    #[serde(default)]
    pub count: Option<u64>,
    /// Whether starting sandboxes is paused.
    #[serde(default)]
    pub paused: bool,
}

impl MachinesSeed {
    /// How long a sandbox stays in `provisioning`.
    pub(crate) fn boot_delay(&self) -> Duration {
        Duration::from_millis(self.boot_delay_ms)
    }

    /// How long a stop stays pending.
    pub(crate) fn stop_delay(&self) -> Duration {
        Duration::from_millis(self.stop_delay_ms)
    }
}

/// A plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanSeed {
    /// What accounts and organisations name it by.
    pub key: String,
    /// The name shown to people; the key if `None`.
    #[serde(default)]
    pub name: Option<String>,
    /// How many sandboxes may be active at once.
    #[serde(default = "many")]
    pub active_sandboxes: u64,
    /// Starts a minute.
    #[serde(default)]
    pub starts_per_minute: Option<u64>,
    /// Starts an hour.
    #[serde(default)]
    pub starts_per_hour: Option<u64>,
    /// Starts a day.
    #[serde(default)]
    pub starts_per_day: Option<u64>,
    /// The machine sizes it includes; all if `None`.
    #[serde(default)]
    pub types: Option<Vec<String>>,
}

/// An account.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountSeed {
    /// The name it signs in with; also how the rest of the file names it.
    pub login: String,
    /// Its id; made from the login if `None`.
    #[serde(default)]
    pub id: Option<String>,
    /// Its address.
    #[serde(default)]
    pub email: Option<String>,
    /// The name shown to people.
    #[serde(default)]
    pub name: Option<String>,
    /// The key of its plan.
    #[serde(default)]
    pub plan: Option<String>,
    /// Whether its wallet is blocked.
    #[serde(default)]
    pub blocked: bool,
}

/// An organisation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrganisationSeed {
    /// Its name; two may share one if their ids differ.
    pub name: String,
    /// Its id; made from the name if `None`.
    #[serde(default)]
    pub id: Option<String>,
    /// The key of its plan.
    #[serde(default)]
    pub plan: Option<String>,
    /// Whether its wallet is blocked.
    #[serde(default)]
    pub blocked: bool,
    /// Who is in it.
    #[serde(default)]
    pub members: Vec<MemberSeed>,
}

/// An account in an organisation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberSeed {
    /// The account's login.
    pub account: String,
    /// `owner` or `member`.
    #[serde(default)]
    pub role: Option<String>,
    /// How many sandboxes this member may have active in it.
    #[serde(default)]
    pub active_sandboxes: Option<u64>,
}

/// A key.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySeed {
    /// The key itself.
    pub secret: String,
    /// The login of the account it belongs to; the default account if `None`.
    #[serde(default)]
    pub account: Option<String>,
    /// A name for it.
    #[serde(default)]
    pub name: Option<String>,
    /// A named set of actions.
    #[serde(default)]
    pub preset: Option<String>,
    /// The actions it grants.
    #[serde(default)]
    pub actions: Option<Vec<String>>,
    /// The sandboxes it is limited to.
    #[serde(default)]
    pub sandboxes: Option<Vec<String>>,
    /// Seconds until it ends, counted from the server's start.
    #[serde(default)]
    pub expires_in_seconds: Option<u64>,
}

impl fmt::Debug for KeySeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySeed")
            .field("name", &self.name)
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

fn many() -> u64 {
    1000
}

/// Why a world cannot be used; names the file or field and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldError(String);

impl fmt::Display for WorldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WorldError {}

impl WorldError {
    pub(crate) fn from_store(error: &StoreError) -> Self {
        Self(error.to_string())
    }

    pub(crate) fn no_sandbox(id: &str) -> Self {
        Self(format!("there is no sandbox {id}"))
    }
}

impl WorldSeed {
    /// Reads a world file: JSON if its name ends in `.json`, TOML otherwise.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not of its format, or has a field that is unknown or of the wrong type.
    pub fn from_file(path: &Path) -> Result<Self, WorldError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| WorldError(format!("world file {}: {error}", path.display())))?;
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let seed = if is_json { Self::from_json(&text) } else { Self::from_toml(&text) };
        seed.map_err(|error| WorldError(format!("world file {}: {error}", path.display())))
    }

    /// Reads a world from TOML.
    ///
    /// # Errors
    ///
    /// The text is not TOML, or has a field that is unknown or of the wrong type.
    pub fn from_toml(text: &str) -> Result<Self, WorldError> {
        let seed: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            WorldError(format!("{place}{}", error.message().replace('\n', " ")))
        })?;
        seed.check()
    }

    /// Reads a world from JSON.
    ///
    /// # Errors
    ///
    /// The text is not JSON, or has a field that is unknown or of the wrong type.
    pub fn from_json(text: &str) -> Result<Self, WorldError> {
        let seed: Self = serde_json::from_str(text).map_err(|error| WorldError(error.to_string()))?;
        seed.check()
    }

    /// Refuses names that nothing stands for.
    pub(crate) fn check(self) -> Result<Self, WorldError> {
        let plan_known = |plan: &Option<String>| {
            plan.as_ref().is_none_or(|plan| plan == DEFAULT_PLAN || self.plans.iter().any(|p| p.key == *plan))
        };
        let login_known =
            |login: &str| login == DEFAULT_LOGIN || self.accounts.iter().any(|a| a.login == login);
        let refuse = |what: String| Err(WorldError(what));
        for plan in &self.plans {
            for kind in plan.types.iter().flatten() {
                if !MACHINE_CLASSES.iter().any(|class| class.name == kind) {
                    return refuse(format!(
                        "plans: {}: types: {kind:?} is none of small, default, large, xlarge",
                        plan.key
                    ));
                }
            }
        }
        for account in &self.accounts {
            if !plan_known(&account.plan) {
                return refuse(format!("accounts: {}: plan: no plan has that key", account.login));
            }
        }
        for organisation in &self.organisations {
            if !plan_known(&organisation.plan) {
                return refuse(format!("organisations: {}: plan: no plan has that key", organisation.name));
            }
            if let Some(member) = organisation.members.iter().find(|member| !login_known(&member.account)) {
                return refuse(format!(
                    "organisations: {}: members: no account has the login {:?}",
                    organisation.name, member.account
                ));
            }
        }
        for (index, key) in self.keys.iter().enumerate() {
            if key.secret.is_empty() || !key.secret.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
                return refuse(format!("keys[{index}]: secret: must be printable ASCII without spaces"));
            }
            if key.account.as_deref().is_some_and(|login| !login_known(login)) {
                return refuse(format!("keys[{index}]: account: no account has that login"));
            }
            if key.preset.as_deref().is_some_and(|name| accounts::preset(name).is_none()) {
                return refuse(format!(
                    "keys[{index}]: preset: is none of read-only, ci, full-sandbox, admin"
                ));
            }
        }
        Ok(self)
    }

    /// Writes everything into the store; what is there under the same ids is replaced.
    pub(crate) fn plant(&self, tx: &mut dyn Writer, now: Millis) -> Result<(), StoreError> {
        let every_type = || MACHINE_CLASSES.iter().map(|class| class.name.to_owned()).collect();
        typed::put(
            tx,
            &accounts::Plan {
                key: DEFAULT_PLAN.into(),
                name: "Local".into(),
                max_active: many(),
                starts_per_minute: None,
                starts_per_hour: None,
                starts_per_day: None,
                types: every_type(),
            },
        )?;
        for plan in &self.plans {
            typed::put(
                tx,
                &accounts::Plan {
                    key: plan.key.clone(),
                    name: plan.name.clone().unwrap_or_else(|| plan.key.clone()),
                    max_active: plan.active_sandboxes,
                    starts_per_minute: plan.starts_per_minute,
                    starts_per_hour: plan.starts_per_hour,
                    starts_per_day: plan.starts_per_day,
                    types: plan.types.clone().unwrap_or_else(every_type),
                },
            )?;
        }
        for account in &self.accounts {
            typed::put(tx, &account_record(account))?;
        }
        for organisation in &self.organisations {
            typed::put(tx, &self.organisation_record(organisation))?;
        }
        for key in &self.keys {
            typed::put(tx, &self.key_record(key, now))?;
        }
        if self.account_named(DEFAULT_LOGIN).is_none()
            && typed::get::<accounts::Account>(tx, &default_account().id)?.is_none()
        {
            typed::put(tx, &default_account())?;
        }
        Ok(())
    }

    fn account_named(&self, login: &str) -> Option<&AccountSeed> {
        self.accounts.iter().find(|account| account.login == login)
    }

    fn account_id(&self, login: &str) -> String {
        self.account_named(login)
            .and_then(|account| account.id.clone())
            .unwrap_or_else(|| ids::account(login))
    }

    fn organisation_record(&self, seed: &OrganisationSeed) -> accounts::Organisation {
        let members = seed.members.iter().map(|member| accounts::Member {
            account: self.account_id(&member.account),
            role: member.role.clone().unwrap_or_else(|| "member".into()),
            max_active: member.active_sandboxes,
        });
        accounts::Organisation {
            id: seed.id.clone().unwrap_or_else(|| ids::organisation(&seed.name)),
            name: seed.name.clone(),
            plan: seed.plan.clone().unwrap_or_else(|| DEFAULT_PLAN.into()),
            blocked: seed.blocked,
            members: members.collect(),
        }
    }

    fn key_record(&self, seed: &KeySeed, now: Millis) -> accounts::Key {
        let preset = seed.preset.as_deref().and_then(accounts::preset);
        let actions = match (preset, &seed.actions) {
            (None, None) => vec!["*".into()],
            (preset, actions) => {
                preset.into_iter().flatten().chain(actions.iter().flatten().cloned()).collect()
            }
        };
        let expires_at = seed.expires_in_seconds.map(|seconds| {
            let millis = Millis::try_from(seconds).unwrap_or(Millis::MAX).saturating_mul(1000);
            now.saturating_add(millis)
        });
        accounts::Key {
            digest: ids::digest(&seed.secret),
            id: ids::key(&seed.secret),
            name: seed.name.clone(),
            account: self.account_id(seed.account.as_deref().unwrap_or(DEFAULT_LOGIN)),
            actions,
            sandboxes: seed.sandboxes.clone(),
            expires_at,
        }
    }
}

fn account_record(seed: &AccountSeed) -> accounts::Account {
    accounts::Account {
        id: seed.id.clone().unwrap_or_else(|| ids::account(&seed.login)),
        login: seed.login.clone(),
        email: seed.email.clone(),
        display_name: seed.name.clone(),
        plan: seed.plan.clone().unwrap_or_else(|| DEFAULT_PLAN.into()),
        blocked: seed.blocked,
    }
}

fn default_account() -> accounts::Account {
    accounts::Account {
        id: ids::account(DEFAULT_LOGIN),
        login: DEFAULT_LOGIN.into(),
        email: Some("local@localhost".into()),
        display_name: Some("Local".into()),
        plan: DEFAULT_PLAN.into(),
        blocked: false,
    }
}

impl KeySeed {
    /// A key that grants everything to the default account.
    pub fn new(secret: impl Into<String>) -> Self {
        Self {
            secret: secret.into(),
            account: None,
            name: None,
            preset: None,
            actions: None,
            sandboxes: None,
            expires_in_seconds: None,
        }
    }
}
