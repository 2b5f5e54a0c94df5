//! A download, read as it comes.

use std::{
    fmt,
    io::{self, Write},
    path::Path,
};

use bytes::Bytes;
use sandboxer::{Delivery, Error, ErrorKind, Result};

use crate::{driver::Driver, pull::Pull};

/// The content of a file on its way here, as it comes; from [`Files::download_with`](crate::Files::download_with) and its
/// like.
///
/// It is an [`Iterator`] of pieces; nothing is read before it is asked for. Where the connection breaks or falls silent, it
/// goes on where it was, if the service proves that the rest belongs to the same content: by a strong entity tag, or
/// because a snapshot never changes. A content that ends early is an error, never an end. Nothing follows an error.
///
/// Its errors: [`TooLarge`](ErrorKind::TooLarge) over the cap; [`StreamCut`](ErrorKind::StreamCut) or
/// [`Timeout`](ErrorKind::Timeout) when the connection broke or fell silent and going on was not possible;
/// [`Unexpected`](ErrorKind::Unexpected) with the code `range_mismatch` when what came to go on with is other content, and
/// with `content_damaged` when the whole is not what the service said it would be.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// use sandboxer_blocking::Transfer;
///
/// sandbox.files().write("data", "0123456789")?;
/// let mut download = sandbox.files().download_with("data", Transfer::new())?;
/// assert_eq!((download.total(), download.is_archive()), (Some(10), false));
/// for piece in &mut download {
///     print!("{}", String::from_utf8_lossy(&piece?));
/// }
/// assert_eq!(download.received(), 10);
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[must_use = "a download is read when it is asked for pieces"]
pub struct Download {
    inner: Pull<sandboxer::Download>,
    total: Option<u64>,
    is_archive: bool,
}

impl Download {
    pub(crate) fn new(driver: Driver, inner: sandboxer::Download) -> Self {
        let (total, is_archive) = (inner.total(), inner.is_archive());
        Self { inner: Pull::new(driver, inner), total, is_archive }
    }

    /// The rest of the content, if it is no longer than `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) when there is more, and those of the iterator.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # use sandboxer_blocking::Transfer;
    /// sandbox.files().write("data", "0123456789")?;
    /// let download = sandbox.files().download_with("data", Transfer::new())?;
    /// assert_eq!(&download.read_all(1024)?[..], b"0123456789");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn read_all(self, limit: usize) -> Result<Bytes> {
        self.inner.finish(move |download| download.read_all(limit))
    }

    /// Writes the rest of the content into a writer, flushes it, and says how many bytes there were.
    ///
    /// # Errors
    ///
    /// Those of the iterator; [`Unexpected`](ErrorKind::Unexpected) with the code `write_failed` when the writer
    /// fails, with its error as the source. The writer may then hold a part.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # use sandboxer_blocking::Transfer;
    /// sandbox.files().write("data", "0123456789")?;
    /// let mut copy = Vec::new();
    /// let download = sandbox.files().download_with("data", Transfer::new())?;
    /// assert_eq!(download.copy_to(&mut copy)?, 10);
    /// assert_eq!(copy, b"0123456789");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn copy_to<W>(mut self, mut writer: W) -> Result<u64>
    where
        W: Write,
    {
        let before = self.received();
        for piece in &mut self {
            writer.write_all(&piece?).map_err(write_failed)?;
        }
        writer.flush().map_err(write_failed)?;
        Ok(self.received() - before)
    }

    /// Saves the rest of the content as a file of this machine, and says how many bytes there were.
    ///
    /// It is written beside `local` under another name and put into place when it is whole; until then, and after an
    /// error or a drop, what is at `local` is unchanged and nothing else is left. An existing file's permissions are kept, a
    /// link is followed.
    ///
    /// # Errors
    ///
    /// Those of the iterator, and `write_failed` as for [`copy_to`](Self::copy_to), also where `local` is
    /// anything but a plain file, as a device or a folder is.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # let local = std::env::temp_dir().join(format!("save-example-{}", std::process::id()));
    /// # use sandboxer_blocking::Transfer;
    /// sandbox.files().write("data", "0123456789")?;
    /// let download = sandbox.files().download_with("data", Transfer::new())?;
    /// assert_eq!(download.save(&local)?, 10);
    /// assert_eq!(std::fs::read(&local).unwrap(), b"0123456789");
    /// # std::fs::remove_file(local).unwrap();
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn save<P>(self, local: P) -> Result<u64>
    where
        P: AsRef<Path>,
    {
        let local = local.as_ref().to_owned();
        self.inner.finish(move |download| download.save(local))
    }

    /// How many bytes have come so far.
    pub fn received(&self) -> u64 {
        self.inner.get().map_or(0, sandboxer::Download::received)
    }

    /// How many there will be, if the service said so; of a part, the part's.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// Whether it is a folder, which comes as a tar archive.
    pub fn is_archive(&self) -> bool {
        self.is_archive
    }
}

fn write_failed(cause: io::Error) -> Error {
    Error::local(ErrorKind::Unexpected, Delivery::Answered, "write_failed", "the writer failed", Some(cause))
}

impl Iterator for Download {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        self.inner.next()
    }
}

impl fmt::Debug for Download {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Download").field(&self.inner.get()).finish()
    }
}
