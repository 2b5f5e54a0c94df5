//! Sandboxes: the record and what its states allow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    environments, ids, machine_keys,
    time::{DAY, Millis},
};
use crate::store::{
    Table,
    typed::{Derived, Record},
};

/// Where a sandbox is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Init,
    Provisioning,
    Provisioned,
    Cloning,
    Ready,
    Idle,
    Running,
    Archiving,
    Archived,
    Error,
    Cancelled,
}

impl State {
    /// Every state.
    pub(crate) const ALL: [State; 11] = [
        State::Init,
        State::Provisioning,
        State::Provisioned,
        State::Cloning,
        State::Ready,
        State::Idle,
        State::Running,
        State::Archiving,
        State::Archived,
        State::Error,
        State::Cancelled,
    ];

    /// The state as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            State::Init => "init",
            State::Provisioning => "provisioning",
            State::Provisioned => "provisioned",
            State::Cloning => "cloning",
            State::Ready => "ready",
            State::Idle => "idle",
            State::Running => "running",
            State::Archiving => "archiving",
            State::Archived => "archived",
            State::Error => "error",
            State::Cancelled => "cancelled",
        }
    }

    /// Whether commands and files can be had now.
    pub(crate) fn is_up(self) -> bool {
        matches!(self, State::Ready | State::Idle | State::Running)
    }

    /// Whether it will be up without anybody asking again.
    pub(crate) fn is_starting(self) -> bool {
        matches!(self, State::Init | State::Provisioning | State::Provisioned | State::Cloning)
    }

    /// Whether it counts as active for the limits.
    pub(crate) fn is_active(self) -> bool {
        ACTIVE_STATES.contains(&self.as_str())
    }

    /// Whether it counts against what may be active: it is, or is on its way to it.
    pub(crate) fn is_taken(self) -> bool {
        self.is_active() || self.is_starting()
    }
}

/// The states that count as active for the limits.
pub(crate) const ACTIVE_STATES: [&str; 5] = ["provisioned", "cloning", "ready", "idle", "running"];

/// How far the last capture of a disk is that was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CaptureStatus {
    /// It waits until those of other sandboxes are done.
    Queued,
    InProgress,
    Failed,
    /// It was given up, since the sandbox was stopped or the server ended.
    Cancelled,
}

impl CaptureStatus {
    /// The status as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            CaptureStatus::Queued => "queued",
            CaptureStatus::InProgress => "in_progress",
            CaptureStatus::Failed => "failed",
            CaptureStatus::Cancelled => "cancelled",
        }
    }

    /// Whether it goes on.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, CaptureStatus::Queued | CaptureStatus::InProgress)
    }
}

/// A capture of the disk of a sandbox that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Capture {
    pub(crate) at: Millis,
    pub(crate) status: CaptureStatus,
}

/// The size of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MachineClass {
    pub(crate) name: &'static str,
    pub(crate) vcpu: u32,
    pub(crate) memory_gb: u32,
    /// What a second of it counts, as a fraction so that sums stay exact.
    pub(crate) multiplier: (u32, u32),
}

/// Every size there is. The service does not publish processors and memory; these are of the usual proportions.
pub(crate) const MACHINE_CLASSES: [MachineClass; 4] = [
    MachineClass { name: "small", vcpu: 1, memory_gb: 2, multiplier: (1, 2) },
    MachineClass { name: "default", vcpu: 2, memory_gb: 4, multiplier: (1, 1) },
    MachineClass { name: "large", vcpu: 4, memory_gb: 8, multiplier: (2, 1) },
    MachineClass { name: "xlarge", vcpu: 16, memory_gb: 64, multiplier: (50, 9) },
];

/// The size of a name; unknown names count as the default size.
pub(crate) fn machine_class(name: &str) -> MachineClass {
    MACHINE_CLASSES.into_iter().find(|class| class.name == name).unwrap_or(MACHINE_CLASSES[1])
}

