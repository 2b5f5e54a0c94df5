//! Where a scenario comes between a call and its handler.

use axum::body::Body;
use sandboxer::Operation;
use serde_json::json;

use super::{Call, stream::line};
use crate::{
    app::App,
    auth::Access,
    reply::{Answer, ApiError, Outcome},
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
    let Some((sandbox, access)) = found else { return Ok(None) };
    // Whoever may only look at it may look at its load.
    if !sandbox.state.is_up() || (access == Access::View && call.operation != Operation::Stats) {
        return Ok(None);
    }
    let is_on = |scenario| scenarios.is_on(scenario, &sandbox);
    let by_offset = || ["stdoutOffset", "stderrOffset"].iter().any(|name| call.query(name).is_some());
    if let Err(error) = check(app, call.operation, &sandbox) {
        return tell(call, error).map(Some);
    }
    let error = match call.operation {
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

/// Refuses an operation that has to reach a sandbox and does not, in the words that it has for that.
pub(super) fn check(app: &App, operation: Operation, sandbox: &Sandbox) -> Result<(), ApiError> {
    match cut_off(app, sandbox).filter(|_| reaches_in(operation)) {
        None => Ok(()),
        Some(error) if operation.info().errors.contains(&error.code()) => Err(error),
        // The sibling service has no such operation, and so no code for it.
        Some(_) => Err(restoring()),
    }
}

/// Where a stream was asked for, what proves that nothing ran is said in one.
fn tell(call: &Call, error: ApiError) -> Outcome {
    let is_command = matches!(call.operation, Operation::Command | Operation::CommandStream);
    let is_stream = is_command && call.flag("stream") && !call.flag("detached");
    if !is_stream || error.message() != RESTORING {
        return Err(error);
    }
    let frame =
        json!({"type": "error", "error": error.code(), "message": error.message(), "retryable": true});
    Ok(Answer::Ndjson(Body::from_stream(futures_util::stream::iter([line(&frame)]))))
}

/// Why what has to reach a sandbox does not; nothing if it does.
pub(super) fn cut_off(app: &App, sandbox: &Sandbox) -> Option<ApiError> {
    let scenarios = app.scenarios();
    if !scenarios.cut_off(sandbox) {
        return None;
    }
    let is_on = |scenario| scenarios.is_on(scenario, sandbox);
    Some(match (is_on(Scenario::Unreachable), is_on(Scenario::BoatRestoring)) {
        (true, _) => silent(),
        (false, true) => {
            let problem = "the disk is still being restored; nothing ran";
            ApiError::new(409, "boat_restoring", problem).retryable(true)
        }
        (false, false) => restoring(),
    })
}

/// The machine does not answer. A command may have reached it before the answer was lost: nothing is said about that.
pub(super) fn silent() -> ApiError {
    ApiError::new(502, "sandbox_direct_failed", "the sandbox did not answer")
}

fn restoring() -> ApiError {
    ApiError::new(502, "sandbox_direct_failed", RESTORING).retryable(true)
}

/// Whether an operation is carried out inside the sandbox. Those that tell of its processes and its load over time tell of the
/// last look at them instead, and its ports are the gateway's.
fn reaches_in(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Command
            | Operation::CommandStream
            | Operation::CommandStatus
            | Operation::StopCommand
            | Operation::AttachCommand
            | Operation::Stats
            | Operation::Desktop
            | Operation::SshKey
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
