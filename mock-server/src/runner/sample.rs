//! Turning a `/proc` entry into a [`ProcessSample`].

use std::io;

use super::{
    MemoryShare, ProcessSample,
    procfs::{Boot, ProcTable, ProcessDir, ticks},
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

/// What the processes of a sandbox's own table hold of memory, if it is more than `limit` bytes together.
pub(crate) fn memory_beyond(table: &ProcTable, limit: u64) -> io::Result<Option<Vec<MemoryShare>>> {
    let page = rustix::param::page_size() as u64;
    let mut resident = 0_u64;
    let mut alive = Vec::new();
    for process in table.processes()?.into_iter().filter(|process| process.pid != 1) {
        if let Some(stat) = process.stat().filter(|stat| !stat.is_dead()) {
            resident = resident.saturating_add(stat.resident_pages.saturating_mul(page));
            alive.push((process, stat.parent));
        }
    }
    // What is resident is quick to read and never less than what counts.
    if resident <= limit {
        return Ok(None);
    }
    let share = |(process, parent): (ProcessDir, u32)| MemoryShare {
        pid: process.pid,
        parent,
        bytes: own_bytes(&process),
    };
    let shares: Vec<_> = alive.into_iter().map(share).collect();
    let held = shares.iter().fold(0_u64, |sum, share| sum.saturating_add(share.bytes));
    Ok((held > limit).then_some(shares))
}

/// Its part of memory that is no copy of files; none if that may not be asked.
fn own_bytes(process: &ProcessDir) -> u64 {
    let text = process.read("smaps_rollup").unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let figure = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    let kib = ["Pss_Anon:", "Pss_Shmem:"].into_iter().filter_map(figure).fold(0, u64::saturating_add);
    kib.saturating_mul(1024)
}
