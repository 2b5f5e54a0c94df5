//! A command in the foreground, its output as it is written.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;

use super::{
    frame::{self, Frame},
    ledger::{self, Ledger},
};
use crate::{
    error::{Error, Result},
    outcome::Outcome,
    output::Output,
    stream::{
        ByteSource, Chunk, OutputStream,
        frames::{FrameError, Frames},
    },
};

/// A running command's output, pulled piece by piece; comes from
/// [`AsyncSandbox::exec_stream`](crate::AsyncSandbox::exec_stream).
///
/// It ends in exactly one outcome, told by [`wait`](Self::wait), or in an error. If the connection breaks before the
/// service's final word, that is an error of kind [`StreamCut`](crate::ErrorKind::StreamCut) with the command's id and
/// the output so far, never a success. **The command behind a dropped or broken stream runs on** until it ends or runs
/// into its limit; to be able to come back to a command, [`start`](crate::AsyncSandbox::start) it.
///
/// After a cut the sandbox is looked at once, for at most 5 seconds. If it is stopped, stopping, failed or gone, that is
/// why, and the error is of kind [`SandboxState`](crate::ErrorKind::SandboxState) with the cut as its source; it carries
/// the same command id and output.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// let mut run = sandbox.exec_stream("echo one; echo two >&2").await?.keep_output(1 << 20);
/// assert!(run.command_id().is_some() && run.outcome().is_none());
/// while let Some(chunk) = run.next().await {
///     let chunk = chunk?;
///     println!("{}: {}", chunk.stream(), chunk.text().trim_end());
/// }
/// let output = run.wait().await?;
/// assert_eq!((output.exit_code(), &*output.stdout_text()), (Some(0), "one\n"));
/// # Ok(()) }
/// ```
#[must_use = "the output is read when it is asked for"]
pub struct ExecStream {
    frames: Option<Frames<Frame>>,
    pending: VecDeque<Chunk>,
    ledger: Ledger,
    /// Whether output has come.
    wrote: bool,
    /// Finds out why the connection was cut.
    explain: Option<Explain>,
    explaining: Option<Explaining>,
}

/// Turns the error of a cut into the one to report.
pub(crate) type Explain = Box<dyn FnOnce(Error) -> Explaining + Send>;
pub(crate) type Explaining = Pin<Box<dyn Future<Output = Error> + Send>>;

impl ExecStream {
    pub(crate) fn new(source: ByteSource, sandbox_id: &str, explain: Option<Explain>) -> Self {
        Self {
            frames: Some(Frames::new(source)),
            pending: VecDeque::new(),
            ledger: Ledger::new(sandbox_id, None),
            wrote: false,
            explain,
            explaining: None,
        }
    }

    /// Reads up to the first frame that says something, so that the command's id is known and a command that was
    /// refused is an error of the call that started it.
    pub(crate) async fn open(&mut self) -> Result<()> {
        let opened = std::future::poll_fn(|context| self.poll_frame(context, true)).await;
        match opened {
            Some(Ok(Some(chunk))) => self.pending.push_back(chunk),
            Some(Err(error)) => return Err(error),
            Some(Ok(None)) | None => {}
        }
        Ok(())
    }

    /// The command's id in the sandbox's history, if the service said.
    pub fn command_id(&self) -> Option<&str> {
        self.ledger.facts().command_id.as_deref()
    }

    /// How the command ended; `None` until the stream is over, and after it failed.
    pub fn outcome(&self) -> Option<Outcome> {
        self.ledger.outcome()
    }

    /// Keeps the first `cap` bytes of each stream for [`wait`](Self::wait) and for errors. What is over the cap is
    /// read and dropped, and the output counts as truncated.
    pub fn keep_output(mut self, cap: usize) -> Self {
        self.ledger.keep(cap);
        self
    }

    /// The next piece of output; `None` once the command has ended.
    ///
    /// # Errors
    ///
    /// [`StreamCut`](crate::ErrorKind::StreamCut) when the connection ended, broke or fell silent for longer than the
    /// idle limit (60 s + the command's limit + 30 s unless set) before the final frame,
    /// [`SandboxState`](crate::ErrorKind::SandboxState) when it did because the sandbox is no more,
    /// [`StreamFailed`](crate::ErrorKind::StreamFailed) when the service ends it with an error,
    /// [`Unexpected`](crate::ErrorKind::Unexpected) for a line that is no frame and
    /// [`TooLarge`](crate::ErrorKind::TooLarge) for one over 16 MiB. After an error it is over.
    pub async fn next(&mut self) -> Option<Result<Chunk>> {
        crate::stream::next(self).await
    }

