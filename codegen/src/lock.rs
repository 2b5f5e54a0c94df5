//! The lock file: what went in, what came out, and with which generators.

use sha2::{Digest, Sha256};

use crate::{Artifact, Error, Inputs, Result, SPEC, format};

/// Crates whose version decides what the generated text looks like.
const GENERATORS: [&str; 3] = ["prettyplease", "progenitor", "typify"];

/// Generates `specs/specs.lock.toml`.
pub(crate) fn generate(
    inputs: &Inputs,
    edits: &[(&'static str, usize)],
    artifacts: &[Artifact],
) -> Result<Artifact> {
    let mut table = toml::Table::new();
    let overlays = inputs.overlays.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    table.insert("spec".into(), hashes(std::iter::once((SPEC, inputs.spec.as_str())).chain(overlays)));
    let mut versions = toml::Table::new();
    for name in GENERATORS {
        versions.insert(name.into(), version(&inputs.cargo_lock, name)?.into());
    }
    table.insert("generators".into(), versions.into());
    let edits = edits.iter().map(|(name, count)| {
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        ((*name).to_owned(), toml::Value::Integer(count))
    });
    table.insert("edits".into(), toml::Table::from_iter(edits).into());
    table.insert("artifacts".into(), hashes(artifacts.iter().map(|a| (a.path.as_str(), a.text.as_str()))));
    let text = toml::to_string(&table).map_err(|error| Error::new(format!("the lock file: {error}")))?;
    Ok(Artifact { path: "specs/specs.lock.toml".into(), text: format!("{}\n{text}", format::banner("#")) })
}

fn hashes<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> toml::Value {
    let entries = files.into_iter().map(|(path, text)| {
        let digest = Sha256::digest(text.as_bytes());
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        (path.to_owned(), toml::Value::String(hex))
    });
    toml::Value::Table(entries.collect())
}

/// The version of the newest package called `name` in a `Cargo.lock`.
fn version(lock: &str, name: &str) -> Result<String> {
    #[derive(serde::Deserialize)]
    struct Lock {
        package: Vec<Package>,
    }
    #[derive(serde::Deserialize)]
    struct Package {
        name: String,
        version: String,
    }
    let lock: Lock = toml::from_str(lock).map_err(|error| Error::new(format!("Cargo.lock: {error}")))?;
    let versions =
        lock.package.into_iter().filter(|package| package.name == name).map(|package| package.version);
    let key = |version: &String| -> Vec<u64> {
        version.split(['.', '-', '+']).map(|part| part.parse().unwrap_or(0)).collect()
    };
    versions.max_by_key(key).ok_or_else(|| Error::new(format!("Cargo.lock names no `{name}`")))
}
