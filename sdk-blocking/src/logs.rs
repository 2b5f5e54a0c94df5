//! Kept output, read page by page, byte for byte.

use bytes::Bytes;
use sandboxer::{Result, stream::Chunk};

use crate::{driver::Driver, pull::Pull};

/// The kept output of one stream of a command; comes from [`CommandHandle::logs`](crate::CommandHandle::logs).
///
/// It is an [`Iterator`] of chunks. Pages of up to 1 MiB are asked for as they are needed. It ends where the kept output
/// ends now, whether the command still runs or not; output that was not kept comes as a [`Chunk::Gap`].
///
/// Its errors are [`NotFound`](crate::ErrorKind::NotFound) when the service has no record of the command (yet),
/// [`Conflict`](crate::ErrorKind::Conflict) with the code `monitoring_off`, and the failures of any call. After an error
/// it is over.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// use sandboxer_blocking::stream::OutputStream;
///
/// let command = sandbox.start("echo one; echo two")?;
/// command.wait()?;
/// for chunk in command.logs(OutputStream::Stdout) {
///     print!("{}", chunk?.text());
/// }
/// assert_eq!(&command.logs(OutputStream::Stdout).read_all(1 << 20)?[..], b"one\ntwo\n");
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[must_use = "logs are read when they are asked for"]
#[derive(Debug)]
pub struct LogStream {
    stream: Pull<sandboxer::LogStream>,
}

impl LogStream {
    pub(crate) fn new(driver: Driver, stream: sandboxer::LogStream) -> Self {
        Self { stream: Pull::new(driver, stream) }
    }

    /// All of it at once, if it is no longer than `limit` bytes and nothing of it is missing.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](crate::ErrorKind::TooLarge) when there is more, [`Unexpected`](crate::ErrorKind::Unexpected) with the
    /// code `output_missing` where the service no longer has a part, with its byte offsets `from` and `to` in the details
    /// (the stream itself has what is there), and those of the stream.
    pub fn read_all(self, limit: usize) -> Result<Bytes> {
        self.stream.finish(move |stream| stream.collect(limit))
    }
}

impl Iterator for LogStream {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        self.stream.next()
    }
}
