#![doc = include_str!("../README.md")]
// A peer's bytes must not end in a panic: what ships has none but those excepted by name.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]

mod call;
pub mod clock;
mod command;
mod config;
mod error;
mod generated;
mod outcome;
mod output;
mod retry;
mod sandboxer;
pub mod stream;
mod transport;
pub mod webhooks;
pub mod wire;

pub use call::{CallOptions, Limit, Timeouts};
pub use command::Command;
pub use config::{ApiKey, Builder};
pub use error::{Delivery, Error, ErrorKind, Offsets, PartialOutput, Result};
pub use generated::{dialects, dialects::Dialect, models, operations, operations::Operation};
pub use outcome::{Outcome, Signal};
pub use output::Output;
pub use sandboxer::{
    Api, AsyncCommand, AsyncFiles, AsyncSandbox, AsyncSandboxer, Attach, Create, ExecStream, Fork,
    ListOptions, LogStream, MAX_FILE, RequestOptions, Resume, Stop, Ttl, Update,
};
pub use sandboxer::{
    AsyncApiKeys, AsyncDataRetention, AsyncEnvironments, AsyncOrganizations, AsyncRepositories, AsyncSecrets,
    AsyncTelemetry, AsyncWebhookEndpoints, EnvironmentUpdate, EnvironmentUpgrade, ListRepositories,
    ListedRepository, NewWebhook, ReplaceSecrets, RetentionUpdate, ScopedKey, TelemetryTarget, WebhookUpdate,
};
pub use sandboxer::{
    AsyncGuard, AsyncNamedSnapshots, AsyncSnapshot, Desktop, HistoryOptions, Host, MetricsWindow, OnExit,
    SnapshotFile, SnapshotListOptions,
};
pub use sandboxer::{
    AsyncPromptRun, Event, EventMode, EventOptions, EventStream, Prompt, PromptView, ResponseView, SteerView,
};
pub use sandboxer::{Download, Progress, Transfer};
pub use sandboxer::{Line, OutputBytes, OutputLines, OutputText};
pub use stream::ByteBody;
