//! One try: the request goes out, the answer is read whole, all within a limit.

use super::{
    Context,
    failure::Failure,
    headers::ATTEMPT,
    plan::Reading,
    sent::{MarkedBody, SendMark},
};
use crate::{
    error::{Error, ErrorKind, envelope},
    retry::after::retry_after,
};
use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::future::{Either, select};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use reqwest::{Request, Response, ResponseBuilderExt};
use std::{pin::pin, sync::OnceLock, time::Duration};
use url::Url;

/// The longest answer that is read into memory.
pub(crate) const BODY_LIMIT: usize = 64 << 20;
/// A mark that some programs write in front of a UTF-8 text; it is no part of it.
const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();
/// The most that is read of an error's body.
const ERROR_BODY_LIMIT: usize = 1 << 20;

/// A request that can be sent any number of times.
pub(super) struct Template {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
}

impl Template {
    /// Takes a request apart; `None` when its body is a stream, which the engine never makes.
    pub(super) fn new(request: &Request) -> Option<Self> {
        let body = match request.body() {
            None => Bytes::new(),
            Some(body) => Bytes::copy_from_slice(body.as_bytes()?),
        };
        let (method, url) = (request.method().clone(), request.url().clone());
        Some(Self { method, url, headers: request.headers().clone(), body })
    }

    /// The idempotency key that goes with all tries.
    pub(super) fn header(&self, name: &http::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn request(&self, number: u32, mark: SendMark) -> Request {
        let mut request = Request::new(self.method.clone(), self.url.clone());
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(ATTEMPT, HeaderValue::from(number));
        *request.body_mut() = Some(reqwest::Body::wrap(MarkedBody::new(self.body.clone(), mark)));
        request
    }
}

/// The limit of a try.
#[derive(Clone, Copy)]
pub(super) enum TryLimit {
    /// That of one attempt.
    Attempt(Duration),
    /// What is left of the limit of the whole call.
    Total { left: Duration, total: Duration },
}

impl TryLimit {
    pub(super) fn wait(self) -> Duration {
        match self {
            Self::Attempt(limit) => limit,
            Self::Total { left, .. } => left,
        }
    }
}

/// Sends the request once.
pub(super) async fn attempt(
    context: &Context,
    template: &Template,
    number: u32,
    limit: Option<TryLimit>,
) -> Result<Response, Failure> {
    let (mark, refused) = (SendMark::default(), OnceLock::new());
    context.tries().begin(mark.clone());
    let exchange = exchange(context, template.request(number, mark.clone()), &mark, &refused);
    let Some(limit) = limit else { return exchange.await };
    if let Either::Left((exchanged, _)) =
        select(pin!(exchange), context.shared.clock().sleep(limit.wait())).await
    {
        return exchanged;
    }
    // A refusal is one however long the rest of its body takes.
    if let Some((status, headers)) = refused.get() {
        return Err(refusal(context, *status, headers, Bytes::new()));
    }
    // Whether a connection takes the request from here on or has taken it before: the mark lets only one be true.
    let unsent = mark.give_up();
    Err(match limit {
        TryLimit::Attempt(limit) => Failure::attempt_timed_out(limit, unsent),
        TryLimit::Total { total, .. } => Failure::total_timed_out(total, unsent),
    })
}

/// The head of an error answer.
type Head = (StatusCode, HeaderMap);

async fn exchange(
    context: &Context,
    request: Request,
    mark: &SendMark,
    refused: &OnceLock<Head>,
) -> Result<Response, Failure> {
    let sent = context.shared.http().execute(request).await;
    let response = sent.map_err(|error| Failure::transport(error, mark.give_up()))?;
    let status = response.status();
    if !status.is_success() {
        let (status, headers) = refused.get_or_init(|| (status, response.headers().clone()));
        let body = error_body(response).await;
        return Err(refusal(context, *status, headers, body));
    }
    if context.plan.reading == Reading::Stream { Ok(response) } else { read_whole(context, response).await }
}

/// Reads the body of an error answer; what of it cannot be read is left out.
async fn error_body(mut response: Response) -> Bytes {
    let mut body = BytesMut::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let room = ERROR_BODY_LIMIT - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == ERROR_BODY_LIMIT {
            break;
        }
    }
    without_mark(body).freeze()
}

