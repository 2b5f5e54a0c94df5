//! Output as bytes.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;

use super::Tap;
use crate::{
    error::Result,
    outcome::Outcome,
    output::Output,
    stream::{Chunk, OutputStream},
};

/// A command's output as bytes; comes from [`ExecStream::bytes`](crate::ExecStream::bytes) and
/// [`Attach::bytes`](crate::Attach::bytes), and fails as the stream it is made of does.
///
/// Dropping it closes the connection; the command runs on.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// use sandboxer::stream::OutputStream;
///
/// let run = sandbox.exec_stream("echo out; echo err >&2").await?;
/// let mut errors = run.bytes().only(OutputStream::Stderr);
/// assert_eq!(&errors.next().await.unwrap()?[..], b"err\n");
/// assert!(errors.next().await.is_none());
/// assert!(errors.outcome().is_some() && errors.missing() == 0); // bytes that the service no longer had
/// assert!(errors.wait().await?.success());
/// # Ok(()) }
/// ```
#[must_use = "the output is read when it is asked for"]
#[derive(Debug)]
pub struct OutputBytes {
    tap: Tap,
}

impl OutputBytes {
    pub(super) fn new(tap: Tap) -> Self {
        Self { tap }
    }

    /// Gives out this stream alone; the other one is read and passed over.
    pub fn only(mut self, stream: OutputStream) -> Self {
        self.tap.only = Some(stream);
        self
    }

    /// How many bytes are missing so far because the service no longer had them. Happens only when following a background
    /// command whose log was cut.
    pub fn missing(&self) -> u64 {
        self.tap.missing
    }

    /// How the command ended; `None` until the stream is over, and after it failed.
    pub fn outcome(&self) -> Option<Outcome> {
        self.tap.outcome()
    }

    /// The next bytes, at least one; `None` once the command has ended.
    ///
    /// # Errors
    ///
    /// Those of the stream it is made of. After an error it is over.
    pub async fn next(&mut self) -> Option<Result<Bytes>> {
        crate::stream::next(self).await
    }

    /// Reads what is left and says how the command ended, as `wait` of the stream it is made of.
    ///
    /// # Errors
    ///
    /// Those of the stream it is made of, also when the error had been given out before.
    pub async fn wait(self) -> Result<Output> {
        self.tap.wait().await
    }
}

impl Stream for OutputBytes {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let bytes = match ready!(self.tap.poll_next(context)) {
                Some(Ok(Chunk::Stdout(bytes) | Chunk::Stderr(bytes))) => bytes,
                Some(Ok(Chunk::Gap(_))) => continue,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            };
            if !bytes.is_empty() {
                return Poll::Ready(Some(Ok(bytes)));
            }
        }
    }
}
