//! Whether a sandbox can be reached in full, and whether all its restored files are there.

use super::{
    happenings::{self, Kind, happening, tell},
    sandboxes::Sandbox,
    scenarios::{Scenario, Scenarios},
    time::Millis,
};
use crate::store::{StoreError, Writer};

/// Brings health and hydration of a sandbox to where the scenarios want them, and tells of what changed. The caller
/// stores the sandbox.
pub(crate) fn settle(
    tx: &mut dyn Writer,
    sandbox: &mut Sandbox,
    scenarios: &Scenarios,
    now: Millis,
) -> Result<(), StoreError> {
    let reason = trouble(sandbox, scenarios);
    let mut news = Vec::new();
    match (sandbox.health_reason.is_some(), reason) {
        (false, Some(reason)) => {
            sandbox.degraded_since = Some(now);
            news.push((Kind::Degraded, Some(reason)));
        }
        (true, None) => {
            sandbox.degraded_since = None;
            // One that stopped did not get well.
            if sandbox.state.is_up() {
                news.push((Kind::Recovered, None));
            }
        }
        _ => {}
    }
    sandbox.health_reason = reason.map(str::to_owned);
    if sandbox.state.is_up() && !sandbox.hydrated && !is_restoring(sandbox, scenarios, now) {
        sandbox.hydrated = true;
        sandbox.hydrated_at = Some(now);
        news.push((Kind::Hydrated, None));
    }
    for (kind, reason) in news {
        tell(tx, happening(sandbox, kind, None, None, reason, now))?;
    }
    Ok(())
}

fn trouble(sandbox: &Sandbox, scenarios: &Scenarios) -> Option<&'static str> {
    let is_on = |scenario| scenarios.is_on(scenario, sandbox);
    match sandbox.state.is_up() {
        true if is_on(Scenario::Unreachable) => Some("the machine does not answer"),
        true if is_on(Scenario::BrokenDisk) => Some("the disk cannot be saved"),
        _ => None,
    }
}

fn is_restoring(sandbox: &Sandbox, scenarios: &Scenarios, now: Millis) -> bool {
    let is_on = |scenario| scenarios.is_on(scenario, sandbox);
    sandbox.hydrates_at.is_some_and(|at| at > now)
        || is_on(Scenario::Restoring)
        || is_on(Scenario::BoatRestoring)
}

/// Tells of a change of state, then of what follows from it; the caller stores the sandbox.
pub(crate) fn changed(
    tx: &mut dyn Writer,
    sandbox: &mut Sandbox,
    before: super::sandboxes::State,
    scenarios: &Scenarios,
    now: Millis,
) -> Result<(), StoreError> {
    happenings::state_changed(tx, sandbox, before, now)?;
    settle(tx, sandbox, scenarios, now)
}
