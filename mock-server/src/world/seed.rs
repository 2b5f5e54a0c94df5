//! What a server starts with: the behaviour of its machines, and all that is planted in its store.

use std::{fmt, path::Path, time::Duration};

use serde::Deserialize;

pub use super::seed_accounts::{
    AccountSeed, InviteSeed, KeySeed, MemberSeed, OrganisationSeed, PlanSeed, SessionSeed, StandingSeed,
};
pub use super::seed_agents::AgentsSeed;
pub use super::seed_environments::{EnvironmentSeed, RepositorySeed, SecretFileSeed, SelectedRepositorySeed};
pub use super::seed_webhooks::WebhookSeed;
use super::{
    scenarios::{Scenario, Scenarios},
    time::Millis,
};
use crate::store::{StoreError, Writer};

/// What a server starts with, read from a world file or put together in code.
///
/// A world file is TOML, or JSON of the same shape when its name ends in `.json`:
///
/// ```
/// # let text = r#"
/// [machines]
/// boot_delay_ms = 0        # how long a sandbox stays in provisioning
/// start_delay_ms = 0       # how long a create or a fork is at work before anything is made
/// stop_delay_ms = 0        # how long a stop stays pending
/// hydrate_delay_ms = 0     # how long a resumed or forked sandbox goes without some of its files
/// recover_delay_ms = 0     # how long the restart of a machine takes
/// delete_delay_ms = 0      # how long a deletion goes on
/// save_delay_ms = 0        # how long the save of a named snapshot takes
/// capture_every_ms = 60000 # how often disks that are in use are captured; 0 for never, a minute if left out
/// desktop_delay_ms = 0     # how long a desktop takes to be made
/// count = 20               # how many sandboxes can be up at once; leave out for no bound
/// paused = false           # true answers every start with out_of_capacity
///
/// [[plans]]
/// key = "trial"
/// name = "Trial"
/// dollars = 20.0           # a month; leave out for a plan that nothing is paid for
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
/// # standing = "suspended" # or closed: it may look, and start nothing
/// # zero_data_retention = true   # or snapshots_off, monitoring_off
///
/// [[organisations]]
/// name = "Acme"
/// members = [{ account = "alice", role = "owner" }, { account = "bob", active_sandboxes = 1 }]
/// invites = [{ email = "eve@example.com" }]
///
/// [[keys]]
/// secret = "sbx_live_alice"
/// account = "alice"
/// preset = "full-sandbox"  # or read-only, ci, admin; or: actions = ["sandbox.read", "exec"]
///
/// [[sessions]]             # a person signed in, for what no API key will do
/// secret = "alice-is-here"
/// account = "alice"
///
/// [[webhooks]]             # see WebhookSeed
/// url = "http://127.0.0.1:8080/in"
/// secret = "whsec_local"
///
/// [[environments]]         # see EnvironmentSeed
/// name = "ci"
/// env = "CI=1"
///
/// [[repositories]]         # see RepositorySeed
/// full_name = "acme/web"
///
/// [agents]                 # see AgentsSeed
/// signed_in = ["codex"]
///
/// [[scenarios]]
/// name = "broken_disk"     # see Scenario for all there are
/// sandbox = "nightly"      # its id or its name; leave out for every sandbox
/// # "#;
/// # sandboxer_mock_server::WorldSeed::from_toml(text).unwrap();
/// ```
///
/// A key without `preset` and `actions` grants everything. `sandboxes = ["bx_…"]` limits a key to some sandboxes,
/// `environments` to some environments, and `expires_in_seconds` ends it. Unknown fields are refused.
///
/// When a server is started again on the same folder with the same world, what calls have done since stands: a key that was
/// rotated or revoked, a webhook or an environment that was changed or removed, and what an account has turned off or on. A
/// webhook, an environment or such a switch is planted again only when the world says something else about it.
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
    /// The people who are signed in.
    #[serde(default)]
    pub sessions: Vec<SessionSeed>,
    /// The webhook endpoints there are.
    #[serde(default)]
    pub webhooks: Vec<WebhookSeed>,
    /// The repositories at GitHub that accounts can reach.
    #[serde(default)]
    pub repositories: Vec<RepositorySeed>,
    /// The environments there are, besides the one that everybody begins with.
    #[serde(default)]
    pub environments: Vec<EnvironmentSeed>,
    /// How the agents are set up.
    #[serde(default)]
    pub agents: AgentsSeed,
    /// What is wrong in it.
    #[serde(default)]
    pub scenarios: Vec<ScenarioSeed>,
}

