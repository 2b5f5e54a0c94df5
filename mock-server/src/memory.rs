//! What a sandbox may hold of memory, which is what its machine has: a command that takes it beyond that is ended.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use sandboxer::clock::{Clock as _, SystemClock};
use tokio::sync::Notify;

use crate::{
    app::{App, Live, lock},
    runner::Runner,
    strays::Owners,
    world::sandboxes::{Sandbox, machine_class},
};

/// Real time between two looks.
const PERIOD: Duration = Duration::from_millis(500);

/// The sandboxes in which commands run, if the runner can tell of memory.
#[derive(Default)]
pub(crate) struct Watched {
    sandboxes: Mutex<HashMap<String, Known>>,
    begun: Notify,
}

/// What is known of one of them.
#[derive(Clone)]
struct Known {
    live: Arc<Live>,
    /// What its machine has, in bytes. It has another one only after it was stopped.
    limit: u64,
}

impl Watched {
    /// A command has begun to run, and its sandbox knows it already.
    pub(crate) fn add(&self, runner: &dyn Runner, sandbox: &Sandbox, live: &Arc<Live>) {
        if !runner.watches_memory() {
            return;
        }
        let limit = u64::from(machine_class(&sandbox.kind).memory_gb) << 30;
        let known = Known { live: live.clone(), limit };
        if lock(&self.sandboxes).insert(sandbox.id.clone(), known).is_none() {
            self.begun.notify_one();
        }
    }

    /// Those in which commands run still; the others are not looked at any more.
    fn now(&self) -> Vec<(String, Known)> {
        let mut sandboxes = lock(&self.sandboxes);
        sandboxes.retain(|_, known| known.live.jobs().iter().any(|job| !job.has_ended()));
        sandboxes.iter().map(|(id, known)| (id.clone(), known.clone())).collect()
    }
}

/// Looks at every sandbox in which commands run, for as long as the server runs; at none if the runner cannot tell of memory.
pub(crate) async fn keep_within(app: Arc<App>) {
    if !app.runner.watches_memory() {
        return;
    }
    // About real processes, not about modelled time.
    let clock = SystemClock::new();
    loop {
        let watched = app.watched.now();
        if watched.is_empty() {
            tokio::select! {
                () = app.watched.begun.notified() => {}
                () = app.closing.cancelled() => return,
            }
        }
        for (id, known) in watched {
            if let Err(error) = look(&app, &id, &known).await {
                tracing::debug!(sandbox = %id, %error, "the memory of a sandbox could not be read");
            }
        }
        tokio::select! {
            () = clock.sleep(PERIOD) => {}
            () = app.closing.cancelled() => return,
        }
    }
}

/// Ends the command that holds the most if the sandbox holds too much. What no command stands for is nobody's to end: if that
/// is the most of it, a command that is ended would be the wrong one.
async fn look(app: &App, id: &str, Known { live, limit }: &Known) -> io::Result<()> {
    let limit = *limit;
    let Some(shares) = app.runner.memory_beyond(&app.space(id), limit).await? else { return Ok(()) };
    let jobs = live.jobs();
    let running: Vec<_> = jobs.iter().filter(|job| !job.has_ended()).map(|job| job.record()).collect();
    let owners = Owners::new(shares.iter().map(|share| (share.pid, share.parent)), &running);
    let mut held: HashMap<Option<&str>, u64> = HashMap::new();
    for share in &shares {
        let owner = owners.of(share.pid).map(|command| command.id.as_str());
        *held.entry(owner).or_default() += share.bytes;
    }
    let most = held.into_iter().max_by_key(|(_, bytes)| *bytes);
    if let Some((Some(command), bytes)) = most
        && let Some(job) = jobs.iter().find(|job| job.id() == command)
    {
        tracing::info!(sandbox = %id, %command, bytes, limit, "a command is ended for lack of memory");
        job.starve();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{handlers::commands::begin_for_agent, testing::Setting, world::sandboxes::State};

    #[tokio::test]
    async fn a_runner_that_cannot_tell_is_not_asked() {
        let set = Setting::new();
        let sandbox = set.sandbox(State::Ready).await;
        let job = begin_for_agent(&set.app, &sandbox.id, "x".into()).await;
        job.map_err(|error| error.message().to_owned()).unwrap().ended().await;
        assert!(lock(&set.app.watched.sandboxes).is_empty());
        // It has nothing to look at and is over.
        keep_within(set.app.clone()).await;
    }
}
