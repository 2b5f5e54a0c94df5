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
    let before: Vec<SshKey> = app.read(|tx| typed::with_prefix(tx, &format!("{id}/")))?;
    let (before, is_new) = (before.first().map(|key| key.outside), before.is_empty());
    // Port 22 of that address would be this machine's own.
    let outside = hosting::open(app, &id, Goal::Ssh, before)?;
    let record =
        SshKey { sandbox: id.clone(), key: public.key, comment: public.comment, added_at: now, outside };
    let written = app.write(|tx| {
        typed::get::<Sandbox>(&*tx, &id)?.ok_or_else(|| ApiError::not_found("sandbox"))?;
        Ok::<_, ApiError>(typed::put(tx, &record)?)
    });
    if let Err(error) = written {
        // That of a sandbox which is gone leads nowhere, new or not.
        if is_new || error.code() == "not_found" {
            hosting::close(app, &id, Goal::Ssh);
        }
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
