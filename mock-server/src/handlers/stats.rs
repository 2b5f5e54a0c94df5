//! The load of a sandbox now.

use serde_json::json;

use super::{Call, not_running};
use crate::{
    app::App,
    metering::{Measured, measure},
    reply::{Answer, ApiError, Outcome},
    world::time::iso,
};

pub(super) async fn stats(app: &App, call: &Call) -> Outcome {
    let (sandbox, _) = app.read(|tx| call.caller.see(tx, call.id("sandboxId")))?;
    if !sandbox.state.is_up() {
        return Err(not_running(sandbox.state));
    }
    let Measured { load, memory, disk } = measure(app, &sandbox).await.map_err(ApiError::internal)?;
    let body = json!({
        "sandboxId": sandbox.id,
        "sampledAt": iso(app.now()),
        "cpu": load.cpu,
        "mem": load.mem,
        "disk": load.disk,
        "memoryUsedBytes": memory.0,
        "memoryTotalBytes": memory.1,
        "diskUsedBytes": disk.0,
        "diskTotalBytes": disk.1,
    });
    Ok(Answer::ok("sandbox.stats", body))
}
