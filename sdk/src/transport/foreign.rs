//! Requests to addresses that the service gave out: another host, reached without the key.

use super::{Context, failure::Failure};
use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    generated::operations::Repeat,
    retry::{
        after::retry_after,
        backoff::Backoff,
        policy::{Decision, decide},
    },
    stream::ByteBody,
};
use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{HeaderMap, HeaderValue, Method, header};
use http_body::{Body, Frame, SizeHint};
use reqwest::{Request, Response};
use std::{
    error::Error as StdError,
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context as Task, Poll, ready},
};
use tokio::sync::mpsc;
use url::Url;

/// Opens what is at `address`, with these headers of the caller's; failed tries are repeated as those of a read are.
pub(crate) async fn get(context: &Context, address: &str, headers: HeaderMap) -> Result<ByteBody> {
    let url = checked(context, address)?;
    let (plan, clock) = (&context.plan, context.shared.clock());
    let (mut backoff, mut number) = (Backoff::new(), 0);
    loop {
        number += 1;
        context.set_attempts(number);
        let failure = match get_once(context, &url, &headers).await {
            Ok(response) => {
                let (status, headers) = (response.status(), response.headers().clone());
                return Ok(ByteBody::new(
                    Box::pin(response.bytes_stream()),
                    context.clone(),
                    status,
                    headers,
                ));
            }
            Err(failure) => failure,
        };
        let decision = decide(Repeat::Safe, &failure.facts);
        let Decision::Repeat { pause, .. } = decision else { return Err(ended(context, failure, false)) };
        let wait = failure.error.retry_after().map_or_else(|| backoff.next(pause), |hint| hint.max(pause));
        let in_time = plan.deadline().is_none_or(|deadline| clock.elapsed().saturating_add(wait) < deadline);
        if failure.is_final
            || number > plan.retries()
            || !in_time
            || !context.shared.budget().take(clock.elapsed())
        {
            return Err(ended(context, failure, true));
        }
        clock.sleep(wait).await;
    }
}

async fn get_once(context: &Context, url: &Url, headers: &HeaderMap) -> Result<Response, Failure> {
    let mut request = request(context, Method::GET, url);
    request.headers_mut().extend(headers.clone());
    let sending = context.shared.http().execute(request);
    let Some(limit) = context.plan.attempt() else { return judged(context, sending.await) };
    match select(Box::pin(sending), context.shared.clock().sleep(limit)).await {
        Either::Left((answered, _)) => judged(context, answered),
        Either::Right(_) => Err(Failure::attempt_timed_out(limit, false)),
    }
}

/// Sends `body` to `address`. It is sent once: the bytes are not kept. Dropping the future breaks the request off.
pub(crate) async fn put(context: &Context, address: &str, body: FedBody) -> Result<()> {
    let url = checked(context, address)?;
    let mut request = request(context, Method::PUT, &url);
    let kind = HeaderValue::from_static("application/octet-stream");
    request.headers_mut().insert(header::CONTENT_TYPE, kind);
    *request.body_mut() = Some(reqwest::Body::wrap(body));
    context.set_attempts(1);
    match judged(context, context.shared.http().execute(request).await) {
        Ok(_) => Ok(()),
        Err(failure) => {
            // The service replaces the file only once all has arrived, so sending all of it again is safe.
            let repeatable = decide(Repeat::Replace, &failure.facts) != Decision::Stop;
            Err(ended(context, failure, repeatable))
        }
    }
}

fn request(context: &Context, method: Method, url: &Url) -> Request {
    let mut request = Request::new(method, url.clone());
    request.headers_mut().insert(header::USER_AGENT, context.shared.user_agent());
    request
}

/// What the answer is, by its head alone: a body of another host may repeat the address.
fn judged(context: &Context, answered: reqwest::Result<Response>) -> Result<Response, Failure> {
    let response = answered.map_err(|error| Failure::transport(error, false))?;
    let (status, headers) = (response.status(), response.headers());
    if status.is_success() {
        return Ok(response);
    }
    if status.is_redirection() {
        let message = "the address answered with a redirect, which is never followed";
        let error = Error::new(ErrorKind::Unexpected, "unexpected_redirect", message);
        return Err(Failure::unexpected(error, status, headers));
    }
    Err(Failure::status(status, headers, b"", retry_after(headers, context.shared.clock().now())))
}

fn ended(context: &Context, failure: Failure, repeatable: bool) -> Error {
    let error = failure.error.with_attempts(context.attempts());
    context.plan.label(error.with_retryable(repeatable && !failure.is_final))
}

/// The address, if bytes may go there: over https, or plainly to where the client talks plainly anyway.
fn checked(context: &Context, address: &str) -> Result<Url> {
    context.shared.check_open().map_err(|error| context.plan.label(error))?;
    let refuse = |problem: &str| {
        let message = format!("the service gave out an address that {problem}");
        let error = Error::new(ErrorKind::Unexpected, "invalid_url", message);
        context.plan.label(error.with_delivery(Delivery::Answered))
    };
    // The parser's own words may repeat the address, which is a secret.
    let url = Url::parse(address).map_err(|_| refuse("cannot be read"))?;
    let base = context.shared.base();
    let plain = url.scheme() == "http" && (base.is_same_origin(&url) || base.is_loopback_beside(&url));
    if url.scheme() != "https" && !plain {
        return Err(refuse("is not https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("has a user name or password"));
    }
    Ok(url)
}

/// The sending end of a request body that is made while it is sent: at most one piece waits.
pub(crate) struct Feed {
    pieces: mpsc::Sender<Piece>,
    taken: Arc<AtomicU64>,
}

enum Piece {
    Data(Bytes),
    End,
}

/// The receiving end. Without its end it is never taken for whole.
pub(crate) struct FedBody {
    pieces: mpsc::Receiver<Piece>,
    taken: Arc<AtomicU64>,
    left: Option<u64>,
    ended: bool,
}

/// A body of this length, if it is known, and what feeds it.
pub(crate) fn feed(length: Option<u64>) -> (Feed, FedBody) {
    let (sender, receiver) = mpsc::channel(1);
    let taken = Arc::<AtomicU64>::default();
    let body = FedBody { pieces: receiver, taken: taken.clone(), left: length, ended: false };
    (Feed { pieces: sender, taken }, body)
}

impl Feed {
    /// Hands over a piece once there is room for it; false when the request takes no more.
    pub(crate) async fn send(&self, piece: Bytes) -> bool {
        self.pieces.send(Piece::Data(piece)).await.is_ok()
    }

    /// Says that all was sent.
    pub(crate) async fn end(&self) {
        // A request of a known length may be over before this arrives.
        let _ = self.pieces.send(Piece::End).await;
    }

    /// How many bytes the connection has taken.
    pub(crate) fn taken(&self) -> Arc<AtomicU64> {
        self.taken.clone()
    }
}

impl Body for FedBody {
    type Data = Bytes;
    type Error = Abandoned;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Task<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Abandoned>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match ready!(self.pieces.poll_recv(task)) {
            Some(Piece::Data(piece)) => {
                let length = piece.len() as u64;
                self.taken.fetch_add(length, Ordering::AcqRel);
                self.left = self.left.map(|left| left.saturating_sub(length));
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Some(Piece::End) => {
                self.ended = true;
                Poll::Ready(None)
            }
            None => Poll::Ready(Some(Err(Abandoned))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// The body was given up before its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abandoned;

impl fmt::Display for Abandoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the upload was given up before its end")
    }
}

impl StdError for Abandoned {}
