//! Snapshots of sandboxes that are up: made from time to time, and kept until there are enough newer ones. They form chains
//! of their own, so that none that stays builds on one that goes.

use std::{cell::Cell, io, sync::Arc};

use super::{Captured, Keep, Shelf, capture::capture_blocking, clear::hide, record};
use crate::{
    app::{App, Live},
    space::{
        self,
        frozen::{Change, Compare, Frozen},
    },
    store::{StoreError, Writer, typed},
    world::{
        pins::Pin,
        sandboxes::Sandbox,
        snapshots::{self, Snapshot},
        time::Millis,
    },
};

/// How many of a sandbox are kept while it is up.
const KEPT: usize = 5;

/// How many are in a chain: while one of them is kept, so are the files of those that it builds on.
const CHAIN: u64 = 5;

/// The disk of a sandbox that is up, as long as that stays on its course.
#[derive(Clone)]
pub(crate) struct Rolling {
    pub(crate) sandbox: Sandbox,
    pub(crate) live: Arc<Live>,
    pub(crate) course: u64,
}

impl Rolling {
    /// Whether a capture of it is still of use. A disk is removed or replaced only on another course.
    pub(crate) fn goes_on(&self, app: &App) -> bool {
        self.live.is_on(self.course) && !app.closing.is_cancelled()
    }

    /// Whether the disk is not what the newest snapshot holds, as far as a look tells; a disk that cannot be looked at counts
    /// as changed.
    pub(crate) async fn has_changed(&self, app: &Arc<App>, newest: Option<&Snapshot>) -> bool {
        let Some(newest) = newest else { return true };
        let Some(held) = app.shelf.try_hold(&newest.id) else { return true };
        let (disk, older) = (app.space(&self.sandbox.id).root, app.shelf.disk(&newest.id));
        let (app, disk_of) = (app.clone(), self.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let _held = held;
            let mut now = Frozen::open(&disk)?.wanted_while(move || disk_of.goes_on(&app));
            let visit = &mut |_: &mut Frozen, _: Change<'_>| Err(io::Error::other("it is another"));
            now.compare(&mut Frozen::open(&older)?, Compare::Look, visit)
        });
        !matches!(looked.await, Ok(Ok(())))
    }
}

/// What became of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is of no use: the sandbox took another course, or its secret files were changed, meanwhile.
    Nothing,
    /// It is stored.
    It,
    /// It is stored, and older ones were taken out of sight for it: somebody is to clear them away.
    InsteadOfOthers,
}

/// Captures the disk and stores the snapshot. Nobody is kept from anything by that: the disk may also be removed at the same
/// time, and where there is little room left it is not captured.
pub(crate) async fn capture_rolling(app: &Arc<App>, rolling: &Rolling) -> io::Result<Kept> {
    let previous = app.read(|tx| snapshots::latest_rolling(tx, &rolling.sandbox.id));
    let previous = previous
        .map_err(|error: StoreError| io::Error::other(error.to_string()))?
        .filter(|previous| previous.generation + 1 < CHAIN);
    let held = match &previous {
        Some(previous) => Some(app.shelf.hold(&previous.id).await),
        None => None,
    };
    let (copying, disk_of, began_at) = (app.clone(), rolling.clone(), app.now());
    let copied = tokio::task::spawn_blocking(move || {
        let _held = held;
        let disk = copying.space(&disk_of.sandbox.id).root;
        let is_full = Cell::new(false);
        let goes_on = || {
            is_full.set(!space::is_spacious(copying.shelf.root()));
            !is_full.get() && disk_of.goes_on(&copying)
        };
        let captured = capture_blocking(&copying.shelf, &disk, previous, began_at, &goes_on);
        if is_full.get() { captured.map_err(|_| io::ErrorKind::StorageFull.into()) } else { captured }
    });
    let captured = copied.await.map_err(io::Error::other)??;
    let stored = store(app, rolling, &captured);
    if matches!(stored, Ok(Kept::Nothing) | Err(_)) {
        captured.discard(app).await;
    }
    stored.map_err(|error| io::Error::other(error.to_string()))
}

/// Stores it if the sandbox is still as it was.
fn store(app: &App, rolling: &Rolling, captured: &Captured) -> Result<Kept, StoreError> {
    let now = app.now();
    app.write(|tx| {
        let Some(mut sandbox) = typed::get::<Sandbox>(&*tx, &rolling.sandbox.id)? else {
            return Ok(Kept::Nothing);
        };
        // Of files that came and went during the copy nobody knows whether they are in it.
        let secrets = |sandbox: &Sandbox| (Pin::of(sandbox), sandbox.secret_files.clone());
        if !rolling.live.is_on(rolling.course)
            || !sandbox.state.is_up()
            || secrets(&sandbox) != secrets(&rolling.sandbox)
        {
            return Ok(Kept::Nothing);
        }
        record(tx, captured, &sandbox, Keep::Rolling, now)?;
        sandbox.saved(now);
        typed::put(tx, &sandbox)?;
        Ok(match thin(&app.shelf, tx, &sandbox.id, KEPT, now)? {
            true => Kept::InsteadOfOthers,
            false => Kept::It,
        })
    })
}

/// Takes those out of sight that there are newer ones of, but for some that are kept in any case; says whether there were
/// any. What somebody was given the addresses of stays as long as those are good.
pub(crate) fn thin(
    shelf: &Shelf,
    tx: &mut dyn Writer,
    sandbox: &str,
    kept: usize,
    now: Millis,
) -> Result<bool, StoreError> {
    let mut ids = typed::rows_with_prefix(&*tx, &snapshots::rolling(sandbox), usize::MAX)?;
    ids.truncate(ids.len().saturating_sub(kept));
    ids.retain(|id| !shelf.is_promised(id, now));
    ids.iter().try_for_each(|id| hide(tx, id, now))?;
    Ok(!ids.is_empty())
}

/// Remembers that somebody is given the addresses of a snapshot's files, good until then; false if it is out of sight by
/// now. One that is taken out of sight afterwards is so by somebody who knows of them.
pub(crate) fn promise(app: &App, id: &str, until: Millis) -> Result<bool, StoreError> {
    let now = app.now();
    // Nobody else writes meanwhile.
    app.write_later(|tx| {
        let found: Option<Snapshot> = typed::get(&*tx, id)?;
        let is_there = found.is_some_and(|snapshot| snapshot.deleted_at.is_none());
        if is_there {
            app.shelf.promise(id, until, now);
        }
        Ok(is_there)
    })
}
