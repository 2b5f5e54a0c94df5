//! The body of an answer, read as it comes.

use std::io::{self, BufRead, Read};

use bytes::{Buf as _, Bytes};
use http::{HeaderMap, StatusCode};
use sandboxer::{ByteBody, Delivery, Error, ErrorKind, Result};

use crate::{driver::Driver, pull::Pull};

/// The raw bytes of an answer, pulled piece by piece: nothing is read before it is asked for, so a slow reader slows the
/// sender down.
///
/// It is an [`Iterator`] of pieces, and [`Read`] and [`BufRead`] for what takes a reader; the error inside an
/// [`io::Error`] of these is a [`sandboxer::Error`](crate::Error). A connection that breaks is an error of kind
/// [`StreamCut`](crate::ErrorKind::StreamCut), silence beyond the `idle` limit one of kind
/// [`Timeout`](crate::ErrorKind::Timeout); nothing follows an error. Dropping it closes its connection; what the service
/// does goes on.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// use sandboxer_blocking::models::ArtifactParams;
///
/// sandbox.files().write("data.bin", "0123456789")?;
/// let mut body = sandbox.api().artifact(sandbox.id(), ArtifactParams::new("data.bin"))?;
/// assert_eq!((body.status().as_u16(), body.content_length()), (200, Some(10)));
/// assert!(body.content_type().is_some() && body.headers().contains_key("content-type"));
/// println!("{:?}", body.request_id());
/// for piece in &mut body {
///     print!("{}", String::from_utf8_lossy(&piece?));
/// }
/// assert_eq!(body.received(), 10);
///
/// let again = sandbox.api().artifact(sandbox.id(), ArtifactParams::new("data.bin"))?;
/// assert_eq!(&again.read_all(1 << 20)?[..], b"0123456789");
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[derive(Debug)]
pub struct ByteIter {
    body: Pull<ByteBody>,
    /// The rest of a piece that a reader took only a part of.
    rest: Bytes,
    status: StatusCode,
    headers: HeaderMap,
}

impl ByteIter {
    pub(crate) fn new(driver: Driver, body: ByteBody) -> Self {
        let (status, headers) = (body.status(), body.headers().clone());
        Self { body: Pull::new(driver, body), rest: Bytes::new(), status, headers }
    }

    /// What is left of the body, if it is no longer than `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooLarge`] when there is more; the connection broke, or was silent for longer than the `idle` limit.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// sandbox.files().write("note", "hello")?;
    /// assert_eq!(&sandbox.files().download("note")?.read_all(1024)?[..], b"hello");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn read_all(mut self, limit: usize) -> Result<Bytes> {
        let rest = std::mem::take(&mut self.rest);
        let Some(left) = limit.checked_sub(rest.len()) else {
            let message = format!("the body is longer than {limit} bytes");
            return Err(Error::local(
                ErrorKind::TooLarge,
                Delivery::Answered,
                "answer_too_large",
                message,
                None,
            ));
        };
        let tail = self.body.finish(move |body| body.collect(left))?;
        Ok(if rest.is_empty() { tail } else { [rest, tail].concat().into() })
    }

    /// The status of the answer: 206 where a range was asked for and given.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers of the answer.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The length the service announced, in bytes.
    pub fn content_length(&self) -> Option<u64> {
        self.body.get()?.content_length()
    }

    /// The media type, for example `application/octet-stream`.
    pub fn content_type(&self) -> Option<&str> {
        self.body.get()?.content_type()
    }

    /// The service's id of the request.
    pub fn request_id(&self) -> Option<&str> {
        self.body.get()?.request_id()
    }

    /// How many bytes were read so far.
    pub fn received(&self) -> u64 {
        self.body.get().map_or(0, ByteBody::received)
    }
}

impl Iterator for ByteIter {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() { self.body.next() } else { Some(Ok(std::mem::take(&mut self.rest))) }
    }
}

impl BufRead for ByteIter {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.rest.is_empty() {
            self.rest = self.body.next().transpose().map_err(into_io)?.unwrap_or_default();
        }
        Ok(&self.rest)
    }

    fn consume(&mut self, amount: usize) {
        self.rest.advance(amount);
    }
}

impl Read for ByteIter {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

fn into_io(error: Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::Timeout => io::ErrorKind::TimedOut,
        ErrorKind::StreamCut => io::ErrorKind::UnexpectedEof,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
