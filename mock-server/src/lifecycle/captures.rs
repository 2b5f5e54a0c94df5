//! The disks of sandboxes that are up, captured from time to time: what a forced stop goes back to.

use std::{sync::Arc, time::Duration};

use super::{open_stop, report};
use crate::{
    app::App,
    snapshots::{self, Kept, Rolling},
    store::{StoreError, Writer, typed},
    world::{
        retention,
        sandboxes::{CAPTURED, Capture, CaptureStatus, Sandbox},
        scenarios::Scenario,
        snapshots::{Snapshot, latest},
        time::Millis,
    },
};

/// How much longer the pause after a round is, at the least, than the round was: disks that are big or many are captured less
/// often, so that there is time for everything else.
const AT_EASE: u32 = 9;

/// How many are noted as waiting in one transaction.
const AT_ONCE: usize = 500;

/// Captures them for as long as the server runs, in rounds: which of them have changed, and then one after the other.
pub(crate) async fn keep_capturing(app: Arc<App>) {
    let (mut since, mut took): (Option<Millis>, _) = (None, Duration::ZERO);
    loop {
        let changed = app.captures_changed.notified();
        let every = app.machines().capture_every().filter(|_| is_any_up(&app));
        let due = every.map(|every| {
            let pause = every.max(took.saturating_mul(AT_EASE));
            let since = *since.get_or_insert(app.now());
            since.saturating_add(Millis::try_from(pause.as_millis()).unwrap_or(Millis::MAX))
        });
        if due.is_none() {
            since = None;
        }
        if due.is_none_or(|due| app.now() < due) {
            tokio::select! {
                () = app.wait_until(due) => {}
                () = changed => {}
                () = app.closing.cancelled() => return,
            }
            continue;
        }
        let began = app.clock.elapsed();
        go_round(&app).await;
        if app.closing.is_cancelled() {
            return;
        }
        took = app.clock.elapsed().saturating_sub(began);
        since = Some(app.now());
    }
}

fn is_any_up(app: &App) -> bool {
    app.read(|tx| typed::rows_with_prefix(tx, CAPTURED, 1)).is_ok_and(|up: Vec<String>| !up.is_empty())
}

/// Captures every disk that has changed since it was last saved.
async fn go_round(app: &Arc<App>) {
    let up = app.read(|tx| typed::rows_with_prefix(tx, CAPTURED, usize::MAX));
    let up = up.unwrap_or_else(|error: StoreError| {
        report::<()>(Err(error));
        Vec::new()
    });
    let mut changed = Vec::new();
    for id in up {
        if app.closing.is_cancelled() {
            return;
        }
        match look_up(app, &id) {
            Ok(Some((disk, newest))) if is_to_be_saved(app, &disk, newest.as_ref()).await => {
                changed.push(disk)
            }
            // It is as it was saved, so a capture that failed is made up for.
            Ok(Some((Rolling { sandbox: Sandbox { capture: Some(_), .. }, .. }, _))) => {
                report(app.write_later(|tx| change(tx, &id, |sandbox| sandbox.capture = None)));
            }
            Ok(_) => {}
            Err(error) => report::<()>(Err(error)),
        }
    }
    let now = app.now();
    for some in changed.chunks(AT_ONCE) {
        report(app.write_later(|tx| {
            some.iter().try_for_each(|disk| {
                change(tx, &disk.sandbox.id, |sandbox| {
                    sandbox.capture = Some(Capture { at: now, status: CaptureStatus::Queued });
                })
            })
        }));
        tokio::task::yield_now().await;
    }
    let mut is_cleared = false;
    for disk in changed {
        is_cleared |= capture(app, &disk).await == Kept::InsteadOfOthers;
    }
    if is_cleared {
        // Once for all of them, and a part of the round.
        snapshots::clear_away(app).await;
    }
}

/// A sandbox of which captures are made now, and its newest snapshot. One that has come up a moment ago waits for the next
/// round; while its stop fails, that tries to save it itself; and nothing is kept of one whose account keeps nothing.
fn look_up(app: &App, id: &str) -> Result<Option<(Rolling, Option<Snapshot>)>, StoreError> {
    let Some(sandbox) = app.read(|tx| typed::get::<Sandbox>(tx, id))? else { return Ok(None) };
    let live = app.live(&sandbox);
    // Asked before the sandbox is: one that is up is up on this course.
    let course = live.course();
    let half = app.machines().capture_every().unwrap_or_default() / 2;
    let half = Millis::try_from(half.as_millis()).unwrap_or(Millis::MAX);
    let is_young = app.now() < live.up_since().saturating_add(half);
    app.read(|tx| {
        let Some(sandbox) = typed::get::<Sandbox>(tx, id)? else { return Ok(None) };
        let is_kept = retention::of_account(tx, &sandbox.account)?.zero_at.is_none();
        if !is_kept
            || is_young
            || !sandbox.state.is_up()
            || !sandbox.has_disk()
            || sandbox.restore_from.is_some()
            || open_stop(tx, &sandbox)?.is_some()
        {
            return Ok(None);
        }
        Ok(Some((Rolling { sandbox, live, course }, latest(tx, id)?)))
    })
}

async fn is_to_be_saved(app: &Arc<App>, disk: &Rolling, newest: Option<&Snapshot>) -> bool {
    // Of a broken disk nobody can tell.
    is_broken(app, disk) || disk.has_changed(app, newest).await
}

fn is_broken(app: &App, disk: &Rolling) -> bool {
    app.scenarios().is_on(Scenario::BrokenDisk, &disk.sandbox)
}

async fn capture(app: &Arc<App>, disk: &Rolling) -> Kept {
    let id = &disk.sandbox.id;
    let go_to = |status| {
        report(app.write_later(|tx| {
            change(tx, id, |sandbox| {
                // What was saved since is not to be said of an older capture.
                if let Some(capture) = sandbox.capture.as_mut().filter(|capture| capture.status.is_open()) {
                    *capture = match status {
                        CaptureStatus::InProgress => Capture { at: app.now(), status },
                        _ => Capture { status, ..*capture },
                    };
                }
            })
        }));
    };
    if !disk.goes_on(app) {
        go_to(CaptureStatus::Cancelled);
        return Kept::Nothing;
    }
    go_to(CaptureStatus::InProgress);
    let saved = match is_broken(app, disk) {
        true => Err(std::io::Error::other("it is broken")),
        false => snapshots::capture_rolling(app, disk).await,
    };
    match &saved {
        Ok(Kept::It | Kept::InsteadOfOthers) => {}
        Ok(Kept::Nothing) => go_to(CaptureStatus::Cancelled),
        Err(_) if !disk.goes_on(app) => go_to(CaptureStatus::Cancelled),
        Err(error) => {
            tracing::warn!(sandbox = %id, %error, "a disk could not be captured");
            go_to(CaptureStatus::Failed);
        }
    }
    saved.unwrap_or(Kept::Nothing)
}

/// Changes a sandbox that is still there.
fn change(tx: &mut dyn Writer, id: &str, change: impl FnOnce(&mut Sandbox)) -> Result<(), StoreError> {
    match typed::get::<Sandbox>(&*tx, id)? {
        Some(mut sandbox) => {
            change(&mut sandbox);
            typed::put(tx, &sandbox)
        }
        None => Ok(()),
    }
}
