//! What was answered in all suites together: appended to a file whose path the environment gives.

use std::{
    collections::BTreeSet,
    fs::OpenOptions,
    io::Write as _,
    sync::{Mutex, PoisonError},
};

/// The variable that names the file.
const FILE: &str = "SANDBOXER_SEEN";

/// Appends a line of operation, status and code, `-` for none; each once for a process. Lines are written whole, so processes
/// may share the file.
pub(crate) fn note(operation: &str, status: u16, code: Option<&str>) {
    static NOTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let Some(path) = std::env::var_os(FILE) else { return };
    let line = format!("{operation} {status} {}\n", code.unwrap_or("-"));
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    if noted.contains(&line) {
        return;
    }
    let opened = OpenOptions::new().append(true).create(true).open(path);
    match opened.and_then(|mut file| file.write_all(line.as_bytes())) {
        Ok(()) => drop(noted.insert(line)),
        Err(error) => tracing::error!(%error, "what was answered could not be noted"),
    }
}
