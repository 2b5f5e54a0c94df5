//! Removes and measures whole trees.

use std::{
    collections::HashSet,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode},
    io::Errno,
};

use super::{
    off_thread, sys,
    sys::Meta,
    tree::{Folders, list, vanished},
};

/// How often a tree is gone through again because something was added to it meanwhile.
const PASSES: usize = 8;

/// Removes the tree at `path`, folders without write permission included; nothing there is fine. No link is followed: a
/// link is removed itself.
///
/// # Errors
/// If something cannot be removed, or keeps being added.
pub async fn remove_tree(path: PathBuf) -> io::Result<()> {
    off_thread(move || remove_tree_blocking(&path)).await
}

/// [`remove_tree`] on this thread.
///
/// # Errors
/// As there.
pub fn remove_tree_blocking(path: &Path) -> io::Result<()> {
    Ok(remove_in(CWD, path)?)
}

/// [`remove_tree_blocking`] of a name in an open folder.
pub(super) fn remove_in(folder: BorrowedFd<'_>, name: impl AsRef<Path>) -> Result<(), Errno> {
    for pass in 1.. {
        match remove_once(folder, name.as_ref()) {
            Ok(()) | Err(Errno::NOENT) => break,
            Err(Errno::NOTEMPTY | Errno::EXIST) if pass < PASSES => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn remove_once(at: BorrowedFd<'_>, path: &Path) -> Result<(), Errno> {
    if !Meta::at(at, path)?.is_folder() {
        return rustix::fs::unlinkat(at, path, AtFlags::empty());
    }
    let top = open_writable(at, path)?;
    let mut folders = Folders::new();
    let mut index = 0;
    while index < folders.len() {
        match empty_folder(&mut folders, top.as_fd(), index) {
            Ok(()) => {}
            Err(errno) if vanished(errno) => {}
            Err(errno) => return Err(errno),
        }
        index += 1;
    }
    for index in (1..folders.len()).rev() {
        let Some((parent, name)) = folders.entry(index) else { continue };
        let removed = folders
            .open(top.as_fd(), parent, sys::FOLDER)
            .and_then(|parent| rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR));
        match removed {
            Ok(()) => {}
            Err(errno) if vanished(errno) => {}
            Err(errno) => return Err(errno),
        }
    }
    rustix::fs::unlinkat(at, path, AtFlags::REMOVEDIR)
}

/// Unlinks everything in a folder but its folders, which are noted down.
fn empty_folder(folders: &mut Folders, top: BorrowedFd<'_>, index: usize) -> Result<(), Errno> {
    let folder = match folders.entry(index) {
        None => folders.open(top, 0, sys::READ_FOLDER)?,
        Some((parent, name)) => open_writable(folders.open(top, parent, sys::FOLDER)?, name)?,
    };
    for (name, kind) in list(folder.as_fd())? {
        let is_folder = match kind {
            FileType::Directory => true,
            FileType::Unknown => Meta::at(&folder, name.as_c_str()).is_ok_and(|meta| meta.is_folder()),
            _ => false,
        };
        if is_folder {
            folders.add(index, name);
            continue;
        }
        match rustix::fs::unlinkat(&folder, name.as_c_str(), AtFlags::empty()) {
            Ok(()) => {}
            // It has become a folder: the next pass finds it.
            Err(Errno::ISDIR) => {}
            Err(errno) if vanished(errno) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Opens a folder of ours so that its content can be removed, whatever its permissions are.
fn open_writable(folder: impl AsFd, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Errno> {
    let folder = folder.as_fd();
    if !rustix::process::geteuid().is_root() {
        let mode = Meta::at(folder, name)?.mode;
        if !mode.contains(Mode::RWXU) {
            sys::grant(folder, name, Mode::RWXU)?;
        }
    }
    rustix::fs::openat(folder, name, sys::READ_FOLDER, Mode::empty())
}

/// How much a tree holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeSize {
    /// Lengths of all regular files in bytes, a file with several names once.
    pub bytes: u64,
    /// Bytes that they take on the disk.
    pub allocated: u64,
    /// Everything that is not a folder.
    pub files: u64,
    /// Folders, the top included.
    pub folders: u64,
}

/// Measures the tree at `path` without following links; what vanishes or cannot be read is left out.
///
/// # Errors
/// If `path` is no folder that can be read.
pub async fn tree_size(path: PathBuf) -> io::Result<TreeSize> {
    off_thread(move || tree_size_blocking(&path)).await
}

/// [`tree_size`] on this thread.
///
/// # Errors
/// As there.
pub fn tree_size_blocking(path: &Path) -> io::Result<TreeSize> {
    tree_size_within(path, u64::MAX)
}

/// [`tree_size_blocking`], which stops after the folder in which so many files and folders have been seen.
pub(crate) fn tree_size_within(path: &Path, most: u64) -> io::Result<TreeSize> {
    let top = rustix::fs::openat(CWD, path, sys::READ_FOLDER, Mode::empty())?;
    let mut size = TreeSize::default();
    let mut folders = Folders::new();
    let mut counted = HashSet::new();
    let mut index = 0;
    while index < folders.len() && size.files.saturating_add(size.folders) < most {
        if let Ok(folder) = folders.open(top.as_fd(), index, sys::READ_FOLDER) {
            size.folders += 1;
            for (name, _) in list(folder.as_fd()).unwrap_or_default() {
                match Meta::at(&folder, name.as_c_str()) {
                    Ok(meta) if meta.is_folder() => folders.add(index, name),
                    Ok(meta) => {
                        size.files += 1;
                        if meta.kind == FileType::RegularFile
                            && (meta.links < 2 || counted.insert(meta.identity))
                        {
                            size.bytes += meta.size;
                            size.allocated += meta.allocated;
                        }
                    }
                    Err(_) => {}
                }
            }
        }
        index += 1;
    }
    Ok(size)
}
