//! Where the server keeps its files: a data folder that stays, or a temporary one that goes with the server.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::space;

/// How the names of temporary folders begin.
const PREFIX: &str = "sandboxer-mock-server-";

/// The folder beside that of the sandboxes that has the snapshots of their disks.
pub(crate) const SNAPSHOTS: &str = "snapshots";

/// The folder beside that of the sandboxes for files that are of no use to the next server.
pub(crate) const SCRATCH: &str = "scratch";

/// The lock in a folder; whoever serves the folder holds it.
const LOCK: &str = "lock";

/// The folder of one running server.
#[derive(Debug)]
pub(crate) struct Folders {
    root: PathBuf,
    is_temporary: bool,
    /// Held until the server ends; a killed server lets it go, too.
    _lock: File,
}

/// Why there is no folder.
#[derive(Debug)]
pub(crate) enum FolderError {
    InUse(PathBuf),
    Io(PathBuf, io::Error),
}

impl Folders {
    /// A temporary folder, after the leftovers of servers that were killed are swept.
    pub(crate) fn temporary() -> Result<Self, FolderError> {
        let parent = std::env::temp_dir();
        sweep(&parent);
        let failed = |error| FolderError::Io(parent.clone(), error);
        let root = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent).map_err(failed)?.keep();
        // Locked before it gets its name: a folder with a lock that nobody holds is a leftover.
        let early = root.join("lock.new");
        let lock = File::create(&early).and_then(|file| file.lock().map(|()| file)).map_err(failed)?;
        fs::rename(&early, root.join(LOCK)).map_err(failed)?;
        Self::with(root, true, lock)
    }

    /// A folder that stays when the server ends.
    pub(crate) fn kept(root: &Path) -> Result<Self, FolderError> {
        let failed = |error| FolderError::Io(root.to_owned(), error);
        // The store holds the environments of the sandboxes: nobody else's business, another server's sandboxes included.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(failed)?;
        let root = root.canonicalize().map_err(failed)?;
        let path = root.join(LOCK);
        let lock = OpenOptions::new().create(true).write(true).truncate(false).open(&path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Self::with(root, false, lock),
            Err(TryLockError::WouldBlock) => Err(FolderError::InUse(root)),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    fn with(root: PathBuf, is_temporary: bool, lock: File) -> Result<Self, FolderError> {
        let folders = Self { root, is_temporary, _lock: lock };
        // What a killed server left there is of no use to anybody.
        let cleared = space::remove_tree_blocking(&folders.scratch());
        cleared.map_err(|error| FolderError::Io(folders.scratch(), error))?;
        for folder in [folders.spaces(), folders.root.join(SNAPSHOTS), folders.scratch()] {
            // Also where the folder that was given is open to others.
            let private = || fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
            fs::create_dir_all(&folder)
                .and_then(|()| private())
                .map_err(|error| FolderError::Io(folder, error))?;
        }
        Ok(folders)
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Below it every sandbox has a folder.
    pub(crate) fn spaces(&self) -> PathBuf {
        self.root.join("sandboxes")
    }

    /// For files that are of no use to the next server.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.root.join(SCRATCH)
    }

    /// The file of the store, if there is to be one.
    pub(crate) fn store(&self) -> Option<PathBuf> {
        (!self.is_temporary).then(|| self.root.join("state.redb"))
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        if self.is_temporary
            && let Err(error) = space::remove_tree_blocking(&self.root)
        {
            tracing::warn!(folder = %self.root.display(), %error, "the temporary folder could not be removed");
        }
    }
}

/// Removes temporary folders of this user that no server holds any more.
fn sweep(parent: &Path) {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(entries) = fs::read_dir(parent) else { return };
    let own = rustix::process::geteuid().as_raw();
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let is_own_folder = || entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == own);
        if !is_ours || !is_own_folder() {
            continue;
        }
        let Ok(lock) = OpenOptions::new().write(true).open(entry.path().join(LOCK)) else { continue };
        if lock.try_lock().is_ok()
            && let Err(error) = space::remove_tree_blocking(&entry.path())
        {
            tracing::warn!(folder = %entry.path().display(), %error, "a leftover folder could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_holder_is_swept_and_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = parent.path().join(name);
            fs::create_dir_all(folder.join("sandboxes/bx_1")).unwrap();
            File::create(folder.join(LOCK)).unwrap()
        };
        drop(make("sandboxer-mock-server-left"));
        let held = make("sandboxer-mock-server-held");
        held.lock().unwrap();
        drop(make("something-else"));
        fs::create_dir(parent.path().join("sandboxer-mock-server-young")).unwrap();
        sweep(parent.path());
        let mut left: Vec<_> = fs::read_dir(parent.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["sandboxer-mock-server-held", "sandboxer-mock-server-young", "something-else"]);
    }

    #[test]
    fn a_kept_folder_is_served_once_at_a_time_and_stays() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("data");
        let folders = Folders::kept(&root).unwrap();
        assert!(matches!(Folders::kept(&root), Err(FolderError::InUse(_))));
        drop(folders);
        for private in [&root, &root.join("sandboxes"), &root.join("scratch")] {
            assert_eq!(fs::metadata(private).unwrap().permissions().mode() & 0o777, 0o700, "{private:?}");
        }
        assert!(Folders::kept(&root).is_ok());
    }

    #[test]
    fn a_temporary_folder_goes_with_its_server() {
        let folders = Folders::temporary().unwrap();
        let root = folders.root().to_owned();
        assert!(root.join(LOCK).exists());
        drop(folders);
        assert!(!root.exists());
    }
}
