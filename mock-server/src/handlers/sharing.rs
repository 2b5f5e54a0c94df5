//! Sandboxes that members of an organisation work in together.

use serde_json::json;

use super::Call;
use crate::{
    app::App,
    auth::Access,
    reply::{Answer, ApiError, Outcome},
    store::typed,
    view,
};

/// Shares a sandbox with the organisation that pays for it; once and for all, so again changes nothing.
pub(super) fn share(app: &App, call: &Call) -> Outcome {
    let now = app.now();
    app.write(|tx| {
        let mut sandbox = call.caller.own(&*tx, call.id("sandboxId"))?;
        if sandbox.organisation.is_none() {
            return Err(ApiError::new(400, "not_org_sandbox", "no organisation pays for the sandbox"));
        }
        if !sandbox.shared {
            sandbox.shared = true;
            sandbox.updated_at = now;
            typed::put(tx, &sandbox)?;
        }
        let is_pending = sandbox.holds_logins();
        let restart = is_pending && (sandbox.state.is_up() || sandbox.state.is_starting());
        let message = match (is_pending, restart) {
            (false, _) => "members can use the sandbox",
            (true, true) => "members can use the sandbox once it was stopped and resumed",
            (true, false) => "members can use the sandbox once it was resumed",
        };
        let mut viewer = view::Viewer::new(&*tx).with_ways_in(&call.caller.key, now);
        let body = json!({
            "sandbox": viewer.sandbox(&sandbox, Access::Owner)?,
            "restartRequired": restart,
            "message": message,
        });
        Ok(Answer::ok("sandbox.shared", body))
    })
}
