//! Walking a whole tree with few open folders, however deep it is.

use std::{
    ffi::{CStr, CString, OsStr, OsString},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::{OsStrExt as _, OsStringExt as _},
    },
};

use rustix::{
    fs::{Dir, FileType, Mode, OFlags},
    io::Errno,
};

use super::sys;

/// The folders of a tree, each known by its parent and name, so that a deep tree costs no long paths. Number 0 is the
/// top.
#[derive(Debug)]
pub(super) struct Folders {
    list: Vec<(usize, CString)>,
}

impl Folders {
    pub(super) fn new() -> Self {
        Self { list: vec![(0, CString::default())] }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn add(&mut self, parent: usize, name: CString) {
        self.list.push((parent, name));
    }

    /// The parent and the name in it; nothing for the top.
    pub(super) fn entry(&self, index: usize) -> Option<(usize, &CStr)> {
        let (parent, name) = self.list.get(index).filter(|_| index > 0)?;
        Some((*parent, name))
    }

    /// The path of folder `index`, when that of the top is `top`.
    pub(super) fn path(&self, top: &OsStr, index: usize) -> OsString {
        let names = self.names(index);
        let parts = std::iter::once(top.as_bytes()).chain(names.into_iter().map(CStr::to_bytes));
        OsString::from_vec(parts.collect::<Vec<_>>().join(&b'/'))
    }

    /// Opens folder `index` below `top` without following any link.
    pub(super) fn open(&self, top: BorrowedFd<'_>, index: usize, flags: OFlags) -> Result<OwnedFd, Errno> {
        let names = self.names(index);
        let mut folder: Option<OwnedFd> = None;
        let mut rest = names.as_slice();
        while !rest.is_empty() {
            let (step, later) = rest.split_at(sys::step_length(rest));
            let flags = if later.is_empty() { flags } else { sys::FOLDER };
            folder = Some(sys::open_below(folder.as_ref().map_or(top, AsFd::as_fd), step, flags)?);
            rest = later;
        }
        match folder {
            Some(folder) => Ok(folder),
            None => rustix::fs::openat(top, c".", flags, Mode::empty()),
        }
    }

    /// The names that lead to folder `index`, from the top down.
    fn names(&self, index: usize) -> Vec<&CStr> {
        let mut names = Vec::new();
        let mut at = index;
        while let Some((parent, name)) = self.entry(at) {
            names.push(name);
            at = parent;
        }
        names.reverse();
        names
    }
}

/// What is in an open folder, as it is read: names with their kinds, without `.` and `..`.
pub(super) fn entries(
    folder: BorrowedFd<'_>,
) -> Result<impl Iterator<Item = Result<(CString, FileType), Errno>>, Errno> {
    let named = Dir::read_from(folder)?.map(|entry| {
        let entry = entry?;
        Ok((entry.file_name().to_owned(), entry.file_type()))
    });
    Ok(named.filter(|entry| !matches!(entry, Ok((name, _)) if [c".", c".."].contains(&name.as_c_str()))))
}

/// All of that.
pub(super) fn list(folder: BorrowedFd<'_>) -> Result<Vec<(CString, FileType)>, Errno> {
    entries(folder)?.collect()
}

/// Whether an error only says that a name is gone or has become something else since it was listed.
pub(super) fn vanished(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::MLINK | Errno::STALE)
}
