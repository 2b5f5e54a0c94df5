//! The machine's processes, to see what a command left behind.

use std::fs;

/// The ids of the host's processes whose command line contains `marker`, this test's own process left out.
pub fn with_marker(marker: &str) -> Vec<u32> {
    let own = std::process::id();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(marker))
        })
        .collect()
}
