//! What a server that used the same store left undone.

use std::sync::Arc;

use super::{
    boot::{boot, hydrate},
    deletions::purge,
    recover::carry_out_recover,
    stops::{carry_out_stop, open_stop},
};
use crate::{
    agent,
    app::App,
    snapshots, space,
    store::{Reader, StoreError, typed, typed::Record},
    world::{
        commands::{Command, RUNNING, Status},
        deletions::{Deletion, Kind, OPEN_DELETIONS},
        sandboxes::{CaptureStatus, Sandbox, State, UNSETTLED},
    },
};

/// Takes it up.
pub(crate) fn take_up(app: &Arc<App>) -> Result<(), StoreError> {
    let now = app.now();
    let (sandboxes, deletions) = app.write(|tx| {
        for mut command in found::<Command>(&*tx, RUNNING)? {
            command.status = Status::Lost;
            command.finished_at = Some(now);
            typed::put(tx, &command)?;
        }
        let mut sandboxes: Vec<Sandbox> = found(&*tx, UNSETTLED)?;
        for sandbox in &mut sandboxes {
            if sandbox.setup_status.as_deref() == Some("running") {
                sandbox.setup_status = Some("failed".into());
                sandbox.setup_error = Some("the sandbox lost the process".into());
                typed::put(tx, sandbox)?;
            }
            if let Some(capture) = sandbox.capture.as_mut().filter(|capture| capture.status.is_open()) {
                capture.status = CaptureStatus::Cancelled;
                typed::put(tx, sandbox)?;
            }
        }
        Ok::<_, StoreError>((sandboxes, found::<Deletion>(&*tx, OPEN_DELETIONS)?))
    })?;
    snapshots::take_up(app)?;
    agent::take_up(app)?;
    for deletion in deletions.into_iter().filter(|deletion| deletion.kind == Kind::Sandbox) {
        app.tasks.spawn(purge(app.clone(), None, deletion));
    }
    for sandbox in sandboxes {
        let live = app.live(&sandbox);
        match open_stop_of(app, &sandbox)? {
            Some(stop) => {
                let course = live.turn_to_new_course();
                app.tasks.spawn(carry_out_stop(app.clone(), live, course, sandbox.id, stop));
                continue;
            }
            None if sandbox.state.is_starting() => {
                boot(app, &sandbox, live.turn_to_new_course());
                continue;
            }
            None => {}
        }
        if sandbox.recovers_at.is_some() {
            app.tasks.spawn(carry_out_recover(app.clone(), live.clone(), sandbox.id.clone()));
        }
        if sandbox.state.is_up() && !sandbox.hydrated {
            app.tasks.spawn(hydrate(app.clone(), live, None, sandbox.id));
        }
    }
    // Listed before anybody can make new ones.
    let folders = std::fs::read_dir(&app.spaces).map(|folders| {
        folders.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>()
    });
    app.tasks.spawn(sweep(app.clone(), folders.unwrap_or_default()));
    Ok(())
}

fn open_stop_of(app: &App, sandbox: &Sandbox) -> Result<Option<String>, StoreError> {
    app.read(|tx| Ok(open_stop(tx, sandbox)?.map(|stop| stop.id)))
}

/// Removes disks that belong to no sandbox: a server that was killed had copied or made them, but not stored whose they
/// are, or had stored that they are gone, but not removed them.
async fn sweep(app: Arc<App>, folders: Vec<String>) {
    for id in folders.into_iter().filter(|id| id.starts_with("bx_")) {
        let is_of_use = app.read(|tx| {
            let sandbox: Option<Sandbox> = typed::get(tx, &id)?;
            Ok::<_, StoreError>(sandbox.is_some_and(|it| it.state != State::Archived || it.has_disk()))
        });
        // A draft beside a disk may be made anew right now by whoever brings that sandbox up, under the same name.
        let owner = id.split_once('.').map(|(owner, _)| app.read(|tx| typed::get::<Sandbox>(tx, owner)));
        let live = owner.and_then(Result::ok).flatten().map(|owner| app.live(&owner));
        let _turn = match &live {
            Some(live) => Some(live.turn.write().await),
            None => None,
        };
        // What is being deleted is removed by its deletion; removing it twice does no harm.
        if matches!(is_of_use, Ok(false))
            && let Err(error) = space::remove_tree(app.spaces.join(&id)).await
        {
            tracing::warn!(sandbox = %id, %error, "a disk of nobody could not be removed");
        }
    }
}

/// The records that the rows of the index below a prefix lead to.
fn found<R: Record>(tx: &dyn Reader, prefix: &str) -> Result<Vec<R>, StoreError> {
    let keys = typed::rows_with_prefix(tx, prefix, usize::MAX)?;
    typed::get_all(tx, &keys)
}
