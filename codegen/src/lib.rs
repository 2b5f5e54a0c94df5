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
pub mod seen;

mod api;
mod blocking_api;
mod bodies;
mod calls;
mod codes;
mod dialects;
mod docs;
mod engine;
mod enums;
mod format;
mod lock;
mod models;
mod names;
mod operations;
mod overlay;
mod params;
mod requests;
mod responses;
mod router;
mod samples;
mod schema;
mod shape;
mod validation;

use edits::ExpectedCounts;

/// Where the API document stands, from the workspace root.
pub const SPEC: &str = "specs/sandboxer.openapi.yaml";

/// Where the overlays stand: what siblings of the service do otherwise. A file's name begins with its dialect's.
pub const OVERLAYS: [&str; 1] = ["specs/boat.overlay.yaml"];

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
    /// Paths and texts of the overlays.
    pub overlays: Vec<(String, String)>,
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
        let overlays =
            OVERLAYS.iter().map(|path| Ok(((*path).to_owned(), read(path)?))).collect::<Result<_>>()?;
        let counts = ExpectedCounts::default();
        Ok(Self { spec: read(SPEC)?, overlays, cargo_lock: read("Cargo.lock")?, counts })
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
    let (document, dialects) = documents(inputs)?;
    let view = edits::engine_view(&document, &inputs.counts)?;
    let engine = engine::generate(&document, &view.spec)?;

    let mut artifacts = vec![Artifact {
        path: "sdk/src/generated/engine.rs".into(),
        text: format::file(&engine.file.items, "")?,
    }];
    artifacts.extend(models::generate(&document)?);
    artifacts.push(operations::generate(&document)?);
    if document.service.is_some() {
        artifacts.push(dialects::generate(&document, &dialects)?);
        artifacts.extend(calls::generate(&document, &dialects)?);
    }
    artifacts.push(api::generate(&document, &engine)?);
    artifacts.push(blocking_api::generate(&document)?);
    artifacts.push(router::generate(&document)?);
    artifacts.push(bodies::generate(&document)?);
    artifacts.push(lock::generate(inputs, &view.applied, &artifacts)?);
    Ok(artifacts)
}

/// The API document as the dialect of that name has it, overlays applied, as JSON.
///
/// # Errors
/// When the document or an overlay cannot be read, or there is no such dialect; the error names those there are.
pub fn dialect_document(inputs: &Inputs, dialect: &str) -> Result<String> {
    let (_, dialects) = documents(inputs)?;
    let Some(own) = dialects.iter().find(|known| known.name == dialect) else {
        let known: Vec<&str> = dialects.iter().map(|known| known.name.as_str()).collect();
        return Err(Error::new(format!("there is no dialect `{dialect}`, only {}", known.join(" and "))));
    };
    serde_json::to_string_pretty(&own.document.json)
        .map_err(|error| Error::new(format!("{dialect}: {error}")))
}

/// The document that everything is generated from, with what overlays add to it, and each dialect's own.
fn documents(inputs: &Inputs) -> Result<(load::Document, Vec<dialects::Dialect>)> {
    let own = load::yaml("the API document", &inputs.spec)?;
    let document = load::of_yaml(&own)?;
    let name = document.service.as_ref().map_or_else(String::new, |service| service.name.clone());
    let mut dialects = vec![dialects::Dialect { name, document }];
    let mut joined = own.clone();
    for (path, text) in &inputs.overlays {
        let overlay = overlay::Overlay::read(path, text)?;
        let failed = |error: Error| Error::new(format!("{path}: {error}"));
        let document = load::of_yaml(&overlay.apply(&own).map_err(failed)?).map_err(failed)?;
        joined = overlay.join(&joined, &document).map_err(failed)?;
        dialects.push(dialects::Dialect { name: overlay.dialect, document });
    }
    let joined = load::of_yaml(&joined)?;
    for name in joined.dialect_names() {
        if !dialects.iter().any(|dialect| dialect.name == name) {
            return Err(Error::new(format!("there is no dialect `{name}`")));
        }
    }
    Ok((joined, dialects))
}

/// The root of the workspace this generator was built in.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
