//! The plans, accounts, organisations, keys and sessions that a server starts with.

use std::fmt;

use serde::Deserialize;

use super::{
    accounts::{self, Account, AccountStanding, Organisation, Plan},
    actions, ids,
    keys::{self, Key, Origin},
    planted::{self, Look, SWITCHES},
    retention,
    sandboxes::MACHINE_CLASSES,
    seed::{WorldError, WorldSeed},
    time::Millis,
};
use crate::store::{StoreError, Writer, typed};

/// The plan that accounts have when they name none: no start quotas, every machine size.
pub(crate) const DEFAULT_PLAN: &str = "local";

/// The account that keys given without one belong to.
pub(crate) const DEFAULT_LOGIN: &str = "local";

/// A plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanSeed {
    /// What accounts and organisations name it by.
    pub key: String,
    /// The name shown to people; the key if `None`.
    #[serde(default)]
    pub name: Option<String>,
    /// What it costs a month, in dollars; nothing if `None`.
    #[serde(default)]
    pub dollars: Option<f64>,
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
    /// How many named snapshots a wallet may have; no limit if `None`.
    #[serde(default)]
    pub named_snapshots: Option<u64>,
}

/// An account.
#[derive(Clone, Debug, Default, Deserialize)]
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
    /// Whether it may be used.
    #[serde(default)]
    pub standing: StandingSeed,
    /// Why it is suspended.
    #[serde(default)]
    pub reason: Option<String>,
    /// Whether nothing is kept of its sandboxes once they stop. This and the next two are turned on once: what calls have
    /// turned off since stays so when the server is started again with the same world.
    #[serde(default)]
    pub zero_data_retention: bool,
    /// Whether its new sandboxes keep no disk when they stop.
    #[serde(default)]
    pub snapshots_off: bool,
    /// Whether commands and processes of its new sandboxes are not recorded.
    #[serde(default)]
    pub monitoring_off: bool,
}

/// Whether an account may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StandingSeed {
    /// It may.
    #[default]
    Active,
    /// It may look, and start nothing.
    Suspended,
    /// The same, for good.
    Closed,
}

/// An organisation.
#[derive(Clone, Debug, Default, Deserialize)]
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
    /// Who was asked to join it.
    #[serde(default)]
    pub invites: Vec<InviteSeed>,
}

/// An account in an organisation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberSeed {
    /// The account's login.
    pub account: String,
    /// `owner` or `member`; the latter if `None`.
    #[serde(default)]
    pub role: Option<String>,
    /// How many sandboxes this member may have active in it.
    #[serde(default)]
    pub active_sandboxes: Option<u64>,
}

/// Somebody who was asked to join an organisation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InviteSeed {
    /// The address it went to.
    pub email: String,
    /// Seconds until it ends, counted from the server's start; never if `None`.
    #[serde(default)]
    pub expires_in_seconds: Option<u64>,
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
    /// The ids of the environments it is limited to.
    #[serde(default)]
    pub environments: Option<Vec<String>>,
    /// Seconds until it ends, counted from the server's start.
    #[serde(default)]
    pub expires_in_seconds: Option<u64>,
}

/// A person who is signed in. Their token does what API keys do, and what needs a person besides.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSeed {
    /// The token, sent like a key.
    pub secret: String,
    /// The login of the account; the default account if `None`.
    #[serde(default)]
    pub account: Option<String>,
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

impl fmt::Debug for SessionSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionSeed").field("account", &self.account).finish_non_exhaustive()
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
            environments: None,
            expires_in_seconds: None,
        }
    }
}

impl SessionSeed {
    /// A person signed in to the default account.
    pub fn new(secret: impl Into<String>) -> Self {
        Self { secret: secret.into(), account: None, expires_in_seconds: None }
    }
}

fn many() -> u64 {
    1000
}

fn is_secret(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| (0x21..0x7f).contains(&byte))
}

fn after(now: Millis, seconds: Option<u64>) -> Option<Millis> {
    seconds.map(|seconds| {
        now.saturating_add(Millis::try_from(seconds).unwrap_or(Millis::MAX).saturating_mul(1000))
    })
}

