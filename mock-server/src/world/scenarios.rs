//! What goes wrong in a world on request: answers that no state of a healthy world leads to.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::sandboxes::Sandbox;

/// Something that is wrong with a sandbox, its machine or the service around it, for as long as it is on.
///
/// In a world file:
///
/// ```
/// # let text = r#"
/// [[scenarios]]
/// name = "old_agent"         # for every sandbox
///
/// [[scenarios]]
/// name = "broken_disk"
/// sandbox = "nightly"        # for one, by its id or its name
/// # "#;
/// # sandboxer_mock_server::WorldSeed::from_toml(text).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scenario {
    /// The program inside the sandbox is of an older version: following a background command by offsets is answered
    /// with `agent_outdated`.
    OldAgent,
    /// The disk cannot be read as a whole: the sandbox is degraded, its captures and stops fail and are tried again, its
    /// deletion too, and a fork is answered with `internal_error`.
    BrokenDisk,
    /// The machine runs on, but nothing reaches it: the sandbox is degraded, and what has to reach it is answered with
    /// `sandbox_direct_failed`, which does not say whether a command runs. Open streams of commands end with that, too, what is
    /// open through hosted ports is cut, and prompts are on their way until it can be reached. A restart by `recover` ends it.
    Unreachable,
    /// Nor can the machine be restarted: with [`Scenario::Unreachable`], `recover` is answered with `reset_failed`.
    StuckMachine,
    /// Machines of this kind cannot be restarted at all: `recover` is answered with `recover_unsupported`.
    NoPowerSwitch,
    /// The disk is still being brought back: `hydrated` is false, and what has to reach the sandbox is answered with a
    /// `sandbox_direct_failed` that may be sent again.
    Restoring,
    /// The same, as the sibling service says it: with `boat_restoring`.
    BoatRestoring,
    /// The data of what has been stopped for 14 days is removed, as the sibling service does: it can be neither resumed nor
    /// forked, which is answered with `snapshot_data_expired`.
    DataExpires,
    /// The gateway does not take new routes: a new subdomain is saved and answered with `gateway_error`.
    GatewayDown,
    /// There is more on the disk than fits a smaller machine: one is refused with `type_too_small`.
    FullDisk,
    /// The largest machines need a provider named, as they once did: they are refused with `machine_provider_required`.
    ProviderRequired,
    /// The browser of the desktop never gets ready: a desktop is answered with `browser_not_ready`.
    BrowserStarting,
    /// The machine's host key is not known: setting an SSH key is answered with `ssh_host_key_unavailable`.
    HostKeyUnknown,
    /// Scoped keys cannot be created for now: `scoped_api_key_creation_disabled`.
    ScopedKeysOff,
    /// Snapshots are of the kind that had no list of files: they have no tree, and their files are answered with
    /// `legacy_snapshot`.
    LegacySnapshots,
    /// Snapshots are not indexed yet: their files are answered with `snapshot_not_indexed`.
    UnindexedSnapshots,
}

/// What is on, and for whom. Like the behaviour of the machines, it is not kept from one run to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scenarios {
    everywhere: HashSet<Scenario>,
    /// By the id or the name of a sandbox: on or off, whatever holds for all others.
    here: HashMap<(String, Scenario), bool>,
}

impl Scenarios {
    /// Sets one for every sandbox; what was set for single ones is forgotten.
    pub(crate) fn set(&mut self, scenario: Scenario, on: bool) {
        self.here.retain(|(_, known), _| *known != scenario);
        match on {
            true => self.everywhere.insert(scenario),
            false => self.everywhere.remove(&scenario),
        };
    }

    /// Sets one for one sandbox, by its id or its name.
    pub(crate) fn set_for(&mut self, sandbox: &str, scenario: Scenario, on: bool) {
        self.here.insert((sandbox.to_owned(), scenario), on);
    }

    /// Whether there is none at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.everywhere.is_empty() && self.here.is_empty()
    }

    /// Whether one is on for everybody.
    pub(crate) fn is_everywhere(&self, scenario: Scenario) -> bool {
        self.everywhere.contains(&scenario)
    }

    /// Whether one is on for a sandbox. What was set by its id counts before what was set by its name.
    pub(crate) fn is_on(&self, scenario: Scenario, sandbox: &Sandbox) -> bool {
        self.is_on_named(scenario, &sandbox.id, &sandbox.name)
    }

    /// The same, for one that is known by its id and its name alone.
    pub(crate) fn is_on_named(&self, scenario: Scenario, id: &str, name: &str) -> bool {
        let here = |named: &str| self.here.get(&(named.to_owned(), scenario)).copied();
        here(id).or_else(|| here(name)).unwrap_or_else(|| self.is_everywhere(scenario))
    }

    /// Whether something keeps everything from reaching a sandbox that is up.
    pub(crate) fn cut_off(&self, sandbox: &Sandbox) -> bool {
        let scenarios = [Scenario::Unreachable, Scenario::Restoring, Scenario::BoatRestoring];
        sandbox.state.is_up() && scenarios.iter().any(|scenario| self.is_on(*scenario, sandbox))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_for_one_sandbox_counts_before_what_is_set_for_all() {
        let sandbox = Sandbox { name: "nightly".into(), ..Sandbox::new("bx_a", "acc", 0) };
        let other = Sandbox::new("bx_b", "acc", 0);
        let mut scenarios = Scenarios::default();
        scenarios.set_for("nightly", Scenario::OldAgent, true);
        assert!(
            scenarios.is_on(Scenario::OldAgent, &sandbox) && !scenarios.is_on(Scenario::OldAgent, &other)
        );
        scenarios.set(Scenario::OldAgent, true);
        scenarios.set_for("bx_a", Scenario::OldAgent, false);
        assert!(
            !scenarios.is_on(Scenario::OldAgent, &sandbox) && scenarios.is_on(Scenario::OldAgent, &other)
        );
        scenarios.set(Scenario::OldAgent, false);
        assert!(!scenarios.is_on(Scenario::OldAgent, &other));
    }
}