/// A sandbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sandbox {
    pub(crate) id: String,
    /// The account that created it.
    pub(crate) account: String,
    /// The id of the API key it was made with.
    #[serde(default)]
    pub(crate) made_by: Option<String>,
    /// The organisation that pays for it; the account itself if `None`.
    #[serde(default)]
    pub(crate) organisation: Option<String>,
    pub(crate) name: String,
    pub(crate) state: State,
    #[serde(default)]
    pub(crate) error: Option<String>,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// The environment it was started with; `None` for one that has none and never will.
    #[serde(default)]
    pub(crate) environment: Option<String>,
    /// The id of that, and the number of the version that it uses.
    #[serde(default)]
    pub(crate) environment_id: Option<String>,
    #[serde(default)]
    pub(crate) environment_version: Option<u64>,
    /// Whether that version passes no key of this service on.
    #[serde(default)]
    pub(crate) withholds_key: bool,
    /// The secret files that were written into its work folder.
    #[serde(default)]
    pub(crate) secret_files: Vec<String>,
    pub(crate) snapshots: bool,
    pub(crate) monitoring: bool,
    /// Seconds until it stops by itself, counted from its start; `None` for never.
    #[serde(default)]
    pub(crate) ttl_seconds: Option<u64>,
    pub(crate) created_at: Millis,
    pub(crate) updated_at: Millis,
    #[serde(default)]
    pub(crate) archive_after: Option<Millis>,
    pub(crate) subdomain: String,
    #[serde(default)]
    pub(crate) snapshot_at: Option<Millis>,
    #[serde(default)]
    pub(crate) setup_script: Option<String>,
    #[serde(default)]
    pub(crate) setup_status: Option<String>,
    #[serde(default)]
    pub(crate) setup_error: Option<String>,
    /// The stop asked for last.
    #[serde(default)]
    pub(crate) stop: Option<String>,
    /// Whether it holds one of the machines.
    #[serde(default)]
    pub(crate) has_machine: bool,
    /// Whether anything has run in it: then there is a disk worth keeping.
    #[serde(default)]
    pub(crate) started_once: bool,
    /// Whether anybody ever resumed it: it was there before, whether or not anything has run in it.
    #[serde(default)]
    pub(crate) resumed: bool,
    /// Why it cannot be reached in full; it can if `None`.
    #[serde(default)]
    pub(crate) health_reason: Option<String>,
    #[serde(default)]
    pub(crate) degraded_since: Option<Millis>,
    /// Whether all restored files are on its disk.
    #[serde(default)]
    pub(crate) hydrated: bool,
    #[serde(default)]
    pub(crate) hydrated_at: Option<Millis>,
    /// When the last of the files that are being restored arrives.
    #[serde(default)]
    pub(crate) hydrates_at: Option<Millis>,
    /// When its machine was last restarted by `recover`.
    #[serde(default)]
    pub(crate) recovered_at: Option<Millis>,
    /// A restart of its machine that goes on ends then.
    #[serde(default)]
    pub(crate) recovers_at: Option<Millis>,
    /// When a save of its disk was last tried at a stop, if that failed.
    #[serde(default)]
    pub(crate) save_failed_at: Option<Millis>,
    /// The capture that was last begun while it was up, unless its disk was saved since.
    #[serde(default)]
    pub(crate) capture: Option<Capture>,
    /// The snapshot that its disk is brought back from at its next start; what is on it now is given up.
    #[serde(default)]
    pub(crate) restore_from: Option<String>,
    /// Whether secret files of another account came with its disk: it is not up, and its disk not copied, before they are
    /// gone.
    #[serde(default)]
    pub(crate) holds_others_secrets: bool,
    /// Whether its creator shared it with the organisation that pays.
    #[serde(default)]
    pub(crate) shared: bool,
    /// Whether it was started since: then nothing of its creator's is left on it.
    #[serde(default)]
    pub(crate) wiped: bool,
}

impl Sandbox {
    /// A sandbox that waits for a machine: of the default size, without an environment, and as the service makes one
    /// when nothing else is said.
    pub(crate) fn new(id: impl Into<String>, account: impl Into<String>, now: Millis) -> Self {
        let id = id.into();
        Self {
            account: account.into(),
            made_by: None,
            organisation: None,
            name: id.clone(),
            state: State::Provisioning,
            error: None,
            kind: "default".into(),
            env: BTreeMap::new(),
            environment: None,
            environment_id: None,
            environment_version: None,
            withholds_key: false,
            secret_files: Vec::new(),
            snapshots: true,
            monitoring: true,
            ttl_seconds: None,
            created_at: now,
            updated_at: now,
            archive_after: None,
            subdomain: ids::subdomain(),
            snapshot_at: None,
            setup_script: None,
            setup_status: None,
            setup_error: None,
            stop: None,
            has_machine: false,
            started_once: false,
            resumed: false,
            health_reason: None,
            degraded_since: None,
            hydrated: false,
            hydrated_at: None,
            hydrates_at: None,
            recovered_at: None,
            recovers_at: None,
            save_failed_at: None,
            capture: None,
            restore_from: None,
            holds_others_secrets: false,
            shared: false,
            wiped: false,
            id,
        }
    }

    /// A new one just as this, which is new itself.
    pub(crate) fn another(&self, id: String, subdomain: String) -> Self {
        let name = if self.name == self.id { id.clone() } else { self.name.clone() };
        Self { id, name, subdomain, ..self.clone() }
    }

    /// Whether what its creator signed in to is on it. Only what an organisation pays for can be seen by others, and one
    /// without an environment never gets any.
    pub(crate) fn holds_logins(&self) -> bool {
        self.organisation.is_some() && self.environment.is_some() && !self.wiped
    }

    /// Whether the members of the organisation that pays may work in it.
    pub(crate) fn is_open_to_members(&self) -> bool {
        self.organisation.is_some() && (self.environment.is_none() || (self.shared && self.wiped))
    }

    /// Whether there is a disk to resume from while it is stopped.
    pub(crate) fn has_disk(&self) -> bool {
        self.snapshots && self.started_once
    }

