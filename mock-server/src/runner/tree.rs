//! Ending a tree of processes that may not want to end.

use std::{collections::HashSet, io, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use rustix::process::Signal;
use sandboxer::clock::{Clock as _, SharedClock, SystemClock};

use super::{PtySize, running::Control, terminal::Terminal};

/// Looks in a row that must find nobody: a single one can miss a process that is being replaced by its own child.
const EMPTY_LOOKS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// How long KILL is tried before the last resort, in real time: nothing but a fork storm or a stuck disk outlives it.
const KILLING: Duration = Duration::from_secs(3);

/// The processes of one command, or of everything in a sandbox.
pub(crate) trait Tree: Send + Sync + 'static {
    /// Who is alive now.
    fn members(&self) -> io::Result<Vec<Box<dyn Member>>>;
    /// Called while killing: wakes a stopped process that stands between the tree and the server.
    fn nudge(&self) {}
    /// Ends what signals could not.
    fn last_resort(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// What is asked of a running command: done to its processes, and to its terminal if it has one.
pub(crate) struct TreeControl {
    tree: Arc<dyn Tree>,
    terminal: Option<Terminal>,
    clock: SharedClock,
}

impl TreeControl {
    pub(crate) fn new(tree: Arc<dyn Tree>, terminal: Option<Terminal>, clock: SharedClock) -> Self {
        Self { tree, terminal, clock }
    }
}

impl Control for TreeControl {
    fn resize(&self, size: PtySize) -> io::Result<()> {
        match &self.terminal {
            Some(terminal) => terminal.resize(size),
            None => Err(io::Error::new(io::ErrorKind::Unsupported, "the command has no terminal")),
        }
    }

    fn signal(&self, signal: i32) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(signal_tree(self.tree.clone(), signal))
    }

    fn kill_tree(&self, grace: Duration) -> BoxFuture<'_, ()> {
        Box::pin(end_tree(self.tree.clone(), grace, self.clock.clone()))
    }
}

/// One living process.
pub(crate) trait Member: Send {
    /// Tells this process from every other one.
    fn identity(&self) -> (u32, u64);
    /// Sends it a signal; a process that has ended meanwhile is nobody's error.
    fn signal(&self, signal: Signal);
}

/// The signal of that number.
pub(crate) fn signal_from(number: i32) -> io::Result<Signal> {
    Signal::from_named_raw(number).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{number} is not a standard signal"))
    })
}

/// Sends `number` to every member once.
pub(crate) async fn signal_tree(tree: Arc<dyn Tree>, number: i32) -> io::Result<()> {
    let signal = signal_from(number)?;
    off_the_runtime(move || {
        let members = tree.members()?;
        members.iter().for_each(|member| member.signal(signal));
        if signal == Signal::CONT {
            tree.nudge();
        }
        Ok(())
    })
    .await
}

/// TERM to every member, KILL to those left after `grace` on `clock`; returns when nobody is left.
///
/// Runs as a task of its own: dropping the future does not stop it half-way.
pub(crate) async fn end_tree(tree: Arc<dyn Tree>, grace: Duration, clock: SharedClock) {
    let task = tokio::spawn(async move {
        if !grace.is_zero() {
            let deadline = clock.sleep(grace);
            tokio::select! {
                () = until_gone(&tree, Signal::TERM, false) => return,
                () = deadline => {}
            }
        }
        let limit = SystemClock::new().sleep(KILLING);
        tokio::select! {
            () = until_gone(&tree, Signal::KILL, true) => {}
            () = limit => tree.last_resort().await,
        }
    });
    // Fails only when the runtime goes down, and then there is nothing left to wait for.
    let _ = task.await;
}

/// Sends `signal` to whoever shows up until nobody does; to the same process again only if `again`.
async fn until_gone(tree: &Arc<dyn Tree>, signal: Signal, again: bool) {
    // What is awaited here are real processes, not modelled time.
    let pace = SystemClock::new();
    let (mut empty_looks, mut pause) = (0, FIRST_PAUSE);
    let mut told = HashSet::new();
    while empty_looks < EMPTY_LOOKS {
        let looking = tree.clone();
        let members = off_the_runtime(move || {
            let mut seen = Vec::new();
            for member in looking.members()? {
                if again || !told.contains(&member.identity()) {
                    member.signal(signal);
                }
                seen.push(member.identity());
            }
            told.extend(seen.iter().copied());
            if again {
                looking.nudge();
            }
            Ok((seen.len(), told))
        });
        let Ok((count, told_now)) = members.await else { return };
        told = told_now;
        if count == 0 {
            empty_looks += 1;
            pause = FIRST_PAUSE;
        } else {
            empty_looks = 0;
        }
        if empty_looks < EMPTY_LOOKS {
            pace.sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}
