//! Reading: whole files within a limit, and streams for large ones.

use std::{
    ffi::OsStr,
    fmt,
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use rustix::{fs::FileType, io::Errno};
use tokio::task::JoinHandle;

use super::{FileError, Files, sys, walk::Links};

const CHUNK: usize = 64 * 1024;

impl Files {
    /// [`Files::read`] on this thread.
    ///
    /// # Errors
    /// As there.
    pub fn read_blocking(&self, path: impl AsRef<OsStr>, limit: u64) -> Result<Bytes, FileError> {
        let (file, size) = self.open_file(path.as_ref(), limit, Links::Follow)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        (&file).take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        let read = bytes.len() as u64;
        if read > limit {
            let size = file.metadata().map_or(read, |meta| meta.len()).max(read);
            return Err(FileError::TooLarge { limit, size });
        }
        Ok(bytes.into())
    }

    /// [`Files::stream`] on this thread.
    ///
    /// # Errors
    /// As there.
    pub fn stream_blocking(&self, path: impl AsRef<OsStr>, limit: u64) -> Result<FileStream, FileError> {
        let (file, size) = self.open_file(path.as_ref(), limit, Links::Follow)?;
        Ok(FileStream { file: Arc::new(file), size, offset: 0, reading: None })
    }

    pub(super) fn open_file(&self, path: &OsStr, limit: u64, links: Links) -> Result<(File, u64), FileError> {
        let mut walk = self.walk(path, links)?;
        loop {
            let Some(name) = walk.settle()? else { return Err(FileError::IsDirectory) };
            // Opening a pipe would let go a writer that waits for its reader: look before.
            regular(&sys::Meta::at(walk.folder(), &name)?, true)?;
            let file = match sys::open_quietly(walk.folder(), name.as_os_str()) {
                Ok(fd) => File::from(fd),
                Err(Errno::LOOP | Errno::MLINK) => {
                    walk.again(name)?;
                    continue;
                }
                Err(errno) => return Err(errno.into()),
            };
            let meta = sys::Meta::of(&file)?;
            regular(&meta, false)?;
            if walk.folder_wanted() {
                return Err(FileError::NotFound);
            }
            if meta.size > limit {
                return Err(FileError::TooLarge { limit, size: meta.size });
            }
            return Ok((file, meta.size));
        }
    }
}

pub(super) fn regular(meta: &sys::Meta, link_allowed: bool) -> Result<(), FileError> {
    match meta.kind {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(FileError::IsDirectory),
        FileType::Symlink if link_allowed => Ok(()),
        _ => Err(FileError::NotRegular),
    }
}

/// The bytes of a file as they were counted when it was opened; a file that shrinks meanwhile ends in an error, one
/// that grows is read no further.
pub struct FileStream {
    file: Arc<File>,
    size: u64,
    offset: u64,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl FileStream {
    /// The bytes of an open file from `start` on, up to but not including `end`.
    pub(crate) fn part(file: File, start: u64, end: u64) -> Self {
        FileStream { file: Arc::new(file), size: end, offset: start, reading: None }
    }

    /// How many bytes the stream will give.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl fmt::Debug for FileStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStream")
            .field("size", &self.size)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl Stream for FileStream {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.offset >= self.size {
            return Poll::Ready(None);
        }
        let (offset, left) = (self.offset, self.size - self.offset);
        let file = Arc::clone(&self.file);
        let reading = self.reading.get_or_insert_with(|| {
            tokio::task::spawn_blocking(move || {
                let mut chunk = vec![0; usize::try_from(left).unwrap_or(CHUNK).min(CHUNK)];
                let read = file.read_at(&mut chunk, offset)?;
                chunk.truncate(read);
                Ok(chunk)
            })
        });
        let outcome = match Pin::new(reading).poll(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(outcome) => outcome.map_err(io::Error::other).flatten(),
        };
        self.reading = None;
        let result = match outcome {
            Ok(chunk) if chunk.is_empty() => {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file shrank while it was read"))
            }
            other => other,
        };
        match &result {
            Ok(chunk) => self.offset += chunk.len() as u64,
            Err(_) => self.offset = self.size,
        }
        Poll::Ready(Some(result.map(Bytes::from)))
    }
}
