//! Turning a `/proc` entry into a [`ProcessSample`].

use super::{
    ProcessSample,
    procfs::{Boot, ProcessDir, ticks},
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
        cpu_time: ticks(stat.cpu_ticks),
        io_bytes: io_bytes(process),
    })
}

/// What it has read from and written to disks; 0 if that may not be asked.
fn io_bytes(process: &ProcessDir) -> u64 {
    let text = process.read("io").unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let figure =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    ["read_bytes:", "write_bytes:"].into_iter().filter_map(figure).fold(0, u64::saturating_add)
}
