//! The file verbs of one sandbox.

use std::{
    ffi::{OsStr, OsString},
    os::fd::{AsFd, OwnedFd},
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use rustix::fs::{CWD, FileType, Mode};

use super::{
    FileError, FileStream, off_thread, sys,
    walk::{Links, Walk},
};

/// Who owns what the server makes in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// User id on the host.
    pub uid: u32,
    /// Group id on the host.
    pub gid: u32,
}

impl Owner {
    /// The user and group that the server itself runs as.
    pub fn current() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }

    /// The owner of `folder`, for instance of a sandbox's `home/user`.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn of(folder: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let meta = std::fs::symlink_metadata(folder)?;
        Ok(Self { uid: meta.uid(), gid: meta.gid() })
    }
}

/// The files of one sandbox, seen from outside: paths are the sandbox's own, absolute or relative to `/home/user`, and
/// must lie in `/home/user` or `/tmp` with every link resolved.
///
/// All verbs are safe against a sandbox that changes its files meanwhile. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Files {
    pub(super) root: Arc<OwnedFd>,
    pub(super) owner: Owner,
    /// Where files are written before they get their names; beside their targets if nowhere else.
    pub(super) drafts: Option<Arc<Path>>,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The path with every link resolved, as the sandbox sees it.
    pub path: OsString,
    /// What is there.
    pub kind: LocatedKind,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LocatedKind {
    /// A regular file of this many bytes.
    File(u64),
    /// A folder.
    Folder,
    /// A named pipe, socket or device.
    Other,
    /// Nothing (yet).
    Missing,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The path with every link resolved, as the sandbox sees it.
    pub path: OsString,
    /// Its size in bytes.
    pub size: u64,
}

impl Files {
    /// Opens the folders below `root` (`home/user` and `tmp`); new files and folders will belong to `owner`.
    ///
    /// # Errors
    /// [`FileError::NotFound`] if `root` is no folder.
    pub fn open(root: &Path, owner: Owner) -> Result<Self, FileError> {
        let flags = sys::FOLDER.difference(rustix::fs::OFlags::NOFOLLOW);
        let root = rustix::fs::openat(CWD, root, flags, Mode::empty())?;
        Ok(Self { root: Arc::new(root), owner, drafts: None })
    }

    /// Writes files in this folder on the same disk before they get their names, so that a server which is killed meanwhile
    /// leaves nothing in a sandbox.
    #[must_use]
    pub fn drafting_in(mut self, folder: impl Into<Arc<Path>>) -> Self {
        self.drafts = Some(folder.into());
        self
    }

    /// Resolves `path` without opening what it leads to.
    ///
    /// # Errors
    /// [`FileError::InvalidPath`] if it leads outside, [`FileError::Io`].
    pub fn locate_blocking(&self, path: impl AsRef<OsStr>) -> Result<Located, FileError> {
        let mut walk = self.walk(path.as_ref(), Links::Follow)?;
        let leaf = match walk.settle() {
            Ok(leaf) => leaf,
            Err(FileError::NotFound) => {
                return Ok(Located { path: path.as_ref().to_owned(), kind: LocatedKind::Missing });
            }
            Err(error) => return Err(error),
        };
        let kind = match &leaf {
            None => LocatedKind::Folder,
            Some(name) => match sys::Meta::at(walk.folder(), name) {
                Ok(meta) if meta.is_folder() => LocatedKind::Folder,
                Ok(_) if walk.folder_wanted() => LocatedKind::Missing,
                Ok(meta) if meta.kind == FileType::RegularFile => LocatedKind::File(meta.size),
                Ok(_) => LocatedKind::Other,
                Err(rustix::io::Errno::NOENT) => LocatedKind::Missing,
                Err(errno) => return Err(errno.into()),
            },
        };
        Ok(Located { path: walk.canonical(leaf.as_deref()), kind })
    }

    /// Resolves `path` without opening what it leads to; a path that is allowed but leads to nothing is no error.
    ///
    /// # Errors
    /// [`FileError::InvalidPath`] if it leads outside, [`FileError::Io`].
    pub async fn locate(&self, path: impl AsRef<OsStr>) -> Result<Located, FileError> {
        let (files, path) = (self.clone(), path.as_ref().to_owned());
        off_thread(move || files.locate_blocking(path)).await
    }

    /// Reads a whole file of at most `limit` bytes.
    ///
    /// # Errors
    /// Every kind of [`FileError`]; a file that grows meanwhile is refused once it passes the limit.
    pub async fn read(&self, path: impl AsRef<OsStr>, limit: u64) -> Result<Bytes, FileError> {
        let (files, path) = (self.clone(), path.as_ref().to_owned());
        off_thread(move || files.read_blocking(path, limit)).await
    }

    /// Opens a file of at most `limit` bytes to be read in chunks of at most 64 KiB.
    ///
    /// # Errors
    /// Every kind of [`FileError`].
    pub async fn stream(&self, path: impl AsRef<OsStr>, limit: u64) -> Result<FileStream, FileError> {
        let (files, path) = (self.clone(), path.as_ref().to_owned());
        off_thread(move || files.stream_blocking(path, limit)).await
    }

    /// Writes a whole file of at most `limit` bytes, with the folders it needs, in one step: a reader sees the old
    /// content or the new. Mode and owner of an existing file are kept; a new one gets 0644.
    ///
    /// # Errors
    /// Every kind of [`FileError`]; the old content is then still there.
    pub async fn write(
        &self,
        path: impl AsRef<OsStr>,
        bytes: Bytes,
        limit: u64,
    ) -> Result<Written, FileError> {
        let (files, path) = (self.clone(), path.as_ref().to_owned());
        off_thread(move || files.write_blocking(path, &bytes, limit)).await
    }

    /// Appends to a log, with the folders it needs, as far as `limit` bytes of file allow; returns how many bytes were
    /// taken. Follows no link at all.
    ///
    /// # Errors
    /// [`FileError::InvalidPath`] also if a link is on the way.
    pub async fn append_log(
        &self,
        path: impl AsRef<OsStr>,
        bytes: Bytes,
        limit: u64,
    ) -> Result<usize, FileError> {
        let (files, path) = (self.clone(), path.as_ref().to_owned());
        off_thread(move || files.append_log_blocking(path, &bytes, limit)).await
    }

    /// Makes a log empty, with the folders it needs, whether or not one of its name was there. Follows no link at all.
    ///
    /// # Errors
    /// As for [`append_log`](Self::append_log).
    pub async fn begin_log(&self, path: impl AsRef<OsStr>) -> Result<(), FileError> {
        let (files, path) = (self.clone(), path.as_ref().to_owned());
        off_thread(move || files.begin_log_blocking(path)).await
    }

    pub(super) fn walk(&self, path: &OsStr, links: Links) -> Result<Walk<'_>, FileError> {
        Walk::new(self.root.as_fd(), path, links, None)
    }

    pub(super) fn walk_and_create(&self, path: &OsStr, links: Links) -> Result<Walk<'_>, FileError> {
        Walk::new(self.root.as_fd(), path, links, Some(self.owner))
    }
}
