//! What there is at a path and in a folder, for programs that ask.

use std::{
    collections::BinaryHeap,
    ffi::{CString, OsStr, OsString},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
};

use rustix::{
    fs::{FileType, Mode},
    io::Errno,
};

use super::{
    FileError, Files,
    sys::{self, Meta},
    tree::{entries, vanished},
    walk::{Links, Walk},
};

/// What is done with a link in the last place of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// What it leads to is meant.
    Followed,
    /// The link itself is meant.
    Itself,
}

/// A file, folder, link or anything else that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileEntry {
    /// Its absolute path, as the sandbox sees it.
    pub(crate) path: OsString,
    pub(crate) is_folder: bool,
    pub(crate) is_link: bool,
    pub(crate) size: u64,
    /// The permission bits.
    pub(crate) mode: u32,
    /// Seconds and nanoseconds since 1970 of the last change of its content.
    pub(crate) modified: (i64, i64),
}

impl FileEntry {
    pub(super) fn new(path: OsString, meta: &Meta) -> Self {
        #[allow(clippy::useless_conversion, reason = "the types differ between systems")]
        let mode = u32::from(meta.mode.as_raw_mode()) & 0o7777;
        Self {
            path,
            is_folder: meta.is_folder(),
            is_link: meta.kind == FileType::Symlink,
            size: meta.size,
            mode,
            modified: meta.modified(),
        }
    }

    /// The last component of its path.
    pub(crate) fn name(&self) -> &OsStr {
        let path = self.path.as_bytes();
        let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        OsStr::from_bytes(&path[start..])
    }
}

impl Files {
    /// Refuses a path that is not allowed; what is at it does not matter.
    ///
    /// # Errors
    /// [`FileError::InvalidPath`], [`FileError::Io`].
    pub(crate) fn judge_blocking(&self, path: impl AsRef<OsStr>, leaf: Leaf) -> Result<(), FileError> {
        match self.walk_to(path.as_ref(), leaf)?.settle() {
            Ok(_) | Err(FileError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What there is at a path.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::InvalidPath`], [`FileError::Io`].
    pub(crate) fn entry_blocking(&self, path: impl AsRef<OsStr>, leaf: Leaf) -> Result<FileEntry, FileError> {
        let mut walk = self.walk_to(path.as_ref(), leaf)?;
        let name = walk.settle()?;
        let meta = there(&walk, name.as_deref())?;
        Ok(FileEntry::new(walk.canonical(name.as_deref()), &meta))
    }

    /// The path of a folder and what is in it, the first `most` by name, and whether there is more. Links are not followed.
    ///
    /// # Errors
    /// [`FileError::NotFolder`] and those of [`Self::entry_blocking`].
    pub(crate) fn entries_blocking(
        &self,
        path: impl AsRef<OsStr>,
        most: usize,
    ) -> Result<(OsString, Vec<FileEntry>, bool), FileError> {
        let mut walk = self.walk(path.as_ref(), Links::Follow)?;
        let (folder, at) = open_folder(&mut walk)?;
        // However many there are, only those that are shown are kept.
        let mut first: BinaryHeap<CString> = BinaryHeap::new();
        let mut has_more = false;
        for entry in entries(folder.as_fd())? {
            first.push(entry?.0);
            if first.len() > most {
                first.pop();
                has_more = true;
            }
        }
        let mut shown = Vec::with_capacity(first.len());
        for name in first.into_sorted_vec() {
            match Meta::at(folder.as_fd(), name.as_c_str()) {
                Ok(meta) => shown.push(FileEntry::new(below(&at, name.to_bytes()), &meta)),
                Err(errno) if vanished(errno) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok((at, shown, has_more))
    }

    /// Starts on the way to a path.
    pub(super) fn walk_to(&self, path: &OsStr, leaf: Leaf) -> Result<Walk<'_>, FileError> {
        let walk = self.walk(path, Links::Follow)?;
        Ok(if leaf == Leaf::Itself { walk.keep_link() } else { walk })
    }
}

/// What is where a walk has settled.
pub(super) fn there(walk: &Walk<'_>, name: Option<&OsStr>) -> Result<Meta, FileError> {
    let meta = match name {
        Some(name) => Meta::at(walk.folder(), name)?,
        None => Meta::at(walk.folder(), c".")?,
    };
    match walk.folder_wanted() && !meta.is_folder() {
        true => Err(FileError::NotFound),
        false => Ok(meta),
    }
}

/// Opens the folder that a walk leads to, to be listed; hands back its path, too.
pub(super) fn open_folder(walk: &mut Walk<'_>) -> Result<(OwnedFd, OsString), FileError> {
    loop {
        let leaf = walk.settle()?;
        let opened = match &leaf {
            Some(name) => {
                rustix::fs::openat(walk.folder(), name.as_os_str(), sys::READ_FOLDER, Mode::empty())
            }
            None => rustix::fs::openat(walk.folder(), c".", sys::READ_FOLDER, Mode::empty()),
        };
        match (opened, leaf) {
            (Ok(folder), leaf) => return Ok((folder, walk.canonical(leaf.as_deref()))),
            // Which of them a link gets depends on the system.
            (Err(Errno::LOOP | Errno::MLINK | Errno::NOTDIR), Some(name)) => {
                if Meta::at(walk.folder(), &name)?.kind != FileType::Symlink {
                    return Err(FileError::NotFolder);
                }
                walk.again(name)?;
            }
            (Err(errno), _) => return Err(errno.into()),
        }
    }
}

/// The path of a name in a folder.
pub(super) fn below(folder: &OsStr, name: &[u8]) -> OsString {
    OsString::from_vec([folder.as_bytes(), b"/", name].concat())
}
