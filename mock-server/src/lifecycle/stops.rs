//! From up to `archived`: everything that runs is ended, the disk is kept.

use std::{sync::Arc, time::Duration};

use super::{advance, report};
use crate::{
    agent::{self, Ending},
    app::{App, Live},
    auth::Access,
    metering::process_look,
    reply::ApiError,
    snapshots, space,
    store::{Reader, StoreError, typed},
    view,
    world::{
        ids, retention,
        sandboxes::{Sandbox, State},
        scenarios::Scenario,
        stops::{Stop, StopStatus, stop_key},
        usage,
    },
};

/// How long after a save that failed the next one is tried.
const RETRY: Duration = Duration::from_secs(30);

/// Begins to stop a sandbox, or joins a stop that goes on; hands back the sandbox and the stop.
pub(crate) fn begin_stop(app: &Arc<App>, id: &str, force: bool) -> Result<(Sandbox, Stop), ApiError> {
    let now = app.now();
    let live = match app.read(|tx| typed::get::<Sandbox>(tx, id))? {
        Some(sandbox) => app.live(&sandbox),
        None => return Err(ApiError::not_found("sandbox")),
    };
    let (sandbox, stop, course) = app.write(|tx| {
        let mut sandbox: Sandbox = typed::get(&*tx, id)?.ok_or_else(|| ApiError::not_found("sandbox"))?;
        if sandbox.state == State::Archived {
            let view = view::sandbox(&*tx, &sandbox, Access::Owner)?;
            return Err(
                ApiError::new(400, "stop_failed", "the sandbox is stopped already").detail("sandbox", view)
            );
        }
        if let Some(mut stop) = open_stop(&*tx, &sandbox)? {
            if force && !stop.forced {
                stop.forced = true;
                typed::put(tx, &stop)?;
            }
            return Ok((sandbox, stop, None));
        }
        agent::end_open(tx, id, None, &Ending::Interrupted, now)?;
        if sandbox.state == State::Running {
            sandbox.state = State::Idle;
        }
        let mut stop = Stop::new(ids::stop(), id, sandbox.state, now);
        stop.forced = force;
        typed::put(tx, &stop)?;
        usage::end(tx, id, now)?;
        sandbox.state = State::Archiving;
        sandbox.stop = Some(stop.id.clone());
        sandbox.archive_after = None;
        sandbox.updated_at = now;
        typed::put(tx, &sandbox)?;
        Ok((sandbox, stop, Some(live.turn_to_new_course())))
    })?;
    if force {
        live.forced.notify_one();
    }
    if let Some(course) = course {
        live.announce(State::Archiving);
        app.agents.cancel(id);
        app.tasks.spawn(carry_out_stop(app.clone(), live, course, id.to_owned(), stop.id.clone()));
    }
    Ok((sandbox, stop))
}

/// The stop of a sandbox that goes on.
pub(crate) fn open_stop(tx: &dyn Reader, sandbox: &Sandbox) -> Result<Option<Stop>, StoreError> {
    let Some(id) = &sandbox.stop else { return Ok(None) };
    let stop: Option<Stop> = typed::get(tx, &stop_key(&sandbox.id, id))?;
    Ok(stop.filter(|stop| stop.status.is_open()))
}

