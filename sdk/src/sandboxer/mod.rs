//! The Sandboxer service: its low-level API, the client, and what is built on them.

mod account;
mod adapters;
mod allowance;
mod answer;
mod api;
mod attach;
mod care;
mod client;
mod conversations;
mod create;
mod events;
mod exec;
mod file_search;
mod file_tree;
mod file_urls;
mod files;
mod frame;
mod given;
mod gone;
mod guard;
mod hosting;
mod ledger;
mod lifecycle;
mod list;
mod logs;
mod named_snapshots;
mod options;
mod process;
mod prompt;
mod prompt_run;
mod public_key;
pub(crate) mod reaper;
mod reconnect;
mod repeated;
mod request;
mod run;
mod sandbox;
mod scoped;
mod settle;
mod shared;
mod snapshots;
mod transfer;
mod wait;

pub use account::{
    AsyncApiKeys, AsyncDataRetention, AsyncEnvironments, AsyncOrganizations, AsyncRepositories, AsyncSecrets,
    AsyncTelemetry, AsyncWebhookEndpoints, EnvironmentUpdate, EnvironmentUpgrade, ListRepositories,
    ListedRepository, NewWebhook, ReplaceSecrets, RetentionUpdate, ScopedKey, TelemetryTarget, WebhookUpdate,
};
pub use adapters::{Line, OutputBytes, OutputLines, OutputText};
pub use api::Api;
pub use attach::Attach;
pub use care::{HistoryOptions, MetricsWindow};
pub use client::AsyncSandboxer;
pub use events::{Event, EventMode, EventOptions, EventStream, PromptView, ResponseView, SteerView};
pub use files::{AsyncFiles, MAX_FILE};
pub use guard::{AsyncGuard, OnExit};
pub use hosting::{Desktop, Host};
pub use list::ListOptions;
pub use logs::LogStream;
pub use named_snapshots::AsyncNamedSnapshots;
pub use options::{Create, Fork, Resume, Stop, Ttl, Update};
pub use process::AsyncCommand;
pub use prompt::Prompt;
pub use prompt_run::AsyncPromptRun;
pub use request::RequestOptions;
pub use run::ExecStream;
pub use sandbox::AsyncSandbox;
pub use snapshots::{AsyncSnapshot, SnapshotFile, SnapshotListOptions};
pub use transfer::{Download, Progress, Transfer};

#[cfg(test)]
mod tests;
