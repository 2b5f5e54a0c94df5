//! One function an operation: from a checked call to an answer.

mod account;
mod attach;
mod commands;
mod create;
mod files;
mod history;
mod processes;
mod sandboxes;
mod starts;
mod stops;
mod stream;

use std::{sync::Arc, time::Duration};

use http::HeaderMap;
use sandboxer::Operation;
use serde_json::Value;

use crate::{
    app::{App, Live},
    auth::Caller,
    reply::{ApiError, Outcome},
    world::sandboxes::{Sandbox, State},
};

/// How long a call waits for a sandbox that is starting.
const HOLD: Duration = Duration::from_secs(60);

/// A call whose key, path, query and body have been checked.
pub(crate) struct Call {
    pub(crate) operation: Operation,
    pub(crate) path: Vec<(&'static str, String)>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    /// The body; an empty object if none was sent.
    pub(crate) body: Value,
    pub(crate) caller: Caller,
}

impl Call {
    /// A path parameter.
    fn id(&self, name: &str) -> &str {
        self.path.iter().find(|(given, _)| *given == name).map_or("", |(_, value)| value)
    }

    /// A query parameter.
    fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// A query parameter that is a whole number; checked before.
    fn number(&self, name: &str) -> Option<u64> {
        self.query(name).and_then(|text| text.parse().ok())
    }

    /// A text of the body.
    fn text(&self, name: &str) -> Option<&str> {
        self.body.get(name).and_then(Value::as_str)
    }

    /// A yes or no of the body; no if left out.
    fn flag(&self, name: &str) -> bool {
        self.flag_or(name, false)
    }

    /// A yes or no of the body.
    fn flag_or(&self, name: &str, otherwise: bool) -> bool {
        self.body.get(name).and_then(Value::as_bool).unwrap_or(otherwise)
    }

    /// A header's text.
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The sandbox of the path, if the caller may do everything with it.
    fn sandbox(&self, app: &App) -> Result<Sandbox, ApiError> {
        app.read(|tx| self.caller.own(tx, self.id("sandboxId")))
    }
}

/// Operations that [`handle`] carries out.
const PRESENT: [Operation; 25] = [
    Operation::Me,
    Operation::Limits,
    Operation::Sandboxes,
    Operation::Create,
    Operation::Get,
    Operation::Update,
    Operation::DeleteSandbox,
    Operation::GetDeletionOperation,
    Operation::Stop,
    Operation::GetStop,
    Operation::Resume,
    Operation::Fork,
    Operation::Usage,
    Operation::Command,
    Operation::CommandStream,
    Operation::CommandStatus,
    Operation::StopCommand,
    Operation::AttachCommand,
    Operation::CommandHistory,
    Operation::GetCommand,
    Operation::CommandLogs,
    Operation::Processes,
    Operation::ReadFile,
    Operation::WriteFile,
    Operation::Artifact,
];

/// Why an operation cannot be carried out here, whatever is asked of it.
pub(crate) fn missing(operation: Operation) -> Option<ApiError> {
    match operation {
        Operation::ExecWebSocket | Operation::SshWebSocket => Some(upgrade_required()),
        present if PRESENT.contains(&present) => None,
        other => Some(not_implemented(other)),
    }
}

/// Answers a call.
pub(crate) async fn handle(app: &Arc<App>, call: Call) -> Outcome {
    match call.operation {
        Operation::Me => account::me(&call),
        Operation::Limits => account::limits(app, &call),
        Operation::Sandboxes => sandboxes::list(app, &call),
        Operation::Create => create::create(app, &call).await,
        Operation::Get => sandboxes::get(app, &call),
        Operation::Update => sandboxes::update(app, &call),
        Operation::DeleteSandbox => stops::delete(app, &call),
        Operation::GetDeletionOperation => stops::deletion(app, &call),
        Operation::Stop => stops::stop(app, &call),
        Operation::GetStop => stops::get_stop(app, &call),
        Operation::Resume => create::resume(app, &call),
        Operation::Fork => {
            // Carried through even if the caller goes away, so that no half copy is left.
            let forking = app.clone();
            app.tasks
                .spawn(async move { create::fork(&forking, &call).await })
                .await
                .unwrap_or_else(|lost| Err(ApiError::internal(lost)))
        }
        Operation::Usage => sandboxes::usage(app, &call),
        Operation::Command | Operation::CommandStream => commands::command(app, &call).await,
        Operation::CommandStatus => processes::status(app, &call),
        Operation::StopCommand => processes::stop(app, &call).await,
        Operation::AttachCommand => attach::attach(app, &call),
        Operation::CommandHistory => history::list(app, &call),
        Operation::GetCommand => history::get(app, &call),
        Operation::CommandLogs => history::logs(app, &call),
        Operation::Processes => processes::list(app, &call).await,
        Operation::ReadFile => files::read(app, &call).await,
        Operation::WriteFile => files::write(app, &call).await,
        Operation::Artifact => files::artifact(app, &call).await,
        other => Err(not_implemented(other)),
    }
}

/// An ordinary request where a WebSocket is wanted.
fn upgrade_required() -> ApiError {
    ApiError::new(426, "upgrade_required", "this path takes WebSockets only; the local server opens none yet")
        .retryable(false)
}

/// There is no handler.
fn not_implemented(operation: Operation) -> ApiError {
    ApiError::new(501, "not_implemented", format!("the local server does not have {operation} yet"))
        .detail("operation", operation.id())
        .retryable(false)
}

/// Waits until a sandbox is up: at once if it is, for up to a minute while it starts.
async fn hold_until_up(app: &App, live: &Live) -> Result<(), ApiError> {
    let mut state = live.watch();
    let settled = async {
        // The sender lives in `live`, so waiting cannot fail.
        match state.wait_for(|state| !state.is_starting()).await {
            Ok(state) => *state,
            Err(_) => State::Cancelled,
        }
    };
    let state = tokio::select! {
        biased;
        state = settled => Some(state),
        () = app.clock.sleep(HOLD) => None,
        () = app.closing.cancelled() => None,
    };
    match state {
        Some(state) if state.is_up() => Ok(()),
        Some(state) => Err(not_ready(state)),
        None => Err(ApiError::new(409, "sandbox_starting", "the sandbox is still starting; nothing ran")
            .retryable(true)
            .retry_after(2)),
    }
}

/// The sandbox is in a state that cannot take the call.
fn not_ready(state: State) -> ApiError {
    match state {
        State::Cancelled => ApiError::not_found("sandbox"),
        state => ApiError::new(409, "sandbox_not_ready", format!("the sandbox is {}", state.as_str()))
            .retryable(false)
            .detail("state", state.as_str()),
    }
}

/// The sandbox has no machine that could answer.
fn not_running(state: State) -> ApiError {
    ApiError::new(409, "machine_not_running", format!("the sandbox is {} and has no machine", state.as_str()))
        .retryable(false)
        .detail("state", state.as_str())
}
