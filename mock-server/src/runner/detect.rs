//! Choosing a runner.

use std::{fmt, path::PathBuf, str::FromStr, sync::Arc};

use sandboxer::clock::SharedClock;

#[cfg(target_os = "linux")]
use super::IsolatedRunner;
use super::{ProcessRunner, Runner, RunnerError, ScriptedRunner};

/// What network the commands of the `isolated` runner have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// A loopback of the sandbox's own and nothing else.
    #[default]
    None,
    /// The host's.
    Host,
}

/// Which runner is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunnerKind {
    /// `isolated` where it works, else `process`.
    #[default]
    Auto,
    /// Namespaces of the sandbox's own.
    Isolated,
    /// Plain processes.
    Process,
    /// No processes.
    Scripted,
}

impl RunnerKind {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Auto, "auto"),
        (Self::Isolated, "isolated"),
        (Self::Process, "process"),
        (Self::Scripted, "scripted"),
    ];
}

impl fmt::Display for RunnerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(kind, _)| kind == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for RunnerKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found
            .map(|(kind, _)| *kind)
            .ok_or_else(|| format!("no runner is called {text:?}: auto, isolated, process or scripted"))
    }
}

/// What every runner is made from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunnerOptions {
    /// The network of `isolated` commands.
    pub network: Network,
    /// Paces the kill grace and the drain after a command's end.
    pub clock: SharedClock,
    /// Host folders that no `isolated` command may see: the server's data folder above all. `/home`, `/root`, `/run`,
    /// `/tmp` and `/var/tmp` are hidden without being named.
    pub hide: Vec<PathBuf>,
    /// Where the runner keeps a few small files of its own while it lives; the system's temporary folder if unset.
    pub scratch: Option<PathBuf>,
}

impl RunnerOptions {
    /// No network, nothing hidden beyond the usual.
    pub fn new(clock: SharedClock) -> Self {
        Self { network: Network::None, clock, hide: Vec::new(), scratch: None }
    }

    /// Sets the network.
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Hides another folder.
    pub fn hide(mut self, folder: impl Into<PathBuf>) -> Self {
        self.hide.push(folder.into());
        self
    }

    /// Sets the folder for the runner's own files; it must exist.
    pub fn scratch(mut self, folder: impl Into<PathBuf>) -> Self {
        self.scratch = Some(folder.into());
        self
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn scratch_folder(&self, prefix: &str) -> std::io::Result<tempfile::TempDir> {
        let parent = self.scratch.clone().unwrap_or_else(std::env::temp_dir);
        tempfile::Builder::new().prefix(prefix).tempdir_in(parent)
    }
}

/// The best runner that works here, and a line to say at start, if there is something to say.
pub async fn detect(options: &RunnerOptions) -> (Arc<dyn Runner>, Option<String>) {
    let why = match isolated(options).await {
        Ok(runner) => {
            let notice = runner.limitations();
            return (runner, notice);
        }
        Err(RunnerError::Unavailable(what)) => what,
        Err(other) => other.to_string(),
    };
    let runner = ProcessRunner::new(options).await;
    let limits = runner.limitations().unwrap_or_default();
    (Arc::new(runner), Some(format!("commands are not isolated ({why}); {limits}")))
}

/// The runner that was asked for, and a line to say at start, if there is something to say.
///
/// # Errors
/// [`RunnerError::Unavailable`] when `isolated` was asked for and does not work here; says what is missing.
pub async fn open(
    kind: RunnerKind,
    options: &RunnerOptions,
) -> Result<(Arc<dyn Runner>, Option<String>), RunnerError> {
    let runner: Arc<dyn Runner> = match kind {
        RunnerKind::Auto => return Ok(detect(options).await),
        RunnerKind::Isolated => isolated(options).await?,
        RunnerKind::Process => Arc::new(ProcessRunner::new(options).await),
        RunnerKind::Scripted => Arc::new(ScriptedRunner::new(options.clock.clone())),
    };
    let notice = runner.limitations();
    Ok((runner, notice))
}

#[cfg(target_os = "linux")]
async fn isolated(options: &RunnerOptions) -> Result<Arc<dyn Runner>, RunnerError> {
    Ok(Arc::new(IsolatedRunner::new(options).await?))
}

#[cfg(not(target_os = "linux"))]
async fn isolated(_: &RunnerOptions) -> Result<Arc<dyn Runner>, RunnerError> {
    Err(RunnerError::Unavailable("it needs Linux".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names() {
        for (kind, name) in RunnerKind::ALL {
            assert_eq!(kind.to_string(), name);
            assert_eq!(name.parse(), Ok(kind));
        }
        assert!("docker".parse::<RunnerKind>().unwrap_err().contains("isolated"));
    }
}
