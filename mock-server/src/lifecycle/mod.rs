//! What happens to a sandbox after its answer went out: booting, being captured, stopping, being restarted, being deleted,
//! running out of time. One file each; every step is one transaction, and a server that was killed between two of them takes the rest up
//! when it starts again.

mod boot;
mod captures;
mod deadlines;
mod deletions;
mod recover;
mod stops;
mod take_up;
#[cfg(test)]
mod tests;
mod upkeep;

pub(crate) use self::{
    boot::{boot, machine_is_free_in},
    captures::keep_capturing,
    deadlines::keep_deadlines,
    deletions::{begin_delete, hide_archived, purge_hidden},
    recover::begin_recover,
    stops::{begin_stop, open_stop},
    take_up::take_up,
    upkeep::keep_up,
};

use crate::{
    agent,
    app::{App, Live},
    store::{StoreError, Writer, typed},
    world::{
        health,
        sandboxes::{Sandbox, State},
        time::Millis,
    },
};

/// Changes a sandbox if it is still on the course that the change belongs to, if it belongs to one; says whether it was.
/// What follows for its health is done, and told, with it.
pub(crate) fn advance(
    app: &App,
    live: &Live,
    course: impl Into<Option<u64>>,
    id: &str,
    change: impl FnOnce(&mut Sandbox, &mut dyn Writer, Millis) -> Result<(), StoreError>,
) -> Result<bool, StoreError> {
    let now = app.now();
    let course = course.into();
    let scenarios = app.scenarios();
    let changed = app.write(|tx| {
        let Some(mut sandbox) = typed::get::<Sandbox>(&*tx, id)? else { return Ok(None) };
        // New courses are taken inside transactions, and those come one after the other.
        if course.is_some_and(|course| !live.is_on(course)) {
            return Ok(None);
        }
        let before = sandbox.state;
        change(&mut sandbox, tx, now)?;
        sandbox.updated_at = now;
        if before.is_starting() && matches!(sandbox.state, State::Error | State::Cancelled | State::Archived)
        {
            let why = "the sandbox did not start".to_owned();
            agent::end_open(tx, id, None, &agent::Ending::Failed(why), now)?;
        }
        health::changed(tx, &mut sandbox, before, &scenarios, now)?;
        typed::put(tx, &sandbox)?;
        Ok::<_, StoreError>(Some(sandbox.state))
    })?;
    if let Some(state) = changed {
        live.announce(state);
        app.happened.notify_waiters();
    }
    Ok(changed.is_some())
}

/// Brings the health of every sandbox that is up to where the scenarios want it; for hands in the world, not for calls.
pub(crate) fn settle_all(app: &App) -> Result<(), StoreError> {
    for sandbox in app.read(|tx| typed::with_prefix::<Sandbox>(tx, ""))? {
        if sandbox.state.is_up() {
            advance(app, &app.live(&sandbox), None, &sandbox.id, |_, _, _| Ok(()))?;
        }
    }
    Ok(())
}

fn report<T>(result: Result<T, StoreError>) {
    if let Err(error) = result {
        tracing::error!(%error, "a change of state could not be stored");
    }
}
