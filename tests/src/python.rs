//! Python packages to compare with, each in a virtual environment of its own below the target folder.

use crate::skipped;
use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

/// The version of the published client that the suites compare with.
pub const VERSION: &str = "0.1.1";

/// A package, pinned.
struct Package {
    /// What it is called in a message.
    title: &'static str,
    /// Its name on the package index.
    name: &'static str,
    version: &'static str,
    /// What a script imports.
    module: &'static str,
}

const CLIENT: Package =
    Package { title: "the Python client", name: "sandboxer-sdk", version: VERSION, module: "sandboxer" };

const VALIDATOR: Package = Package {
    title: "the OpenAPI validator",
    name: "openapi-spec-validator",
    version: "0.9.0",
    module: "openapi_spec_validator",
};

/// An interpreter that has the published client. `None`, with a line that says why, where there is no python3 or no package
/// registry; where `CI` is set there must be both, so that panics.
pub fn client() -> Option<Python> {
    with(&CLIENT)
}

/// An interpreter that has an OpenAPI validator which shares no code with this workspace; `None` and a panic as with
/// [`client`].
pub fn openapi_validator() -> Option<Python> {
    with(&VALIDATOR)
}

fn with(package: &Package) -> Option<Python> {
    match prepare(package) {
        Ok(interpreter) => Some(Python { interpreter }),
        Err(why) if std::env::var_os("CI").is_some() => {
            panic!("CI is set, so {} must be there: {why}", package.title)
        }
        Err(why) => {
            skipped(&format!("{} is not there to compare with: {why}", package.title));
            None
        }
    }
}

/// An interpreter that has the package.
#[derive(Debug)]
pub struct Python {
    interpreter: PathBuf,
}

impl Python {
    /// What the script prints when it is given `input`; panics, with its complaint, when it fails.
    pub fn run(&self, script: &Path, input: &[u8]) -> Vec<u8> {
        let mut child = Command::new(&self.interpreter)
            .arg("-B")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", self.interpreter.display()));
        let stdin = child.stdin.take();
        // In a thread of its own: the script may print before it has read everything.
        let output = thread::scope(|scope| {
            scope.spawn(move || stdin.is_some_and(|mut stdin| stdin.write_all(input).is_ok()));
            child.wait_with_output()
        });
        let output = output.unwrap_or_else(|error| panic!("{}: {error}", script.display()));
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {complaint}", script.display());
        output.stdout
    }
}

/// Makes the environment unless an earlier run did.
fn prepare(package: &Package) -> Result<PathBuf, String> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let name = format!("python-{}-{}", package.name, package.version);
    let home = target.join(&name);
    let import = format!("import {}", package.module);
    let works = |home: &Path| run(Command::new(interpreter(home)).args(["-c", &import])).is_ok();
    if works(&home) {
        return Ok(interpreter(&home));
    }
    // Made aside and moved into place, so that two runs at once do not meet half of one.
    let aside = target.join(format!("{name}.{}", std::process::id()));
    let made = make(&aside, package);
    if made.is_ok() && fs::rename(&aside, &home).is_err() && !works(&home) {
        let _ = fs::remove_dir_all(&home);
        let _ = fs::rename(&aside, &home);
    }
    let _ = fs::remove_dir_all(&aside);
    made?;
    if works(&home) { Ok(interpreter(&home)) } else { Err(format!("{} does not work", home.display())) }
}

fn make(home: &Path, package: &Package) -> Result<(), String> {
    run(Command::new("python3").args(["-m", "venv"]).arg(home))?;
    let package = format!("{}=={}", package.name, package.version);
    run(Command::new(interpreter(home)).args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--retries=1",
        "--timeout=15",
        &package,
    ]))
}

fn interpreter(home: &Path) -> PathBuf {
    home.join("bin").join("python")
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let complaint = complaint.lines().last().unwrap_or("no complaint");
    Err(format!("{}: {complaint}", command.get_program().display()))
}