    /// Reads what is left and says how the command ended.
    ///
    /// The output in the result is what was kept: the last 64 KiB of each stream, or what
    /// [`keep_output`](Self::keep_output) asked for. Where more went by, the output is marked as truncated.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next), also when the error had been given out by it before.
    pub async fn wait(mut self) -> Result<Output> {
        while let Some(chunk) = self.next().await {
            chunk?;
        }
        self.ledger.into_output()
    }

    /// The next chunk, or `None` at the end. When opening, `Ok(None)` says that the command has started.
    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
        opening: bool,
    ) -> Poll<Option<Result<Option<Chunk>>>> {
        loop {
            if let Some(explaining) = &mut self.explaining {
                let error = ready!(explaining.as_mut().poll(context));
                self.explaining = None;
                return Poll::Ready(Some(Err(self.fail(error))));
            }
            let Some(frames) = self.frames.as_mut().filter(|_| !self.ledger.is_over()) else {
                return Poll::Ready(None);
            };
            let mut frame = match ready!(frames.poll_next(context)) {
                Some(Ok(frame)) => frame,
                Some(Err(FrameError::Bad(error))) => return Poll::Ready(Some(Err(self.fail(error)))),
                Some(Err(FrameError::Broken(cause))) => {
                    self.cut(Some(cause));
                    continue;
                }
                None => {
                    self.cut(None);
                    continue;
                }
            };
            let stream = match frame.kind.as_deref() {
                Some("stdout") => OutputStream::Stdout,
                Some("stderr") => OutputStream::Stderr,
                Some("started") => {
                    let facts = self.ledger.facts_mut();
                    facts.command_id = frame.command_id.take().or(facts.command_id.take());
                    if opening {
                        return Poll::Ready(Some(Ok(None)));
                    }
                    continue;
                }
                Some("exit") => {
                    self.ledger.finish(frame.outcome());
                    frame.describe(self.ledger.facts_mut());
                    self.let_go(context);
                    return Poll::Ready(None);
                }
                Some("error") => {
                    let facts = self.ledger.facts_mut();
                    facts.command_id = frame.command_id.take().or(facts.command_id.take());
                    let error = frame.into_error();
                    // What has written output has run, whatever the frame says.
                    let never_ran = error.is_retryable() && !self.wrote;
                    return Poll::Ready(Some(Err(self.fail(error.with_retryable(never_ran)))));
                }
                Some(_) => continue,
                None => return Poll::Ready(Some(Err(self.fail(frame::without_type())))),
            };
            match frame.data.map(Bytes::from) {
                Some(data) if data.is_empty() => {}
                Some(data) => {
                    self.wrote = true;
                    return Poll::Ready(Some(Ok(Some(Chunk::of(stream, data)))));
                }
                None => return Poll::Ready(Some(Err(self.fail(frame::without_data())))),
            }
        }
    }

    /// The connection is gone before the final frame.
    fn cut(&mut self, cause: Option<Error>) {
        self.frames = None;
        let cut = ledger::cut(cause);
        self.explaining = Some(match self.explain.take() {
            Some(explain) => explain(cut),
            None => Box::pin(std::future::ready(cut)),
        });
    }

    fn fail(&mut self, error: Error) -> Error {
        self.frames = None;
        self.ledger.fail(error, None)
    }

    /// Ends the connection; one whose body is already over can be used again, so that end is looked for once.
    fn let_go(&mut self, context: &mut Context<'_>) {
        if let Some(mut frames) = self.frames.take() {
            let _ = frames.poll_next(context);
        }
    }
}

impl Stream for ExecStream {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let chunk = match self.pending.pop_front() {
            Some(chunk) => chunk,
            None => match ready!(self.poll_frame(context, false)) {
                Some(Ok(Some(chunk))) => chunk,
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(None)) | None => return Poll::Ready(None),
            },
        };
        self.ledger.record(&chunk);
        Poll::Ready(Some(Ok(chunk)))
    }
}