    /// Whether something about it goes on that a server that was killed must take up again.
    fn is_unsettled(&self) -> bool {
        self.state.is_starting()
            || self.state == State::Archiving
            || self.setup_status.as_deref() == Some("running")
            || self.recovers_at.is_some()
            || self.save_failed_at.is_some()
            || self.capture.is_some_and(|capture| capture.status.is_open())
            || (self.state.is_up() && !self.hydrated)
    }

    /// Notes that its disk was saved.
    pub(crate) fn saved(&mut self, now: Millis) {
        self.snapshot_at = Some(now);
        (self.save_failed_at, self.capture) = (None, None);
    }

    /// The wallet that pays: `account/ID` or `organisation/ID`.
    pub(crate) fn wallet(&self) -> String {
        match &self.organisation {
            Some(organisation) => format!("organisation/{organisation}"),
            None => format!("account/{}", self.account),
        }
    }
}

/// Rows of the index that lead to the sandboxes that are on their way from one state to another.
pub(crate) const UNSETTLED: &str = "unsettled/";

/// Rows of the index that lead to the sandboxes that are up and will stop by themselves, the first to stop first.
pub(crate) const DEADLINES: &str = "deadline/";

/// Rows of the index that lead to the sandboxes that are up and whose disks are captured from time to time.
pub(crate) const CAPTURED: &str = "captured/";

/// How long a cancelled sandbox waits for somebody to look at it, in milliseconds.
const CANCELLED_FOR: Millis = DAY;

/// The sum of the machines that are taken.
pub(crate) const MACHINES_TAKEN: &str = "machines-taken";

/// The row of the index that leads to the sandbox of a subdomain.
pub(crate) fn subdomain_row(subdomain: &str) -> String {
    format!("subdomain/{subdomain}")
}

/// Rows of the index that lead to the sandboxes of an owner, the oldest first: `account/ID` for those that an account
/// created, `organisation/ID` for those that an organisation pays for; all of them, or those in one state.
pub(crate) fn listed(owner: &str, state: Option<State>) -> String {
    format!("sandboxes/{owner}/{}/", state.map_or("any", State::as_str))
}

/// Rows of the index that lead to the sandboxes that were made with an API key, the oldest first.
pub(crate) fn made_by(key: &str) -> String {
    format!("made/{key}/")
}

/// The sum of those.
pub(crate) fn made_by_sum(key: &str) -> String {
    format!("made/{key}")
}

/// The place of a sandbox among those of its owner.
pub(crate) fn place(created_at: Millis, id: &str) -> String {
    format!("{:016}/{id}", created_at.max(0))
}

/// The sum of a wallet's sandboxes in an active state.
pub(crate) fn active_sum(wallet: &str) -> String {
    format!("active/{wallet}")
}

/// The sum of those and of those that are on their way to one: of the wallet, or of one account in it.
pub(crate) fn taken_sum(wallet: &str, account: Option<&str>) -> String {
    format!("taken/{wallet}/{}", account.unwrap_or_default())
}

impl Record for Sandbox {
    const TABLE: Table = Table::Sandboxes;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        self.id.clone()
    }

    fn derive(&self, derived: &mut Derived) {
        if self.has_machine {
            derived.add(MACHINES_TAKEN, 1);
        }
        if self.state == State::Cancelled {
            derived.expires(self, self.updated_at.saturating_add(CANCELLED_FOR));
            return;
        }
        derived.row(subdomain_row(&self.subdomain), &self.id);
        let place = place(self.created_at, &self.id);
        let organisation = self.organisation.as_ref().map(|id| format!("organisation/{id}"));
        for owner in [Some(format!("account/{}", self.account)), organisation].into_iter().flatten() {
            for state in [None, Some(self.state)] {
                derived.row(format!("{}{place}", listed(&owner, state)), &self.id);
            }
        }
        if machine_keys::is_given(self) {
            derived.row(machine_keys::id_row(&machine_keys::id(&self.id)), &self.id);
            derived.row(format!("{}{place}", machine_keys::listed(&self.account)), &self.id);
        }
        if let Some(key) = &self.made_by {
            derived.row(format!("{}{place}", made_by(key)), &self.id);
            derived.add(made_by_sum(key), 1);
        }
        if let (Some(environment), Some(number)) = (&self.environment_id, self.environment_version) {
            let pinned = environments::pinned(environment, number);
            derived.row(format!("{pinned}/{}", self.id), &self.id);
            derived.add(pinned, 1);
        }
        let wallet = self.wallet();
        if self.state.is_active() {
            derived.add(active_sum(&wallet), 1);
        }
        if self.state.is_taken() {
            derived.add(taken_sum(&wallet, None), 1);
            derived.add(taken_sum(&wallet, Some(&self.account)), 1);
        }
        if let (true, Some(at)) = (self.state.is_up(), self.archive_after) {
            derived.row(format!("{DEADLINES}{:016}/{}", at.max(0), self.id), &self.id);
        }
        if self.state.is_up() && self.has_disk() {
            derived.row(format!("{CAPTURED}{}", self.id), &self.id);
        }
        if self.is_unsettled() {
            derived.row(format!("{UNSETTLED}{}", self.id), &self.id);
        }
    }
}
