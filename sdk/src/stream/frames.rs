//! JSON values, one a line, out of bytes that arrive in pieces.

use std::{
    marker::PhantomData,
    task::{Context, Poll},
};

use serde::de::DeserializeOwned;

use super::{
    ByteSource,
    lines::{LineDecoder, MAX_LINE},
};
use crate::error::{Delivery, Error, ErrorKind};

/// The frames of one NDJSON body.
///
/// Blank lines are passed over. A last line without its end counts if it is whole JSON; half a line is a cut, so the
/// frames just end.
pub(crate) struct Frames<T> {
    source: ByteSource,
    lines: LineDecoder,
    source_over: bool,
    over: bool,
    frame: PhantomData<fn() -> T>,
}

/// Why no further frame came.
#[derive(Debug)]
pub(crate) enum FrameError {
    /// The bytes broke off or fell silent.
    Broken(Error),
    /// A line cannot be read; the rest of the body cannot be trusted.
    Bad(Error),
}

impl<T: DeserializeOwned> Frames<T> {
    pub(crate) fn new(source: ByteSource) -> Self {
        Self {
            source,
            lines: LineDecoder::new(MAX_LINE),
            source_over: false,
            over: false,
            frame: PhantomData,
        }
    }

    /// The next frame; `None` once the body is over. After an error nothing follows.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<T, FrameError>>> {
        loop {
            if self.over {
                return Poll::Ready(None);
            }
            match self.lines.next_line() {
                Ok(Some(line)) if is_blank(&line) => continue,
                Ok(Some(line)) => {
                    let frame = self.read(&line);
                    self.over = frame.is_err();
                    return Poll::Ready(Some(frame));
                }
                Ok(None) => {}
                Err(_) => {
                    self.over = true;
                    let line = self.lines.line_number() + 1;
                    let message = format!("line {line} of the stream is longer than {} MiB", MAX_LINE >> 20);
                    let error = Error::new(ErrorKind::TooLarge, "line_too_long", message);
                    return Poll::Ready(Some(Err(FrameError::Bad(error.with_delivery(Delivery::Answered)))));
                }
            }
            if self.source_over {
                self.over = true;
                let rest = self.lines.rest().and_then(|rest| self.read(&rest).ok());
                return Poll::Ready(rest.map(Ok));
            }
            match std::task::ready!(self.source.as_mut().poll_next(context)) {
                Some(Ok(piece)) => self.lines.push(piece),
                Some(Err(error)) => {
                    self.over = true;
                    return Poll::Ready(Some(Err(FrameError::Broken(error))));
                }
                None => self.source_over = true,
            }
        }
    }

    #[cfg(test)]
    async fn next(&mut self) -> Option<Result<T, FrameError>> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    fn read(&self, line: &[u8]) -> Result<T, FrameError> {
        let mark = if self.lines.line_number() == 1 { "\u{FEFF}" } else { "" };
        let line = line.strip_prefix(mark.as_bytes()).unwrap_or(line);
        // Derived structs can be read from arrays too, which no frame is.
        if line.trim_ascii_start().first() != Some(&b'{') {
            return Err(self.bad_line("not a frame", 1));
        }
        serde_json::from_slice(line).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => self.bad_line("not a frame", error.column()),
            _ => self.bad_line("not JSON", error.column()),
        })
    }

    /// The line itself may hold anything, secrets included, so the message tells only where and what kind.
    fn bad_line(&self, what: &str, column: usize) -> FrameError {
        let message = format!("line {} of the stream is {what} (column {column})", self.lines.line_number());
        let error = Error::new(ErrorKind::Unexpected, "malformed_frame", message);
        FrameError::Bad(error.with_delivery(Delivery::Answered))
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// A body with its pieces given in advance, for tests.
#[cfg(test)]
pub(crate) fn scripted(pieces: Vec<crate::error::Result<bytes::Bytes>>) -> ByteSource {
    Box::pin(futures_util::stream::iter(pieces))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};

    use super::*;

    async fn frames(pieces: &[&[u8]]) -> (Vec<Value>, Option<Error>) {
        let mut frames =
            Frames::<Value>::new(scripted(pieces.iter().map(|p| Ok(Bytes::copy_from_slice(p))).collect()));
        let mut out = Vec::new();
        loop {
            match frames.next().await {
                Some(Ok(frame)) => out.push(frame),
                Some(Err(FrameError::Bad(error) | FrameError::Broken(error))) => {
                    assert!(frames.next().await.is_none(), "an error is the last item");
                    return (out, Some(error));
                }
                None => return (out, None),
            }
        }
    }

    #[tokio::test]
    async fn frames_survive_any_cut_of_the_bytes() {
        let text = "{\"a\":\"é\"}\r\n\n  \n{\"b\":[1]}\n{\"c\":\"\\n\"}".as_bytes();
        let expected = [json!({"a": "é"}), json!({"b": [1]}), json!({"c": "\n"})];
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let (out, error) = frames(&[&text[..first], &text[first..second], &text[second..]]).await;
                assert!(error.is_none());
                assert_eq!(out, expected, "cut at {first} and {second}");
            }
        }
    }

    #[tokio::test]
    async fn half_a_line_at_the_end_is_no_frame() {
        let text = b"{\"a\":1}\n{\"b\":2}\n";
        for end in 0..=text.len() {
            let (out, error) = frames(&[&text[..end]]).await;
            assert!(error.is_none(), "cut at {end}");
            let whole = usize::from(end >= 7) + usize::from(end >= 15);
            assert_eq!(out.len(), whole, "cut at {end}");
        }
    }

    #[tokio::test]
    async fn a_bad_line_is_named_and_what_came_before_is_delivered() {
        let (out, error) = frames(&[b"{\"a\":1}\n\n{oops: \"sec", b"ret\"}\n{\"b\":2}\n"]).await;
        let error = error.unwrap();
        assert_eq!(out, [json!({"a": 1})]);
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "malformed_frame"));
        assert!(error.message().contains("line 3") && !error.message().contains("secret"), "{error}");
    }

    #[tokio::test]
    async fn a_broken_body_is_an_error_after_its_whole_frames() {
        let cut = Error::new(ErrorKind::StreamCut, "stream_cut", "cut");
        let pieces = vec![Ok(Bytes::from_static(b"{\"a\":1}\n{\"b\"")), Err(cut)];
        let mut frames = Frames::<Value>::new(scripted(pieces));
        assert!(matches!(frames.next().await, Some(Ok(_))));
        assert!(matches!(frames.next().await, Some(Err(FrameError::Broken(_)))));
        assert!(frames.next().await.is_none());
    }
}
