//! A command's output in other shapes than chunks: bytes, text or lines, of one stream or both.

use bytes::Bytes;
use sandboxer::{Line, Outcome, Output, Result, stream::OutputStream};

use crate::{Attach, ExecStream, pull::Pull};

/// A command's output as bytes; comes from [`ExecStream::bytes`](crate::ExecStream::bytes) and
/// [`Attach::bytes`](crate::Attach::bytes), and fails as the stream it is made of does.
///
/// It is an [`Iterator`]. Dropping it closes the connection; the command runs on.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// use sandboxer_blocking::stream::OutputStream;
///
/// let run = sandbox.exec_stream("echo out; echo err >&2")?;
/// let mut errors = run.bytes().only(OutputStream::Stderr);
/// assert_eq!(&errors.next().unwrap()?[..], b"err\n");
/// assert!(errors.next().is_none());
/// assert!(errors.outcome().is_some() && errors.missing() == 0); // bytes that the service no longer had
/// assert!(errors.wait()?.success());
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[must_use = "the output is read when it is asked for"]
#[derive(Debug)]
pub struct OutputBytes {
    stream: Pull<sandboxer::OutputBytes>,
}

impl OutputBytes {
    /// Gives out this stream alone; the other one is read and passed over.
    pub fn only(mut self, stream: OutputStream) -> Self {
        self.stream = self.stream.map(|output| output.only(stream));
        self
    }

    /// How many bytes are missing so far because the service no longer had them. Happens only when following a background
    /// command whose log was cut.
    pub fn missing(&self) -> u64 {
        self.stream.get().map_or(0, sandboxer::OutputBytes::missing)
    }

    /// How the command ended; `None` until the stream is over, and after it failed.
    pub fn outcome(&self) -> Option<Outcome> {
        self.stream.get()?.outcome()
    }

    /// Reads what is left and says how the command ended, as `wait` of the stream it is made of.
    ///
    /// # Errors
    ///
    /// Those of the stream it is made of, also when the error had been given out before.
    pub fn wait(self) -> Result<Output> {
        self.stream.finish(|output| output.wait())
    }
}

impl Iterator for OutputBytes {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        self.stream.next()
    }
}

/// A command's output as text; comes from [`ExecStream::text`](crate::ExecStream::text) and
/// [`Attach::text`](crate::Attach::text), and fails as the stream it is made of does.
///
/// It is an [`Iterator`] of pieces that are never empty. A character that arrives in two pieces comes out whole with the
/// second; what is not UTF-8 comes out as U+FFFD. Each stream is decoded by itself, so the one never breaks a character of
/// the other. Dropping it closes the connection; the command runs on.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// use sandboxer_blocking::stream::OutputStream;
///
/// let run = sandbox.exec_stream(r"printf '\342\202'; sleep 0.2; printf '\254 5'")?;
/// let mut text = run.text().only(OutputStream::Stdout);
/// let all = text.by_ref().collect::<sandboxer_blocking::Result<String>>()?;
/// assert_eq!(all, "€ 5");
/// assert!(text.outcome().is_some() && text.missing() == 0);
/// assert!(text.wait()?.success());
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[must_use = "the output is read when it is asked for"]
#[derive(Debug)]
pub struct OutputText {
    stream: Pull<sandboxer::OutputText>,
}

impl OutputText {
    /// Gives out this stream alone; the other one is read and passed over.
    pub fn only(mut self, stream: OutputStream) -> Self {
        self.stream = self.stream.map(|output| output.only(stream));
        self
    }

    /// How many bytes are missing so far because the service no longer had them. Happens only when following a background
    /// command whose log was cut.
    pub fn missing(&self) -> u64 {
        self.stream.get().map_or(0, sandboxer::OutputText::missing)
    }

    /// How the command ended; `None` until the stream is over, and after it failed.
    pub fn outcome(&self) -> Option<Outcome> {
        self.stream.get()?.outcome()
    }

    /// Reads what is left and says how the command ended, as `wait` of the stream it is made of.
    ///
    /// # Errors
    ///
    /// Those of the stream it is made of, also when the error had been given out before.
    pub fn wait(self) -> Result<Output> {
        self.stream.finish(|output| output.wait())
    }
}

impl Iterator for OutputText {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.stream.next()
    }
}

