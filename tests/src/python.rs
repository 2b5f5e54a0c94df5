//! Python packages to compare with, each in a virtual environment of its own below the target folder.
//!
//! What is installed stands in a file below `requirements`: the package and all it brings along, each in one version.

use crate::aloud;
use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
};

/// A package in one version, as a file of requirements has it.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// What it is called in a message.
    pub title: &'static str,
    /// Its file below `requirements`, without the ending; also names its environment.
    pub name: &'static str,
    /// What a script imports.
    pub module: &'static str,
}

/// The published client.
pub const CLIENT: Package =
    Package { title: "the Python client", name: "sandboxer-sdk", module: "sandboxer" };

/// The published client of the sibling service.
pub const SIBLING: Package =
    Package { title: "the sibling's Python client", name: "boat-sdk", module: "boat_sdk" };

/// An OpenAPI validator which shares no code with this workspace.
pub const VALIDATOR: Package = Package {
    title: "the OpenAPI validator",
    name: "openapi-spec-validator",
    module: "openapi_spec_validator",
};

/// [`with`] the published client.
pub fn client() -> Option<Python> {
    with(&CLIENT)
}

/// [`with`] the OpenAPI validator.
pub fn openapi_validator() -> Option<Python> {
    with(&VALIDATOR)
}

/// An interpreter that has the package. `None`, with one line a process that says why, where there is no python3 or no package
/// registry; where `CI` is set there must be both, so that panics with the words of the installer.
pub fn with(package: &Package) -> Option<Python> {
    // The tests of one process that need the same wait for the first of them, and look no further.
    static PREPARED: Mutex<BTreeMap<&str, Result<PathBuf, String>>> = Mutex::new(BTreeMap::new());
    let must_be_there = std::env::var_os("CI").is_some();
    let prepared = {
        let mut all = PREPARED.lock().unwrap_or_else(PoisonError::into_inner);
        match all.entry(package.name) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(unknown) => {
                let prepared = prepare(package);
                if let Err(why) = &prepared
                    && !must_be_there
                {
                    let why = why.lines().last().unwrap_or_default();
                    aloud(&format!("SKIPPED: {} is not there to compare with: {why}", package.title));
                }
                unknown.insert(prepared).clone()
            }
        }
    };
    match prepared {
        Ok(interpreter) => Some(Python { interpreter }),
        Err(why) => {
            assert!(!must_be_there, "CI is set, so {} must be there: {why}", package.title);
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
    /// The script, to be given arguments and an environment and started.
    pub fn command(&self, script: &Path) -> Command {
        let mut command = Command::new(&self.interpreter);
        // Nothing is written beside the script.
        command.arg("-B").arg(script);
        command
    }

    /// What the script prints when it is given `input`; panics, with its complaint, when it fails.
    pub fn run(&self, script: &Path, input: &[u8]) -> Vec<u8> {
        let mut child = self
            .command(script)
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

/// Makes the environment unless an earlier run did, of the same requirements.
fn prepare(package: &Package) -> Result<PathBuf, String> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let requirements = tests.join("requirements").join(format!("{}.txt", package.name));
    let wanted = fs::read(&requirements).map_err(|error| format!("{}: {error}", requirements.display()))?;
    let name = format!("python-{}", package.name);
    let home = tests.join("../target").join(&name);
    let import = format!("import {}", package.module);
    let works = |home: &Path| {
        fs::read(home.join(INSTALLED)).is_ok_and(|installed| installed == wanted)
            && run(Command::new(interpreter(home)).args(["-c", &import])).is_ok()
    };
    if works(&home) {
        return Ok(interpreter(&home));
    }
    // Made aside and moved into place, so that two runs at once do not meet half of one.
    let aside = home.with_file_name(format!("{name}.{}", std::process::id()));
    let made = make(&aside, &requirements);
    if made.is_ok() && fs::rename(&aside, &home).is_err() && !works(&home) {
        let _ = fs::remove_dir_all(&home);
        let _ = fs::rename(&aside, &home);
    }
    let _ = fs::remove_dir_all(&aside);
    made?;
    if works(&home) { Ok(interpreter(&home)) } else { Err(format!("{} does not work", home.display())) }
}

/// The file of an environment that holds the requirements it was made of.
const INSTALLED: &str = "installed.txt";

fn make(home: &Path, requirements: &Path) -> Result<(), String> {
    run(Command::new("python3").args(["-m", "venv"]).arg(home))?;
    // Everything that is needed is named, and nothing else is brought along.
    let options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--retries=3", "--timeout=15"];
    let mut pip = Command::new(interpreter(home));
    run(pip.args(["-m", "pip", "install"]).args(options).arg("--requirement").arg(requirements))?;
    run(Command::new(interpreter(home)).args(["-m", "pip", "check", "--disable-pip-version-check"]))?;
    let copied = fs::copy(requirements, home.join(INSTALLED));
    copied.map(|_| ()).map_err(|error| format!("{}: {error}", home.display()))
}

fn interpreter(home: &Path) -> PathBuf {
    home.join("bin").join("python")
}

/// Its words, all of them, if it fails.
fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let said = if said.trim().is_empty() { "nothing was said" } else { said.trim() };
    Err(format!("{}: {said}", command.get_program().display()))
}
