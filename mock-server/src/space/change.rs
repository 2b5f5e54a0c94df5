//! Changes to what has names: new folders, permissions, removing, moving.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Mode},
    io::Errno,
};

use super::{
    FileEntry, FileError, Files, Leaf,
    entry::there,
    remove::remove_in,
    sys::{self, Meta},
    walk::{Links, Walk},
};

/// Which of the two paths of a move something is wrong with.
#[derive(Debug)]
pub(crate) enum MoveError {
    Source(FileError),
    Destination(FileError),
}

/// Where something was and where it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) from: OsString,
    pub(crate) to: OsString,
}

impl Files {
    /// Makes a folder and those above it; one that is there stays as it is.
    ///
    /// # Errors
    /// [`FileError::NotFolder`] if anything else is at the path or above it.
    pub(crate) fn make_folder_blocking(
        &self,
        path: impl AsRef<OsStr>,
        mode: Option<u32>,
    ) -> Result<FileEntry, FileError> {
        let path = path.as_ref();
        let mut walk = self.walk_and_create(path, Links::Follow)?;
        let leaf = loop {
            let Some(name) = walk.settle().map_err(not_a_folder)? else { break None };
            match walk.make(&name, mode_of(mode.unwrap_or(0o755))) {
                Ok(()) => break Some(name),
                Err(FileError::Exists) => {}
                Err(error) => return Err(error),
            }
            match Meta::at(walk.folder(), &name) {
                Ok(meta) if meta.is_folder() => break Some(name),
                Ok(meta) if meta.kind == rustix::fs::FileType::Symlink => walk.again(name)?,
                Ok(_) => return Err(FileError::NotFolder),
                // Gone again: once more.
                Err(Errno::NOENT) => walk.again(name)?,
                Err(errno) => return Err(errno.into()),
            }
        };
        let meta = there(&walk, leaf.as_deref())?;
        Ok(FileEntry::new(walk.canonical(leaf.as_deref()), &meta))
    }

    /// Sets the permission bits of whatever is at a path; a link is followed.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::InvalidPath`], [`FileError::Io`].
    pub(crate) fn set_mode_blocking(
        &self,
        path: impl AsRef<OsStr>,
        mode: u32,
    ) -> Result<FileEntry, FileError> {
        let mut walk = self.walk(path.as_ref(), Links::Follow)?;
        loop {
            let leaf = walk.settle()?;
            there(&walk, leaf.as_deref())?;
            let changed = match &leaf {
                Some(name) => sys::change_mode(walk.folder(), name.as_os_str(), mode_of(mode)),
                None => sys::change_mode(walk.folder(), c".", mode_of(mode)),
            };
            match (changed, leaf) {
                (Ok(meta), leaf) => return Ok(FileEntry::new(walk.canonical(leaf.as_deref()), &meta)),
                (Err(Errno::LOOP | Errno::MLINK), Some(name)) => walk.again(name)?,
                (Err(errno), _) => return Err(errno.into()),
            }
        }
    }

    /// Removes a file, a link itself, or, if that is wanted, a folder with all that is in it. Hands back where it was.
    ///
    /// # Errors
    /// [`FileError::IsDirectory`] for a folder without `recursive`, [`FileError::Root`], [`FileError::NotFound`].
    pub(crate) fn remove_blocking(
        &self,
        path: impl AsRef<OsStr>,
        recursive: bool,
    ) -> Result<OsString, FileError> {
        let mut walk = self.walk_to(path.as_ref(), Leaf::Itself)?;
        let name = movable(&mut walk)?;
        match there(&walk, Some(&name))?.is_folder() {
            true if !recursive => return Err(FileError::IsDirectory),
            true => remove_in(walk.folder(), &name)?,
            false => rustix::fs::unlinkat(walk.folder(), &name, AtFlags::empty())?,
        }
        Ok(walk.canonical(Some(&name)))
    }

    /// Moves whatever is at a path, a link itself, and makes the folders above its new place. What is replaced is put into
    /// `aside`, a folder on the same disk, and removed from there.
    ///
    /// # Errors
    /// [`FileError::Exists`] if something is at the destination and is not to be replaced.
    pub(crate) fn move_blocking(
        &self,
        source: impl AsRef<OsStr>,
        destination: impl AsRef<OsStr>,
        overwrite: bool,
        aside: &Path,
    ) -> Result<Moved, MoveError> {
        let (source, destination) = (source.as_ref(), destination.as_ref());
        let mut from = self.walk_to(source, Leaf::Itself).map_err(MoveError::Source)?;
        let name = movable(&mut from).map_err(MoveError::Source)?;
        let meta = there(&from, Some(&name)).map_err(MoveError::Source)?;
        let at = from.canonical(Some(&name));
        self.judge_destination(destination, &at, meta.is_folder()).map_err(MoveError::Destination)?;
        let mut walk = self.walk_and_create(destination, Links::Follow).map_err(MoveError::Destination)?;
        walk = walk.keep_link();
        let new_name = movable(&mut walk).map_err(MoveError::Destination)?;
        if walk.folder_wanted() && !meta.is_folder() {
            return Err(MoveError::Destination(FileError::NotFolder));
        }
        let moved = Moved { from: at, to: walk.canonical(Some(&new_name)) };
        rename(&from, &name, &meta, &walk, &new_name, overwrite, &moved, aside).map_err(
            |errno| match errno {
                Errno::EXIST | Errno::NOTEMPTY => MoveError::Destination(FileError::Exists),
                // A folder into itself, or what holds it replaced by it.
                Errno::INVAL => MoveError::Destination(NESTED),
                Errno::NOENT => MoveError::Source(FileError::NotFound),
                errno => MoveError::Destination(errno.into()),
            },
        )?;
        Ok(moved)
    }

