//! One function an operation: from a checked call to an answer.

mod account;
mod api_keys;
mod attach;
pub(crate) mod commands;
mod conversations;
mod create;
mod create_from;
mod create_more;
mod data_retention;
mod desktop;
mod environment_contents;
mod environment_rules;
mod environments;
mod events;
mod file_search;
mod file_tree;
pub(crate) mod file_urls;
mod files;
mod following;
mod history;
mod hosting;
mod limits;
pub(crate) mod manifest;
mod metrics;
mod named_snapshots;
mod organizations;
mod paging;
mod processes;
mod prompts;
mod recover;
mod repositories;
mod sandboxes;
mod scenarios;
mod secrets;
mod shares;
mod sharing;
mod snapshot_files;
mod snapshots;
mod ssh_keys;
mod starts;
mod stats;
mod steer;
mod stops;
mod stream;
mod telemetry;
mod webhook_endpoints;

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

    /// The sandbox of the path, if the caller may work in it.
    fn sandbox(&self, app: &App) -> Result<Sandbox, ApiError> {
        app.read(|tx| self.caller.using(tx, self.id("sandboxId")))
    }

    /// The sandbox of the path, if the caller may do everything with it.
    fn own_sandbox(&self, app: &App) -> Result<Sandbox, ApiError> {
        app.read(|tx| self.caller.own(tx, self.id("sandboxId")))
    }
}