fn without_mark(mut body: BytesMut) -> BytesMut {
    if body.starts_with(BYTE_ORDER_MARK) {
        body.advance(BYTE_ORDER_MARK.len());
    }
    body
}

fn refusal(context: &Context, status: StatusCode, headers: &HeaderMap, body: Bytes) -> Failure {
    let body = context.shared.key().redact(body);
    Failure::status(status, headers, &body, retry_after(headers, context.shared.clock().now()))
}

/// Reads a success to its end and hands it on as if it had just come.
async fn read_whole(context: &Context, mut response: Response) -> Result<Response, Failure> {
    let (status, version, url) = (response.status(), response.version(), response.url().clone());
    let headers = response.headers().clone();
    let too_large = || {
        let message = format!("the answer is over the {} MiB that are read into memory", BODY_LIMIT >> 20);
        Failure::unexpected(Error::new(ErrorKind::TooLarge, "answer_too_large", message), status, &headers)
    };
    if response.content_length().is_some_and(|length| length > BODY_LIMIT as u64) {
        return Err(too_large());
    }
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > BODY_LIMIT => return Err(too_large()),
            Ok(Some(chunk)) if body.is_empty() => body = BytesMut::from(chunk),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => {
                let message = format!("the answer broke off after {} bytes", body.len());
                return Err(Failure::half_body(status, message, Some(error)).with_headers(&headers));
            }
        }
    }
    let mut body = without_mark(body);
    let has_no_body = matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT);
    if has_no_body && body.is_empty() && context.plan.reading == Reading::Json {
        // Nothing is all that these two can say, so it is the whole answer and not half of one.
        body = BytesMut::from(&b"{}"[..]);
    }
    let wanted = context.plan.reading == Reading::Json || !body.is_empty();
    if wanted && ends_early(&body) {
        let message = format!("the answer's JSON ends early, after {} bytes", body.len());
        return Err(Failure::half_body(status, message, None).with_headers(&headers));
    }
    // Any success is the operation's success: a service that answers 200 for 202 has done what was asked.
    let expected =
        context.plan.operation.and_then(|o| StatusCode::from_u16(o.info().success).ok()).unwrap_or(status);
    let mut rebuilt = http::Response::builder().status(expected).version(version).url(url);
    if let Some(own) = rebuilt.headers_mut() {
        *own = headers;
    }
    match rebuilt.body(body.freeze()) {
        Ok(rebuilt) => Ok(rebuilt.into()),
        Err(error) => {
            let message = "the answer's head cannot be formed again";
            let error = Error::new(ErrorKind::Unexpected, "unexpected_response", message).with_source(error);
            Err(Failure::unexpected(error, status, &HeaderMap::new()))
        }
    }
}

/// Whether more would have to follow for this to be JSON.
fn ends_early(body: &[u8]) -> bool {
    let ends = |body: &[u8]| {
        serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err_and(|error| error.is_eof())
    };
    // An end within a number looks like a bad number, unless a digit follows.
    let in_number = body.last().is_some_and(|last| b"+-.eE".contains(last));
    ends(body) || (in_number && ends(&[body, b"0"].concat()))
}

impl Failure {
    fn with_headers(mut self, headers: &HeaderMap) -> Self {
        self.error = self.error.with_request_id(envelope::request_id(headers));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::ends_early;

    #[test]
    fn half_of_any_json_ends_early() {
        let text = r#"{"a":[-1.5e+3,true,null,"\u00e9\n",{}],"b":-0.25}"#;
        for end in 0..text.len() {
            assert!(ends_early(&text.as_bytes()[..end]), "{}", &text[..end]);
        }
        for whole in [text, "7", "<html>-", "nope", "{]", "[1.]", "{\"a\":1}}e"] {
            assert!(!ends_early(whole.as_bytes()), "{whole}");
        }
    }
}
