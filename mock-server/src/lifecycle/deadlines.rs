//! Sandboxes that run out of time.

use std::{ops::ControlFlow, sync::Arc};

use super::{begin_stop, report};
use crate::{
    agent,
    app::App,
    store::{Order, Reader, StoreError, typed},
    world::{sandboxes::DEADLINES, time::Millis},
};

/// Stops sandboxes whose time is over, for as long as the server runs.
pub(crate) async fn keep_deadlines(app: Arc<App>) {
    loop {
        let changed = app.deadlines_changed.notified();
        let now = app.now();
        let (over, next) = app.read(|tx| due(tx, now)).unwrap_or_else(|error| {
            report::<()>(Err(error));
            (Vec::new(), None)
        });
        for id in over {
            if agent::keep_awake(&app, &id).unwrap_or(false) {
                app.deadlines_changed.notify_one();
                continue;
            }
            if let Err(error) = begin_stop(&app, &id, false) {
                tracing::error!(code = error.code(), "an auto-stop failed");
            }
        }
        tokio::select! {
            () = changed => {}
            () = app.closing.cancelled() => return,
            () = app.wait_until(next) => {}
        }
    }
}

/// The sandboxes whose time is over, and when the next one's is. Only those that are up have a deadline in the index: one
/// that is still starting gets its row, and a call of this, once it is up.
fn due(tx: &dyn Reader, now: Millis) -> Result<(Vec<String>, Option<Millis>), StoreError> {
    let (mut over, mut next) = (Vec::new(), None);
    let to = typed::after_prefix(DEADLINES);
    typed::rows(tx, DEADLINES, to.as_deref(), Order::Ascending, |key, id| {
        let at = key[DEADLINES.len()..].split('/').next().and_then(|at| at.parse().ok()).unwrap_or(now);
        if at <= now {
            over.push(id.to_owned());
            return ControlFlow::Continue(());
        }
        next = Some(at);
        ControlFlow::Break(())
    })?;
    Ok((over, next))
}
