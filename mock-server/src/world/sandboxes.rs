//! Sandboxes: the record and what its states allow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::time::Millis;
use crate::store::{Table, typed::Record};

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
}

/// The states that count as active for the limits.
pub(crate) const ACTIVE_STATES: [&str; 5] = ["provisioned", "cloning", "ready", "idle", "running"];

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
}

impl Sandbox {
    /// Whether there is a disk to resume from while it is stopped.
    pub(crate) fn has_disk(&self) -> bool {
        self.snapshots && self.started_once
    }

    /// The wallet that pays: `account/ID` or `organisation/ID`.
    pub(crate) fn wallet(&self) -> String {
        match &self.organisation {
            Some(organisation) => format!("organisation/{organisation}"),
            None => format!("account/{}", self.account),
        }
    }
}

impl Record for Sandbox {
    const TABLE: Table = Table::Sandboxes;
    fn key(&self) -> String {
        self.id.clone()
    }
}
