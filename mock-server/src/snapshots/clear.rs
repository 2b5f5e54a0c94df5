//! Snapshots that nobody can see any more, and their files.

use std::{
    cmp::Reverse,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::save;
use crate::{
    app::App,
    reply::ApiError,
    space,
    store::{Reader, StoreError, Writer, typed},
    world::{
        deletions::{Deletion, Kind, Reason},
        ids, named_snapshots,
        sandboxes::{Sandbox, State},
        snapshots::{self, GONE, Snapshot},
        time::Millis,
    },
};

/// How long after a removal that failed, or had to wait for a reader, the next one is tried.
const RETRY: Duration = Duration::from_secs(5);

/// Takes snapshots of one sandbox out of sight, and removes them in the background. All of them are listed.
pub(crate) fn begin_delete(
    app: &Arc<App>,
    sandbox: &str,
    ids: &[String],
    account: &str,
) -> Result<Vec<Deletion>, ApiError> {
    let now = app.now();
    let (deletions, erased) = app.write(|tx| {
        let newest = snapshots::latest(&*tx, sandbox)?;
        let mut deletions = Vec::new();
        for id in ids {
            let found: Option<Snapshot> = typed::get(&*tx, id)?;
            let mut snapshot =
                found.filter(Snapshot::is_listed).ok_or_else(|| ApiError::not_found("snapshot"))?;
            let deletion = Deletion {
                id: ids::deletion(),
                account: account.to_owned(),
                kind: Kind::Snapshot,
                reason: Reason::Explicit,
                target: id.clone(),
                sandbox: Some(sandbox.to_owned()),
                requested_at: now,
                completed_at: None,
                attempts: 0,
                waits_until: None,
                is_kept: false,
                is_restored_from: false,
            };
            snapshot.deleted_at = Some(now);
            snapshot.deletion = Some(deletion.id.clone());
            typed::put(tx, &snapshot)?;
            typed::put(tx, &deletion)?;
            deletions.push(deletion);
        }
        let is_erased = fall_back(tx, sandbox, newest.as_ref())?;
        Ok::<_, ApiError>((deletions, is_erased))
    })?;
    let clearing = app.clone();
    let sandbox = sandbox.to_owned();
    app.tasks.spawn(async move {
        if erased {
            erase(&clearing, &sandbox).await;
        }
        if clearing.sleep(clearing.machines().delete_delay()).await {
            clear_away(&clearing).await;
        }
    });
    Ok(deletions)
}

/// Brings a sandbox in line with the snapshots that are left of it; says whether its disk is gone with them. The disk of
/// one that is stopped is its newest snapshot.
fn fall_back(tx: &mut dyn Writer, sandbox: &str, before: Option<&Snapshot>) -> Result<bool, StoreError> {
    let Some(mut sandbox) = typed::get::<Sandbox>(&*tx, sandbox)? else { return Ok(false) };
    let newest = snapshots::latest(&*tx, &sandbox.id)?;
    if newest.as_ref().map(|it| &it.id) == before.map(|it| &it.id) {
        return Ok(false);
    }
    let is_erased = sandbox.state == State::Archived && lose_disk(&*tx, &mut sandbox)?;
    sandbox.snapshot_at = newest.map(|newest| newest.completed_at);
    typed::put(tx, &sandbox)?;
    Ok(is_erased)
}

/// Gives up what is on the disk of a sandbox that is stopped: it will be brought back from its newest snapshot. True if
/// there is none, so that nothing is left of it.
pub(crate) fn lose_disk(tx: &dyn Reader, sandbox: &mut Sandbox) -> Result<bool, StoreError> {
    let newest = snapshots::latest(tx, &sandbox.id)?;
    let is_erased = newest.is_none();
    sandbox.started_once = !is_erased;
    sandbox.snapshot_at = newest.as_ref().map(|newest| newest.completed_at);
    for path in newest.iter().flat_map(|newest| &newest.secret_files) {
        // They are on its disk again, whatever was taken off the one that it gives up.
        if !sandbox.secret_files.contains(path) {
            sandbox.secret_files.push(path.clone());
        }
    }
    sandbox.restore_from = newest.map(|newest| newest.id);
    Ok(is_erased)
}

async fn erase(app: &App, id: &str) {
    let sandbox = app.read(|tx| typed::get::<Sandbox>(tx, id));
    let Ok(Some(sandbox)) = sandbox else { return };
    let live = app.live(&sandbox);
    let _disk = live.disk.write().await;
    if let Err(error) = space::remove_tree(app.space(id).root).await {
        tracing::error!(sandbox = %id, %error, "a disk could not be erased");
    }
}

/// Removes every snapshot of a sandbox that is deleted itself, but for those behind a name.
pub(crate) async fn delete_of_sandbox(app: &Arc<App>, sandbox: &str) -> Result<(), StoreError> {
    let now = app.now();
    app.write_later(|tx| hide_of_sandbox(tx, sandbox, now))?;
    clear_away(app).await;
    Ok(())
}

/// Takes them out of sight; [`clear_away`] does the rest.
pub(crate) fn hide_of_sandbox(tx: &mut dyn Writer, sandbox: &str, now: Millis) -> Result<(), StoreError> {
    let prefix = snapshots::listed(&format!("sandbox/{sandbox}"));
    let ids = typed::rows_with_prefix(&*tx, &prefix, usize::MAX)?;
    ids.iter().try_for_each(|id| hide(tx, id, now))
}

/// Takes one out of sight.
pub(super) fn hide(tx: &mut dyn Writer, id: &str, now: Millis) -> Result<(), StoreError> {
    match typed::get::<Snapshot>(&*tx, id)? {
        Some(mut snapshot) => {
            snapshot.deleted_at = Some(now);
            typed::put(tx, &snapshot)
        }
        None => Ok(()),
    }
}

/// Removes the files of snapshots that are out of sight, as far as none that is still there builds on them.
pub(crate) async fn clear_away(app: &Arc<App>) {
    // One comes back for all that are left.
    if pass(app).await || app.shelf.comes_back.swap(true, Ordering::SeqCst) {
        return;
    }
    let again = app.clone();
    app.tasks.spawn(async move {
        loop {
            let goes_on = tokio::select! {
                goes_on = again.sleep(RETRY) => goes_on,
                () = again.shelf.released.told.notified() => true,
            };
            if !goes_on {
                return;
            }
            again.shelf.comes_back.store(false, Ordering::SeqCst);
            // What turns up after the pass brings somebody else.
            if pass(&again).await || again.shelf.comes_back.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    });
}

/// The same in the background.
pub(crate) fn clear_away_later(app: &Arc<App>) {
    let clearing = app.clone();
    app.tasks.spawn(async move { clear_away(&clearing).await });
}

/// Goes through them once; false if some could not be removed, or are being read.
async fn pass(app: &Arc<App>) -> bool {
    let _turn = app.shelf.clearing.lock().await;
    let is_due = |snapshot: &Snapshot, now: Millis| {
        let delay = Millis::try_from(app.machines().delete_delay_ms).unwrap_or(Millis::MAX);
        let at = snapshot.deleted_at.unwrap_or(now);
        snapshot.deletion.is_none() || at.saturating_add(delay) <= now
    };
    let found = app.read(|tx| {
        let ids = typed::rows_with_prefix(tx, GONE, usize::MAX)?;
        ids.iter().map(|id| typed::get::<Snapshot>(tx, id)).collect::<Result<Vec<_>, _>>()
    });
    let mut gone: Vec<Snapshot> = match found {
        Ok(found) => found.into_iter().flatten().collect(),
        Err(error) => {
            tracing::error!(%error, "the snapshots to be removed could not be looked up");
            return false;
        }
    };
    // What builds on others goes first.
    gone.sort_by_key(|snapshot| Reverse(snapshot.generation));
    let mut has_failed = false;
    for snapshot in gone {
        if !is_due(&snapshot, app.now()) {
            continue;
        }
        // There may be many that only have to wait on, which takes no waiting here.
        tokio::task::yield_now().await;
        match clear_one(app, &snapshot).await {
            Ok(is_settled) => has_failed |= !is_settled,
            Err(problem) => {
                tracing::error!(snapshot = %snapshot.id, %problem, "a snapshot could not be removed");
                has_failed = true;
            }
        }
    }
    !has_failed
}

/// Removes the files of one and then its record; false if somebody must come back for it. Whoever ends what it has to wait
/// for calls [`clear_away`].
async fn clear_one(app: &Arc<App>, snapshot: &Snapshot) -> Result<bool, String> {
    // Nothing comes to build on what is out of sight, or to be brought back from it.
    let look = |tx: &dyn Reader| Ok((waits_for(tx, snapshot)?, deletion_of(tx, snapshot)?));
    let (waits, deletion) = app.read(look).map_err(|error: StoreError| error.to_string())?;
    let goes = waits == (false, false);
    if deletion.is_some_and(|deletion| goes || waits != (deletion.is_kept, deletion.is_restored_from)) {
        let noted = app.write_later(|tx| {
            let Some(mut deletion) = deletion_of(&*tx, snapshot)? else { return Ok(()) };
            deletion.attempts += u64::from(goes);
            (deletion.is_kept, deletion.is_restored_from) = waits;
            typed::put(tx, &deletion)
        });
        noted.map_err(|error: StoreError| error.to_string())?;
    }
    if !goes {
        return Ok(true);
    }
    let Some(_alone) = app.shelf.try_hold_alone_or_wait(&snapshot.id) else { return Ok(false) };
    space::remove_tree(app.shelf.folder(&snapshot.id)).await.map_err(|error| error.to_string())?;
    let now = app.now();
    let ended = app.write(|tx| {
        typed::remove::<Snapshot>(tx, &snapshot.id)?;
        if let Some(mut deletion) = deletion_of(&*tx, snapshot)? {
            deletion.completed_at = Some(now);
            typed::put(tx, &deletion)?;
        }
        Ok::<_, StoreError>(true)
    });
    ended.map_err(|error| error.to_string())
}

/// Whether another builds on it, and whether its sandbox is to be brought back from it.
fn waits_for(tx: &dyn Reader, snapshot: &Snapshot) -> Result<(bool, bool), StoreError> {
    let sandbox: Option<Sandbox> = typed::get(tx, &snapshot.sandbox)?;
    let is_restored_from = sandbox.is_some_and(|sandbox| sandbox.restore_from.as_ref() == Some(&snapshot.id));
    Ok((snapshots::is_built_on(tx, snapshot)?, is_restored_from))
}

fn deletion_of(tx: &dyn Reader, snapshot: &Snapshot) -> Result<Option<Deletion>, StoreError> {
    match &snapshot.deletion {
        Some(id) => typed::get(tx, id),
        None => Ok(None),
    }
}

/// Takes up what a server that used the same folder left undone: copies that belong to nothing, snapshots to be removed,
/// saves that went on.
pub(crate) fn take_up(app: &Arc<App>) -> Result<(), StoreError> {
    // Looked at before anybody can make new ones.
    let folders = std::fs::read_dir(app.shelf.root()).map(|folders| {
        folders.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>()
    });
    let (strangers, saving) = app.read(|tx| {
        let mut strangers = Vec::new();
        for folder in folders.unwrap_or_default() {
            if typed::get::<Snapshot>(tx, &folder)?.is_none() {
                strangers.push(folder);
            }
        }
        let saving = typed::rows_with_prefix(tx, named_snapshots::SAVING, usize::MAX)?;
        Ok::<_, StoreError>((strangers, saving))
    })?;
    for key in saving {
        save::begin_save(app, key);
    }
    let clearing = app.clone();
    app.tasks.spawn(async move {
        for folder in strangers {
            if let Err(error) = space::remove_tree(clearing.shelf.folder(&folder)).await {
                tracing::warn!(snapshot = %folder, %error, "a snapshot of nobody could not be removed");
            }
        }
        clear_away(&clearing).await;
        // Those whose time had not come yet.
        if clearing.sleep(clearing.machines().delete_delay()).await {
            clear_away(&clearing).await;
        }
    });
    Ok(())
}
