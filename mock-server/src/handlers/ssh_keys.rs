//! Keys that may sign in.

use std::sync::Arc;

use serde_json::json;

use super::{
    Call,
    hosting::{MACHINE, reachable},
};
use crate::{
    app::App,
    hosting::{self, Goal},
    reply::{Answer, ApiError, Outcome},
    store::typed,
    world::{
        sandboxes::Sandbox,
        ssh_keys::{SshKey, parse},
    },
};

pub(super) async fn add(app: &Arc<App>, call: &Call) -> Outcome {
    let id = reachable(app, call).await?.id;
    let public = parse(call.text("key").unwrap_or_default())
        .map_err(|why| ApiError::invalid("invalid_ssh_key", "key", why))?;
    let now = app.now();
    let _turn = app.hosting.turn.lock().await;
    // Port 22 of that address would be this machine's own.
    let outside = hosting::open(app, &id, Goal::Ssh, None)?;
    let written = app.write(|tx| {
        typed::get::<Sandbox>(&*tx, &id)?.ok_or_else(|| ApiError::not_found("sandbox"))?;
        let record = SshKey { sandbox: id.clone(), key: public.key, comment: public.comment, added_at: now };
        Ok::<_, ApiError>(typed::put(tx, &record)?)
    });
    if let Err(error) = written {
        hosting::close(app, &id, Goal::Ssh);
        return Err(error);
    }
    let body = json!({
        "success": true,
        "machineIp": MACHINE,
        "sshUser": "user",
        "sshEndpoint": format!("{MACHINE}:{outside}"),
        "hostKey": null,
    });
    Ok(Answer::ok("ssh_key.configured", body))
}
