//! The system's `env`, and what it has to do for commands besides variables.

use std::path::{Path, PathBuf};

use tokio::process::Command;

/// The bit of SIGPIPE among the ignored signals: programs in Rust ignore it, and what they start does not inherit that.
const PIPE: u64 = 1 << 12;
/// The bits of the signals that have names.
const NAMED: u64 = 0x7fff_ffff;

/// The program.
#[derive(Clone, Debug)]
pub(crate) struct EnvProgram {
    path: PathBuf,
    resets_signals: bool,
}

impl EnvProgram {
    /// Finds out whether the server was started with signals ignored, as a script's background jobs are, and whether `env`
    /// can undo that: a shell that comes to life with SIGINT ignored can never catch it.
    pub(crate) async fn new(path: PathBuf) -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resets_signals = ignores_signals(&status) && can_reset(&path).await;
        Self { path, resets_signals }
    }

    /// What is put in front of a program so that it starts with no signal ignored; mostly nothing.
    pub(crate) fn with_default_signals(&self) -> Vec<String> {
        if self.resets_signals { vec![self.path(), "--default-signal".to_owned()] } else { Vec::new() }
    }

    /// What is put in front of a program so that it has these variables; without any, nothing.
    pub(crate) fn with_variables(&self, variables: Vec<&(String, String)>) -> Vec<String> {
        if variables.is_empty() {
            return Vec::new();
        }
        let variables = variables.into_iter().map(|(name, value)| format!("{name}={value}"));
        [self.path()].into_iter().chain(variables).collect()
    }

    fn path(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

fn ignores_signals(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default() & NAMED & !PIPE != 0
}

/// Only some systems' `env` have the option.
async fn can_reset(env: &Path) -> bool {
    let tried = Command::new(env).args(["--default-signal", "true"]).output().await;
    let can = tried.is_ok_and(|tried| tried.status.success());
    if !can {
        tracing::warn!("signals that are ignored here stay ignored in commands: `env` cannot reset them");
    }
    can
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_seen() {
        for (mask, ignores) in [
            ("0000000000000000", false),
            ("0000000000001000", false),
            ("0000000000001006", true),
            ("0000000080000000", false),
        ] {
            assert_eq!(
                ignores_signals(&format!("Name:\tx\nSigIgn:\t{mask}\nSigCgt:\t7\n")),
                ignores,
                "{mask}"
            );
        }
        assert!(!ignores_signals(""));
    }

    #[test]
    fn nothing_stands_in_front_of_most_commands() {
        let odd = ("a.b".to_owned(), "c d".to_owned());
        let mut env = EnvProgram { path: "/bin/env".into(), resets_signals: false };
        assert!(env.with_default_signals().is_empty() && env.with_variables(Vec::new()).is_empty());
        assert_eq!(env.with_variables(vec![&odd]), ["/bin/env", "a.b=c d"]);
        env.resets_signals = true;
        assert_eq!(env.with_default_signals(), ["/bin/env", "--default-signal"]);
    }
}