pub(super) async fn carry_out_stop(app: Arc<App>, live: Arc<Live>, course: u64, id: String, stop: String) {
    loop {
        match try_to_save(&app, &live, course, &id, &stop) {
            Ok(None) => return,
            Ok(Some(true)) => {
                app.agents.cancel(&id);
                break;
            }
            Ok(Some(false)) => {}
            Err(error) => report::<()>(Err(error)),
        }
        let goes_on = tokio::select! {
            goes_on = app.sleep(RETRY) => goes_on,
            () = live.forced.notified() => true,
            // Resumed or deleted meanwhile.
            () = live.off_course(course) => false,
        };
        if !goes_on {
            return;
        }
    }
    let _turn = live.turn.write().await;
    keep_sample(&app, &id).await;
    empty(&app, &live, &id).await;
    let captured = snapshots::at_stop(&app, &live, &id, &stop).await;
    // A copy of a local disk is made quickly; the delay stands for the time that a real save takes, and force cuts it short.
    let goes_on = tokio::select! {
        goes_on = app.sleep(app.machines().stop_delay()) => goes_on,
        () = live.forced.notified() => true,
        // Then what was captured is of no use.
        () = live.off_course(course) => true,
    };
    if !goes_on {
        return;
    }
    let (mut is_erased, mut is_dropped, mut is_stored) = (false, false, false);
    let mut was_to_be_restored = false;
    let archived = advance(&app, &live, course, &id, |sandbox, tx, now| {
        sandbox.state = State::Archived;
        was_to_be_restored = sandbox.restore_from.is_some();
        sandbox.has_machine = false;
        sandbox.recovers_at = None;
        is_dropped = !sandbox.snapshots || retention::of_account(&*tx, &sandbox.account)?.zero_at.is_some();
        let stop: Option<Stop> = typed::get(&*tx, &stop_key(&id, &stop))?;
        if is_dropped {
            // Of what is erased there is nothing to resume from.
            (sandbox.started_once, sandbox.snapshot_at, sandbox.restore_from) = (false, None, None);
            is_erased = true;
        } else if let Some(captured) = &captured {
            snapshots::record(tx, captured, sandbox, None, now)?;
            (sandbox.snapshot_at, sandbox.restore_from, is_stored) = (Some(now), None, true);
        } else if sandbox.has_disk() && stop.as_ref().is_some_and(|stop| stop.forced) {
            is_erased = snapshots::lose_disk(&*tx, sandbox)?;
        }
        if let Some(mut stop) = stop {
            stop.end(StopStatus::Completed, now);
            typed::put(tx, &stop)?;
        }
        Ok(())
    });
    if is_erased {
        let _disk = live.disk.write().await;
        if let Err(error) = space::remove_tree(app.space(&id).root).await {
            tracing::error!(sandbox = %id, %error, "a disk could not be erased");
        }
    }
    if let Some(captured) = captured.filter(|_| !is_stored) {
        captured.discard(&app).await;
    }
    if is_dropped {
        report(snapshots::delete_of_sandbox(&app, &id).await);
    } else if was_to_be_restored {
        snapshots::clear_away_later(&app);
    }
    report(archived);
    app.machine_freed.notify_waiters();
}

/// Looks whether the disk can be saved: true if the stop goes on, false if it has to be tried again. Meanwhile the sandbox
/// is up, as it was. `None` if it took another course.
fn try_to_save(
    app: &App,
    live: &Live,
    course: u64,
    id: &str,
    stop: &str,
) -> Result<Option<bool>, StoreError> {
    let scenarios = app.scenarios();
    let mut saves = true;
    let is_on_course = advance(app, live, course, id, |sandbox, tx, now| {
        let Some(mut stop) = typed::get::<Stop>(&*tx, &stop_key(id, stop))? else { return Ok(()) };
        let was_up = stop.before.filter(|before| before.is_up());
        saves = was_up.is_none() || stop.forced || !scenarios.is_on(Scenario::BrokenDisk, sandbox);
        stop.last_attempt_at = Some(now);
        (stop.status, stop.error, sandbox.state) = match was_up {
            Some(before) if !saves => {
                // What an agent has begun since goes on.
                let state = if sandbox.state == State::Running { State::Running } else { before };
                (StopStatus::Failing, Some("the disk cannot be saved".into()), state)
            }
            _ => (StopStatus::Pending, None, State::Archiving),
        };
        if saves {
            agent::end_open(tx, id, None, &Ending::Interrupted, now)?;
        }
        sandbox.save_failed_at = (!saves).then_some(now);
        typed::put(tx, &stop)
    })?;
    Ok(is_on_course.then_some(saves))
}

/// Ends everything that runs in a sandbox and waits until its commands are recorded.
pub(super) async fn empty(app: &App, live: &Live, id: &str) {
    let jobs = live.jobs();
    for job in &jobs {
        job.lose();
    }
    app.runner.end_space(id).await;
    for job in jobs {
        job.ended().await;
    }
    live.clear_jobs();
}

/// Keeps the last look at the processes, for questions that come while the sandbox is stopped.
async fn keep_sample(app: &App, id: &str) {
    let Ok(processes) = app.runner.processes(&app.space(id)).await else { return };
    let seen = process_look(id, app.now(), processes);
    report(app.write_later(|tx| typed::put(tx, &seen)));
}
