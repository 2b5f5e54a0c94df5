//! Copying a disk into a snapshot, and back.

use std::{fs, io, path::PathBuf, sync::Arc};

use super::{
    Shelf,
    inventory::{self, Sizes},
};
use crate::{
    app::{App, Live},
    space::{
        self,
        frozen::{Change, Compare, EntryKind, Frozen},
    },
    store::{Reader, StoreError, Writer, typed},
    world::{
        ids,
        sandboxes::Sandbox,
        snapshots::{self, Snapshot},
        stops::{Stop, stop_key},
        time::Millis,
    },
};

/// A copy of a disk that is in its place, and of which nothing is stored yet.
pub(crate) struct Captured {
    id: String,
    began_at: Millis,
    /// The one that it builds on, and how many bytes are not in that.
    previous: Option<(Snapshot, u64)>,
    sizes: Sizes,
}

impl Captured {
    /// Removes it again.
    pub(crate) async fn discard(self, app: &App) {
        if let Err(error) = space::remove_tree(app.shelf.folder(&self.id)).await {
            tracing::error!(snapshot = %self.id, %error, "a snapshot of nobody could not be removed");
        }
    }
}

/// The disk of a sandbox: its own, or the snapshot that it will be brought back from.
pub(crate) fn disk_of(app: &App, sandbox: &Sandbox) -> PathBuf {
    match &sandbox.restore_from {
        Some(snapshot) => app.shelf.disk(snapshot),
        None => app.space(&sandbox.id).root,
    }
}

/// Copies a disk as it is now; whoever asks keeps it from being removed. With `previous` it builds on that.
pub(crate) async fn capture(
    app: &Arc<App>,
    disk: PathBuf,
    previous: Option<Snapshot>,
) -> io::Result<Captured> {
    let _held = match &previous {
        Some(previous) => Some(app.shelf.hold(&previous.id).await),
        None => None,
    };
    let (app, began_at) = (app.clone(), app.now());
    tokio::task::spawn_blocking(move || capture_blocking(&app.shelf, &disk, previous, began_at))
        .await
        .map_err(io::Error::other)?
}

/// [`capture`] on this thread, by a caller who keeps the earlier snapshot as well.
pub(super) fn capture_blocking(
    shelf: &Shelf,
    disk: &std::path::Path,
    previous: Option<Snapshot>,
    began_at: Millis,
) -> io::Result<Captured> {
    let id = ids::snapshot(began_at);
    let draft = shelf.root().join(format!("{id}.new"));
    let copied = fs::create_dir(&draft).and_then(|()| {
        let copy = draft.join("disk");
        space::copy_tree_blocking(disk, &copy)?;
        let sizes = inventory::write(&copy, &draft.join("inventory"))?;
        let previous = match previous {
            // Gone between being looked up and being kept: there is nothing to build on.
            Some(previous) if !shelf.disk(&previous.id).is_dir() => None,
            Some(previous) => {
                let added = added(&copy, &shelf.disk(&previous.id))?;
                Some((previous, added))
            }
            None => None,
        };
        fs::rename(&draft, shelf.folder(&id))?;
        Ok(Captured { id, began_at, previous, sizes })
    });
    if copied.is_err() {
        space::remove_tree_blocking(&draft)?;
    }
    copied
}

/// How many bytes of files are not in an older disk as they are here.
fn added(disk: &std::path::Path, older: &std::path::Path) -> io::Result<u64> {
    let mut bytes = 0;
    Frozen::open(disk)?.compare(&mut Frozen::open(older)?, Compare::Look, &mut |_, change| {
        if let Change::Put(entry) = change
            && entry.kind == EntryKind::File
        {
            bytes += entry.size;
        }
        Ok(())
    })?;
    Ok(bytes)
}

/// Stores what was captured of a sandbox's disk, for its own lists or for a named snapshot.
pub(crate) fn record(
    tx: &mut dyn Writer,
    captured: &Captured,
    sandbox: &Sandbox,
    pinned: Option<String>,
    now: Millis,
) -> Result<Snapshot, StoreError> {
    let mut builds_on = None;
    if let Some((previous, added)) = &captured.previous {
        let still_there: Option<Snapshot> = typed::get(&*tx, &previous.id)?;
        if let Some(previous) = still_there.filter(Snapshot::is_listed)
            && !snapshots::is_built_on(&*tx, &previous)?
        {
            builds_on = Some((previous, *added));
        }
    }
    let snapshot = Snapshot {
        id: captured.id.clone(),
        sandbox: sandbox.id.clone(),
        account: sandbox.account.clone(),
        organisation: sandbox.organisation.clone(),
        created_at: captured.began_at,
        completed_at: now,
        chain: match &builds_on {
            Some((previous, _)) => previous.chain.clone(),
            None => uuid::Uuid::new_v4().to_string(),
        },
        generation: builds_on.as_ref().map_or(0, |(previous, _)| previous.generation + 1),
        previous: builds_on.as_ref().map(|(previous, _)| previous.id.clone()),
        kind: sandbox.kind.clone(),
        env: sandbox.env.clone(),
        secret_files: sandbox.secret_files.clone(),
        files: captured.sizes.files,
        bytes: captured.sizes.bytes,
        added_bytes: builds_on.map_or(captured.sizes.bytes, |(_, added)| added),
        pinned,
        deleted_at: None,
        deletion: None,
    };
    typed::put(tx, &snapshot)?;
    Ok(snapshot)
}

