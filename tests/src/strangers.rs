//! Strangers: published clients that run unchanged against the local server, and what their runs report.
//!
//! `strangers/README.md` says what a run is given and what it writes.

mod faults;
mod report;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

pub use self::{
    faults::{Fault, Faults},
    report::Report,
};
use crate::{
    aloud,
    python::{self, Package},
};

/// One run of one stranger.
#[derive(Clone, Copy, Debug)]
pub struct Suite<'a> {
    /// What it is called in its summary; also the name of its report below `target/strangers`.
    pub name: &'a str,
    /// The client as the list of faults names it.
    pub client: &'a str,
    /// How many public methods it has. Fixed as its version is; that fewer were found would otherwise go unnoticed.
    pub methods: usize,
    /// What has to be installed.
    pub package: &'a Package,
    /// The script, below `strangers`.
    pub script: &'a str,
    /// The arguments of the script.
    pub arguments: &'a [&'a str],
    /// What the script finds in its environment, besides where to report.
    pub environment: &'a [(&'a str, &'a str)],
    /// How long it may take. Not a measure of speed: what hangs is ended by this.
    pub limit: Duration,
}

impl Suite<'_> {
    /// Runs it, and panics unless each of its public methods was called and did what it should, but for the faults in the list,
    /// each of which must have shown. Nothing but a line where the client cannot be installed.
    pub fn run(&self) {
        let Some(python) = python::with(self.package) else { return };
        let report = target().join("strangers").join(format!("{}.jsonl", self.name));
        let _ = fs::create_dir_all(report.parent().unwrap_or(&report));
        let _ = fs::remove_file(&report);
        let mut command = python.command(&here().join(self.script));
        command
            .args(self.arguments)
            .env("PYTHONPATH", here().join("harness"))
            .env("STRANGER_REPORT", &report)
            .env("STRANGER_LIMIT", self.limit.as_secs().to_string())
            .envs(self.environment.iter().copied());
        // What the user of this machine has set is none of a stranger's business.
        for name in ["SANDBOXER_API_KEY", "SANDBOXER_TOKEN", "SANDBOXER_API_URL", "SANDBOXER_ORG"] {
            if !self.environment.iter().any(|(set, _)| *set == name) {
                command.env_remove(name);
            }
        }
        for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env_remove(name);
        }
        let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let said = String::from_utf8_lossy(&output.stderr);
        let lines = fs::read_to_string(&report).unwrap_or_default();
        let report =
            Report::read(&lines).unwrap_or_else(|problem| panic!("{}: {problem}\n{said}", self.name));
        let faults = Faults::read(&read("faults.json")).unwrap_or_else(|problem| panic!("{problem}"));
        let mut problems = report.problems(&faults, self.client);
        if report.methods() != self.methods {
            problems.push(format!("{} methods were found, not {}", report.methods(), self.methods));
        }
        if !output.status.success() {
            problems.push(format!("the script ended with {}", output.status));
        }
        aloud(&format!("STRANGER {}: {}", self.name, report.summary(&faults, self.client)));
        assert!(problems.is_empty(), "{}:\n{}\n{said}", self.name, problems.join("\n"));
    }
}

/// The folder of the scenarios.
fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("strangers")
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target")
}

fn read(name: &str) -> String {
    let path = here().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
