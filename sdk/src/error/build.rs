//! How the rest of the crate makes errors.

use super::{Delivery, Error, ErrorKind, Inner, Offsets, PartialOutput};
use crate::generated::operations::Operation;
use serde_json::Value;
use std::{borrow::Cow, error::Error as StdError, time::Duration};

impl Error {
    /// An error of this kind; everything else is set by the methods below.
    pub(crate) fn new(
        kind: ErrorKind,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self(Box::new(Inner {
            kind: Some(kind),
            code: code.into(),
            message: message.into(),
            ..Inner::default()
        }))
    }

    /// The client cannot be built: `field` names the setting, `problem` what is wrong and what is allowed.
    pub(crate) fn config(field: &str, problem: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::Config, "invalid_config", format!("{field}: {problem}"))
    }

    /// An argument was refused before sending: `field` names it, `problem` what is allowed.
    pub(crate) fn invalid_input(field: &str, problem: impl std::fmt::Display) -> Self {
        Self::new(ErrorKind::InvalidInput, "invalid_input", format!("{field}: {problem}"))
    }

    /// For the blocking twin, whose own side can fail a call; not for others.
    #[doc(hidden)]
    pub fn local(
        kind: ErrorKind,
        delivery: Delivery,
        code: &'static str,
        message: impl Into<String>,
        cause: Option<std::io::Error>,
    ) -> Self {
        let error = Self::new(kind, code, message).with_delivery(delivery);
        match cause {
            Some(cause) => error.with_source(cause),
            None => error,
        }
    }

    /// The client was closed before this call.
    pub(crate) fn closed() -> Self {
        Self::new(ErrorKind::Closed, "client_closed", "the client was closed")
    }

    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = Some(kind);
        self
    }

    pub(crate) fn with_status(mut self, status: impl Into<Option<u16>>) -> Self {
        self.0.status = status.into();
        self
    }

    pub(crate) fn with_details(mut self, details: impl Into<Option<Value>>) -> Self {
        self.0.details = details.into();
        self
    }

    pub(crate) fn with_request_id(mut self, id: impl Into<Option<String>>) -> Self {
        self.0.request_id = id.into();
        self
    }

    pub(crate) fn with_retry_after(mut self, wait: impl Into<Option<Duration>>) -> Self {
        self.0.retry_after = wait.into();
        self
    }

    pub(crate) fn with_retryable(mut self, retryable: bool) -> Self {
        self.0.retryable = retryable;
        self
    }

    pub(crate) fn with_delivery(mut self, delivery: Delivery) -> Self {
        self.0.delivery = Some(delivery);
        self
    }

    pub(crate) fn with_operation(mut self, operation: impl Into<Option<Operation>>) -> Self {
        self.0.operation = operation.into();
        self
    }

    pub(crate) fn with_attempts(mut self, attempts: u32) -> Self {
        self.0.attempts = attempts;
        self
    }

    pub(crate) fn with_sandbox_id(mut self, id: impl Into<Option<String>>) -> Self {
        self.0.sandbox_id = id.into();
        self
    }

    pub(crate) fn with_command_id(mut self, id: impl Into<Option<String>>) -> Self {
        self.0.command_id = id.into();
        self
    }

    pub(crate) fn with_idempotency_key(mut self, key: impl Into<Option<String>>) -> Self {
        self.0.idempotency_key = key.into();
        self
    }

    pub(crate) fn with_partial_output(mut self, output: impl Into<Option<PartialOutput>>) -> Self {
        self.0.partial_output = output.into();
        self
    }

    pub(crate) fn with_resume_offsets(mut self, offsets: impl Into<Option<Offsets>>) -> Self {
        self.0.resume_offsets = offsets.into();
        self
    }

    pub(crate) fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }
}
