//! Saving a disk under a name.

use std::sync::Arc;

use super::{Captured, capture, clear_away, disk_of, record};
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
            Ok((captured, sandbox)) => {
                let snapshot = record(tx, captured, sandbox, Some(key.to_owned()), now)?;
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
        Ok((captured, _)) if !is_kept => captured.discard(app).await,
        Ok(_) => clear_away(app).await,
        Err(_) => {}
    }
    Ok(())
}

/// Captures the disk of a sandbox, or says why that cannot be done.
async fn save(app: &Arc<App>, id: &str) -> Result<(Captured, Sandbox), String> {
    let find = || {
        let sandbox = app.read(|tx| typed::get::<Sandbox>(tx, id)).map_err(|error| error.to_string())?;
        sandbox.filter(|it| it.has_disk()).ok_or_else(|| "the sandbox is gone".to_owned())
    };
    let live = app.live(&find()?);
    let _disk = live.disk.read().await;
    let sandbox = find()?;
    if app.scenarios().is_on(Scenario::BrokenDisk, &sandbox) {
        return Err("the disk cannot be saved".into());
    }
    let _held = match &sandbox.restore_from {
        Some(snapshot) => Some(app.shelf.hold(snapshot).await),
        None => None,
    };
    match capture(app, disk_of(app, &sandbox), None).await {
        Ok(captured) => Ok((captured, sandbox)),
        Err(error) => Err(format!("the disk could not be copied: {error}")),
    }
}
