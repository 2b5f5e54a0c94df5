//! What the runner suites share: runners to test, folders for sandboxes, and short ways to run things.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::print_stderr,
    reason = "every suite uses its own part of it, and a skip is said aloud"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use sandboxer::clock::{Clock as _, SharedClock, SystemClock};
use sandboxer_mock_server::runner::{
    CommandSpec, Exit, OutputMode, OutputRing, Runner, RunnerKind, RunnerOptions, Running, Space, open,
};

pub const GRACE: Duration = Duration::from_secs(5);
/// Far beyond anything that is not a hang.
const HANG: Duration = Duration::from_secs(60);

pub struct Bench {
    pub runner: Arc<dyn Runner>,
    pub folder: tempfile::TempDir,
}

impl Bench {
    pub async fn new(kind: RunnerKind) -> Option<Self> {
        Self::with_clock(kind, SystemClock::shared()).await
    }

    pub async fn with_clock(kind: RunnerKind, clock: SharedClock) -> Option<Self> {
        Self::with_options(kind, RunnerOptions::new(clock)).await
    }

    /// `None`, and a printed reason, where this machine cannot isolate.
    pub async fn with_options(kind: RunnerKind, options: RunnerOptions) -> Option<Self> {
        match open(kind, &options).await {
            Ok((runner, _)) => Some(Self { runner, folder: tempfile::tempdir().unwrap() }),
            Err(error) if kind == RunnerKind::Isolated => {
                skip(error);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// The runners that really run commands here.
    pub async fn real() -> Vec<Self> {
        let mut benches = Vec::new();
        for kind in [RunnerKind::Isolated, RunnerKind::Process] {
            benches.extend(Self::new(kind).await);
        }
        benches
    }

    pub async fn space(&self, id: &str) -> Space {
        let space = Space::new(id, self.folder.path().join(id));
        self.runner.prepare(&space).await.unwrap();
        space
    }

    pub async fn start(&self, space: &Space, spec: CommandSpec) -> Running {
        in_time(self.runner.spawn(space, spec)).await.unwrap()
    }

    /// Runs a shell line to its end.
    pub async fn sh(&self, space: &Space, line: &str) -> Done {
        let running = self.start(space, shell(line)).await;
        let exit = in_time(running.wait()).await;
        Done { exit, stdout: text(running.output().stdout()), stderr: text(running.output().stderr()) }
    }

    /// Where the sandbox's home is for a command of this runner.
    pub fn home(&self, space: &Space) -> PathBuf {
        if self.runner.name() == "isolated" { "/home/user".into() } else { space.home() }
    }
}

/// Says why a test does nothing here.
pub fn skip(reason: impl std::fmt::Display) {
    eprintln!("skipped: {reason}");
}

#[derive(Debug)]
pub struct Done {
    pub exit: Exit,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    pub fn code(&self) -> i32 {
        self.exit.code.unwrap_or_else(|| panic!("{self:?}"))
    }
}

pub fn shell(line: &str) -> CommandSpec {
    with_env(CommandSpec::new(["/bin/sh", "-c", line]))
}

pub fn with_env(mut spec: CommandSpec) -> CommandSpec {
    let env = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"),
        ("HOME", "/home/user"),
        ("LANG", "C.UTF-8"),
    ];
    spec.env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    spec
}

pub fn paced(mut spec: CommandSpec, limit: usize) -> CommandSpec {
    spec.output = OutputMode::Backpressure;
    spec.output_limit = limit;
    spec
}

pub fn bytes(ring: &OutputRing) -> Vec<u8> {
    ring.read_at(0, usize::MAX).bytes.to_vec()
}

pub fn text(ring: &OutputRing) -> String {
    String::from_utf8(bytes(ring)).unwrap()
}

pub async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        () = SystemClock::new().sleep(HANG) => panic!("nothing happened for {HANG:?}"),
    }
}

/// Waits until `reached`, looking every few milliseconds.
pub async fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let clock = SystemClock::new();
    while !reached() {
        assert!(clock.elapsed() < HANG, "still waiting: {what}");
        clock.sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a command has printed `wanted`.
pub async fn until_printed(running: &Running, wanted: &str) {
    until(wanted, || text(running.output().stdout()).contains(wanted)).await;
}

/// The processes of the whole host, zombies aside, with `needle` in their command line.
pub fn host_processes_with(needle: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if pid != std::process::id() && String::from_utf8_lossy(&line).contains(needle) {
            found.push(pid);
        }
    }
    found
}

/// An odd number of seconds that no other `sleep` of this run uses, to find processes by.
pub fn unique_seconds() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{}.{:07}{}", 3000, std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub fn file_len(path: &Path) -> u64 {
    fs::metadata(path).map(|metadata| metadata.len()).unwrap_or(0)
}