impl WorldSeed {
    /// Refuses names that nothing stands for.
    pub(super) fn check_accounts(&self) -> Result<(), WorldError> {
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
            let name = &organisation.name;
            if name.eq_ignore_ascii_case(accounts::PERSONAL) {
                return refuse(format!("organisations: {name}: name: that is the account's own wallet"));
            }
            if !plan_known(&organisation.plan) {
                return refuse(format!("organisations: {name}: plan: no plan has that key"));
            }
            for member in &organisation.members {
                if !login_known(&member.account) {
                    return refuse(format!(
                        "organisations: {name}: members: no account has the login {:?}",
                        member.account
                    ));
                }
                if member.role.as_deref().is_some_and(|role| role != "owner" && role != "member") {
                    return refuse(format!(
                        "organisations: {name}: members: role: is neither owner nor member"
                    ));
                }
            }
        }
        for (index, key) in self.keys.iter().enumerate() {
            if !is_secret(&key.secret) {
                return refuse(format!("keys[{index}]: secret: must be printable ASCII without spaces"));
            }
            if key.account.as_deref().is_some_and(|login| !login_known(login)) {
                return refuse(format!("keys[{index}]: account: no account has that login"));
            }
            if key.preset.as_deref().is_some_and(|name| actions::preset(name).is_none()) {
                return refuse(format!("keys[{index}]: preset: is none of {}", actions::PRESETS.join(", ")));
            }
            if let Some(action) = key.actions.iter().flatten().find(|action| !actions::is_known(action)) {
                return refuse(format!("keys[{index}]: actions: there is no action {action:?}"));
            }
        }
        for (index, session) in self.sessions.iter().enumerate() {
            if !is_secret(&session.secret) {
                return refuse(format!("sessions[{index}]: secret: must be printable ASCII without spaces"));
            }
            if session.account.as_deref().is_some_and(|login| !login_known(login)) {
                return refuse(format!("sessions[{index}]: account: no account has that login"));
            }
        }
        Ok(())
    }

    /// The digests of all keys and sessions that this world gives.
    pub(crate) fn given(&self) -> Vec<String> {
        let keys = self.keys.iter().map(|key| &key.secret);
        keys.chain(self.sessions.iter().map(|session| &session.secret))
            .map(|secret| ids::digest(secret))
            .collect()
    }

    /// Writes them into the store; what is there under the same ids is replaced, but for what calls have made of it.
    pub(super) fn plant_accounts(&self, tx: &mut dyn Writer, now: Millis) -> Result<(), StoreError> {
        typed::put(tx, &plan_record(&PlanSeed::local()))?;
        for plan in &self.plans {
            typed::put(tx, &plan_record(plan))?;
        }
        let own = AccountSeed {
            login: DEFAULT_LOGIN.into(),
            email: Some("local@localhost".into()),
            name: Some("Local".into()),
            ..AccountSeed::default()
        };
        let is_named = self.accounts.iter().any(|account| account.login == DEFAULT_LOGIN);
        let is_there = typed::get::<Account>(&*tx, &account_id(&own))?.is_some();
        for account in self.accounts.iter().chain((!is_named && !is_there).then_some(&own)) {
            plant_account(tx, account, now)?;
        }
        for organisation in &self.organisations {
            let before = typed::get::<Organisation>(&*tx, &organisation_id(organisation))?;
            typed::put(tx, &self.organisation_record(organisation, before.as_ref(), now))?;
        }
        for key in &self.keys {
            keys::plant(tx, self.key_record(key, now))?;
        }
        for session in &self.sessions {
            let mut key = Key {
                id: ids::key(&session.secret),
                account: self.account_id(session.account.as_deref().unwrap_or(DEFAULT_LOGIN)),
                actions: vec![actions::EVERYTHING.into()],
                expires_at: after(now, session.expires_in_seconds),
                origin: Origin::Session,
                created_at: now,
                ..Key::default()
            };
            key.set_secret(&session.secret);
            keys::plant(tx, key)?;
        }
        Ok(())
    }

    pub(super) fn account_id(&self, login: &str) -> String {
        let named = self.accounts.iter().find(|account| account.login == login);
        named.map_or_else(|| ids::account(login), account_id)
    }

    /// The id of an organisation of this world, by its name.
    pub(super) fn organisation_id_of(&self, name: &str) -> String {
        let named = self.organisations.iter().find(|organisation| organisation.name == name);
        named.map_or_else(|| ids::organisation(name), organisation_id)
    }

    fn organisation_record(
        &self,
        seed: &OrganisationSeed,
        before: Option<&Organisation>,
        now: Millis,
    ) -> Organisation {
        let members = seed.members.iter().map(|member| {
            let account = self.account_id(&member.account);
            let before = before.and_then(|before| before.member(&account));
            accounts::Member {
                role: member.role.clone().unwrap_or_else(|| "member".into()),
                max_active: member.active_sandboxes,
                joined_at: before.and_then(|before| before.joined_at).or(Some(now)),
                account,
            }
        });
        let id = organisation_id(seed);
        let invites = seed.invites.iter().map(|invite| accounts::Invite {
            id: ids::invite(&id, &invite.email),
            email: invite.email.clone(),
            created_at: now,
            expires_at: after(now, invite.expires_in_seconds),
        });
        Organisation {
            name: seed.name.clone(),
            plan: seed.plan.clone().unwrap_or_else(|| DEFAULT_PLAN.into()),
            blocked: seed.blocked,
            members: members.collect(),
            invites: invites.collect(),
            id,
        }
    }

    fn key_record(&self, seed: &KeySeed, now: Millis) -> Key {
        let preset = seed.preset.as_deref().and_then(actions::preset);
        let actions = match (preset, &seed.actions) {
            (None, None) => vec![actions::EVERYTHING.into()],
            (preset, actions) => {
                preset.into_iter().flatten().chain(actions.iter().flatten().cloned()).collect()
            }
        };
        let mut key = Key {
            id: ids::key(&seed.secret),
            name: seed.name.clone(),
            account: self.account_id(seed.account.as_deref().unwrap_or(DEFAULT_LOGIN)),
            actions,
            sandboxes: seed.sandboxes.clone(),
            environments: seed.environments.clone(),
            expires_at: after(now, seed.expires_in_seconds),
            created_at: now,
            ..Key::default()
        };
        key.set_secret(&seed.secret);
        key
    }
}

