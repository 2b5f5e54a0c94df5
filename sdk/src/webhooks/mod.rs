//! Webhooks: telling deliveries of the service from everything else, and reading the events in them. Needs no client and no
//! runtime.
//!
//! The service sends `POST` requests to the endpoints of an account and signs each with the endpoint's secret. A receiver
//! takes the **raw bytes** of the body, verifies them, answers with any 2xx within 5 seconds, and does the work afterwards;
//! what is not answered so is delivered again, up to 8 times.
//!
//! ```
//! use sandboxer::webhooks::{Verifier, WebhookError, WebhookEventType};
//!
//! fn receive(verifier: &Verifier, headers: &http::HeaderMap, body: &[u8]) -> u16 {
//!     match verifier.parse(headers, body) {
//!         Ok(event) if event.kind == WebhookEventType::SandboxArchived => 200, // remember event.id, then the work
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
//! What an event tells is a [`WebhookEvent`]; what happened is its `kind`, which a program matches on. A type that is not
//! known here is kept, and so are fields:
//!
//! ```
//! use sandboxer::webhooks::{WebhookEvent, WebhookEventType};
//!
//! let event: WebhookEvent = serde_json::from_str(
//!     r#"{"id":"evt_1","type":"sandbox.degraded","createdAt":"2026-01-01T00:00:00.000Z","attempt":1,
//!         "data":{"sandbox":{"id":"bx_23456789","name":"demo"},"state":"running","reason":"network"}}"#,
//! )?;
//! match &event.kind {
//!     WebhookEventType::SandboxDegraded => assert_eq!(event.data.reason.as_deref(), Some("network")),
//!     WebhookEventType::Unknown(kind) => println!("a new kind: {kind}"),
//!     known => println!("{known}: {}", known.meaning().unwrap_or_default()),
//! }
//! assert_eq!((event.data.sandbox.name.as_str(), &event.unknown_fields["attempt"]), ("demo", &1.into()));
//! assert_eq!(WebhookEventType::from("sandbox.moved"), "sandbox.moved");
//! # Ok::<(), serde_json::Error>(())
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
pub use crate::generated::models::{WebhookEvent, WebhookEventData, WebhookEventSandbox, WebhookEventType};

pub use self::{
    error::WebhookError,
    headers::SignatureHeaders,
    replay::{MemoryReplayGuard, ReplayGuard},
    scheme::Scheme,
    verifier::{Verified, Verifier},
};
