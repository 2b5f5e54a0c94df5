//! Saving a disk under a name.

use std::sync::Arc;

use tokio::sync::OwnedRwLockReadGuard;

use super::{Captured, Keep, capture::capture, clear_away, disk_of, record};
use crate::{
    app::App,
    store::{StoreError, typed},
    world::{
        named_snapshots::{NamedSnapshot, Status},
        sandboxes::Sandbox,
        scenarios::Scenario,
        snapshots::Snapshot,
    },
};

/// Saves in the background: the named snapshot is `saving` when this is called.
pub(crate) fn begin_save(app: &Arc<App>, key: String) {
    let saving = app.clone();
    app.tasks.spawn(async move {
        if let Err(error) = carry_out(&saving, &key).await {
            tracing::error!(named = %key, %error, "a save could not be stored");
        }
    });
}

async fn carry_out(app: &Arc<App>, key: &str) -> Result<(), StoreError> {
    let Some(named) = app.read(|tx| typed::get::<NamedSnapshot>(tx, key))? else { return Ok(()) };
    let saved = save(app, &named.source).await;
    if !app.sleep(app.machines().save_delay()).await {
        // Taken up when the server starts again.
        return Ok(());
    }
    let now = app.now();
    let is_kept = app.write(|tx| {
        let Some(mut named) = typed::get::<NamedSnapshot>(&*tx, key)? else { return Ok(false) };
        match &saved {
            Ok(Saved { captured, sandbox, .. }) => {
                let snapshot = record(tx, captured, sandbox, Keep::Named(key.to_owned()), now)?;
                let replaced = named.snapshot.replace(snapshot.id);
                if let Some(id) = replaced
                    && let Some(mut old) = typed::get::<Snapshot>(&*tx, &id)?
                {
                    old.deleted_at = Some(now);
                    typed::put(tx, &old)?;
                }
                (named.status, named.error, named.bytes) = (Status::Ready, None, Some(snapshot.bytes));
            }
            Err(problem) => (named.status, named.error) = (Status::Failed, Some(problem.clone())),
        }
        typed::put(tx, &named)?;
        Ok::<_, StoreError>(true)
    })?;
    match saved {
        Ok(saved) if !is_kept => saved.captured.discard(app).await,
        Ok(_) => clear_away(app).await,
        Err(_) => {}
    }
    Ok(())
}

/// A disk that is captured, and the sandbox that it is of, whose deletion waits for as long as this is there.
struct Saved {
    captured: Captured,
    sandbox: Sandbox,
    _going_on: OwnedRwLockReadGuard<()>,
}

/// Captures the disk of a sandbox, or says why that cannot be done.
async fn save(app: &Arc<App>, id: &str) -> Result<Saved, String> {
    let find = || {
        let sandbox = app.read(|tx| typed::get::<Sandbox>(tx, id)).map_err(|error| error.to_string())?;
        sandbox.filter(|it| it.has_disk()).ok_or_else(|| "the sandbox is gone".to_owned())
    };
    let live = app.live(&find()?);
    let going_on = live.saves.clone().read_owned().await;
    let _disk = live.disk.read().await;
    // Secret files stay as they are said to be until they are copied.
    let _placing = live.placing.lock().await;
    let sandbox = find()?;
    if app.scenarios().is_on(Scenario::BrokenDisk, &sandbox) {
        return Err("the disk cannot be saved".into());
    }
    let _held = match &sandbox.restore_from {
        Some(snapshot) => Some(app.shelf.hold(snapshot).await),
        None => None,
    };
    let closing = app.closing.clone();
    match capture(app, disk_of(app, &sandbox), None, move || !closing.is_cancelled()).await {
        Ok(captured) => Ok(Saved { captured, sandbox, _going_on: going_on }),
        Err(error) => Err(format!("the disk could not be copied: {error}")),
    }
}
