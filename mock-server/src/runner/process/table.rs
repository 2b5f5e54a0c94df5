//! The host's processes, as far as the `process` runner wants to know them: from `/proc`.

use std::io;

use rustix::process::Signal;

use crate::runner::{
    ProcessSample,
    procfs::{Boot, ProcTable, ProcessDir, Stat},
    sample,
    tree::Member,
};

/// One living process.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    started: u64,
    process: ProcessDir,
}

impl Row {
    fn new(process: ProcessDir) -> Option<Self> {
        let Stat { parent, group, session, start_ticks, .. } =
            process.stat().filter(|stat| !stat.is_dead())?;
        Some(Self { pid: process.pid, parent, group, session, started: start_ticks, process })
    }

    /// The identity of its namespace of that kind, where it may be asked.
    pub(crate) fn namespace(&self, kind: &str) -> Option<u64> {
        self.process.namespace(kind)
    }

    /// Whether its environment holds an entry that begins like that.
    pub(crate) fn environment_has(&self, prefix: &str) -> bool {
        self.process.environment_has(prefix)
    }

    /// Whether one of its open files is one of these sockets.
    pub(crate) fn holds_socket(&self, inodes: &[u64]) -> bool {
        self.process.holds_socket(inodes)
    }

    /// What it is like now.
    pub(crate) fn sample(&self, boot: &Boot, user: &str) -> Option<ProcessSample> {
        sample::take(&self.process, boot, user)
    }
}

impl Member for Row {
    fn identity(&self) -> (u32, u64) {
        (self.pid, self.started)
    }

    fn signal(&self, signal: Signal) {
        // Fails when it has ended.
        let _ = self.process.signal(signal);
    }
}

/// Every living process.
pub(crate) fn rows() -> io::Result<Vec<Row>> {
    Ok(ProcTable::open("/proc")?.processes()?.into_iter().filter_map(Row::new).collect())
}
