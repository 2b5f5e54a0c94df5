//! What an account keeps of its sandboxes, and how that is changed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Call;
use crate::{
    app::App,
    lifecycle,
    reply::{Answer, ApiError, Outcome},
    store::{Reader, typed},
    view::time_or_null,
    world::{
        retention::{self, CONFIRMATION, Retention},
        sandboxes::Sandbox,
    },
};

pub(super) fn get(app: &App, call: &Call) -> Outcome {
    if call.caller.key.sandboxes.is_some() {
        return Err(ApiError::new(
            403,
            "forbidden",
            "the API key belongs to some sandboxes, not to the account",
        ));
    }
    let kept = app.read(|tx| retention::of_account(tx, &call.caller.account.id))?;
    Ok(Answer::ok("data_retention.info", show(&kept)))
}

fn show(kept: &Retention) -> Value {
    json!({
        "enabled": kept.zero_at.is_some(),
        "enabledAt": time_or_null(kept.zero_at),
        "snapshotsOff": kept.snapshots_off_at.is_some(),
        "snapshotsOffAt": time_or_null(kept.snapshots_off_at),
        "monitoringOff": kept.monitoring_off_at.is_some(),
        "monitoringOffAt": time_or_null(kept.monitoring_off_at),
    })
}

pub(super) fn update(app: &Arc<App>, call: &Call) -> Outcome {
    let now = app.now();
    let account = &call.caller.account.id;
    let asked = |name: &str| call.body.get(name).and_then(Value::as_bool);
    let (enabled, snapshots_off, monitoring_off) =
        (asked("enabled"), asked("snapshotsOff"), asked("monitoringOff"));
    if [enabled, snapshots_off, monitoring_off].iter().all(Option::is_none) {
        return Err(ApiError::invalid("invalid_request", "body", "must say what to change"));
    }
    let (kept, deleting) = app.write(|tx| {
        let mut kept = retention::of_account(&*tx, account)?;
        let turns_on = enabled == Some(true) && kept.zero_at.is_none();
        if turns_on && call.text("confirmation") != Some(CONFIRMATION) {
            let needed = format!("must be, word for word: {CONFIRMATION}");
            return Err(ApiError::invalid("confirmation_required", "confirmation", needed));
        }
        retention::switch(&mut kept.zero_at, enabled, now);
        retention::switch(&mut kept.snapshots_off_at, snapshots_off, now);
        retention::switch(&mut kept.monitoring_off_at, monitoring_off, now);
        typed::put(tx, &kept)?;
        let deleting = if turns_on { lifecycle::hide_archived(app, tx, account, now)? } else { Vec::new() };
        Ok((kept, deleting))
    })?;
    let queued = deleting.len();
    lifecycle::purge_hidden(app, deleting);
    let mut body = show(&kept);
    body["queuedSandboxes"] = queued.into();
    body["acceptedDeletionOperationsIrreversible"] = true.into();
    Ok(Answer::ok("data_retention.updated", body))
}

/// Takes from a new sandbox what its account does not keep; refuses it if just that was asked for.
pub(super) fn apply(tx: &dyn Reader, call: &Call, sandbox: &mut Sandbox) -> Result<(), ApiError> {
    let kept = retention::of_account(tx, &sandbox.account)?;
    if kept.snapshots_off_at.is_some() {
        if call.flag("snapshots") {
            let problem = "the account keeps no snapshots";
            return Err(ApiError::new(409, "snapshots_off_for_account", problem).retryable(false));
        }
        sandbox.snapshots = false;
    }
    if kept.monitoring_off_at.is_some() {
        if call.flag("monitoring") {
            let problem = "the account has monitoring off";
            return Err(ApiError::new(409, "monitoring_off_for_account", problem).retryable(false));
        }
        sandbox.monitoring = false;
    }
    Ok(())
}
