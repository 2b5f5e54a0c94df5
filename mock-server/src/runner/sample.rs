//! Turning a `/proc` entry into a [`ProcessSample`].

use super::{
    ProcessSample,
    procfs::{Boot, ProcessDir},
};

const MIB: f64 = 1024.0 * 1024.0;

/// What `process` is like now; `None` once it has ended.
pub(crate) fn take(process: &ProcessDir, boot: &Boot, user: &str) -> Option<ProcessSample> {
    let stat = process.stat().filter(|stat| !stat.is_dead())?;
    let resident = stat.resident_pages as f64 * rustix::param::page_size() as f64;
    Some(ProcessSample {
        pid: process.pid,
        parent: stat.parent,
        user: user.to_owned(),
        started_at: boot.started_at(&stat),
        cpu_percent: boot.cpu_percent(&stat),
        memory_mb: resident / MIB,
        command: process.command_line(),
    })
}
