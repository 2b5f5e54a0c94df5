//! The end of a sandbox: out of sight at once, purged in the background.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use tokio::sync::RwLockWriteGuard;

use super::{report, stops::empty};
use crate::{
    agent,
    app::{App, Live},
    hosting,
    reply::ApiError,
    snapshots, space,
    store::{Order, StoreError, Table, Writer, typed},
    world::{
        commands::{self, Command},
        deletions::{Deletion, Reason},
        given_files::GivenFiles,
        ids, machine_keys, metrics,
        process_looks::ProcessLook,
        sandboxes::{Sandbox, State, listed},
        scenarios::Scenario,
        stops::Stop,
        time::Millis,
        usage,
    },
};

/// How long after a removal that failed the next one is tried.
pub(super) const RETRY: Duration = Duration::from_secs(5);

/// How many commands are forgotten in one transaction.
const AT_ONCE: usize = 500;

/// A sandbox that was just taken out of sight; [`purge_hidden`] does the rest once that is written.
pub(crate) struct Hidden {
    deletion: Deletion,
    live: Arc<Live>,
}

/// Takes a sandbox out of sight and purges it in the background.
pub(crate) fn begin_delete(app: &Arc<App>, sandbox: &Sandbox, account: &str) -> Result<Deletion, ApiError> {
    let now = app.now();
    let hidden = app.write(|tx| {
        if typed::get::<Sandbox>(&*tx, &sandbox.id)?.is_none() {
            return Err(ApiError::not_found("sandbox"));
        }
        Ok(hide(app, tx, sandbox, account, Reason::Explicit, now)?)
    })?;
    let deletion = hidden.deletion.clone();
    purge_hidden(app, [hidden]);
    Ok(deletion)
}

/// Takes every archived sandbox of an account out of sight, since nothing is to be kept of them.
pub(crate) fn hide_archived(
    app: &App,
    tx: &mut dyn Writer,
    account: &str,
    now: Millis,
) -> Result<Vec<Hidden>, StoreError> {
    let archived = listed(&format!("account/{account}"), Some(State::Archived));
    let mut hidden = Vec::new();
    for id in typed::rows_with_prefix(&*tx, &archived, usize::MAX)? {
        if let Some(sandbox) = typed::get::<Sandbox>(&*tx, &id)? {
            hidden.push(hide(app, tx, &sandbox, account, Reason::Zdr, now)?);
        }
    }
    Ok(hidden)
}

fn hide(
    app: &App,
    tx: &mut dyn Writer,
    sandbox: &Sandbox,
    account: &str,
    reason: Reason,
    now: Millis,
) -> Result<Hidden, StoreError> {
    let live = app.live(sandbox);
    let deletion = Deletion { reason, ..Deletion::of_sandbox(ids::deletion(), account, &sandbox.id, now) };
    typed::put(tx, &deletion)?;
    typed::remove::<Sandbox>(tx, &sandbox.id)?;
    typed::remove::<GivenFiles>(tx, &sandbox.id)?;
    usage::end(tx, &sandbox.id, now)?;
    live.turn_to_new_course();
    Ok(Hidden { deletion, live })
}

/// Purges in the background what was taken out of sight.
pub(crate) fn purge_hidden(app: &Arc<App>, hidden: impl IntoIterator<Item = Hidden>) {
    for Hidden { deletion, live } in hidden {
        app.forget(&deletion.target);
        app.agents.forget(&deletion.target);
        app.meters.unwatch(&deletion.target);
        live.announce(State::Cancelled);
        app.tasks.spawn(purge(app.clone(), Some(live), deletion));
    }
}

