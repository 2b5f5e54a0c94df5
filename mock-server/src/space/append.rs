//! Appending to the logs that the server keeps inside a sandbox.

use std::{ffi::OsStr, fs::File, io::Write};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use super::{FileError, Files, read::regular, sys, walk::Links};

impl Files {
    /// [`Files::append_log`] on this thread.
    ///
    /// # Errors
    /// As there.
    pub fn append_log_blocking(
        &self,
        path: impl AsRef<OsStr>,
        bytes: &[u8],
        limit: u64,
    ) -> Result<usize, FileError> {
        let (mut file, size) = self.open_log(path.as_ref(), false)?;
        let room = usize::try_from(limit.saturating_sub(size)).unwrap_or(usize::MAX);
        let taken = bytes.len().min(room);
        file.write_all(&bytes[..taken])?;
        Ok(taken)
    }

    /// [`Files::begin_log`] on this thread.
    ///
    /// # Errors
    /// As there.
    pub fn begin_log_blocking(&self, path: impl AsRef<OsStr>) -> Result<(), FileError> {
        self.open_log(path.as_ref(), true).map(drop)
    }

    /// A log to append to, and how many bytes it has: none any more if it is to be empty.
    fn open_log(&self, path: &OsStr, empty: bool) -> Result<(File, u64), FileError> {
        let mut walk = self.walk_and_create(path, Links::Refuse)?;
        let Some(name) = walk.settle()?.filter(|_| !walk.folder_wanted()) else {
            return Err(FileError::IsDirectory);
        };
        let made = match sys::Meta::at(walk.folder(), &name) {
            Ok(meta) => regular(&meta, false).map(|()| false)?,
            Err(Errno::NOENT) => true,
            Err(errno) => return Err(errno.into()),
        };
        let flags = sys::LEAF | OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        let mode = Mode::from_raw_mode(0o644);
        let file = File::from(rustix::fs::openat(walk.folder(), &name, flags, mode)?);
        let meta = sys::Meta::of(&file)?;
        regular(&meta, false)?;
        if made {
            rustix::fs::fchmod(&file, mode)?;
            sys::give(&file, self.owner.uid, self.owner.gid)?;
        }
        match empty {
            true => {
                file.set_len(0)?;
                Ok((file, 0))
            }
            false => Ok((file, meta.size)),
        }
    }
}