impl fmt::Debug for ExecStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ExecStream")
            .field("command_id", &self.command_id())
            .field("outcome", &self.outcome())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{error::ErrorKind, stream::frames::scripted};

    const TEXT: &str = concat!(
        "{\"type\":\"started\",\"commandId\":\"cmd_1\"}\n",
        "{\"type\":\"stdout\",\"data\":\"a\\u00e9\"}\r\n\n",
        "{\"type\":\"resize\",\"data\":5}\n",
        "{\"type\":\"stderr\",\"data\":\"b\"}\n",
        "{\"type\":\"exit\",\"exitCode\":3,\"success\":false,\"timedOut\":false,\"stderrTruncated\":true}",
    );

    fn stream(pieces: &[&str]) -> ExecStream {
        let pieces = pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece.as_bytes())));
        ExecStream::new(scripted(pieces.collect()), "bx_1", None)
    }

    #[tokio::test]
    async fn a_whole_stream_has_one_outcome_however_it_is_cut_into_pieces() {
        for at in 0..=TEXT.len() {
            if !TEXT.is_char_boundary(at) {
                continue;
            }
            let mut run = stream(&[&TEXT[..at], &TEXT[at..]]);
            run.open().await.unwrap();
            assert_eq!(run.command_id(), Some("cmd_1"));
            assert_eq!(run.next().await.unwrap().unwrap(), Chunk::Stdout("aé".into()));
            assert_eq!(run.next().await.unwrap().unwrap(), Chunk::Stderr("b".into()));
            assert!(run.next().await.is_none());
            let output = run.wait().await.unwrap();
            assert_eq!(output.outcome(), Outcome::Exited(3));
            assert!(output.stderr_truncated() && !output.stdout_truncated());
            assert_eq!((&output.stdout()[..], &output.stderr()[..]), ("aé".as_bytes(), &b"b"[..]));
            assert_eq!(output.command_id(), Some("cmd_1"));
        }
    }

    #[tokio::test]
    async fn a_cut_anywhere_is_an_error_with_what_came() {
        let exit = TEXT.rfind("{\"type\":\"exit\"").unwrap();
        for at in (0..TEXT.len()).filter(|at| TEXT.is_char_boundary(*at)) {
            let mut run = stream(&[&TEXT[..at]]);
            let error = match run.open().await {
                Ok(()) => run.wait().await.unwrap_err(),
                Err(error) => error,
            };
            assert_eq!((error.kind(), error.code()), (ErrorKind::StreamCut, "stream_cut"), "cut at {at}");
            assert_eq!(error.sandbox_id(), Some("bx_1"));
            if at >= exit {
                assert_eq!(error.command_id(), Some("cmd_1"));
                assert_eq!(error.partial_output().unwrap().stdout, "aé");
                assert_eq!(error.partial_output().unwrap().stderr, "b");
            }
        }
    }

    #[tokio::test]
    async fn a_final_frame_stands_whatever_follows_it() {
        let reset = Error::new(ErrorKind::Connection, "connection_error", "reset");
        let text = format!("{TEXT}\n");
        for tail in [Ok(Bytes::from_static(b"{broken")), Err(reset)] {
            let mut run = ExecStream::new(scripted(vec![Ok(text.clone().into()), tail]), "bx_1", None);
            run.open().await.unwrap();
            assert_eq!(run.wait().await.unwrap().outcome(), Outcome::Exited(3));
        }
    }

    #[tokio::test]
    async fn an_error_once_given_out_is_not_forgotten() {
        let mut run = stream(&[
            "{\"type\":\"started\",\"commandId\":\"c\"}\n{\"type\":\"stdout\",\"data\":\"x\"}\noops\n",
        ]);
        run.open().await.unwrap();
        assert!(run.next().await.unwrap().is_ok());
        let error = run.next().await.unwrap().unwrap_err();
        assert!(error.message().contains("line 3"), "{error}");
        assert!(run.next().await.is_none());
        let again = run.wait().await.unwrap_err();
        assert_eq!((again.kind(), again.code()), (error.kind(), error.code()));
        assert_eq!(again.partial_output().unwrap().stdout, "x");
    }

    #[tokio::test]
    async fn an_error_frame_is_typed_and_keeps_the_output() {
        let mut run = stream(&[
            "{\"type\":\"started\",\"commandId\":\"c\"}\n{\"type\":\"stdout\",\"data\":\"x\"}\n",
            "{\"type\":\"error\",\"error\":\"sandbox_direct_failed\",\"message\":\"gone\"}\n",
        ]);
        run.open().await.unwrap();
        let error = run.wait().await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::StreamFailed, "sandbox_direct_failed"));
        assert!(!error.is_retryable());
        assert_eq!(error.partial_output().unwrap().stdout, "x");
        assert_eq!(error.command_id(), Some("c"));
    }

    #[tokio::test]
    async fn what_has_written_output_is_not_called_repeatable() {
        let turned_away = "{\"type\":\"error\",\"error\":\"sandbox_restoring\",\"retryable\":true}\n";
        let started = "{\"type\":\"started\",\"commandId\":\"c\"}\n{\"type\":\"started\"}\n";
        for (output, retryable) in [("", true), ("{\"type\":\"stderr\",\"data\":\"x\"}\n", false)] {
            let mut run = stream(&[started, output, turned_away]);
            run.open().await.unwrap();
            let error = run.wait().await.unwrap_err();
            assert_eq!((error.is_retryable(), error.command_id()), (retryable, Some("c")));
        }
    }

    #[tokio::test]
    async fn output_is_kept_as_asked() {
        let mut run = stream(&[TEXT]).keep_output(1);
        run.open().await.unwrap();
        let output = run.wait().await.unwrap();
        assert_eq!(output.stdout(), &b"a"[..]);
        assert!(output.stdout_truncated());
    }
}
