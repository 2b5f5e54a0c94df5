//! What can go wrong with a file of a sandbox.

use std::{fmt, io};

use rustix::io::Errno;

/// Why a file of a sandbox was not read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The path, with every link resolved, is not inside `/home/user` or `/tmp`, or is no path at all.
    InvalidPath {
        /// What is wrong with it, in a few words.
        reason: &'static str,
    },
    /// Nothing is there, or a component on the way is no folder.
    NotFound,
    /// A folder is there where a file is needed.
    IsDirectory,
    /// A named pipe, socket or device is there where a file is needed.
    NotRegular,
    /// Something is there where a folder is needed that is none.
    NotFolder,
    /// Something is there where nothing may be.
    Exists,
    /// It is `/home/user` or `/tmp` itself, which stay where they are.
    Root,
    /// The file or the given bytes are larger than allowed.
    TooLarge {
        /// The limit in bytes.
        limit: u64,
        /// The size in bytes, at least.
        size: u64,
    },
    /// The operating system failed.
    Io(io::Error),
}

impl FileError {
    pub(super) const OUTSIDE: Self = Self::InvalidPath { reason: "it leads outside /home/user and /tmp" };
    pub(super) const TOO_MANY_LINKS: Self = Self::InvalidPath { reason: "it leads through too many links" };
    pub(super) const TOO_LONG: Self = Self::InvalidPath { reason: "it is too long" };
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidPath { reason } => write!(f, "the path is not allowed: {reason}"),
            Self::NotFound => f.write_str("there is no such file"),
            Self::IsDirectory => f.write_str("the path names a folder, not a file"),
            Self::NotRegular => f.write_str("the path names a pipe, socket or device, not a file"),
            Self::NotFolder => f.write_str("the path names something that is no folder"),
            Self::Exists => f.write_str("there is something at the path already"),
            Self::Root => f.write_str("the path names /home/user or /tmp itself"),
            Self::TooLarge { limit, size } => write!(f, "{size} bytes are more than the limit of {limit}"),
            Self::Io(error) => write!(f, "file access failed: {error}"),
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR => Self::NotFound,
            Errno::ISDIR => Self::IsDirectory,
            Errno::NXIO | Errno::NODEV => Self::NotRegular,
            Errno::LOOP => Self::TOO_MANY_LINKS,
            Errno::NAMETOOLONG => Self::TOO_LONG,
            other => Self::Io(other.into()),
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Io(error),
        }
    }
}
