//! A command's output in other shapes than chunks: bytes, text or lines, of one stream or both.

mod bytes;
mod lines;
#[cfg(test)]
mod tests;
mod text;

pub use self::{
    bytes::OutputBytes,
    lines::{Line, OutputLines},
    text::OutputText,
};

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;

use super::{attach::Attach, run::ExecStream};
use crate::{
    error::Result,
    outcome::Outcome,
    output::Output,
    stream::{Chunk, OutputStream},
};

/// Where chunks come from.
enum Source {
    Exec(Box<ExecStream>),
    Attach(Box<Attach>),
}

/// The chunks of a command that are wanted.
pub(super) struct Tap {
    source: Source,
    only: Option<OutputStream>,
    missing: u64,
}

impl Tap {
    fn new(source: Source) -> Self {
        Self { source, only: None, missing: 0 }
    }

    /// The next chunk of a stream that is wanted; a gap counts as one.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Chunk>>> {
        loop {
            let next = match &mut self.source {
                Source::Exec(run) => Pin::new(&mut **run).poll_next(context),
                Source::Attach(attach) => Pin::new(&mut **attach).poll_next(context),
            };
            let chunk = match ready!(next) {
                Some(Ok(chunk)) if self.only.is_some_and(|only| only != chunk.stream()) => continue,
                other => other,
            };
            if let Some(Ok(Chunk::Gap(gap))) = &chunk {
                self.missing = self.missing.saturating_add(gap.to.saturating_sub(gap.from));
            }
            return Poll::Ready(chunk);
        }
    }

    fn outcome(&self) -> Option<Outcome> {
        match &self.source {
            Source::Exec(run) => run.outcome(),
            Source::Attach(attach) => attach.outcome(),
        }
    }

    async fn wait(self) -> Result<Output> {
        match self.source {
            Source::Exec(run) => run.wait().await,
            Source::Attach(attach) => attach.wait().await,
        }
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source: &dyn fmt::Debug = match &self.source {
            Source::Exec(run) => &**run,
            Source::Attach(attach) => &**attach,
        };
        formatter
            .debug_struct("Tap")
            .field("source", source)
            .field("only", &self.only)
            .finish_non_exhaustive()
    }
}

/// One of something for each stream.
#[derive(Debug, Default)]
struct Both<T> {
    stdout: T,
    stderr: T,
}

impl<T> Both<T> {
    fn of(&mut self, stream: OutputStream) -> &mut T {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }
}

/// The two streams, for what is done with each at the end.
const STREAMS: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

impl ExecStream {
    /// The output as bytes of both streams, in the order they were written, or of [one](OutputBytes::only).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let mut bytes = sandbox.exec_stream("printf abc").await?.bytes();
    /// let mut length = 0;
    /// while let Some(piece) = bytes.next().await {
    ///     length += piece?.len();
    /// }
    /// assert_eq!((length, bytes.wait().await?.exit_code()), (3, Some(0)));
    /// # Ok(()) }
    /// ```
    pub fn bytes(self) -> OutputBytes {
        OutputBytes::new(Tap::new(Source::Exec(Box::new(self))))
    }

    /// The output as text of both streams, in the order it was written, or of [one](OutputText::only).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let mut text = sandbox.exec_stream("echo all of it").await?.text();
    /// let mut all = String::new();
    /// while let Some(piece) = text.next().await {
    ///     all += &piece?;
    /// }
    /// assert_eq!(all, "all of it\n");
    /// # Ok(()) }
    /// ```
    pub fn text(self) -> OutputText {
        OutputText::new(Tap::new(Source::Exec(Box::new(self))))
    }

    /// The output line by line, of both streams or of [one](OutputLines::only).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let mut lines = sandbox.exec_stream("printf 'one\\ntwo'; exit 3").await?.lines();
    /// let mut seen = Vec::new();
    /// while let Some(line) = lines.next().await {
    ///     seen.push(line?.text);
    /// }
    /// assert_eq!(seen, ["one", "two"]);
    /// assert_eq!(lines.wait().await?.exit_code(), Some(3));
    /// # Ok(()) }
    /// ```
    pub fn lines(self) -> OutputLines {
        OutputLines::new(Tap::new(Source::Exec(Box::new(self))))
    }
}

impl Attach {
    /// The output as bytes of both streams, in the order they came, or of [one](OutputBytes::only).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let mut bytes = sandbox.start("printf abc").await?.attach().await?.bytes();
    /// assert_eq!(&bytes.next().await.unwrap()?[..], b"abc");
    /// # Ok(()) }
    /// ```
    pub fn bytes(self) -> OutputBytes {
        OutputBytes::new(Tap::new(Source::Attach(Box::new(self))))
    }

    /// The output as text of both streams, in the order it came, or of [one](OutputText::only).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let mut text = sandbox.start("echo hello").await?.attach().await?.text();
    /// assert_eq!(text.next().await.unwrap()?, "hello\n");
    /// # Ok(()) }
    /// ```
    pub fn text(self) -> OutputText {
        OutputText::new(Tap::new(Source::Attach(Box::new(self))))
    }

    /// The output line by line, of both streams or of [one](OutputLines::only). To go on later from where a program had
    /// read to, use the chunks: what is held back of a line counts as read in [`offsets`](Self::offsets).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::stream::OutputStream;
    ///
    /// let server = sandbox.start("echo starting >&2; echo listening on 8000; sleep 60").await?;
    /// let mut lines = server.attach().await?.lines().only(OutputStream::Stdout);
    /// assert_eq!(lines.next().await.unwrap()?.text, "listening on 8000");
    /// server.kill().await?;
    /// # Ok(()) }
    /// ```
    pub fn lines(self) -> OutputLines {
        OutputLines::new(Tap::new(Source::Attach(Box::new(self))))
    }
}