/// Answers a call.
pub(crate) async fn handle(app: &Arc<App>, call: Call) -> Outcome {
    if let Some(answer) = scenarios::interfere(app, &call)? {
        return Ok(answer);
    }
    match call.operation {
        Operation::Me => account::me(app, &call),
        Operation::Limits => limits::limits(app, &call),
        Operation::GetDataRetention => data_retention::get(app, &call),
        Operation::UpdateDataRetention => data_retention::update(app, &call),
        Operation::ListOrganizations => organizations::list(app, &call),
        Operation::CreateOrganization => organizations::create(app, &call),
        Operation::OrgMembers => organizations::members(app, &call),
        Operation::SetActiveOrganization => organizations::set_active(app, &call),
        Operation::ApiKeys => api_keys::list(app, &call),
        Operation::CreateScopedApiKey => api_keys::create(app, &call),
        Operation::RevokeApiKey => api_keys::revoke(app, &call),
        Operation::RotateApiKey => api_keys::rotate(app, &call),
        Operation::ApiKeyUsage => api_keys::usage(app, &call),
        Operation::ListWebhooks => webhook_endpoints::list(app, &call),
        Operation::CreateWebhook => webhook_endpoints::create(app, &call),
        Operation::GetWebhook => webhook_endpoints::get(app, &call),
        Operation::UpdateWebhook => webhook_endpoints::update(app, &call),
        Operation::DeleteWebhook => webhook_endpoints::delete(app, &call),
        Operation::RotateWebhookSigningSecret => webhook_endpoints::rotate(app, &call),
        Operation::GetTelemetry => telemetry::get(app, &call),
        Operation::SetTelemetry => telemetry::set(app, &call).await,
        Operation::DeleteTelemetry => telemetry::delete(app, &call),
        Operation::Repos => repositories::list(app, &call),
        Operation::SelectRepo => repositories::select(app, &call),
        Operation::Secrets => secrets::get(app, &call),
        Operation::UpdateSecrets => secrets::update(app, &call).await,
        Operation::Environments => environments::list(app, &call),
        Operation::CreateEnvironment => environments::create(app, &call),
        Operation::UpdateEnvironment => environments::update(app, &call),
        Operation::DeleteEnvironment => environments::delete(app, &call),
        Operation::UpgradeEnvironment => environments::upgrade(app, &call).await,
        Operation::SetEnvironmentVar => environment_contents::set_var(app, &call),
        Operation::DeleteEnvironmentVar => environment_contents::delete_var(app, &call),
        Operation::SetEnvironmentSecretFile => environment_contents::set_secret_file(app, &call),
        Operation::DeleteEnvironmentSecretFile => environment_contents::delete_secret_file(app, &call),
        Operation::AddEnvironmentRepo => environment_contents::add_repo(app, &call),
        Operation::DeleteEnvironmentRepo => environment_contents::delete_repo(app, &call),
        Operation::Sandboxes => sandboxes::list(app, &call),
        Operation::Get => sandboxes::get(app, &call),
        Operation::Update => sandboxes::update(app, &call),
        Operation::DeleteSandbox => stops::delete(app, &call),
        Operation::GetDeletionOperation => stops::deletion(app, &call),
        Operation::Stop => stops::stop(app, &call),
        Operation::GetStop => stops::get_stop(app, &call),
        Operation::Resume => create::resume(app, &call),
        Operation::Share => sharing::share(app, &call),
        Operation::Recover => recover::recover(app, &call),
        Operation::Create | Operation::Fork => {
            // Carried through even if the caller goes away, so that no half copy is left.
            let starting = app.clone();
            let work = async move {
                match call.operation {
                    Operation::Fork => create::fork(&starting, &call).await,
                    _ => create::create(&starting, &call).await,
                }
            };
            app.tasks.spawn(work).await.unwrap_or_else(|lost| Err(ApiError::internal(lost)))
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
        Operation::Stats => stats::stats(app, &call).await,
        Operation::Metrics => metrics::metrics(app, &call).await,
        Operation::MetricsSummary => metrics::summary(app, &call),
        Operation::HostPort => hosting::host(app, &call).await,
        Operation::ListHostedPorts => hosting::list(app, &call),
        Operation::UnhostPort => hosting::unhost(app, &call).await,
        Operation::SshKey => ssh_keys::add(app, &call).await,
        Operation::Desktop => desktop::desktop(app, &call).await,
        Operation::Prompt => prompts::prompt(app, &call),
        Operation::PromptRunStatus => prompts::status(app, &call),
        Operation::Events => events::events(app, &call),
        Operation::Conversations => conversations::list(app, &call),
        Operation::Steer => steer::steer(app, &call).await,
        Operation::Interrupt => prompts::interrupt(app, &call).await,
        Operation::ProviderModels => prompts::provider_models(),
        Operation::ReadFile => files::read(app, &call).await,
        Operation::WriteFile => files::write(app, &call).await,
        Operation::Artifact => files::artifact(app, &call).await,
        Operation::ListFiles => file_tree::list(app, &call).await,
        Operation::GetFileInfo => file_tree::info(app, &call).await,
        Operation::CreateFolder => file_tree::create_folder(app, &call).await,
        Operation::MoveFile => file_tree::rename(app, &call).await,
        Operation::SetFilePermissions => file_tree::set_permissions(app, &call).await,
        Operation::DeleteFile => file_tree::delete(app, &call).await,
        Operation::SearchFiles => file_search::search(app, &call).await,
        Operation::FindInFiles => file_search::find(app, &call).await,
        Operation::ReplaceInFiles => file_search::replace(app, &call).await,
        Operation::CreateUploadUrl => file_urls::create_upload(app, &call).await,
        Operation::CreateDownloadUrl => file_urls::create_download(app, &call).await,
        Operation::ListNamedSnapshots => named_snapshots::list(app, &call),
        Operation::SaveNamedSnapshot => named_snapshots::save(app, &call),
        Operation::GetNamedSnapshot => named_snapshots::get(app, &call),
        Operation::DeleteNamedSnapshot => named_snapshots::delete(app, &call),
        Operation::ListSnapshotShares => shares::list(app, &call),
        Operation::CreateSnapshotShare => shares::create(app, &call),
        Operation::RevokeSnapshotShare => shares::revoke(app, &call),
        Operation::ListSnapshots => snapshots::list(app, &call),
        Operation::ListSandboxSnapshots => snapshots::list_of_sandbox(app, &call),
        Operation::GetLatestSandboxSnapshot => snapshots::latest(app, &call),
        Operation::DeleteSandboxSnapshots => snapshots::delete_of_sandbox(app, &call),
        Operation::DeleteSnapshot => snapshots::delete(app, &call),
        Operation::GetSnapshotTree => snapshot_files::tree(app, &call).await,
        Operation::GetSnapshotFile => snapshot_files::file(app, &call).await,
        Operation::GetSnapshotDownload => manifest::manifest(app, &call).await,
        Operation::ExecWebSocket | Operation::SshWebSocket => {
            call.sandbox(app).and_then(|_| Err(upgrade_required()))
        }
        other => Err(ApiError::internal(format!("{other} has no handler"))),
    }
}

/// An ordinary request where a WebSocket is wanted.
fn upgrade_required() -> ApiError {
    ApiError::new(426, "upgrade_required", "this path takes WebSockets only; the local server opens none yet")
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
pub(crate) fn not_ready(state: State) -> ApiError {
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
