//! Stopping and deleting.

use std::sync::Arc;

use serde_json::json;

use super::Call;
use crate::{
    app::App,
    lifecycle,
    reply::{Answer, ApiError, Outcome},
    store::typed,
    view,
    world::{
        deletions::Deletion,
        sandboxes::State,
        stops::{Stop, stop_key},
    },
};

pub(super) fn stop(app: &Arc<App>, call: &Call) -> Outcome {
    // Whoever may see a sandbox may stop it.
    let (sandbox, access) = app.read(|tx| call.caller.see(tx, call.id("sandboxId")))?;
    if sandbox.state == State::Cancelled {
        return Err(ApiError::not_found("sandbox"));
    }
    let (sandbox, stop) = lifecycle::begin_stop(app, &sandbox.id, call.flag("force"))?;
    let shown = app.read(|tx| view::sandbox(tx, &sandbox, access))?;
    let body = json!({"id": sandbox.id, "status": "archiving", "sandbox": shown, "stop": view::stop(&stop)});
    Ok(Answer::new(202, "sandbox.stopping", body))
}

pub(super) fn get_stop(app: &App, call: &Call) -> Outcome {
    app.read(|tx| {
        let (sandbox, _) = call.caller.see(tx, call.id("sandboxId"))?;
        let stop: Stop = typed::get(tx, &stop_key(&sandbox.id, call.id("stopId")))?
            .ok_or_else(|| ApiError::not_found("stop of this sandbox"))?;
        Ok(Answer::ok("stop.status", json!({"id": sandbox.id, "stop": view::stop(&stop)})))
    })
}

pub(super) fn delete(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.own_sandbox(app)?;
    if call.header("x-sandboxer-confirm-delete") != Some(sandbox.id.as_str()) {
        let problem = "the header X-Sandboxer-Confirm-Delete must be the id of the sandbox";
        return Err(ApiError::new(409, "delete_confirmation_required", problem)
            .retryable(false)
            .detail("targetId", sandbox.id));
    }
    let deletion = lifecycle::begin_delete(app, &sandbox, &call.caller.account.id)?;
    Ok(Answer::new(202, "sandbox.deleting", json!({"operation": view::deletion(&deletion)})))
}

pub(super) fn deletion(app: &App, call: &Call) -> Outcome {
    app.read(|tx| {
        let found: Option<Deletion> = typed::get(tx, call.id("operationId"))?;
        let own = found.filter(|deletion| {
            let sandbox = deletion.sandbox.as_ref().unwrap_or(&deletion.target);
            deletion.account == call.caller.account.id && call.caller.key.covers(sandbox)
        });
        let deletion = own.ok_or_else(|| ApiError::not_found("deletion operation"))?;
        Ok(Answer::ok("deletion.operation", json!({"operation": view::deletion(&deletion)})))
    })
}
