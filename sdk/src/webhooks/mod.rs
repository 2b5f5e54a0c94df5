//! Webhooks: telling deliveries of the service from everything else, and reading the events in them. Needs no client and no
//! runtime.
//!
//! The service sends `POST` requests to the endpoints of an account and signs each with the endpoint's secret. A receiver
//! takes the **raw bytes** of the body, verifies them, answers with any 2xx within 5 seconds, and does the work afterwards;
//! what is not answered so is delivered again, up to 8 times.
//!
//! ```
//! use sandboxer::webhooks::{Verifier, WebhookError, WebhookEventKind};
//!
//! fn receive(verifier: &Verifier, headers: &http::HeaderMap, body: &[u8]) -> u16 {
//!     match verifier.parse(headers, body) {
//!         Ok(event) if event.kind == WebhookEventKind::Archived => 200, // remember event.id, then the work
//!         Ok(_) => 204,
//!         Err(WebhookError::BadPayload { .. }) => 400,
//!         Err(_) => 401,
//!     }
//! }
//!
//! let verifier = Verifier::new("whsec_1")?; // as createWebhook or rotateWebhookSigningSecret told it
//! # use sandboxer::clock::{Clock, SystemClock};
//! # let body = br#"{"id":"evt_1","type":"sandbox.archived","data":{"sandbox":{"id":"bx_23456789"}}}"#;
//! # let headers = verifier.sign(SystemClock::new().now(), body)?;
//! assert_eq!(receive(&verifier, &headers, body), 200);
//! assert_eq!(receive(&verifier, &http::HeaderMap::new(), body), 401);
//! # Ok::<(), WebhookError>(())
//! ```
//!
//! * **Rotation**: [`Verifier::also_accept`] takes the old secret for a while; [`Verified::secret`] tells when it is no
//!   longer used.
//! * **Replays**: a signature is good for 5 minutes ([`Verifier::tolerance`]); a [`ReplayGuard`] refuses to see one twice.
//! * **Repeats** of an event are normal: keep [`WebhookEvent::id`] and ignore what was handled.
//! * **axum**: with the feature `axum`, `Webhook<WebhookEvent>` is an extractor.

#[cfg(feature = "axum")]
mod axum;
mod error;
mod event;
mod headers;
mod keys;
mod replay;
mod scheme;
mod sign;
#[cfg(test)]
mod tests;
mod verifier;

#[cfg(feature = "axum")]
pub use self::axum::{MAX_WEBHOOK_BODY, Webhook, WebhookRejection};
pub use self::{
    error::WebhookError,
    event::{WebhookData, WebhookEvent, WebhookEventKind, WebhookSandbox},
    headers::SignatureHeaders,
    replay::{MemoryReplayGuard, ReplayGuard},
    scheme::Scheme,
    verifier::{Verified, Verifier},
};
