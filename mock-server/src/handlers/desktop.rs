//! What is shown in the place of a desktop.

use std::sync::Arc;

use serde_json::json;

use super::{
    Call,
    hosting::{MACHINE, reachable, token},
};
use crate::{
    app::App,
    hosting::{self, Goal},
    reply::{Answer, ApiError, Outcome},
    store::typed,
    world::{desktops::Desktop, sandboxes::Sandbox},
};

pub(super) async fn desktop(app: &Arc<App>, call: &Call) -> Outcome {
    let id = reachable(app, call).await?.id;
    let now = app.now();
    let _turn = app.hosting.turn.lock().await;
    let before: Option<Desktop> = app.read(|tx| Ok::<_, ApiError>(typed::get(tx, &id)?))?;
    let is_new = before.is_none();
    let outside = hosting::open(app, &id, Goal::Desktop, before.as_ref().map(|before| before.outside))?;
    let mut record = before.unwrap_or_else(|| Desktop {
        sandbox: id.clone(),
        outside,
        token: token(),
        public: false,
        theme: None,
        ready_at: now.saturating_add_unsigned(app.machines().desktop_delay_ms),
    });
    record.outside = outside;
    record.public = call.flag("publicAccess");
    if let Some(theme) = call.query("theme") {
        record.theme = Some(theme.to_owned());
    }
    let written = app.write(|tx| {
        typed::get::<Sandbox>(&*tx, &id)?.ok_or_else(|| ApiError::not_found("sandbox"))?;
        Ok::<_, ApiError>(typed::put(tx, &record)?)
    });
    if let Err(error) = written {
        // That of a sandbox which is gone leads nowhere, new or not.
        if is_new || error.code() == "not_found" {
            hosting::close(app, &id, Goal::Desktop);
        }
        return Err(error);
    }
    if is_new || now < record.ready_at {
        let body = json!({
            "success": false,
            "provisioning": true,
            "message": "the desktop is being made; call again in two seconds",
        });
        return Ok(Answer::ok("desktop.provisioning", body));
    }
    let body = json!({
        "success": true,
        "desktopUrl": hosting::url(record.outside, record.public, &record.token),
        "ip": MACHINE,
        // There is no screen to be shown by VNC.
        "mode": "page",
    });
    Ok(Answer::ok("desktop.url", body))
}