    /// Refuses where what is at a path cannot go, before any folder is made for it.
    fn judge_destination(&self, path: &OsStr, from: &OsStr, is_folder: bool) -> Result<(), FileError> {
        let mut walk = self.walk_to(path, Leaf::Itself)?;
        let to = match walk.settle() {
            Ok(leaf) => Some(walk.canonical(leaf.as_deref())),
            Err(FileError::NotFound) => walk.once_made(),
            Err(error) => return Err(error),
        };
        match to {
            Some(to) if is_below(&to, from) => Err(NESTED),
            Some(_) if walk.folder_wanted() && !is_folder => Err(FileError::NotFolder),
            _ => Ok(()),
        }
    }
}

const NESTED: FileError = FileError::InvalidPath { reason: "one of the two paths lies in the other" };

#[allow(clippy::too_many_arguments, reason = "both sides of one step")]
fn rename(
    from: &Walk<'_>,
    name: &OsStr,
    meta: &Meta,
    to: &Walk<'_>,
    new_name: &OsStr,
    overwrite: bool,
    moved: &Moved,
    aside: &Path,
) -> Result<(), Errno> {
    if !overwrite {
        return sys::rename_new(from.folder(), name, to.folder(), new_name);
    }
    let old = match Meta::at(to.folder(), new_name) {
        Ok(old) => old,
        Err(Errno::NOENT) => return sys::rename_new(from.folder(), name, to.folder(), new_name),
        Err(errno) => return Err(errno),
    };
    if moved.from == moved.to {
        return Ok(());
    }
    if is_below(&moved.from, &moved.to) || is_below(&moved.to, &moved.from) {
        return Err(Errno::INVAL);
    }
    if old.identity == meta.identity && !meta.is_folder() {
        // Two names of one file: renaming one into the other would do nothing at all.
        return rustix::fs::unlinkat(from.folder(), name, AtFlags::empty());
    }
    if !meta.is_folder() && !old.is_folder() {
        return rustix::fs::renameat(from.folder(), name, to.folder(), new_name);
    }
    // A folder takes the place of nothing but an empty folder, and a file of no folder at all.
    let aside = aside.join(format!("replaced-{}", uuid::Uuid::new_v4().simple()));
    rustix::fs::renameat(to.folder(), new_name, CWD, &aside)?;
    match sys::rename_new(from.folder(), name, to.folder(), new_name) {
        Ok(()) => {
            if let Err(error) = super::remove_tree_blocking(&aside) {
                tracing::error!(%error, "what was replaced could not be removed");
            }
            Ok(())
        }
        Err(errno) => {
            if let Err(errno) = sys::rename_new(CWD, &aside, to.folder(), new_name) {
                tracing::error!(%errno, "what was to be replaced could not be put back");
            }
            Err(errno)
        }
    }
}

/// Goes on to what may be removed or moved: its name in the walk's folder.
fn movable(walk: &mut Walk<'_>) -> Result<OsString, FileError> {
    let name = match walk.settle()? {
        Some(name) => name,
        // The path ends in the folder itself, as `a/..` does.
        None => walk.step_back().ok_or(FileError::Root)?,
    };
    let path = walk.canonical(Some(&name));
    match path == *super::HOME || path == *"/tmp" {
        true => Err(FileError::Root),
        false => Ok(name),
    }
}

fn is_below(path: &OsStr, folder: &OsStr) -> bool {
    let rest = path.as_bytes().strip_prefix(folder.as_bytes());
    rest.is_some_and(|rest| rest.starts_with(b"/"))
}

fn not_a_folder(error: FileError) -> FileError {
    match error {
        // With every folder made that is missing, only something else can be in the way.
        FileError::NotFound => FileError::NotFolder,
        error => error,
    }
}

#[allow(
    clippy::useless_conversion,
    clippy::cast_possible_truncation,
    reason = "the types differ between systems"
)]
fn mode_of(bits: u32) -> Mode {
    Mode::from_raw_mode((bits & 0o7777) as _)
}