/// A command's output line by line; comes from [`ExecStream::lines`](crate::ExecStream::lines) and
/// [`Attach::lines`](crate::Attach::lines), and fails as the stream it is made of does.
///
/// It is an [`Iterator`]. Lines of the two streams come in the order their ends were written, each with the name of its
/// stream; a last line without an end comes too. A line over 1 MiB, or what [`max_line`](Self::max_line) says, is an error
/// of kind [`TooLarge`](crate::ErrorKind::TooLarge) with the code `line_too_long`: no more lines come, but
/// [`wait`](Self::wait) still tells how the command ends. Dropping it closes the connection; the command runs on.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// use sandboxer_blocking::stream::OutputStream;
///
/// let mut lines = sandbox.exec_stream("seq 3; echo warning >&2; exit 1")?.lines().max_line(64 << 10);
/// for line in &mut lines {
///     let line = line?;
///     println!("{}: {line}", line.stream);
/// }
/// assert!(lines.outcome().is_some() && lines.missing() == 0);
/// assert_eq!(lines.wait()?.exit_code(), Some(1));
///
/// let mut warnings = sandbox.exec_stream("seq 3; echo warning >&2")?.lines().only(OutputStream::Stderr);
/// assert_eq!(warnings.next().unwrap()?.text, "warning");
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[must_use = "the output is read when it is asked for"]
#[derive(Debug)]
pub struct OutputLines {
    stream: Pull<sandboxer::OutputLines>,
}

impl OutputLines {
    /// Gives out this stream alone; the other one is read and passed over.
    pub fn only(mut self, stream: OutputStream) -> Self {
        self.stream = self.stream.map(|output| output.only(stream));
        self
    }

    /// Sets how long a line may be, in bytes without its end: 1 MiB unless set.
    pub fn max_line(mut self, bytes: usize) -> Self {
        self.stream = self.stream.map(|output| output.max_line(bytes));
        self
    }

    /// How many bytes are missing so far because the service no longer had them. Happens only when following a background
    /// command whose log was cut.
    pub fn missing(&self) -> u64 {
        self.stream.get().map_or(0, sandboxer::OutputLines::missing)
    }

    /// How the command ended; `None` until the stream is over, and after it failed.
    pub fn outcome(&self) -> Option<Outcome> {
        self.stream.get()?.outcome()
    }

    /// Reads what is left and says how the command ended, as `wait` of the stream it is made of.
    ///
    /// # Errors
    ///
    /// Those of the stream it is made of, also when the error had been given out before.
    pub fn wait(self) -> Result<Output> {
        self.stream.finish(|output| output.wait())
    }
}

impl Iterator for OutputLines {
    type Item = Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        self.stream.next()
    }
}

impl ExecStream {
    /// The output as bytes of both streams, in the order they were written, or of [one](OutputBytes::only).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let mut bytes = sandbox.exec_stream("printf abc")?.bytes();
    /// let mut length = 0;
    /// for piece in &mut bytes {
    ///     length += piece?.len();
    /// }
    /// assert_eq!((length, bytes.wait()?.exit_code()), (3, Some(0)));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn bytes(self) -> OutputBytes {
        OutputBytes { stream: self.into_pull().convert(sandboxer::ExecStream::bytes) }
    }

    /// The output as text of both streams, in the order it was written, or of [one](OutputText::only).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let text = sandbox.exec_stream("echo all of it")?.text();
    /// assert_eq!(text.collect::<sandboxer_blocking::Result<String>>()?, "all of it\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn text(self) -> OutputText {
        OutputText { stream: self.into_pull().convert(sandboxer::ExecStream::text) }
    }

    /// The output line by line, of both streams or of [one](OutputLines::only).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let mut lines = sandbox.exec_stream("printf 'one\\ntwo'; exit 3")?.lines();
    /// assert_eq!(lines.next().unwrap()?.text, "one");
    /// assert_eq!(lines.next().unwrap()?.text, "two");
    /// assert_eq!(lines.wait()?.exit_code(), Some(3));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn lines(self) -> OutputLines {
        OutputLines { stream: self.into_pull().convert(sandboxer::ExecStream::lines) }
    }
}

impl Attach {
    /// The output as bytes of both streams, in the order they came, or of [one](OutputBytes::only).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let mut bytes = sandbox.start("printf abc")?.attach()?.bytes();
    /// assert_eq!(&bytes.next().unwrap()?[..], b"abc");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn bytes(self) -> OutputBytes {
        OutputBytes { stream: self.into_pull().convert(sandboxer::Attach::bytes) }
    }

    /// The output as text of both streams, in the order it came, or of [one](OutputText::only).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let mut text = sandbox.start("echo hello")?.attach()?.text();
    /// assert_eq!(text.next().unwrap()?, "hello\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn text(self) -> OutputText {
        OutputText { stream: self.into_pull().convert(sandboxer::Attach::text) }
    }

    /// The output line by line, of both streams or of [one](OutputLines::only). To go on later from where a program had
    /// read to, use the chunks: what is held back of a line counts as read in [`offsets`](Self::offsets).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::stream::OutputStream;
    ///
    /// let server = sandbox.start("echo starting >&2; echo listening on 8000; sleep 60")?;
    /// let mut lines = server.attach()?.lines().only(OutputStream::Stdout);
    /// assert_eq!(lines.next().unwrap()?.text, "listening on 8000");
    /// server.kill()?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn lines(self) -> OutputLines {
        OutputLines { stream: self.into_pull().convert(sandboxer::Attach::lines) }
    }
}
