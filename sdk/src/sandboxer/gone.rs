//! Whether a command's connection was cut because its sandbox is no more.

use std::time::Duration;

use super::sandbox::AsyncSandbox;
use crate::{
    call::CallOptions,
    error::{Delivery, Error, ErrorKind},
    models::SandboxState,
};

/// How long the one look at the sandbox may take.
const LOOK: Duration = Duration::from_secs(5);

impl AsyncSandbox {
    /// The error to report for a command that was cut off: that its sandbox is no more if one look at it says so, with
    /// the cut as its source; else the cut itself.
    pub(crate) async fn explain(self, cut: Error) -> Error {
        let look = self.explicit_total().unwrap_or(LOOK).min(LOOK);
        let (code, message, state) =
            match self.with(CallOptions::new().retries(0).total(look)).refresh().await {
                Ok(info) => match info.state {
                    SandboxState::Archiving
                    | SandboxState::Archived
                    | SandboxState::Error
                    | SandboxState::Cancelled => {
                        let state = info.state.to_string();
                        (format!("sandbox_{state}"), format!("the sandbox is `{state}`"), state)
                    }
                    _ => return cut,
                },
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    ("sandbox_gone".to_owned(), "the sandbox is gone".to_owned(), "gone".to_owned())
                }
                // Nothing was learnt.
                Err(_) => return cut,
            };
        let message = format!("{message}, so its command was cut off; how the command ended is not known");
        Error::new(ErrorKind::SandboxState, code, message)
            .with_details(serde_json::json!({ "state": state }))
            .with_delivery(Delivery::Unknown)
            .with_operation(cut.operation())
            .with_attempts(cut.attempts())
            .with_sandbox_id(Some(self.id().to_owned()))
            .with_command_id(cut.command_id().map(str::to_owned))
            .with_source(cut)
    }
}
