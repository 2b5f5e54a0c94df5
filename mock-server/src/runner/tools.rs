//! Finding the system programs that the runners need.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::RunnerError;

/// The full path of `name`, looked for in `PATH` and the usual system folders.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .chain(["/usr/bin", "/bin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|candidate| is_program(candidate))
}

/// Like [`find`], for several programs at once; the error names all that are missing.
pub(crate) fn find_all<const N: usize>(names: [&str; N]) -> Result<[PathBuf; N], RunnerError> {
    let missing: Vec<&str> = names.into_iter().filter(|name| find(name).is_none()).collect();
    if !missing.is_empty() {
        return Err(RunnerError::Unavailable(format!("not installed: {}", missing.join(", "))));
    }
    Ok(names.map(|name| find(name).unwrap_or_default()))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
