//! Copying a disk into a snapshot, and back.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

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
        ids, retention,
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

/// Copies a disk as it is now; whoever asks keeps it from being removed. With `previous` it builds on that. Given up, with
/// an error, once it need not go on.
pub(super) async fn capture(
    app: &Arc<App>,
    disk: PathBuf,
    previous: Option<Snapshot>,
    goes_on: impl Fn() -> bool + Send + 'static,
) -> io::Result<Captured> {
    let _held = match &previous {
        Some(previous) => Some(app.shelf.hold(&previous.id).await),
        None => None,
    };
    let (app, began_at) = (app.clone(), app.now());
    tokio::task::spawn_blocking(move || capture_blocking(&app.shelf, &disk, previous, began_at, &goes_on))
        .await
        .map_err(io::Error::other)?
}

/// [`capture`] on this thread, by a caller who keeps the earlier snapshot as well.
pub(super) fn capture_blocking(
    shelf: &Shelf,
    disk: &Path,
    previous: Option<Snapshot>,
    began_at: Millis,
    goes_on: &dyn Fn() -> bool,
) -> io::Result<Captured> {
    let id = ids::snapshot(began_at);
    let draft = shelf.root().join(format!("{id}.new"));
    let copied = fs::create_dir(&draft).and_then(|()| {
        let copy = draft.join("disk");
        // Gone between being looked up and being kept: there is nothing to build on.
        let previous = previous.filter(|previous| shelf.disk(&previous.id).is_dir());
        let earlier = previous.as_ref().map(|previous| shelf.disk(&previous.id));
        space::copy_tree_while(disk, &copy, earlier.as_deref(), goes_on)?;
        let sizes = inventory::write(&copy, &draft.join("inventory"), goes_on)?;
        let previous = match previous {
            Some(previous) => {
                let added = added(&copy, &shelf.disk(&previous.id), goes_on)?;
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
fn added(disk: &Path, older: &Path, goes_on: &dyn Fn() -> bool) -> io::Result<u64> {
    let mut bytes = 0;
    Frozen::open(disk)?.compare(&mut Frozen::open(older)?, Compare::Look, &mut |_, change| {
        if !goes_on() {
            return Err(given_up());
        }
        if let Change::Put(entry) = change
            && entry.kind == EntryKind::File
        {
            bytes += entry.size;
        }
        Ok(())
    })?;
    Ok(bytes)
}

/// The error of a capture that need not go on.
pub(super) fn given_up() -> io::Error {
    io::Error::other("the capture was given up")
}

/// How long a snapshot is kept.
pub(crate) enum Keep {
    /// Until somebody deletes it.
    Lasting,
    /// Until there are enough newer ones.
    Rolling,
    /// As long as the named snapshot of this key gives it.
    Named(String),
}

/// Stores what was captured of a sandbox's disk, for its own lists or for a named snapshot.
pub(crate) fn record(
    tx: &mut dyn Writer,
    captured: &Captured,
    sandbox: &Sandbox,
    keep: Keep,
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
        is_rolling: matches!(keep, Keep::Rolling),
        pinned: match keep {
            Keep::Named(key) => Some(key),
            Keep::Lasting | Keep::Rolling => None,
        },
        deleted_at: None,
        deletion: None,
    };
    typed::put(tx, &snapshot)?;
    Ok(snapshot)
}

/// Captures the disk of a sandbox that is being stopped; nothing if it keeps no snapshots, has no disk, or is to be stopped
/// without one. Given up, with an error, once the stop is told so, the sandbox takes another course, or the server closes.
pub(crate) async fn at_stop(
    app: &Arc<App>,
    live: &Arc<Live>,
    course: u64,
    id: &str,
    stop: &str,
) -> io::Result<Option<Captured>> {
    let _disk = live.disk.read().await;
    let look = |tx: &dyn Reader| {
        let sandbox: Option<Sandbox> = typed::get(tx, id)?;
        let stop: Option<Stop> = typed::get(tx, &stop_key(id, stop))?;
        let is_wanted = stop.is_some_and(|stop| !stop.forced);
        // Nobody may read there what is still to be taken off the disk.
        let sandbox =
            sandbox.filter(|sandbox| is_wanted && sandbox.has_disk() && !sandbox.holds_others_secrets);
        let sandbox = match sandbox {
            // Nor is anything kept of what is about to be erased.
            Some(sandbox) if retention::of_account(tx, &sandbox.account)?.zero_at.is_some() => None,
            sandbox => sandbox,
        };
        Ok::<_, StoreError>((sandbox, snapshots::latest_lasting(tx, id)?))
    };
    let (sandbox, previous) = app.read(look).map_err(|error| io::Error::other(error.to_string()))?;
    let Some(sandbox) = sandbox else { return Ok(None) };
    let (stopping, closing) = (live.clone(), app.closing.clone());
    let goes_on = move || stopping.is_on(course) && !stopping.is_forced(course) && !closing.is_cancelled();
    capture(app, disk_of(app, &sandbox), previous, goes_on).await.map(Some)
}

/// Captures the disk of a sandbox that is up, on this thread, and answers with the snapshot's id.
pub(crate) fn capture_now(app: &App, id: &str) -> Result<String, String> {
    let look = |tx: &dyn Reader| Ok((typed::get::<Sandbox>(tx, id)?, snapshots::latest_lasting(tx, id)?));
    let (sandbox, previous) = app.read(look).map_err(|error: StoreError| error.to_string())?;
    let sandbox = sandbox.ok_or("there is no such sandbox")?;
    if !sandbox.state.is_up() || !sandbox.has_disk() {
        return Err("it is not up, or keeps no snapshots".into());
    }
    let busy = |_| "it is being removed";
    let live = app.live(&sandbox);
    let _disk = live.disk.try_read().map_err(busy)?;
    // What is on the disk of those is what is stored with it.
    let _placing = live.placing.try_lock().map_err(|_| "its secret files are being replaced")?;
    let _held = match &previous {
        Some(previous) => {
            Some(app.shelf.try_hold(&previous.id).ok_or("an earlier snapshot is being removed")?)
        }
        None => None,
    };
    let captured = capture_blocking(&app.shelf, &app.space(id).root, previous, app.now(), &|| true)
        .map_err(|error| error.to_string())?;
    let now = app.now();
    let stored = app.write(|tx| {
        let Some(mut sandbox) = typed::get::<Sandbox>(&*tx, id)? else { return Ok(None) };
        let snapshot = record(tx, &captured, &sandbox, Keep::Lasting, now)?;
        sandbox.snapshot_at = Some(now);
        sandbox.capture = None;
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
