//! Output as text.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;

use super::{Both, STREAMS, Tap};
use crate::{
    error::Result,
    outcome::Outcome,
    output::Output,
    stream::{Chunk, OutputStream, TextDecoder},
};

/// A command's output as text; comes from [`ExecStream::text`](crate::ExecStream::text) and
/// [`Attach::text`](crate::Attach::text), and fails as the stream it is made of does.
///
/// A character that arrives in two pieces comes out whole with the second; what is not UTF-8 comes out as U+FFFD. Each
/// stream is decoded by itself, so the one never breaks a character of the other. Dropping it closes the connection; the
/// command runs on.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// use sandboxer::stream::OutputStream;
///
/// let mut text = sandbox.exec_stream(r"printf '\342\202'; sleep 0.2; printf '\254 5'").await?.text().only(OutputStream::Stdout);
/// let mut all = String::new();
/// while let Some(piece) = text.next().await {
///     all += &piece?;
/// }
/// assert_eq!(all, "€ 5");
/// assert!(text.outcome().is_some() && text.missing() == 0);
/// assert!(text.wait().await?.success());
/// # Ok(()) }
/// ```
#[must_use = "the output is read when it is asked for"]
#[derive(Debug)]
pub struct OutputText {
    tap: Tap,
    decoders: Both<TextDecoder>,
    ready: VecDeque<Result<String>>,
    over: bool,
}

impl OutputText {
    pub(super) fn new(tap: Tap) -> Self {
        Self { tap, decoders: Both::default(), ready: VecDeque::new(), over: false }
    }

    /// Gives out this stream alone; the other one is read and passed over.
    pub fn only(mut self, stream: OutputStream) -> Self {
        self.tap.only = Some(stream);
        for other in STREAMS.into_iter().filter(|other| *other != stream) {
            *self.decoders.of(other) = TextDecoder::default();
        }
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

    /// The next piece of text, never empty; `None` once the command has ended.
    ///
    /// # Errors
    ///
    /// Those of the stream it is made of. After an error it is over.
    pub async fn next(&mut self) -> Option<Result<String>> {
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

    /// Gives out what is held back of a character that will not be completed any more.
    fn flush(&mut self, stream: OutputStream) {
        let rest = self.decoders.of(stream).finish();
        self.push(rest);
    }

    fn push(&mut self, text: String) {
        if !text.is_empty() {
            self.ready.push_back(Ok(text));
        }
    }
}

impl Stream for OutputText {
    type Item = Result<String>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(item));
            }
            if self.over {
                return Poll::Ready(None);
            }
            match ready!(self.tap.poll_next(context)) {
                Some(Ok(Chunk::Gap(gap))) => self.flush(gap.stream),
                Some(Ok(chunk)) => {
                    let text = self.decoders.of(chunk.stream()).decode(chunk.bytes());
                    self.push(text);
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
