//! The body of an answer, read as it comes.

use crate::{
    clock::Sleep,
    error::{Delivery, Error, ErrorKind, Result, envelope},
    transport::Context,
};
use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use http::{HeaderMap, StatusCode};
use std::{
    fmt,
    pin::Pin,
    task::{Context as Task, Poll, ready},
    time::Duration,
};

type Source = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send + Sync>>;

/// The raw bytes of an answer, pulled piece by piece: nothing is read before it is asked for, so a slow reader slows the
/// sender down.
///
/// A connection that breaks is an error of kind [`StreamCut`](ErrorKind::StreamCut), silence beyond the `idle` limit one of
/// kind [`Timeout`](ErrorKind::Timeout); nothing follows an error. Dropping the body closes its connection; what the service
/// does goes on.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// use sandboxer::models::ArtifactParams;
///
/// sandbox.files().write("data.bin", "0123456789").await?;
/// let mut body = sandbox.api().artifact(sandbox.id(), ArtifactParams::new("data.bin")).await?;
/// assert_eq!((body.status().as_u16(), body.content_length()), (200, Some(10)));
/// assert!(body.content_type().is_some() && body.headers().contains_key("content-type"));
/// println!("{:?}", body.request_id());
/// while let Some(piece) = body.next().await {
///     print!("{}", String::from_utf8_lossy(&piece?));
/// }
/// assert_eq!(body.received(), 10);
///
/// let again = sandbox.api().artifact(sandbox.id(), ArtifactParams::new("data.bin")).await?;
/// assert_eq!(&again.collect(1 << 20).await?[..], b"0123456789");
/// # Ok(()) }
/// ```
pub struct ByteBody {
    source: Option<Source>,
    context: Context,
    status: StatusCode,
    headers: HeaderMap,
    idle: Option<Duration>,
    silence: Option<Sleep>,
    received: u64,
}

impl ByteBody {
    pub(crate) fn new(source: Source, context: Context, status: StatusCode, headers: HeaderMap) -> Self {
        let idle = context.plan.idle();
        Self { source: Some(source), context, status, headers, idle, silence: None, received: 0 }
    }

    /// The next piece, never empty; `None` at the end.
    ///
    /// # Errors
    ///
    /// The connection broke, or was silent for longer than the `idle` limit.
    pub async fn next(&mut self) -> Option<Result<Bytes>> {
        std::future::poll_fn(|task| Pin::new(&mut *self).poll_next(task)).await
    }

    /// The whole body, if it is no longer than `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooLarge`] when there is more, and those of [`next`](Self::next).
    pub async fn collect(mut self, limit: usize) -> Result<Bytes> {
        let mut all = BytesMut::new();
        while let Some(piece) = self.next().await {
            let piece = piece?;
            if all.len() + piece.len() > limit {
                let message = format!("the body is longer than {limit} bytes");
                return Err(self.label(
                    Error::new(ErrorKind::TooLarge, "answer_too_large", message),
                    Delivery::Answered,
                ));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
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
        self.header("content-length")?.parse().ok()
    }

    /// The media type, for example `application/octet-stream`.
    pub fn content_type(&self) -> Option<&str> {
        self.header("content-type")
    }

    /// The service's id of the request.
    pub fn request_id(&self) -> Option<&str> {
        self.header("x-request-id")
    }

    /// How many bytes were read so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn label(&self, error: Error, delivery: Delivery) -> Error {
        self.context.plan.label(
            error
                .with_status(self.status.as_u16())
                .with_request_id(envelope::request_id(&self.headers))
                .with_delivery(delivery)
                .with_attempts(self.context.attempts()),
        )
    }

    fn cut(&self, error: reqwest::Error) -> Error {
        let message = format!("the stream broke after {} bytes", self.received);
        let error = Error::new(ErrorKind::StreamCut, "stream_cut", message).with_source(error.without_url());
        self.label(error, Delivery::Unknown)
    }

    fn silent(&self, idle: Duration) -> Error {
        self.label(crate::transport::timed_out("idle", idle), Delivery::Unknown)
    }
}

impl Stream for ByteBody {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Option<Result<Bytes>>> {
        let this = &mut *self;
        loop {
            let Some(source) = &mut this.source else { return Poll::Ready(None) };
            match source.as_mut().poll_next(task) {
                Poll::Ready(Some(Ok(piece))) => {
                    this.silence = None;
                    if piece.is_empty() {
                        continue;
                    }
                    this.received += piece.len() as u64;
                    return Poll::Ready(Some(Ok(piece)));
                }
                Poll::Ready(end) => {
                    this.source = None;
                    this.silence = None;
                    return Poll::Ready(end.and_then(Result::err).map(|error| Err(this.cut(error))));
                }
                Poll::Pending => {}
            }
            // Only waiting counts as silence: a reader that does not ask is not the service's fault.
            let Some(idle) = this.idle else { return Poll::Pending };
            let silence = this.silence.get_or_insert_with(|| this.context.shared.clock().sleep(idle));
            ready!(silence.as_mut().poll(task));
            this.source = None;
            this.silence = None;
            return Poll::Ready(Some(Err(this.silent(idle))));
        }
    }
}

impl fmt::Debug for ByteBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteBody")
            .field("status", &self.status.as_u16())
            .field("received", &self.received)
            .field("ended", &self.source.is_none())
            .finish_non_exhaustive()
    }
}