impl PlanSeed {
    fn local() -> Self {
        Self {
            key: DEFAULT_PLAN.into(),
            name: Some("Local".into()),
            dollars: None,
            active_sandboxes: many(),
            starts_per_minute: None,
            starts_per_hour: None,
            starts_per_day: None,
            named_snapshots: None,
            types: None,
        }
    }
}

fn plan_record(seed: &PlanSeed) -> Plan {
    let every_type = || MACHINE_CLASSES.iter().map(|class| class.name.to_owned()).collect();
    Plan {
        key: seed.key.clone(),
        name: seed.name.clone().unwrap_or_else(|| seed.key.clone()),
        dollars: seed.dollars,
        max_active: seed.active_sandboxes,
        starts_per_minute: seed.starts_per_minute,
        starts_per_hour: seed.starts_per_hour,
        starts_per_day: seed.starts_per_day,
        named_snapshots: seed.named_snapshots,
        types: seed.types.clone().unwrap_or_else(every_type),
    }
}

fn account_id(seed: &AccountSeed) -> String {
    seed.id.clone().unwrap_or_else(|| ids::account(&seed.login))
}

fn organisation_id(seed: &OrganisationSeed) -> String {
    seed.id.clone().unwrap_or_else(|| ids::organisation(&seed.name))
}

fn plant_account(tx: &mut dyn Writer, seed: &AccountSeed, now: Millis) -> Result<(), StoreError> {
    let id = account_id(seed);
    let before = typed::get::<Account>(&*tx, &id)?;
    let standing = match seed.standing {
        StandingSeed::Active => AccountStanding::Active,
        StandingSeed::Suspended => AccountStanding::Suspended { at: now, reason: seed.reason.clone() },
        StandingSeed::Closed => AccountStanding::Closed { at: now },
    };
    typed::put(
        tx,
        &Account {
            login: seed.login.clone(),
            email: seed.email.clone(),
            display_name: seed.name.clone(),
            plan: seed.plan.clone().unwrap_or_else(|| DEFAULT_PLAN.into()),
            blocked: seed.blocked,
            standing,
            active_wallet: before.and_then(|before| before.active_wallet),
            id: id.clone(),
        },
    )?;
    let before = retention::of_account(&*tx, &id)?;
    let mut kept = before.clone();
    let switches = [
        (&mut kept.zero_at, seed.zero_data_retention),
        (&mut kept.snapshots_off_at, seed.snapshots_off),
        (&mut kept.monitoring_off_at, seed.monitoring_off),
    ];
    for (name, (since, on)) in SWITCHES.into_iter().zip(switches) {
        let entry = planted::switch(&id, name);
        match planted::take(tx, &entry, &on)? {
            Look::New => retention::switch(since, on.then_some(true), now),
            Look::Adopted if on && since.is_none() => planted::pass_over(&entry),
            Look::Adopted | Look::Known => {}
        }
    }
    if kept == before { Ok(()) } else { typed::put(tx, &kept) }
}