/// Captures the disk of a sandbox that is being stopped and in which nothing runs any more; nothing if it keeps no
/// snapshots, has no disk, or is to be stopped without one.
pub(crate) async fn at_stop(app: &Arc<App>, live: &Live, id: &str, stop: &str) -> Option<Captured> {
    let _disk = live.disk.read().await;
    let look = |tx: &dyn Reader| {
        let sandbox: Option<Sandbox> = typed::get(tx, id)?;
        let stop: Option<Stop> = typed::get(tx, &stop_key(id, stop))?;
        let is_wanted = stop.is_some_and(|stop| !stop.forced);
        // Nobody may read there what is still to be taken off the disk.
        let sandbox =
            sandbox.filter(|sandbox| is_wanted && sandbox.has_disk() && !sandbox.holds_others_secrets);
        Ok::<_, StoreError>((sandbox, snapshots::latest(tx, id)?))
    };
    let (sandbox, previous) = match app.read(look) {
        Ok((Some(sandbox), previous)) => (sandbox, previous),
        Ok((None, _)) => return None,
        Err(error) => {
            tracing::error!(sandbox = %id, %error, "a sandbox could not be looked up");
            return None;
        }
    };
    match capture(app, disk_of(app, &sandbox), previous).await {
        Ok(captured) => Some(captured),
        Err(error) => {
            tracing::error!(sandbox = %id, %error, "a disk could not be captured");
            None
        }
    }
}

/// Captures the disk of a sandbox that is up, on this thread, and answers with the snapshot's id.
pub(crate) fn capture_now(app: &App, id: &str) -> Result<String, String> {
    let look = |tx: &dyn Reader| Ok((typed::get::<Sandbox>(tx, id)?, snapshots::latest(tx, id)?));
    let (sandbox, previous) = app.read(look).map_err(|error: StoreError| error.to_string())?;
    let sandbox = sandbox.ok_or("there is no such sandbox")?;
    if !sandbox.state.is_up() || !sandbox.has_disk() {
        return Err("it is not up, or keeps no snapshots".into());
    }
    let busy = |_| "it is being removed";
    let live = app.live(&sandbox);
    let _disk = live.disk.try_read().map_err(busy)?;
    let _held = match &previous {
        Some(previous) => {
            Some(app.shelf.try_hold(&previous.id).ok_or("an earlier snapshot is being removed")?)
        }
        None => None,
    };
    let captured = capture_blocking(&app.shelf, &app.space(id).root, previous, app.now())
        .map_err(|error| error.to_string())?;
    let now = app.now();
    let stored = app.write(|tx| {
        let Some(mut sandbox) = typed::get::<Sandbox>(&*tx, id)? else { return Ok(None) };
        let snapshot = record(tx, &captured, &sandbox, None, now)?;
        sandbox.snapshot_at = Some(now);
        typed::put(tx, &sandbox)?;
        Ok::<_, StoreError>(Some(snapshot.id))
    });
    match stored {
        Ok(Some(id)) => Ok(id),
        stored => {
            // Swept at the next start if that fails as well.
            let _ = space::remove_tree_blocking(&app.shelf.folder(&captured.id));
            Err(stored.err().map_or_else(|| "there is no such sandbox".into(), |error| error.to_string()))
        }
    }
}

/// Brings the disk of a sandbox that is starting back from a snapshot, if it is to be.
pub(crate) async fn restore(app: &Arc<App>, live: &Live, id: &str) -> io::Result<()> {
    let sandbox =
        app.read(|tx| typed::get::<Sandbox>(tx, id)).map_err(|error| io::Error::other(error.to_string()))?;
    let Some(snapshot) = sandbox.and_then(|sandbox| sandbox.restore_from) else { return Ok(()) };
    let _held = app.shelf.hold(&snapshot).await;
    let _disk = live.disk.write().await;
    let disk = app.space(id).root;
    let draft = disk.with_file_name(format!("{id}.new"));
    space::remove_tree(draft.clone()).await?;
    space::copy_tree(app.shelf.disk(&snapshot), draft.clone()).await?;
    space::remove_tree(disk.clone()).await?;
    fs::rename(draft, disk)
}
