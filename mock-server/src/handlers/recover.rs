//! Restarting machines that nothing reaches.

use std::sync::Arc;

use serde_json::json;

use super::Call;
use crate::{
    app::App,
    lifecycle,
    reply::{Answer, Outcome},
};

pub(super) fn recover(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.own_sandbox(app)?;
    lifecycle::begin_recover(app, &sandbox)?;
    let message = "the machine is being restarted; the disk stays as it is";
    Ok(Answer::ok("sandbox.recovering", json!({"status": "recovering", "message": message})))
}
