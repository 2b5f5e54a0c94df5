//! From `provisioning` to `ready`: a machine, a disk, the processes' room.

use std::{sync::Arc, time::Duration};

use super::{advance, report, stops::empty};
use crate::{
    agent,
    app::{App, Live},
    checkouts, secret_files, setup, snapshots, space,
    store::{Reader, StoreError, typed},
    world::{
        pins::Pin,
        sandboxes::{MACHINES_TAKEN, Sandbox, State},
        seed::MachinesSeed,
        time::Millis,
        usage,
    },
};

/// How long a sandbox waits for a free machine before it is cancelled.
const MACHINE_WAIT: Duration = Duration::from_secs(300);

/// Brings a sandbox up in the background: it is in `provisioning` when this is called. The course is the one that was taken
/// with that, so that a stop or a deletion which came since stays the last word.
pub(crate) fn boot(app: &Arc<App>, sandbox: &Sandbox, course: u64) {
    let live = app.live(sandbox);
    if live.is_on(course) {
        live.announce(sandbox.state);
    }
    let (app, id) = (app.clone(), sandbox.id.clone());
    let tasks = app.tasks.clone();
    tasks.spawn(async move {
        if let Err(problem) = bring_up(&app, &live, course, &id).await {
            tracing::error!(sandbox = %id, %problem, "a sandbox could not be started");
            let failed = advance(&app, &live, course, &id, |sandbox, _, _| {
                sandbox.state = State::Error;
                sandbox.has_machine = false;
                sandbox.error = Some(problem);
                Ok(())
            });
            report(failed);
            app.machine_freed.notify_waiters();
        }
    });
}

async fn bring_up(app: &Arc<App>, live: &Arc<Live>, course: u64, id: &str) -> Result<(), String> {
    if !wait_for_machine(app, live, course, id).await {
        return Ok(());
    }
    if !app.sleep(app.machines().boot_delay()).await {
        return Ok(());
    }
    let turn = live.turn.write().await;
    for state in [State::Provisioned, State::Cloning] {
        let moved = advance(app, live, course, id, |sandbox, _, _| {
            sandbox.state = state;
            // What its creator signed in to is wiped at the first start after it was shared.
            sandbox.wiped |= sandbox.shared;
            Ok(())
        });
        if !moved.map_err(|error| error.to_string())? {
            return Ok(());
        }
    }
    // One whose stop was superseded may still have what ran on its last machine.
    empty(app, live, id).await;
    snapshots::restore(app, live, id)
        .await
        .map_err(|error| format!("its disk could not be brought back: {error}"))?;
    app.runner
        .prepare(&app.space(id))
        .await
        .map_err(|error| format!("its folders could not be made: {error}"))?;
    let placed = place_secrets(app, id).await?;
    let brought = checkouts::bring(app, id).await.map_err(|error| error.to_string())?;
    let left = tokio::select! {
        left = setup::run_blocking(app, id, brought) => left,
        // Whoever stops or deletes it does not wait for the scripts.
        () = live.off_course(course) => return Ok(()),
    };
    let (mut is_outdated, mut was_restored, mut runs_script) = (false, false, false);
    let moved = advance(app, live, course, id, |sandbox, tx, now| {
        sandbox.state = State::Ready;
        sandbox.error = None;
        live.came_up(now);
        // One that has run before, or whose disk is a copy, has files that are being brought back.
        let delay = Millis::try_from(app.machines().hydrate_delay_ms).unwrap_or(Millis::MAX);
        sandbox.hydrated = !sandbox.started_once;
        sandbox.hydrates_at = sandbox.started_once.then(|| now.saturating_add(delay));
        sandbox.started_once = true;
        sandbox.holds_others_secrets = false;
        was_restored = sandbox.restore_from.take().is_some();
        is_outdated = Pin::of(sandbox) != placed;
        // The time until the auto-stop runs from the moment the start was asked for, which set it already.
        if sandbox.setup_status.as_deref() == Some("pending") {
            sandbox.setup_status = Some("running".into());
            runs_script = true;
        }
        usage::begin(tx, &sandbox.id, &sandbox.kind, now)
    });
    drop(turn);
    if moved.map_err(|error| error.to_string())? {
        app.deadlines_changed.notify_one();
        app.captures_changed.notify_one();
        if is_outdated {
            report(secret_files::push(app, id).await.map_err(StoreError::Failed));
        }
        if was_restored {
            snapshots::clear_away_later(app);
        }
        setup::run(app, live, course, id, left, runs_script);
        app.tasks.spawn(agent::wake(app.clone(), id.to_owned()));
        app.tasks.spawn(hydrate(app.clone(), live.clone(), Some(course), id.to_owned()));
    }
    Ok(())
}

