//! The extractor for axum.

use super::{WebhookEvent, error::WebhookError, verifier::Verifier};
use axum_core::{
    RequestExt as _,
    body::Body,
    extract::{FromRef, FromRequest, Request},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use std::{error::Error, fmt};

/// The longest body that the extractor reads, in bytes; events are under a kibibyte. axum's `DefaultBodyLimit` lowers it.
pub const MAX_WEBHOOK_BODY: usize = 1024 * 1024;

/// An axum extractor: the event of a delivery that is verified, or, as `Webhook<Bytes>`, its raw body. The [`Verifier`] comes
/// from the state: it is the state, or the state implements `FromRef` for it. It reads the body itself, so it is the last
/// argument, and no middleware may have rewritten the body.
///
/// ```
/// use axum::{Router, http::StatusCode, routing::post};
/// use sandboxer::webhooks::{Verifier, Webhook, WebhookEvent};
///
/// async fn receive(Webhook(event): Webhook<WebhookEvent>) -> StatusCode {
///     println!("{} {}", event.kind, event.data.sandbox.id);
///     StatusCode::NO_CONTENT
/// }
///
/// let verifier = Verifier::new("whsec_1")?;
/// let app: Router = Router::new().route("/hooks", post(receive)).with_state(verifier.clone());
/// # use {axum::body::Body, sandboxer::clock::{Clock, SystemClock}, tower_service::Service};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let mut app = app;
/// # let body = r#"{"id":"evt_1","type":"sandbox.ready","data":{"sandbox":{"id":"bx_23456789"}}}"#;
/// # let mut request = http::Request::post("/hooks").body(Body::from(body)).unwrap();
/// # *request.headers_mut() = verifier.sign(SystemClock::new().now(), body.as_bytes()).unwrap();
/// # assert_eq!(app.call(request).await.unwrap().status(), 204);
/// # let forged = http::Request::post("/hooks").body(Body::from(body)).unwrap();
/// # assert_eq!(app.call(forged).await.unwrap().status(), 400);
/// # });
/// # Ok::<(), sandboxer::webhooks::WebhookError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Webhook<T = WebhookEvent>(
    /// What was extracted.
    pub T,
);

impl<S> FromRequest<S> for Webhook<WebhookEvent>
where
    Verifier: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = WebhookRejection;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let Webhook(body) = Webhook::<Bytes>::from_request(request, state).await?;
        WebhookEvent::read(&body).map(Self).map_err(WebhookRejection::Refused)
    }
}

impl<S> FromRequest<S> for Webhook<Bytes>
where
    Verifier: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = WebhookRejection;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let headers = super::SignatureHeaders::from(request.headers());
        let body = read(request).await?;
        Verifier::from_ref(state).verify(headers, &body).map_err(WebhookRejection::Refused)?;
        Ok(Self(body))
    }
}

async fn read(request: Request) -> Result<Bytes, WebhookRejection> {
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length.and_then(|text| text.parse::<u64>().ok()).is_some_and(|length| length > MAX_WEBHOOK_BODY as u64)
    {
        return Err(WebhookRejection::TooLarge);
    }
    let body: Body = request.into_limited_body();
    match Limited::new(body, MAX_WEBHOOK_BODY).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if is_length(&*error) => Err(WebhookRejection::TooLarge),
        Err(_) => Err(WebhookRejection::Unreadable),
    }
}

fn is_length(error: &(dyn Error + 'static)) -> bool {
    error.is::<LengthLimitError>() || error.source().is_some_and(is_length)
}

/// Why the extractor refused a request. As a response it is its status with one line of plain text.
///
/// ```
/// use sandboxer::webhooks::{WebhookError, WebhookRejection};
///
/// assert_eq!(WebhookRejection::TooLarge.status(), 413);
/// assert_eq!(WebhookRejection::Refused(WebhookError::NoMatchingSignature).status(), 401);
/// assert_eq!(WebhookRejection::Refused(WebhookError::MissingHeader("Sandboxer-Signature")).status(), 400);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookRejection {
    /// The delivery is not good.
    Refused(WebhookError),
    /// The body is longer than [`MAX_WEBHOOK_BODY`], or than axum's own limit.
    TooLarge,
    /// The body broke off.
    Unreadable,
}

impl WebhookRejection {
    /// The status of the response: 401 when the signature does not match, is too old, too new or was seen before; 413 for a body
    /// that is too long; 400 for headers or a body that cannot be read; 500 without a secret.
    ///
    /// ```
    /// use sandboxer::webhooks::{WebhookError, WebhookRejection};
    ///
    /// assert_eq!(WebhookRejection::Refused(WebhookError::Replayed).status(), 401);
    /// ```
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Refused(WebhookError::NoSecret) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Refused(
                WebhookError::NoMatchingSignature
                | WebhookError::TooOld { .. }
                | WebhookError::TooNew { .. }
                | WebhookError::Replayed,
            ) => StatusCode::UNAUTHORIZED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Refused(_) | Self::Unreadable => StatusCode::BAD_REQUEST,
        }
    }
}

impl fmt::Display for WebhookRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::TooLarge => f.write_str("the body is too long for a webhook event"),
            Self::Unreadable => f.write_str("the body broke off"),
        }
    }
}

impl Error for WebhookRejection {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(error) => error.source(),
            _ => None,
        }
    }
}

impl IntoResponse for WebhookRejection {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.to_string()));
        *response.status_mut() = self.status();
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, plain);
        response
    }
}
