//! Writing whole files in one step.

use std::{
    ffi::OsStr,
    fs::File,
    io::Write,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags},
    io::Errno,
};

use super::{FileError, Files, Written, read::regular, sys, walk::Links};

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
        self.write_new_as(path, bytes, limit, Mode::from_raw_mode(0o644))
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
        let path = path.as_ref();
        let mut walk = self.walk_and_create(path, Links::Follow)?;
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
            let (draft, mut file) = Draft::new(walk.folder())?;
            file.write_all(bytes)?;
            sys::give(&file, uid, gid)?;
            rustix::fs::fchmod(&file, mode)?;
            draft.publish(&name)?;
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

/// A file under a name of its own beside its target, gone again unless it is published.
struct Draft<'a> {
    folder: BorrowedFd<'a>,
    name: String,
    published: bool,
}

impl<'a> Draft<'a> {
    fn new(folder: BorrowedFd<'a>) -> Result<(Self, File), FileError> {
        let name = format!(".sandboxer-{}", uuid::Uuid::new_v4().simple());
        let flags = sys::LEAF | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let fd = rustix::fs::openat(folder.as_fd(), name.as_str(), flags, Mode::from_raw_mode(0o600))?;
        Ok((Self { folder, name, published: false }, File::from(fd)))
    }

    fn publish(mut self, name: &OsStr) -> Result<(), FileError> {
        rustix::fs::renameat(self.folder, self.name.as_str(), self.folder, name)?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.published {
            let _ = rustix::fs::unlinkat(self.folder, self.name.as_str(), AtFlags::empty());
        }
    }
}
