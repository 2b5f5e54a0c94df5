//! A test's hand in the world: looking at it and changing it while the server runs.

use std::{path::PathBuf, sync::Arc, time::Duration};

use super::{
    commands::Command,
    ids,
    sandboxes::{Sandbox, State},
    seed::{WorldError, WorldSeed},
};
use crate::{
    app::{App, lock},
    store::{StoreError, Table, typed},
};

/// The state of a running server, to be looked at and changed from outside.
#[derive(Clone)]
pub struct World {
    app: Arc<App>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("sandboxes", &self.sandboxes()).finish_non_exhaustive()
    }
}

impl World {
    pub(crate) fn new(app: Arc<App>) -> Self {
        Self { app }
    }

    /// Adds plans, accounts, organisations and keys; those of the same ids are replaced. The machines stay as they are.
    ///
    /// # Errors
    ///
    /// The seed names a plan, account or preset that nothing stands for, or the store fails.
    pub fn plant(&self, seed: &WorldSeed) -> Result<(), WorldError> {
        let seed = seed.clone().check()?;
        let now = self.app.now();
        self.app.write(|tx| seed.plant(tx, now)).map_err(|error| WorldError::from_store(&error))
    }

    /// Ends a key at once.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub fn revoke_key(&self, secret: &str) -> Result<(), WorldError> {
        self.app
            .write(|tx| tx.remove(Table::Keys, &ids::digest(secret)))
            .map_err(|error| WorldError::from_store(&error))
    }

    /// Sets how long sandboxes stay in `provisioning` from now on.
    pub fn set_boot_delay(&self, delay: Duration) {
        lock(&self.app.machines).boot_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    }

    /// Sets how long stops stay pending from now on.
    pub fn set_stop_delay(&self, delay: Duration) {
        lock(&self.app.machines).stop_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    }

    /// Sets how many sandboxes can be up at once; those that are up already stay up.
    pub fn set_machines(&self, count: Option<u64>) {
        lock(&self.app.machines).count = count;
        self.app.machine_freed.notify_waiters();
    }

    /// Answers every start with `out_of_capacity`, or no longer.
    pub fn pause_starts(&self, paused: bool) {
        lock(&self.app.machines).paused = paused;
    }

    /// The ids of all sandboxes, whoever owns them, in the order of their ids.
    pub fn sandboxes(&self) -> Vec<String> {
        let all = self.app.read(|tx| typed::with_prefix::<Sandbox>(tx, ""));
        all.unwrap_or_default().into_iter().map(|sandbox| sandbox.id).collect()
    }

    /// A sandbox's state as the API writes it; `None` if there is no such sandbox.
    pub fn state(&self, id: &str) -> Option<&'static str> {
        let sandbox: Option<Sandbox> = self.app.read(|tx| typed::get(tx, id)).ok()?;
        sandbox.map(|sandbox| sandbox.state.as_str())
    }

    /// The folder on this machine that holds a sandbox's `home/user` and `tmp`.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.app.space(id).root
    }

    /// The shell lines of all recorded commands of a sandbox, the oldest first. Sandboxes with monitoring off record none.
    pub fn commands(&self, id: &str) -> Vec<String> {
        let all = self.app.read(|tx| typed::with_prefix::<Command>(tx, &format!("{id}/")));
        all.unwrap_or_default().into_iter().map(|command| command.text).collect()
    }

    /// Puts a sandbox into the state `error`, as a broken machine does. What runs in it runs on.
    ///
    /// # Errors
    ///
    /// There is no such sandbox, or the store fails.
    pub fn break_sandbox(&self, id: &str, why: &str) -> Result<(), WorldError> {
        self.set_state(id, State::Error, why)
    }

    /// Puts a sandbox into the state `cancelled`, as when no machine was found for it: it is shown once more.
    ///
    /// # Errors
    ///
    /// There is no such sandbox, or the store fails.
    pub fn cancel_sandbox(&self, id: &str, why: &str) -> Result<(), WorldError> {
        self.set_state(id, State::Cancelled, why)
    }

    fn set_state(&self, id: &str, state: State, why: &str) -> Result<(), WorldError> {
        let changed = self.app.write::<_, StoreError>(|tx| {
            let Some(mut sandbox) = typed::get::<Sandbox>(tx, id)? else { return Ok(None) };
            sandbox.state = state;
            sandbox.error = Some(why.to_owned());
            sandbox.has_machine = false;
            sandbox.archive_after = None;
            super::usage::end(tx, id, self.app.now())?;
            typed::put(tx, &sandbox)?;
            self.app.live(&sandbox).turn_to_new_course();
            Ok(Some(sandbox))
        });
        match changed.map_err(|error| WorldError::from_store(&error))? {
            Some(sandbox) => {
                self.app.live(&sandbox).announce(state);
                self.app.machine_freed.notify_waiters();
                Ok(())
            }
            None => Err(WorldError::no_sandbox(id)),
        }
    }
}
