//! Answers that go on for long: whether whoever reads them still may, and whether the sandbox still answers.

use tokio::sync::watch;

use super::{Call, scenarios};
use crate::{
    app::App,
    auth::Caller,
    reply::ApiError,
    store::typed,
    world::{sandboxes::Sandbox, time::Millis},
};

/// A look is due after this many milliseconds, even if nobody told of a change.
const LOOK: Millis = 15_000;

/// Somebody who reads what a sandbox writes as it comes.
pub(super) struct Follower {
    caller: Caller,
    sandbox: String,
    changed: watch::Receiver<()>,
    looked_at: Option<Millis>,
}

impl Follower {
    /// The caller, who may work in the sandbox now.
    pub(super) fn new(app: &App, call: &Call, sandbox: &Sandbox) -> Self {
        Self {
            caller: call.caller.clone(),
            sandbox: sandbox.id.clone(),
            changed: app.reach_changed.subscribe(),
            looked_at: None,
        }
    }

    /// Refuses once the key has ended, the sandbox is not one that the caller may work in any more, or its machine does not
    /// answer. Cheap as long as there is nothing new.
    pub(super) fn check(&mut self, app: &App) -> Result<(), ApiError> {
        let now = app.now();
        let is_due = self.looked_at.is_none_or(|at| at.saturating_add(LOOK) <= now)
            || self.changed.has_changed().unwrap_or(true)
            || self.caller.key.has_expired(now);
        if !is_due {
            return Ok(());
        }
        self.changed.borrow_and_update();
        self.looked_at = Some(now);
        self.caller = app.read(|tx| {
            let caller = self.caller.again(tx, now)?;
            // What ran in a sandbox that is gone has an end of its own.
            let Some(sandbox) = typed::get::<Sandbox>(tx, &self.sandbox)? else { return Ok(caller) };
            caller.using(tx, &self.sandbox)?;
            match app.is_silent(&sandbox) {
                true => Err(scenarios::silent()),
                false => Ok(caller),
            }
        })?;
        Ok(())
    }

    /// Resolves when a check may have another outcome than the one before.
    pub(super) async fn changed(&mut self, app: &App) {
        tokio::select! {
            // The sender lives in the app, so waiting cannot fail.
            _ = self.changed.changed() => {}
            () = app.wait_until(self.caller.key.expires_at) => {}
        }
        // That it was told of is seen now: the next check has to look all the same.
        self.looked_at = None;
    }

    /// Resolves when the machine of the sandbox does not answer, whoever asks.
    pub(super) async fn machine_is_silent(&self, app: &App) -> ApiError {
        app.silence(&self.sandbox).await;
        scenarios::silent()
    }
}
