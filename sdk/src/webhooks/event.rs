//! Reading what a delivery tells.

use super::error::WebhookError;
use crate::{generated::models::WebhookEvent, wire::decode};

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
