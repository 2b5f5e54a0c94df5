//! Turns `specs/` into the generated parts of the suite.
//!
//! [`plan`] is a pure function from the API document to the text of every generated file; writing them, or comparing them
//! with what is on disk ([`check`]), is the caller's. One step a file: the document is loaded ([`load`]), the engine's view
//! of it is cut to what its generator can take ([`edits`]), and every output has a module of its own.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

pub mod check;
pub mod edits;
pub mod load;

mod api;
mod blocking_api;
mod bodies;
mod docs;
mod engine;
mod enums;
mod format;
mod lock;
mod models;
mod names;
mod operations;
mod params;
mod requests;
mod responses;
mod router;
mod schema;
mod shape;
mod validation;

use edits::ExpectedCounts;

/// Where the API document stands, from the workspace root.
pub const SPEC: &str = "specs/sandboxer.openapi.yaml";

/// Why a plan could not be made: one line that names the place in the document.
#[derive(Debug)]
pub struct Error(String);

/// The result of a step.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with the given text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Everything that the generated files depend on.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The text of the API document.
    pub spec: String,
    /// The text of the workspace's `Cargo.lock`; the generators' versions are read from it.
    pub cargo_lock: String,
    /// How often each named edit must match.
    pub counts: ExpectedCounts,
}

impl Inputs {
    /// Reads the inputs of the workspace at `root`.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn read(root: &Path) -> Result<Self> {
        let read = |name: &str| {
            fs::read_to_string(root.join(name)).map_err(|error| Error::new(format!("{name}: {error}")))
        };
        Ok(Self { spec: read(SPEC)?, cargo_lock: read("Cargo.lock")?, counts: ExpectedCounts::default() })
    }
}

/// One generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Where it belongs, from the workspace root, with forward slashes.
    pub path: String,
    /// Its whole text.
    pub text: String,
}

impl Artifact {
    /// Writes the file below `root`; one that already has this text is left alone.
    ///
    /// # Errors
    /// When a folder or the file cannot be written.
    pub fn write(&self, root: &Path) -> Result<()> {
        let path = root.join(&self.path);
        if fs::read(&path).is_ok_and(|old| old == self.text.as_bytes()) {
            return Ok(());
        }
        let failed = |error| Error::new(format!("{}: {error}", self.path));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(&path, &self.text).map_err(failed)
    }
}

/// Makes the text of every generated file; touches nothing.
///
/// # Errors
/// When the document cannot be read, says something no step understands, or a named edit matches another number of
/// places than expected.
pub fn plan(inputs: &Inputs) -> Result<Vec<Artifact>> {
    let document = load::document(&inputs.spec)?;
    let view = edits::engine_view(&document, &inputs.counts)?;
    let engine = engine::generate(&document, &view.spec)?;

    let mut artifacts = vec![Artifact {
        path: "sdk/src/generated/engine.rs".into(),
        text: format::file(&engine.file.items, "")?,
    }];
    artifacts.extend(models::generate(&document)?);
    artifacts.push(operations::generate(&document)?);
    artifacts.push(api::generate(&document, &engine)?);
    artifacts.push(blocking_api::generate(&document)?);
    artifacts.push(router::generate(&document)?);
    artifacts.push(bodies::generate(&document)?);
    artifacts.push(lock::generate(inputs, &view.applied, &artifacts)?);
    Ok(artifacts)
}

/// The root of the workspace this generator was built in.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
