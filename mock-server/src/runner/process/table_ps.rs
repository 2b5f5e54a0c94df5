//! The host's processes, as far as the `process` runner wants to know them: from `ps`, where there is no `/proc`.

use std::{
    io,
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use rustix::process::{Pid, Signal, kill_process};
use sandboxer::clock::{Clock as _, SystemClock};

use crate::runner::{ProcessSample, tree::Member};

const KIB_PER_MIB: f64 = 1024.0;

/// One living process.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    /// Not told by every `ps`; the group stands in.
    pub(crate) session: u32,
    resident_kib: f64,
    age: Duration,
    cpu_percent: f64,
    command: String,
}

/// The moment of looking, from which start times are counted back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boot(SystemTime);

impl Boot {
    pub(crate) fn read() -> io::Result<Self> {
        Ok(Self(SystemClock::new().now()))
    }
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let mut next = || fields.next();
        let (pid, parent, group) = (next()?.parse().ok()?, next()?.parse().ok()?, next()?.parse().ok()?);
        if next()?.starts_with('Z') {
            return None;
        }
        let (resident_kib, age, cpu_percent) = (next()?.parse().ok()?, age(next()?)?, next()?.parse().ok()?);
        let command = fields.collect::<Vec<_>>().join(" ");
        Some(Self { pid, parent, group, session: group, resident_kib, age, cpu_percent, command })
    }

    pub(crate) fn namespace(&self, _: &str) -> Option<u64> {
        None
    }

    pub(crate) fn environment_has(&self, _: &str) -> bool {
        false
    }

    pub(crate) fn sample(&self, boot: &Boot, user: &str) -> Option<ProcessSample> {
        Some(ProcessSample {
            pid: self.pid,
            parent: self.parent,
            user: user.to_owned(),
            started_at: boot.0.checked_sub(self.age)?,
            cpu_percent: self.cpu_percent,
            memory_mb: self.resident_kib / KIB_PER_MIB,
            command: self.command.clone(),
            cpu_time: self.age.mul_f64((self.cpu_percent / 100.0).max(0.0)),
            io_bytes: 0,
        })
    }
}

/// `[[days-]hours:]minutes:seconds`.
fn age(text: &str) -> Option<Duration> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let mut seconds = 0;
    for part in clock.split(':') {
        seconds = seconds * 60 + part.parse::<u64>().ok()?;
    }
    Some(Duration::from_secs(days.parse::<u64>().ok()? * 86_400 + seconds))
}

impl Member for Row {
    fn identity(&self) -> (u32, u64) {
        (self.pid, 0)
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            // Fails when it has ended.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Every living process.
pub(crate) fn rows() -> io::Result<Vec<Row>> {
    let output = Command::new("ps")
        .args(["-A", "-o", "pid=,ppid=,pgid=,stat=,rss=,etime=,pcpu=,args="])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(Row::parse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ps_are_understood() {
        let row = Row::parse("  12   1   12 Ss   2048 1-02:03:04  0.5 sleep 30").unwrap();
        assert_eq!((row.pid, row.parent, row.group, row.command.as_str()), (12, 1, 12, "sleep 30"));
        assert_eq!(row.age, Duration::from_secs(86_400 + 2 * 3600 + 3 * 60 + 4));
        let boot = Boot::read().unwrap();
        assert_eq!(row.sample(&boot, "u").unwrap().memory_mb, 2.0);
        assert!(Row::parse("12 1 12 Z 0 00:01 0.0 [x]").is_none());
        assert!(Row::parse("garbage").is_none());
    }

    #[test]
    fn this_process_is_listed() {
        let me = std::process::id();
        assert!(rows().unwrap().iter().any(|row| row.identity() == (me, 0)));
    }
}
