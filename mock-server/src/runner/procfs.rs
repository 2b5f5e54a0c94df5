//! A view of a `/proc`: the host's, or a sandbox's own reached through its holder.

use std::{
    ffi::CStr,
    io::{self, Read as _},
    os::fd::OwnedFd,
    path::Path,
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, readlinkat, statat},
    process::{Signal, pidfd_send_signal},
};

/// An open `/proc`; stays with the process-id namespace it shows.
#[derive(Debug)]
pub(crate) struct ProcTable(OwnedFd);

/// One process's folder in it. Stays with that very process: once it is gone everything here fails, so that a signal can
/// never hit a later process of the same number.
#[derive(Debug)]
pub(crate) struct ProcessDir {
    pub(crate) pid: u32,
    fd: OwnedFd,
}

/// The parts of `/proc/PID/stat` that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: u8,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    pub(crate) cpu_ticks: u64,
    pub(crate) start_ticks: u64,
    pub(crate) resident_pages: u64,
}

impl Stat {
    /// Ended, and only waiting to be reaped.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    fn parse(text: &[u8]) -> Option<Self> {
        // The name stands in parentheses and may hold anything, so count from the last one.
        let after_name = text.iter().rposition(|byte| *byte == b')')? + 1;
        let fields: Vec<&str> =
            std::str::from_utf8(&text[after_name..]).ok()?.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            state: *fields.first()?.as_bytes().first()?,
            parent: number(1)? as u32,
            group: number(2)? as u32,
            session: number(3)? as u32,
            cpu_ticks: number(11)? + number(12)?,
            start_ticks: number(19)?,
            resident_pages: number(21)?,
        })
    }
}

impl ProcTable {
    /// Opens the `/proc` mounted at `path`.
    pub(crate) fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self(openat(
            CWD,
            path.as_ref(),
            OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?))
    }

    /// Every process, in no promised order; those that end meanwhile are left out.
    pub(crate) fn processes(&self) -> io::Result<Vec<ProcessDir>> {
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            if let Some(pid) = pid_from_name(entry.file_name())
                && let Ok(process) = self.process(pid)
            {
                found.push(process);
            }
        }
        Ok(found)
    }

    /// The process `pid`.
    pub(crate) fn process(&self, pid: u32) -> io::Result<ProcessDir> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(ProcessDir { pid, fd: openat(&self.0, pid.to_string(), flags, Mode::empty())? })
    }
}

fn pid_from_name(name: &CStr) -> Option<u32> {
    name.to_str().ok()?.parse().ok()
}

impl ProcessDir {
    /// The identity of its namespace of that kind (`cgroup`, `user`, ...); `None` when it has ended or may not be asked.
    pub(crate) fn namespace(&self, kind: &str) -> Option<u64> {
        statat(&self.fd, format!("ns/{kind}"), AtFlags::empty()).ok().map(|stat| stat.st_ino)
    }

    /// The same, held open: the number is not given to another namespace while the file is open.
    pub(crate) fn open_namespace(&self, kind: &str) -> io::Result<OwnedFd> {
        Ok(openat(&self.fd, format!("ns/{kind}"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
    }

    pub(crate) fn stat(&self) -> Option<Stat> {
        Stat::parse(&self.read("stat").ok()?)
    }

    /// Its command line with spaces between the arguments; the bare name in brackets if it has none.
    pub(crate) fn command_line(&self) -> String {
        let line = self.read("cmdline").unwrap_or_default();
        let line = String::from_utf8_lossy(line.strip_suffix(&[0]).unwrap_or(&line)).replace('\0', " ");
        if !line.is_empty() {
            return line;
        }
        let name = self.read("comm").unwrap_or_default();
        format!("[{}]", String::from_utf8_lossy(&name).trim_end())
    }

    /// Whether its environment holds an entry that begins with `prefix`.
    pub(crate) fn environment_has(&self, prefix: &str) -> bool {
        self.read("environ")
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one.starts_with(prefix.as_bytes())))
    }

    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.fd, signal)?)
    }

    /// Whether one of its open files is one of these sockets.
    pub(crate) fn holds_socket(&self, inodes: &[u64]) -> bool {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(folder) = openat(&self.fd, "fd", flags, Mode::empty()) else { return false };
        let Ok(entries) = Dir::read_from(&folder) else { return false };
        entries.flatten().any(|entry| {
            readlinkat(&folder, entry.file_name(), Vec::new()).is_ok_and(|target| {
                let inode = target.to_str().ok().and_then(|target| target.strip_prefix("socket:["));
                let inode = inode.and_then(|rest| rest.strip_suffix(']')?.parse().ok());
                inode.is_some_and(|inode| inodes.contains(&inode))
            })
        })
    }

    /// What one of the files in it says.
    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = openat(&self.fd, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = Vec::new();
        std::fs::File::from(file).read_to_end(&mut text)?;
        Ok(text)
    }
}

/// When the machine was started and how long ago that was, for turning ticks into times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boot {
    at: SystemTime,
    uptime: Duration,
}

impl Boot {
    pub(crate) fn read() -> io::Result<Self> {
        let odd = || io::Error::new(io::ErrorKind::InvalidData, "unreadable figures in /proc");
        let stat = std::fs::read_to_string("/proc/stat")?;
        let at = stat.lines().find_map(|line| line.strip_prefix("btime ")).ok_or_else(odd)?;
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(at.trim().parse().map_err(|_| odd())?);
        let uptime = std::fs::read_to_string("/proc/uptime")?;
        let uptime: f64 = uptime.split(' ').next().and_then(|text| text.parse().ok()).ok_or_else(odd)?;
        Ok(Self { at, uptime: Duration::try_from_secs_f64(uptime).map_err(|_| odd())? })
    }

    pub(crate) fn started_at(&self, stat: &Stat) -> SystemTime {
        self.at + ticks(stat.start_ticks)
    }

    /// Processor time per time alive, in percent of one processor.
    pub(crate) fn cpu_percent(&self, stat: &Stat) -> f64 {
        let alive = self.uptime.saturating_sub(ticks(stat.start_ticks)).as_secs_f64();
        if alive > 0.0 { ticks(stat.cpu_ticks).as_secs_f64() / alive * 100.0 } else { 0.0 }
    }
}

/// Ticks of the kernel as a time.
pub(crate) fn ticks(count: u64) -> Duration {
    Duration::from_secs_f64(count as f64 / rustix::param::clock_ticks_per_second().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let text = b"7 (a) b (c)) S 3 4 5 0 -1 0 0 0 0 0 11 22 0 0 20 0 1 0 999 4096 12 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.state, stat.parent, stat.group, stat.session), (b'S', 3, 4, 5));
        assert_eq!((stat.cpu_ticks, stat.start_ticks, stat.resident_pages), (33, 999, 12));
        assert_eq!(Stat::parse(b"7 (x"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn this_process_is_seen() {
        let me = std::process::id();
        let table = ProcTable::open("/proc").unwrap();
        let process = table.processes().unwrap().into_iter().find(|process| process.pid == me).unwrap();
        assert!(process.namespace("pid").is_some());
        assert!(!process.stat().unwrap().is_dead());
        assert!(!process.command_line().is_empty());
        assert!(Boot::read().unwrap().cpu_percent(&process.stat().unwrap()) >= 0.0);
    }
}
