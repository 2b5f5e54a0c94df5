//! A test's hand in the world: looking at it and changing it while the server runs.

use std::{path::PathBuf, sync::Arc, time::Duration};

use super::{
    commands::Command,
    deliveries::{Delivery, WebhookDelivery},
    fill, ids,
    keys::{self, Key},
    sandboxes::{Sandbox, State},
    scenarios::Scenario,
    seed::{AgentsSeed, WorldError, WorldSeed},
};
use crate::{
    agent::{self, PersonPrompt},
    app::{App, lock},
    lifecycle, snapshots,
    store::{StoreError, typed},
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

    /// Adds plans, accounts, organisations and keys; those of the same ids are replaced. Webhooks, environments and what an
    /// account turns off are planted if the seed says something else about them than it did before. The machines stay as
    /// they are.
    ///
    /// # Errors
    ///
    /// The seed names a plan, account or preset that nothing stands for, or the store fails.
    pub fn plant(&self, seed: &WorldSeed) -> Result<(), WorldError> {
        let seed = seed.clone().check()?;
        let now = self.app.now();
        let planted = self.app.write(|tx| seed.plant(tx, now));
        self.app.reach_changed.send_replace(());
        planted.map_err(|error| WorldError::from_store(&error))
    }

    /// Ends a key at once.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub fn revoke_key(&self, secret: &str) -> Result<(), WorldError> {
        let now = self.app.now();
        let revoked = self.app.write(|tx| match typed::get::<Key>(&*tx, &ids::digest(secret))? {
            Some(key) => keys::revoke(tx, key, now),
            None => Ok(()),
        });
        self.app.reach_changed.send_replace(());
        revoked.map_err(|error| WorldError::from_store(&error))
    }

    /// Sets how long sandboxes stay in `provisioning` from now on.
    pub fn set_boot_delay(&self, delay: Duration) {
        lock(&self.app.machines).boot_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    }

    /// Sets how long creates and forks are at work from now on, before anything is made.
    pub fn set_start_delay(&self, delay: Duration) {
        lock(&self.app.machines).start_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
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

    /// Sets how long resumed and forked sandboxes go without some of their files from now on.
    pub fn set_hydrate_delay(&self, delay: Duration) {
        lock(&self.app.machines).hydrate_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    }

    /// Sets how long `recover` takes from now on.
    pub fn set_recover_delay(&self, delay: Duration) {
        lock(&self.app.machines).recover_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    }

    /// Sets how long deletions go on from now on.
    pub fn set_delete_delay(&self, delay: Duration) {
        lock(&self.app.machines).delete_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    }

    /// Sets how long the saves of named snapshots take from now on.
    pub fn set_save_delay(&self, delay: Duration) {
        lock(&self.app.machines).save_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
    }

    /// Sets how often the disks of sandboxes that are up are captured from now on; never with zero.
    pub fn set_capture_every(&self, period: Duration) {
        let period = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        lock(&self.app.machines).capture_every_ms = Some(period);
        self.app.captures_changed.notify_one();
    }

    /// Sets the agents up anew; turns that run go on.
    ///
    /// # Errors
    ///
    /// The names of the agents that are signed in stand for none, or no conversation could be at work.
    pub fn set_agents(&self, agents: AgentsSeed) -> Result<(), WorldError> {
        self.app.agents.set(agents.checked()?);
        Ok(())
    }

    /// Prompts as a person does in a browser, with files and citations, which the API does not take; answers with the id of
    /// the prompt.
    ///
    /// # Errors
    ///
    /// What the API would refuse: there is no such sandbox or conversation, the sandbox is stopped, or the agent is not
    /// signed in; or the store fails.
    pub fn prompt(&self, sandbox: &str, prompt: PersonPrompt) -> Result<String, WorldError> {
        let prompt = agent::submit(&self.app, sandbox, &prompt.into(), |_, _| Ok(())).map_err(|error| {
            WorldError(format!("the prompt was refused: {}: {}", error.code(), error.message()))
        })?;
        self.app.agents.wake_from_outside(&self.app, sandbox);
        Ok(prompt.id)
    }

    /// Turns a scenario on or off for every sandbox; what was set for single ones is forgotten.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub fn set_scenario(&self, scenario: Scenario, on: bool) -> Result<(), WorldError> {
        lock(&self.app.scenarios).set(scenario, on);
        self.settle()
    }

    /// Turns a scenario on or off for one sandbox, whatever holds for the others; by its id, or by its name, which one may
    /// bear that is not there yet.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub fn set_scenario_for(&self, sandbox: &str, scenario: Scenario, on: bool) -> Result<(), WorldError> {
        lock(&self.app.scenarios).set_for(sandbox, scenario, on);
        self.settle()
    }

    /// Brings every sandbox to where the scenarios want it, and tells whoever waits for something to be reached.
    fn settle(&self) -> Result<(), WorldError> {
        self.app.reach_changed.send_replace(());
        let settled = lifecycle::settle_all(&self.app).and_then(|()| agent::waiting(&self.app));
        for id in settled.map_err(|error| WorldError::from_store(&error))? {
            self.app.agents.wake_from_outside(&self.app, &id);
        }
        Ok(())
    }

    /// The ids of all sandboxes, whoever owns them, in the order of their ids.
    pub fn sandboxes(&self) -> Vec<String> {
        let all = self.app.read(|tx| typed::with_prefix::<Sandbox>(tx, ""));
        all.unwrap_or_default().into_iter().map(|sandbox| sandbox.id).collect()
    }

    /// Adds stopped sandboxes to the account of a key, the oldest of them with a history of so many commands, and hands back
    /// their ids from the oldest to the newest: a full world for measurements, without the time that using it up would
    /// take. Nothing of them is on a disk.
    ///
    /// # Errors
    ///
    /// The key is not known, or the store fails.
    pub fn fill(&self, key: &str, sandboxes: usize, commands: usize) -> Result<Vec<String>, WorldError> {
        fill::fill(&self.app, key, sandboxes, commands)
    }

    /// Adds so many events to a sandbox, of one conversation that is made for them, and hands back its id: a full list for
    /// measurements.
    ///
    /// # Errors
    ///
    /// The store fails.
    pub fn fill_events(&self, sandbox: &str, count: usize) -> Result<String, WorldError> {
        fill::fill_events(&self.app, sandbox, count)
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

    /// The deliveries of a webhook endpoint in the last 30 days, in the order of what they tell of.
    pub fn deliveries(&self, endpoint: &str) -> Vec<WebhookDelivery> {
        let all = self.app.read(|tx| typed::with_prefix::<Delivery>(tx, &format!("{endpoint}/")));
        all.unwrap_or_default().into_iter().map(WebhookDelivery::from).collect()
    }

    /// Captures the disk of a sandbox as it is now, as a stop does, and answers with the snapshot's id: it stays until it is
    /// deleted. Blocks until it is copied.
    ///
    /// # Errors
    ///
    /// There is no such sandbox, it keeps no snapshots, its disk cannot be copied, or the store fails.
    pub fn capture(&self, id: &str) -> Result<String, WorldError> {
        snapshots::capture_now(&self.app, id).map_err(|problem| WorldError::capture(id, &problem))
    }

    /// Puts a sandbox into the state `error`, as a broken machine does. What runs in it runs on, but for prompts, which fail.
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
            let before = std::mem::replace(&mut sandbox.state, state);
            sandbox.error = Some(why.to_owned());
            sandbox.has_machine = false;
            sandbox.archive_after = None;
            super::usage::end(tx, id, self.app.now())?;
            agent::end_open(tx, id, None, &agent::Ending::Failed(why.to_owned()), self.app.now())?;
            typed::put(tx, &sandbox)?;
            super::happenings::state_changed(tx, &sandbox, before, self.app.now())?;
            self.app.live(&sandbox).turn_to_new_course();
            Ok(Some(sandbox))
        });
        match changed.map_err(|error| WorldError::from_store(&error))? {
            Some(sandbox) => {
                self.app.live(&sandbox).announce(state);
                self.app.agents.cancel(id);
                self.app.happened.notify_waiters();
                self.app.machine_freed.notify_waiters();
                Ok(())
            }
            None => Err(WorldError::no_sandbox(id)),
        }
    }
}
