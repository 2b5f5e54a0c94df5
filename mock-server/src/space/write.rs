//! Writing whole files in one step.

use std::{
    ffi::OsStr,
    fs::File,
    io::Write,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags},
    io::Errno,
};

use super::{FileError, Files, Written, read::regular, sys, walk::Links};

/// What anybody may do with a new file.
pub(super) const NEW: Mode = Mode::from_raw_mode(0o644);

impl Files {
    /// [`Files::write`] on this thread.
    ///
    /// # Errors
    /// As there.
    pub fn write_blocking(
        &self,
        path: impl AsRef<OsStr>,
        bytes: &[u8],
        limit: u64,
    ) -> Result<Written, FileError> {
        self.write_new_as(path, bytes, limit, NEW)
    }

    /// The same, with the mode that a new file gets.
    pub(super) fn write_new_as(
        &self,
        path: impl AsRef<OsStr>,
        bytes: &[u8],
        limit: u64,
        mode_of_new: Mode,
    ) -> Result<Written, FileError> {
        let size = bytes.len() as u64;
        if size > limit {
            return Err(FileError::TooLarge { limit, size });
        }
        self.write_with(path.as_ref(), Links::Follow, mode_of_new, |folder, name, dress| {
            let (draft, mut file) = Draft::new(self.drafts.as_deref(), folder)?;
            file.write_all(bytes)?;
            dress(&file)?;
            draft.publish(folder, name)?;
            Ok(size)
        })
    }

    /// Makes the folders of a path, looks at what it leads to, and lets `put` replace that: a file of its own, to which
    /// `dress` gives the owner and the mode. It hands back the size.
    pub(super) fn write_with(
        &self,
        path: &OsStr,
        links: Links,
        mode_of_new: Mode,
        put: impl FnOnce(BorrowedFd<'_>, &OsStr, &dyn Fn(&File) -> Result<(), Errno>) -> Result<u64, FileError>,
    ) -> Result<Written, FileError> {
        let mut walk = self.walk_and_create(path, links)?;
        if walk.folder_wanted() {
            return Err(self.refuse_folder_path(path));
        }
        loop {
            let Some(name) = walk.settle()? else { return Err(FileError::IsDirectory) };
            if walk.folder_wanted() {
                return Err(FileError::InvalidPath { reason: "it names a folder" });
            }
            let (mode, uid, gid) = match sys::Meta::at(walk.folder(), &name) {
                Ok(meta) if meta.kind == FileType::Symlink => {
                    walk.again(name)?;
                    continue;
                }
                Ok(meta) => {
                    regular(&meta, false)?;
                    (meta.mode & Mode::from_raw_mode(0o777), meta.uid, meta.gid)
                }
                Err(Errno::NOENT) => (mode_of_new, self.owner.uid, self.owner.gid),
                Err(errno) => return Err(errno.into()),
            };
            let dress = |file: &File| {
                sys::give(file, uid, gid)?;
                rustix::fs::fchmod(file, mode)
            };
            let size = put(walk.folder(), &name, &dress)?;
            return Ok(Written { path: walk.canonical(Some(&name)), size });
        }
    }

    /// A path that asks for a folder: the honest reason, found without making anything.
    fn refuse_folder_path(&self, path: &OsStr) -> FileError {
        match self.locate_blocking(path) {
            Err(error) => error,
            Ok(found) if found.kind == super::LocatedKind::Folder => FileError::IsDirectory,
            Ok(_) => FileError::InvalidPath { reason: "it names a folder" },
        }
    }
}

/// A file under a name of its own, gone again unless it is published.
struct Draft<'a> {
    folder: BorrowedFd<'a>,
    name: PathBuf,
    published: bool,
}

impl<'a> Draft<'a> {
    /// Begins one in the folder for drafts, or else beside its target.
    fn new(drafts: Option<&Path>, beside: BorrowedFd<'a>) -> Result<(Self, File), FileError> {
        let name = format!(".sandboxer-{}", uuid::Uuid::new_v4().simple());
        let (folder, name) = match drafts {
            Some(drafts) => (CWD, drafts.join(name)),
            None => (beside, name.into()),
        };
        let flags = sys::LEAF | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let fd = rustix::fs::openat(folder, &name, flags, Mode::from_raw_mode(0o600))?;
        Ok((Self { folder, name, published: false }, File::from(fd)))
    }

    fn publish(mut self, folder: BorrowedFd<'_>, name: &OsStr) -> Result<(), FileError> {
        rustix::fs::renameat(self.folder, &self.name, folder, name)?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.published {
            let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;
    use crate::space::Owner;

    #[test]
    fn what_is_not_whole_lies_outside_of_the_sandbox() {
        let (root, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let home = root.path().join("home/user");
        std::fs::create_dir_all(&home).unwrap();
        let files = Files::open(root.path(), Owner::current()).unwrap();
        let files = files.drafting_in(aside.path());
        let names = |folder: &Path| {
            let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
            names.collect::<Vec<_>>()
        };
        let killed =
            |folder: BorrowedFd<'_>| std::mem::forget(Draft::new(files.drafts.as_deref(), folder).unwrap());
        killed(std::fs::File::open(&home).unwrap().as_fd());
        assert_eq!((names(&home).len(), names(aside.path()).len()), (0, 1));
        files.write_blocking("note", b"whole", 100).unwrap();
        assert_eq!((names(&home), names(aside.path()).len()), (vec!["note".into()], 1));
        assert_eq!(std::fs::read(home.join("note")).unwrap(), b"whole");
    }
}
