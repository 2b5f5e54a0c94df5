//! The machine that the figures are of.

use std::{fs, process::Command};

/// One line about the machine.
pub(crate) fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, name)| name);
    let rustc = Command::new("rustc").arg("--version").output();
    let rustc = rustc.map_or_else(|_| "rustc unknown".into(), |out| text(&out.stdout));
    format!("{cores} cores of {model}, Linux {kernel}, {rustc}, load {}", load())
}

/// The load of the last one, five and fifteen minutes.
pub(crate) fn load() -> String {
    let all = read("/proc/loadavg");
    all.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// The most memory this process has held since [`reset_peak`], in bytes; nothing where the system does not tell.
pub(crate) fn peak() -> Option<u64> {
    figure("VmHWM:")
}

/// The memory this process holds, in bytes; nothing where the system does not tell.
pub(crate) fn resident() -> Option<u64> {
    figure("VmRSS:")
}

/// Starts the peak afresh.
pub(crate) fn reset_peak() {
    // Where that is not possible the peak is that of the whole run, which is an upper bound.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn figure(name: &str) -> Option<u64> {
    let status = read("/proc/self/status");
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map(|all| all.trim().to_owned()).unwrap_or_default()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
