//! Output line by line.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;

use super::{Both, STREAMS, Tap};
use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    outcome::Outcome,
    output::Output,
    stream::{Chunk, OutputStream, lines::LineDecoder},
};

/// The longest line given out unless something else is said, in bytes.
const LONGEST: usize = 1 << 20;

/// A line of a command's output.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// use sandboxer::stream::OutputStream;
///
/// let line = sandbox.exec_stream("printf 'no end' >&2").await?.lines().next().await.unwrap()?;
/// assert_eq!((line.stream, line.complete, &*line.text), (OutputStream::Stderr, false, "no end"));
/// println!("{line}");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Line {
    /// The stream it was written to.
    pub stream: OutputStream,
    /// Its text without its end, LF or CRLF; U+FFFD for what is not UTF-8.
    pub text: String,
    /// Whether its end was there. It is not for a last line without one, for what stands before a part that the service
    /// no longer had, and for what came before the stream failed.
    pub complete: bool,
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// A command's output line by line; comes from [`ExecStream::lines`](crate::ExecStream::lines) and
/// [`Attach::lines`](crate::Attach::lines), and fails as the stream it is made of does.
///
/// Lines of the two streams come in the order their ends were written, each with the name of its stream; a last line
/// without an end comes too. A line over 1 MiB, or what [`max_line`](Self::max_line) says, is an error. Dropping it closes
/// the connection; the command runs on.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// use sandboxer::stream::OutputStream;
///
/// let mut lines = sandbox.exec_stream("seq 3; echo warning >&2; exit 1").await?.lines().max_line(64 << 10);
/// while let Some(line) = lines.next().await {
///     let line = line?;
///     println!("{}: {line}", line.stream);
/// }
/// assert!(lines.outcome().is_some() && lines.missing() == 0);
/// assert_eq!(lines.wait().await?.exit_code(), Some(1));
///
/// let mut warnings = sandbox.exec_stream("seq 3; echo warning >&2").await?.lines().only(OutputStream::Stderr);
/// assert_eq!(warnings.next().await.unwrap()?.text, "warning");
/// # Ok(()) }
/// ```
#[must_use = "the output is read when it is asked for"]
#[derive(Debug)]
pub struct OutputLines {
    tap: Tap,
    limit: usize,
    decoders: Both<LineDecoder>,
    /// The stream whose last chunk may have more lines in it.
    open: Option<OutputStream>,
    ready: VecDeque<Result<Line>>,
    over: bool,
}

impl OutputLines {
    pub(super) fn new(tap: Tap) -> Self {
        let decoders = Both { stdout: LineDecoder::new(LONGEST), stderr: LineDecoder::new(LONGEST) };
        Self { tap, limit: LONGEST, decoders, open: None, ready: VecDeque::new(), over: false }
    }

    /// Gives out this stream alone; the other one is read and passed over.
    pub fn only(mut self, stream: OutputStream) -> Self {
        self.tap.only = Some(stream);
        for other in STREAMS.into_iter().filter(|other| *other != stream) {
            *self.decoders.of(other) = LineDecoder::new(self.limit);
        }
        self.open = self.open.filter(|open| *open == stream);
        self.ready.retain(|item| item.as_ref().is_ok_and(|line| line.stream == stream) || item.is_err());
        self
    }

    /// Sets how long a line may be, in bytes without its end: 1 MiB unless set.
    pub fn max_line(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        STREAMS.into_iter().for_each(|stream| self.decoders.of(stream).set_limit(bytes));
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

    /// The next line; `None` once the command has ended.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) with the code `line_too_long` for a line over the limit: no more lines come, but
    /// [`wait`](Self::wait) still tells how the command ends. Otherwise those of the stream it is made of. After an error it
    /// is over.
    pub async fn next(&mut self) -> Option<Result<Line>> {
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

    /// The next whole line of what has come of this stream.
    fn next_of(&mut self, stream: OutputStream) -> Option<Result<Line>> {
        match self.decoders.of(stream).next_line() {
            Ok(line) => Some(Ok(line_of(stream, &line?, true))),
            Err(_) => {
                self.over = true;
                let number = self.decoders.of(stream).line_number() + 1;
                let message = format!("line {number} of {stream} is longer than {} bytes", self.limit);
                let error = Error::new(ErrorKind::TooLarge, "line_too_long", message);
                Some(Err(error.with_delivery(Delivery::Answered)))
            }
        }
    }

    /// Gives out what is held back of a line whose end will not come any more.
    fn flush(&mut self, stream: OutputStream) {
        if let Some(rest) = self.decoders.of(stream).rest() {
            self.ready.push_back(Ok(line_of(stream, &rest, false)));
        }
    }
}

fn line_of(stream: OutputStream, bytes: &[u8], complete: bool) -> Line {
    Line { stream, text: String::from_utf8_lossy(bytes).into_owned(), complete }
}

impl Stream for OutputLines {
    type Item = Result<Line>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(item));
            }
            if self.over {
                return Poll::Ready(None);
            }
            if let Some(stream) = self.open {
                match self.next_of(stream) {
                    Some(line) => return Poll::Ready(Some(line)),
                    None => self.open = None,
                }
            }
            match ready!(self.tap.poll_next(context)) {
                Some(Ok(Chunk::Gap(gap))) => self.flush(gap.stream),
                Some(Ok(Chunk::Stdout(bytes))) => {
                    self.decoders.stdout.push(bytes);
                    self.open = Some(OutputStream::Stdout);
                }
                Some(Ok(Chunk::Stderr(bytes))) => {
                    self.decoders.stderr.push(bytes);
                    self.open = Some(OutputStream::Stderr);
                }
                end => {
                    self.over = true;
                    STREAMS.into_iter().for_each(|stream| self.flush(stream));
                    if let Some(Err(error)) = end {
                        self.ready.push_back(Err(error));
                    }
                }
            }
        }
    }
}