/// How much time there is between two captures unless the world says so.
const CAPTURE_EVERY: Duration = Duration::from_secs(60);

/// How the machines behave.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MachinesSeed {
    /// Milliseconds that a sandbox stays in `provisioning`.
    #[serde(default)]
    pub boot_delay_ms: u64,
    /// Milliseconds that a create or a fork is at work before anything is made; another with the same `Idempotency-Key` is
    /// answered with `idempotency_in_progress` meanwhile.
    #[serde(default)]
    pub start_delay_ms: u64,
    /// Milliseconds that a stop stays pending.
    #[serde(default)]
    pub stop_delay_ms: u64,
    /// Milliseconds that a resumed or forked sandbox goes on being restored once it is up.
    #[serde(default)]
    pub hydrate_delay_ms: u64,
    /// Milliseconds that `recover` takes.
    #[serde(default)]
    pub recover_delay_ms: u64,
    /// Milliseconds that the deletion of a sandbox stays in its stage `removing`.
    #[serde(default)]
    pub delete_delay_ms: u64,
    /// Milliseconds that the save of a named snapshot takes.
    #[serde(default)]
    pub save_delay_ms: u64,
    /// Milliseconds between two captures of the disk of a sandbox that is up; never if 0, about a minute if `None`.
    #[serde(default)]
    pub capture_every_ms: Option<u64>,
    /// Milliseconds that a desktop is being made after it was first asked for; the first answer says so in any case.
    #[serde(default)]
    pub desktop_delay_ms: u64,
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

    /// How long a create or a fork is at work.
    pub(crate) fn start_delay(&self) -> Duration {
        Duration::from_millis(self.start_delay_ms)
    }

    /// How long a stop stays pending.
    pub(crate) fn stop_delay(&self) -> Duration {
        Duration::from_millis(self.stop_delay_ms)
    }

    /// How long the save of a named snapshot takes.
    pub(crate) fn save_delay(&self) -> Duration {
        Duration::from_millis(self.save_delay_ms)
    }

    /// How much time there is between two captures of a disk that is in use; `None` if there are none.
    pub(crate) fn capture_every(&self) -> Option<Duration> {
        match self.capture_every_ms {
            None => Some(CAPTURE_EVERY),
            Some(0) => None,
            Some(ms) => Some(Duration::from_millis(ms)),
        }
    }

    /// How long the deletion of a sandbox goes on.
    pub(crate) fn delete_delay(&self) -> Duration {
        Duration::from_millis(self.delete_delay_ms)
    }
}

/// A scenario that is on when the server starts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioSeed {
    /// Which one.
    pub name: Scenario,
    /// The id or the name of the sandbox it is on for; every one if `None`.
    #[serde(default)]
    pub sandbox: Option<String>,
}

/// Why a world cannot be used; names the file or field and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldError(pub(super) String);

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

    pub(crate) fn no_key() -> Self {
        Self("there is no such key".into())
    }

    pub(crate) fn capture(id: &str, problem: &str) -> Self {
        Self(format!("the disk of {id} was not captured: {problem}"))
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
        let seed = self.with_checked_agents()?;
        seed.check_others()
    }

    fn check_others(self) -> Result<Self, WorldError> {
        self.check_accounts()?;
        self.check_webhooks()?;
        self.check_environments()?;
        Ok(self)
    }

    /// What is wrong when the server starts.
    pub(crate) fn scenarios(&self) -> Scenarios {
        let mut scenarios = Scenarios::default();
        for seed in &self.scenarios {
            match &seed.sandbox {
                Some(sandbox) => scenarios.set_for(sandbox, seed.name, true),
                None => scenarios.set(seed.name, true),
            }
        }
        scenarios
    }

    /// Writes everything into the store; what is there under the same ids is replaced, but for what calls have made of it.
    pub(crate) fn plant(&self, tx: &mut dyn Writer, now: Millis) -> Result<(), StoreError> {
        self.plant_accounts(tx, now)?;
        self.plant_webhooks(tx, now)?;
        self.plant_environments(tx, now)
    }
}
