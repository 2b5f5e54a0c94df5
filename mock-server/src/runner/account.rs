//! Who a sandbox's commands are: the one user `user`.

use std::{fs, io, path::PathBuf};

use tempfile::TempDir;

/// User and group id of a sandbox's commands, inside the sandbox and, when the server runs as root, on the host. Outside
/// the ranges that people, system services and systemd hand out.
pub const SANDBOX_ID: u32 = 60_800;

/// Replacements for the system's account files that know `user`; removed when dropped.
#[derive(Debug)]
pub(crate) struct Accounts {
    folder: TempDir,
    files: Vec<&'static str>,
}

impl Accounts {
    /// Writes them into `folder`.
    pub(crate) fn create(folder: TempDir) -> io::Result<Self> {
        let mut files = Vec::new();
        let user = format!("user:x:{SANDBOX_ID}:{SANDBOX_ID}:Sandbox user:/home/user:/bin/sh\n");
        let group = format!("user:x:{SANDBOX_ID}:\n");
        for (name, own_line) in [("passwd", user), ("group", group)] {
            // Where the system has no such file there is nothing to put ours on top of.
            let Ok(system) = fs::read(format!("/etc/{name}")) else { continue };
            let mut text = own_line.into_bytes();
            for line in
                system.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"user:"))
            {
                text.extend_from_slice(line);
            }
            let path = folder.path().join(name);
            fs::write(&path, text)?;
            readable_by_all(&path)?;
            files.push(name);
        }
        Ok(Self { folder, files })
    }

    /// Pairs of our file and the place it covers.
    pub(crate) fn covers(&self) -> impl Iterator<Item = (PathBuf, String)> + '_ {
        self.files.iter().map(|name| (self.folder.path().join(name), format!("/etc/{name}")))
    }
}

fn readable_by_all(path: &std::path::Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}