/// Ends and removes everything of a sandbox that is out of sight.
pub(super) async fn purge(app: Arc<App>, live: Option<Arc<Live>>, mut deletion: Deletion) {
    let id = deletion.target.clone();
    deletion.attempts += 1;
    // Who was waited for ended with the server that waited.
    deletion.waits_until = None;
    report(app.write_later(|tx| typed::put(tx, &deletion)));
    {
        // One that is being opened is waited for.
        let _turn = app.hosting.turn.lock().await;
        hosting::close_all(&app, &id);
    }
    match &live {
        Some(live) => {
            let _turn = live.turn.write().await;
            empty(&app, live, &id).await;
        }
        None => app.runner.end_space(&id).await,
    }
    app.machine_freed.notify_waiters();
    let _copies = match &live {
        Some(live) => Some(wait_for_copies(&app, live, &mut deletion).await),
        None => None,
    };
    if !app.sleep(app.machines().delete_delay()).await {
        return;
    }
    while let Err(problem) = remove_all(&app, &id).await {
        tracing::error!(sandbox = %id, %problem, "what is left of a sandbox could not be removed");
        deletion.attempts += 1;
        report(app.write(|tx| typed::put(tx, &deletion)));
        if !app.sleep(RETRY).await {
            return;
        }
    }
    deletion.completed_at = Some(app.now());
    report(app.write(|tx| typed::put(tx, &deletion)));
}

/// Waits until nobody saves or copies the disk any more, and keeps others from beginning to. By when that ends is said for as
/// long as it takes.
async fn wait_for_copies<'a>(
    app: &App,
    live: &'a Live,
    deletion: &mut Deletion,
) -> (RwLockWriteGuard<'a, ()>, RwLockWriteGuard<'a, ()>) {
    if let (Ok(saves), Ok(disk)) = (live.saves.try_write(), live.disk.try_write()) {
        return (saves, disk);
    }
    let delay = Millis::try_from(app.machines().save_delay_ms).unwrap_or(Millis::MAX);
    let mut note = |waits_until| {
        deletion.waits_until = waits_until;
        report(app.write_later(|tx| typed::put(tx, deletion)));
    };
    note(Some(app.now().saturating_add(delay)));
    let copies = (live.saves.write().await, live.disk.write().await);
    note(None);
    copies
}

/// Removes its disk, its history and its snapshots; may be repeated.
async fn remove_all(app: &Arc<App>, id: &str) -> Result<(), String> {
    remove_disk(app, id).await?;
    // Long for a long history, so not on a thread that others wait for.
    let (forgetting, gone) = (app.clone(), id.to_owned());
    let forgotten = tokio::task::spawn_blocking(move || forget_history(&forgetting, &gone)).await;
    forgotten.map_err(|lost| lost.to_string())?.map_err(|error| error.to_string())?;
    snapshots::delete_of_sandbox(app, id).await.map_err(|error| error.to_string())
}

async fn remove_disk(app: &App, id: &str) -> Result<(), String> {
    if app.scenarios().is_on_named(Scenario::BrokenDisk, id, "") {
        return Err("the disk is broken".into());
    }
    space::remove_tree(app.space(id).root).await.map_err(|error| error.to_string())
}

/// Forgets what ran in a sandbox, in transactions of a bounded length: others write meanwhile.
fn forget_history(app: &App, id: &str) -> Result<(), StoreError> {
    let prefix = format!("{id}/");
    let mut is_done = false;
    while !is_done {
        is_done = app.write_later(|tx| {
            let mut some: Vec<Command> = Vec::new();
            let to = typed::after_prefix(&prefix);
            typed::scan(&*tx, &prefix, to.as_deref(), Order::Ascending, |_, command| {
                some.push(command);
                if some.len() < AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            some.iter().try_for_each(|command| commands::forget(tx, command))?;
            Ok::<_, StoreError>(some.len() < AT_ONCE)
        })?;
    }
    while !agent::forget(app, id, AT_ONCE)? {}
    let now = app.now();
    app.write_later(|tx| {
        typed::remove_prefix(tx, Table::Processes, &prefix)?;
        usage::forget(tx, id, now)?;
        machine_keys::forget(tx, id)?;
        hosting::forget(tx, id)?;
        metrics::forget(tx, id)?;
        typed::remove_all::<Stop>(tx, &prefix)?;
        typed::remove::<ProcessLook>(tx, id)
    })
}
