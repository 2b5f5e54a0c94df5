//! Which processes of a sandbox belong to one command, and what can be done to them.

use std::{
    collections::{HashMap, HashSet},
    io,
    os::fd::OwnedFd,
    sync::Arc,
};

use futures_util::future::BoxFuture;
use rustix::process::{Signal, pidfd_send_signal};

use crate::runner::{
    holder::Holder,
    procfs::ProcessDir,
    tree::{Member, Tree},
};

/// Everything that carries one command's mark.
pub(super) struct CommandTree {
    pub(super) holder: Arc<Holder>,
    pub(super) tag: u64,
    /// The process outside that waits for the command.
    pub(super) outer: OwnedFd,
}

impl CommandTree {
    /// Whether the main process is still there.
    pub(super) fn is_running(&self, pid: u32) -> bool {
        self.holder.table.process(pid).is_ok_and(|main| {
            main.namespace("cgroup") == Some(self.tag) && main.stat().is_some_and(|stat| !stat.is_dead())
        })
    }
}

impl Tree for CommandTree {
    fn members(&self) -> io::Result<Vec<Box<dyn Member>>> {
        let known = self.holder.tags.all();
        let mut alive = HashMap::new();
        for process in self.holder.table.processes()? {
            if process.pid == 1 {
                continue;
            }
            if let Some(stat) = process.stat().filter(|stat| !stat.is_dead()) {
                let tag = process.namespace("cgroup");
                alive.insert(
                    process.pid,
                    Living { parent: stat.parent, started: stat.start_ticks, tag, process },
                );
            }
        }
        let members: HashSet<u32> =
            alive.keys().copied().filter(|pid| belongs(&alive, *pid, self.tag, &known)).collect();
        Ok(alive
            .into_iter()
            .filter(|(pid, _)| members.contains(pid))
            .map(|(_, living)| Box::new(living) as Box<dyn Member>)
            .collect())
    }

    fn nudge(&self) {
        // A command that was stopped has stopped the process that waits for it, too. Fails when that has ended.
        let _ = pidfd_send_signal(&self.outer, Signal::CONT);
    }

    fn last_resort(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.holder.stop())
    }
}

struct Living {
    parent: u32,
    started: u64,
    tag: Option<u64>,
    process: ProcessDir,
}

impl Member for Living {
    fn identity(&self) -> (u32, u64) {
        (self.process.pid, self.started)
    }

    fn signal(&self, signal: Signal) {
        // Fails when it has ended.
        let _ = self.process.signal(signal);
    }
}

/// Whether `pid` is one of the command marked `tag`.
///
/// A process can give itself a cgroup namespace of its own (inside a new user namespace) and so lose its mark. It then
/// counts for its nearest marked ancestor; if it has none but hangs on process 1 it is a stray, and every kill takes
/// strays along: better than leaving one behind. A process on its way in hangs on 0 and is no stray.
fn belongs(alive: &HashMap<u32, Living>, pid: u32, tag: u64, known: &HashSet<u64>) -> bool {
    let mut pid = pid;
    // The bound only matters if parents changed while they were being read.
    for _ in 0..=alive.len() {
        let Some(living) = alive.get(&pid) else { break };
        match living.tag {
            Some(own) if known.contains(&own) => return own == tag,
            _ => pid = living.parent,
        }
    }
    pid == 1
}
