//! What a delivery tells.

use super::error::WebhookError;
use crate::{
    generated::models::SandboxState,
    wire::{Timestamp, UnknownFields, decode},
};
use serde::{Deserialize, Serialize};

/// An event as it was delivered: something happened to a sandbox. Events may come more than once, with the same `id`, and out
/// of order. Fields that are not known here are kept and written back.
///
/// ```
/// use sandboxer::{models::SandboxState, webhooks::{WebhookEvent, WebhookEventKind}};
///
/// let event: WebhookEvent = serde_json::from_str(
///     r#"{"id":"evt_1","type":"sandbox.ready","createdAt":"2026-01-01T00:00:00.000Z","attempt":1,
///         "data":{"sandbox":{"id":"bx_23456789","name":"demo"},"previousState":"provisioning","state":"ready"}}"#,
/// )?;
/// match event.kind {
///     WebhookEventKind::Ready => assert_eq!(event.data.sandbox.name, "demo"),
///     WebhookEventKind::Unknown(kind) => println!("a new kind: {kind}"),
///     _ => {}
/// }
/// assert_eq!(event.data.previous_state, Some(SandboxState::Provisioning));
/// assert_eq!(event.unknown_fields["attempt"], 1);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookEvent {
    /// The event; the same in every delivery of it.
    pub id: String,
    /// What happened; `type` on the wire.
    #[serde(rename = "type")]
    pub kind: WebhookEventKind,
    /// When it happened.
    #[serde(default)]
    pub created_at: Timestamp,
    /// To which sandbox, and more.
    #[serde(default)]
    pub data: WebhookData,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub unknown_fields: UnknownFields,
}

/// What an event says about its sandbox.
///
/// ```
/// # let text = r#"{"id":"evt_1","type":"sandbox.degraded","data":{"sandbox":{"id":"bx_23456789"},"reason":"network"}}"#;
/// # let event: sandboxer::webhooks::WebhookEvent = serde_json::from_str(text)?;
/// if let Some(reason) = &event.data.reason {
///     println!("{}: {reason}", event.data.sandbox.id);
/// }
/// # assert_eq!(event.data.reason.as_deref(), Some("network"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookData {
    /// The sandbox. With an unknown kind of event its fields are empty if the event names none.
    #[serde(default)]
    pub sandbox: WebhookSandbox,
    /// The state before; told by `sandbox.ready`, `sandbox.error` and `sandbox.archived`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_state: Option<SandboxState>,
    /// The state now; not told by `sandbox.hydrated`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<SandboxState>,
    /// Why it is degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub unknown_fields: UnknownFields,
}

/// The sandbox that an event is about.
///
/// ```
/// # let text = r#"{"id":"evt_1","type":"sandbox.error","data":{"sandbox":{"id":"bx_23456789","name":"demo"}}}"#;
/// # let event: sandboxer::webhooks::WebhookEvent = serde_json::from_str(text)?;
/// let sandbox = &event.data.sandbox;
/// assert_eq!((sandbox.id.as_str(), sandbox.name.as_str()), ("bx_23456789", "demo"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookSandbox {
    /// Its id.
    #[serde(default)]
    pub id: String,
    /// Its name; empty if the event does not tell.
    #[serde(default)]
    pub name: String,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub unknown_fields: UnknownFields,
}

/// What happened.
///
/// A value that is not known here is kept in `Unknown` and written back unchanged.
///
/// ```
/// use sandboxer::webhooks::WebhookEventKind;
///
/// assert_eq!(WebhookEventKind::from("sandbox.recovered"), WebhookEventKind::Recovered);
/// assert_eq!(WebhookEventKind::from("sandbox.moved"), "sandbox.moved");
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WebhookEventKind {
    /// `sandbox.ready`: it can be used.
    Ready,
    /// `sandbox.error`: it failed.
    Error,
    /// `sandbox.archived`: it stopped and its disk is kept.
    Archived,
    /// `sandbox.hydrated`: all files are back on its disk.
    Hydrated,
    /// `sandbox.degraded`: it runs and cannot be reached in full.
    Degraded,
    /// `sandbox.recovered`: it can be reached in full again.
    Recovered,
    /// A value that is not known here.
    Unknown(String),
}

crate::wire::open_enum!(
    WebhookEventKind,
    Self::Unknown(String::new()),
    Ready = "sandbox.ready",
    Error = "sandbox.error",
    Archived = "sandbox.archived",
    Hydrated = "sandbox.hydrated",
    Degraded = "sandbox.degraded",
    Recovered = "sandbox.recovered",
);

impl WebhookEvent {
    /// Reads a body whose signature is good, with the leniency that answers are read with.
    pub(super) fn read(body: &[u8]) -> Result<Self, WebhookError> {
        let bad = |problem: String| WebhookError::BadPayload { problem };
        let event: Self = decode::read(body, "webhook").map_err(|problem| bad(problem.to_string()))?;
        if event.id.is_empty() {
            return Err(bad("`id` is empty".into()));
        }
        if event.kind.is_known() && event.data.sandbox.id.is_empty() {
            return Err(bad("`data.sandbox.id` is essential and missing or empty".into()));
        }
        Ok(event)
    }
}
