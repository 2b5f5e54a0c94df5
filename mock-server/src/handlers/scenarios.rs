//! Where a scenario comes between a call and its handler.

use axum::body::Body;
use sandboxer::Operation;
use serde_json::json;

use super::{Call, stream::line};
use crate::{
    app::App,
    auth::Access,
    reply::{Answer, ApiError},
    store::typed,
    world::{sandboxes::Sandbox, scenarios::Scenario},
};

/// What a client that is told so sends again.
const RESTORING: &str = "sandbox_restoring";

/// An answer in the place of the handler's. Calls that the handler refuses anyway are left to it: scenarios change nothing
/// about who may do what.
pub(super) fn interfere(app: &App, call: &Call) -> Result<Option<Answer>, ApiError> {
    let id = call.id("sandboxId");
    if id.is_empty() {
        return Ok(None);
    }
    let scenarios = app.scenarios();
    if scenarios.is_empty() {
        return Ok(None);
    }
    let found = app.read(|tx| {
        let Some(sandbox) = typed::get::<Sandbox>(tx, id)? else { return Ok(None) };
        Ok::<_, ApiError>(call.caller.access(tx, &sandbox)?.map(|access| (sandbox, access)))
    })?;
    let Some((sandbox, Access::Owner | Access::Use)) = found else { return Ok(None) };
    if !sandbox.state.is_up() {
        return Ok(None);
    }
    let is_on = |scenario| scenarios.is_on(scenario, &sandbox);
    let by_offset = || ["stdoutOffset", "stderrOffset"].iter().any(|name| call.query(name).is_some());
    let error = match call.operation {
        operation if reaches_in(operation) && is_on(Scenario::Unreachable) => {
            // A command may have reached the machine before the answer was lost: nothing is said about it.
            ApiError::new(502, "sandbox_direct_failed", "the sandbox did not answer")
        }
        operation if reaches_in(operation) && is_on(Scenario::BoatRestoring) => {
            ApiError::new(409, "boat_restoring", "the disk is still being restored; nothing ran")
                .retryable(true)
        }
        Operation::Command | Operation::CommandStream
            if is_on(Scenario::Restoring) && call.flag("stream") && !call.flag("detached") =>
        {
            let frame = json!({
                "type": "error",
                "error": "sandbox_direct_failed",
                "message": RESTORING,
                "retryable": true,
            });
            return Ok(Some(Answer::Ndjson(Body::from_stream(futures_util::stream::iter([line(&frame)])))));
        }
        operation if reaches_in(operation) && is_on(Scenario::Restoring) => {
            ApiError::new(502, "sandbox_direct_failed", RESTORING).retryable(true)
        }
        Operation::AttachCommand if is_on(Scenario::OldAgent) => outdated(),
        Operation::CommandStatus if is_on(Scenario::OldAgent) && by_offset() => outdated(),
        Operation::Desktop if is_on(Scenario::BrowserStarting) => {
            let problem = "the browser of the desktop is still starting";
            ApiError::new(503, "browser_not_ready", problem).retryable(true).retry_after(2)
        }
        Operation::SshKey if is_on(Scenario::HostKeyUnknown) => {
            let problem = "the host key of the machine is not known yet";
            ApiError::new(503, "ssh_host_key_unavailable", problem).retryable(true).retry_after(2)
        }
        _ => return Ok(None),
    };
    Err(error)
}

/// Whether an operation is carried out inside the sandbox.
fn reaches_in(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Command
            | Operation::CommandStream
            | Operation::ReadFile
            | Operation::WriteFile
            | Operation::Artifact
            | Operation::ListFiles
            | Operation::GetFileInfo
            | Operation::CreateFolder
            | Operation::MoveFile
            | Operation::SetFilePermissions
            | Operation::DeleteFile
            | Operation::SearchFiles
            | Operation::FindInFiles
            | Operation::ReplaceInFiles
            | Operation::CreateUploadUrl
            | Operation::CreateDownloadUrl
    )
}

fn outdated() -> ApiError {
    let problem = "the program in the sandbox is of a version that cannot follow output by offsets";
    ApiError::new(409, "agent_outdated", problem).retryable(false)
}
