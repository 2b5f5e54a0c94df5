//! Files that hold secrets: put into a sandbox and taken out of it again.

use std::ffi::OsStr;

use rustix::{
    fs::{AtFlags, Mode},
    io::Errno,
};

use super::{FileError, Files, Written, walk::Links};

impl Files {
    /// Writes a whole file as [`Files::write_blocking`] does; a new one is for its owner alone.
    ///
    /// # Errors
    /// Every kind of [`FileError`]; the old content is then still there.
    pub(crate) fn write_secret_blocking(
        &self,
        path: impl AsRef<OsStr>,
        bytes: &[u8],
    ) -> Result<Written, FileError> {
        self.write_new_as(path, bytes, u64::MAX, Mode::from_raw_mode(0o600))
    }

    /// Removes a file; one that is not there is no error. The folders it was in stay.
    ///
    /// # Errors
    /// [`FileError::IsDirectory`] if a folder is there by now, [`FileError::InvalidPath`], [`FileError::Io`].
    pub(crate) fn remove_file_blocking(&self, path: impl AsRef<OsStr>) -> Result<(), FileError> {
        let removed = self.walk(path.as_ref(), Links::Follow).and_then(|mut walk| {
            let Some(name) = walk.settle()? else { return Err(FileError::IsDirectory) };
            match rustix::fs::unlinkat(walk.folder(), name, AtFlags::empty()) {
                Err(Errno::ISDIR) => Err(FileError::IsDirectory),
                result => Ok(result?),
            }
        });
        match removed {
            Err(FileError::NotFound) => Ok(()),
            removed => removed,
        }
    }
}
