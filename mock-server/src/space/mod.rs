//! The folders of one sandbox, opened so that nothing inside them can lead the server astray.
//!
//! A sandbox owns `home/user` and `tmp` below its root folder and may change them at any moment, also while the server
//! walks through them. Every path is therefore resolved here, one component at a time, relative to open folders and
//! without letting the kernel follow a link: there is no moment between a check and its use. Links are followed by this
//! module, in the sandbox's own view (`/tmp/x` is the sandbox's `/tmp`), and only as long as they stay inside.

mod append;
mod change;
mod copy;
mod copy_file;
mod earlier;
mod entry;
mod error;
mod files;
pub(crate) mod frozen;
mod list;
mod read;
mod remove;
mod room;
mod secret;
mod seek;
mod sys;
mod tree;
mod upload;
mod walk;
mod write;

pub(crate) use change::MoveError;
pub(crate) use copy::copy_tree_while;
pub use copy::{CopyReport, copy_tree, copy_tree_blocking};
pub(crate) use entry::{FileEntry, Leaf};
pub use error::FileError;
pub use files::{Files, Located, LocatedKind, Owner, Written};
pub(crate) use list::Listed;
pub use read::FileStream;
pub(crate) use remove::tree_size_within;
pub use remove::{TreeSize, remove_tree, remove_tree_blocking, tree_size, tree_size_blocking};
pub(crate) use room::is_spacious;
pub(crate) use seek::{Found, SHOWN};
pub(crate) use upload::Draft;

/// The most that reading or writing one file through the API may carry: 5 MiB.
pub const FILE_LIMIT: u64 = 5 * 1024 * 1024;
/// The most that downloading one artifact may carry: 50 MiB.
pub const ARTIFACT_LIMIT: u64 = 50 * 1024 * 1024;
/// The folder that relative paths start from.
pub const HOME: &str = "/home/user";

/// Runs blocking file work away from the async threads; a lost task is reported as an I/O error.
pub(crate) async fn off_thread<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<std::io::Error> + Send + 'static,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(lost) => Err(std::io::Error::other(lost).into()),
    }
}
