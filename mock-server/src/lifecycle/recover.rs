//! Restarting the machine of a sandbox that nothing reaches; its disk is not touched.

use std::{sync::Arc, time::Duration};

use super::{advance, report, stops::empty};
use crate::{
    agent,
    app::{App, Live, lock},
    reply::ApiError,
    store::typed,
    world::{sandboxes::Sandbox, scenarios::Scenario, time::Millis},
};

/// A machine is restarted once in this time.
const ONCE_IN: Millis = 10 * 60 * 1000;

/// Begins to restart the machine of a sandbox.
pub(crate) fn begin_recover(app: &Arc<App>, sandbox: &Sandbox) -> Result<(), ApiError> {
    let now = app.now();
    let scenarios = app.scenarios();
    let live = app.live(sandbox);
    app.write(|tx| {
        let mut sandbox: Sandbox =
            typed::get(&*tx, &sandbox.id)?.ok_or_else(|| ApiError::not_found("sandbox"))?;
        let refuse = |code, message: &str| Err(ApiError::new(409, code, message).retryable(false));
        let is_on = |scenario| scenarios.is_on(scenario, &sandbox);
        if !sandbox.state.is_up() {
            return refuse("no_machine", "the sandbox has no machine; resume it");
        }
        if is_on(Scenario::NoPowerSwitch) {
            return refuse("recover_unsupported", "machines of this kind cannot be restarted");
        }
        if let Some(again) = sandbox.recovered_at.map(|at| at.saturating_add(ONCE_IN)).filter(|at| *at > now)
        {
            let seconds = u64::try_from(again - now).unwrap_or(0).div_ceil(1000);
            let error = ApiError::new(409, "too_soon", "the machine was restarted less than 10 minutes ago");
            return Err(error.retryable(false).retry_after(seconds));
        }
        if !is_on(Scenario::Unreachable) {
            return refuse("sandbox_is_reachable", "the machine answers; there is nothing to recover");
        }
        if is_on(Scenario::StuckMachine) {
            return refuse("reset_failed", "the machine did not restart");
        }
        let delay = Millis::try_from(app.machines().recover_delay_ms).unwrap_or(Millis::MAX);
        sandbox.recovered_at = Some(now);
        sandbox.recovers_at = Some(now.saturating_add(delay));
        sandbox.updated_at = now;
        typed::put(tx, &sandbox)?;
        Ok(())
    })?;
    app.tasks.spawn(carry_out_recover(app.clone(), live, sandbox.id.clone()));
    Ok(())
}

/// Ends what runs in the sandbox and waits until its machine is back.
pub(super) async fn carry_out_recover(app: Arc<App>, live: Arc<Live>, id: String) {
    let turn = live.turn.write().await;
    let sandbox = app.read(|tx| typed::get::<Sandbox>(tx, &id));
    // Stopped meanwhile, or up again on another machine.
    let Ok(Some(Sandbox { recovers_at: Some(at), .. })) = sandbox else { return };
    empty(&app, &live, &id).await;
    drop(turn);
    let left = Duration::from_millis(u64::try_from(at - app.now()).unwrap_or(0));
    if !app.sleep(left).await {
        return;
    }
    lock(&app.scenarios).set_for(&id, Scenario::Unreachable, false);
    report(advance(&app, &live, None, &id, |sandbox, _, _| {
        sandbox.recovers_at = None;
        Ok(())
    }));
    app.tasks.spawn(agent::wake(app.clone(), id));
}