/// Writes the secret files of its environment into the work folder, before anything runs in it. One that cannot be written,
/// because something else has its name, does not keep a sandbox from starting; one of another account that cannot be removed
/// does.
async fn place_secrets(app: &App, id: &str) -> Result<Option<Pin>, String> {
    let failed = match secret_files::place(app, id).await {
        Ok(pin) => return Ok(pin),
        Err(failed) => failed,
    };
    tracing::warn!(sandbox = %id, problem = %failed.problem, "the secret files are not what they are to be");
    let sandbox =
        app.read(|tx| typed::get::<Sandbox>(tx, id)).map_err(|error: StoreError| error.to_string())?;
    match sandbox {
        Some(sandbox) if sandbox.holds_others_secrets && failed.leaves_some => {
            Err("secret files of another account could not be removed from its disk".into())
        }
        sandbox => Ok(sandbox.as_ref().and_then(Pin::of)),
    }
}

/// Waits until the files of a sandbox that is up are all back, and says so.
pub(super) async fn hydrate(app: Arc<App>, live: Arc<Live>, course: Option<u64>, id: String) {
    let sandbox = app.read(|tx| typed::get::<Sandbox>(tx, &id));
    let Ok(Some(Sandbox { hydrates_at: Some(at), hydrated: false, .. })) = sandbox else { return };
    let left = Duration::from_millis(u64::try_from(at - app.now()).unwrap_or(0));
    if app.sleep(left).await {
        report(advance(&app, &live, course, &id, |_, _, _| Ok(())));
    }
}

/// Waits until a machine is free; false if the sandbox took another course meanwhile or was cancelled.
async fn wait_for_machine(app: &Arc<App>, live: &Arc<Live>, course: u64, id: &str) -> bool {
    let given_up = app.clock.sleep(MACHINE_WAIT);
    tokio::pin!(given_up);
    loop {
        let freed = app.machine_freed.notified();
        tokio::pin!(freed);
        freed.as_mut().enable();
        // Taking the machine and looking whether there is one are one transaction: two may wait for the last.
        let machines = app.machines();
        let mut is_free = false;
        let taken = advance(app, live, course, id, |sandbox, tx, _| {
            is_free = machine_is_free_in(tx, &machines, id)?;
            if is_free {
                sandbox.has_machine = true;
            }
            Ok(())
        });
        match taken {
            Ok(true) if is_free => return true,
            Ok(true) => {}
            Ok(false) => return false,
            Err(error) => report::<()>(Err(error)),
        }
        tokio::select! {
            () = &mut freed => {}
            () = app.closing.cancelled() => return false,
            () = &mut given_up => {
                let mut is_gone = false;
                let ended = advance(app, live, course, id, |sandbox, tx, _| {
                    // One that was there before is not given up with its disk: it stays stopped.
                    let was_there = sandbox.resumed || usage::has_run(&*tx, id)?;
                    sandbox.state = match (was_there, sandbox.has_disk()) {
                        (false, _) => State::Cancelled,
                        (true, true) => State::Archived,
                        (true, false) => State::Error,
                    };
                    is_gone = sandbox.state == State::Cancelled;
                    sandbox.archive_after = None;
                    sandbox.error = Some("no machine became free in time".into());
                    Ok(())
                });
                is_gone &= matches!(ended, Ok(true));
                report(ended);
                if !is_gone {
                    return false;
                }
                // A fork has a disk already, which nobody will ever see.
                let _disk = live.disk.write().await;
                if let Err(error) = space::remove_tree(app.space(id).root).await {
                    tracing::error!(sandbox = %id, %error, "the disk of a cancelled sandbox could not be removed");
                }
                return false;
            }
        }
    }
}

/// Whether there is a machine for one sandbox more; `id` is one that waits for it itself, and may have one already.
pub(crate) fn machine_is_free_in(
    tx: &dyn Reader,
    machines: &MachinesSeed,
    id: &str,
) -> Result<bool, StoreError> {
    let Some(count) = machines.count else { return Ok(true) };
    // It was given one when its start was asked for, or by a server that was killed meanwhile.
    let has_one = typed::get::<Sandbox>(tx, id)?.is_some_and(|sandbox| sandbox.has_machine);
    Ok(has_one || typed::sum(tx, MACHINES_TAKEN)? < count)
}
