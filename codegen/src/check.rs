//! Compares what would be generated with what is on disk.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use similar::TextDiff;

use crate::{Artifact, Error, Result};

/// Files in a generated folder that people write.
const HAND_WRITTEN: [&str; 3] =
    ["sdk/src/generated/mod.rs", "sdk-blocking/src/generated/mod.rs", "mock-server/src/generated/mod.rs"];

/// A unified diff from the files below `root` to `artifacts`; empty when every byte is the same. A file in a generated
/// folder that would not be generated is a difference too.
///
/// # Errors
/// When a file or folder that exists cannot be read.
pub fn compare(root: &Path, artifacts: &[Artifact]) -> Result<String> {
    let mut out = String::new();
    for artifact in artifacts {
        let old = match fs::read(root.join(&artifact.path)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Error::new(format!("{}: {error}", artifact.path))),
        };
        if old != artifact.text {
            out.push_str(&diff(&artifact.path, &old, &artifact.text));
        }
    }
    for path in leftovers(root, artifacts)? {
        let old = fs::read_to_string(root.join(&path)).unwrap_or_default();
        out.push_str(&diff(&path, &old, ""));
    }
    Ok(out)
}

fn diff(path: &str, old: &str, new: &str) -> String {
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .header(&format!("{path} (on disk)"), &format!("{path} (generated)"))
        .to_string()
}

fn leftovers(root: &Path, artifacts: &[Artifact]) -> Result<Vec<String>> {
    let known: BTreeSet<PathBuf> =
        artifacts.iter().map(|a| a.path.as_str()).chain(HAND_WRITTEN).map(PathBuf::from).collect();
    let folders: BTreeSet<PathBuf> = known
        .iter()
        .filter_map(|path| path.parent())
        .filter(|folder| folder.iter().any(|part| part == "generated"))
        .map(Path::to_path_buf)
        .collect();
    let mut found = Vec::new();
    for folder in folders {
        let Ok(entries) = fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries {
            let entry = entry.map_err(|error| Error::new(format!("{}: {error}", folder.display())))?;
            let path = folder.join(entry.file_name());
            if entry.path().is_file() && !known.contains(&path) {
                found.push(path.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    Ok(found)
}
