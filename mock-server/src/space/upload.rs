//! Files of any size that come in piece by piece and are put into place when they are whole.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use rustix::{fs::CWD, io::Errno};

use super::{FileError, Files, Written, read::regular, sys::Meta, walk::Links, write::NEW};

/// What has come of a file so far, where no sandbox sees it; gone again unless it is put into place.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
    is_placed: bool,
}

impl Draft {
    /// Begins one in a folder on the disk of the sandboxes.
    ///
    /// # Errors
    /// If no file can be made there.
    pub(crate) fn begin(folder: &Path) -> io::Result<(Self, File)> {
        let path = folder.join(format!("upload-{}", uuid::Uuid::new_v4().simple()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok((Self { path, is_placed: false }, file))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_placed
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::warn!(%error, "what came of a file could not be removed");
        }
    }
}

impl Files {
    /// The path that a file would be written to, every link resolved; nothing is made.
    ///
    /// # Errors
    /// [`FileError::IsDirectory`], [`FileError::NotRegular`] for what cannot be replaced, [`FileError::InvalidPath`].
    pub(crate) fn target_blocking(&self, path: impl AsRef<OsStr>) -> Result<OsString, FileError> {
        self.target(path.as_ref(), Links::Follow)
    }

    /// Looks once more whether a file could be written to a path that such a look has led to: no link may be on it by now.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn check_target_blocking(&self, path: &OsStr) -> Result<(), FileError> {
        self.target(path, Links::Refuse).map(drop)
    }

    fn target(&self, path: &OsStr, links: Links) -> Result<OsString, FileError> {
        let mut walk = self.walk(path, links)?;
        let settled = walk.settle();
        if walk.folder_wanted() {
            return Err(FileError::InvalidPath { reason: "it names a folder" });
        }
        match settled {
            Ok(None) => Err(FileError::IsDirectory),
            Ok(Some(name)) => match Meta::at(walk.folder(), &name) {
                Ok(meta) => regular(&meta, false).map(|()| walk.canonical(Some(&name))),
                Err(Errno::NOENT) => Ok(walk.canonical(Some(&name))),
                Err(errno) => Err(errno.into()),
            },
            Err(FileError::NotFound) => {
                let reason = "it leads through something that is no folder";
                walk.once_made().ok_or(FileError::InvalidPath { reason })
            }
            Err(error) => Err(error),
        }
    }

    /// Puts a whole file into place, as [`Files::write_blocking`] would have written it, but for links, which are refused.
    ///
    /// # Errors
    /// Every kind of [`FileError`]; the old content is then still there.
    pub(crate) fn place_blocking(
        &self,
        mut draft: Draft,
        file: &File,
        path: &OsStr,
    ) -> Result<Written, FileError> {
        self.write_with(path, Links::Refuse, NEW, |folder, name, dress| {
            dress(file)?;
            rustix::fs::renameat(CWD, &draft.path, folder, name)?;
            draft.is_placed = true;
            Ok(file.metadata()?.len())
        })
    }

    /// Opens a file at a path that has no link on it, and tells its size.
    ///
    /// # Errors
    /// Every kind of [`FileError`] but [`FileError::TooLarge`].
    pub(crate) fn open_exactly_blocking(&self, path: &OsStr) -> Result<(File, u64), FileError> {
        self.open_file(path, u64::MAX, Links::Refuse)
    }
}
