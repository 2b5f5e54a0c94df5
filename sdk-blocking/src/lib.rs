//! Blocking twin of the [`sandboxer`] SDK: the same verbs without async.
//!
//! ```
//! # let server = sandboxer_mock_server::MockServer::start();
//! # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
//! # /*
//! let client = Sandboxer::from_env()?; // SANDBOXER_API_KEY and friends
//! # */
//! use sandboxer_blocking::{Command, Create, Outcome, Sandboxer};
//! use std::time::Duration;
//!
//! let sandbox = client.create(Create::new().ttl(Duration::from_secs(1800)).name("demo"))?; // waits until ready
//!
//! let output = sandbox.exec(["printf", "%s\n", "a  b"])?.check()?; // an argument list; a failure is an error
//! assert_eq!(output.stdout_text(), "a  b\n");
//!
//! let mut run = sandbox.exec_stream(Command::shell("echo one; echo two >&2; exit 3").env("CI", "1"))?;
//! for chunk in &mut run {
//!     print!("{}", chunk?.text()); // as it is written
//! }
//! assert_eq!(run.wait()?.outcome(), Outcome::Exited(3));
//!
//! sandbox.files().write("app/main.py", "print('hi')\n")?;
//! sandbox.delete()?;
//! # Ok::<(), sandboxer_blocking::Error>(())
//! ```
//!
//! What [`sandboxer`] calls `AsyncSandboxer` and `AsyncSandbox` are [`Sandboxer`] and [`Sandbox`] here, and so on without
//! the `Async`; only the handle of a background command has a name of its own, [`CommandHandle`], because [`Command`] is
//! what is run. Streams keep their names and are iterators. Everything that is a plain value, options, outputs, errors,
//! models, is the same type in both crates and can be had from this one alone.
//!
//! # Threads
//!
//! Every client has one thread of its own that does the work, started with the first call; clones, views, sandboxes and
//! streams share it, and it ends with the last of them. A call blocks its own thread until the answer is there, nothing
//! else: clients and handles can be used from many threads at once. A stream reads one item when it is asked for one, and
//! nothing ahead; dropping it closes its connection.
//!
//! # Inside async programs
//!
//! Calls work in any thread, the workers of an async runtime included: they do not panic there, nor does dropping a client
//! or a stream. They block that worker, though, so the other tasks on it wait too; `spawn_blocking`, or the async SDK, is
//! better. One thing cannot work: on a runtime with a single thread, a call that is answered by a task of that very runtime
//! waits for what it keeps from running. The time limits end it: see [`Timeouts`] for the defaults, 60 s for a try and
//! 5 minutes in all.

// A peer's bytes must not end in a panic: what ships has none but those excepted by name.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]

mod account;
mod api;
mod attach;
mod builder;
mod bytes;
mod care;
mod client;
mod conversations;
mod create;
mod download;
mod driver;
mod events;
mod exec;
mod file_search;
mod file_tree;
mod file_urls;
mod files;
mod generated;
mod guard;
mod hosting;
mod lifecycle;
mod list;
mod logs;
mod named_snapshots;
mod output;
mod pager;
mod process;
mod prompt;
mod pull;
mod run;
mod sandbox;
mod scoped;
mod settle;
mod shared;
mod snapshots;
mod transfer;
mod wait;

pub use self::account::{
    ApiKeys, DataRetention, Environments, Organizations, Repositories, Secrets, Telemetry, WebhookEndpoints,
};
pub use self::output::{OutputBytes, OutputLines, OutputText};
pub use self::{
    api::Api, attach::Attach, builder::Builder, bytes::ByteIter, client::Sandboxer, files::Files,
    logs::LogStream, pager::Pager, process::CommandHandle, run::ExecStream, sandbox::Sandbox,
};
pub use self::{events::EventStream, prompt::PromptRun};
pub use self::{guard::Guard, named_snapshots::NamedSnapshots, snapshots::Snapshot};
pub use download::Download;
pub use http;
pub use sandboxer::Line;
pub use sandboxer::{
    ApiKey, CallOptions, Command, Create, Delivery, Error, ErrorKind, Fork, Limit, ListOptions, MAX_FILE,
    Offsets, Operation, Outcome, Output, PartialOutput, RequestOptions, Result, Resume, Signal, Stop,
    Timeouts, Ttl, Update, clock, models, operations, webhooks, wire,
};
pub use sandboxer::{
    Desktop, HistoryOptions, Host, MetricsWindow, OnExit, SnapshotFile, SnapshotListOptions,
};
pub use sandboxer::{Dialect, dialects};
pub use sandboxer::{
    EnvironmentUpdate, EnvironmentUpgrade, ListRepositories, ListedRepository, NewWebhook, ReplaceSecrets,
    RetentionUpdate, ScopedKey, TelemetryTarget, WebhookUpdate,
};
pub use sandboxer::{Event, EventMode, EventOptions, Prompt, PromptView, ResponseView, SteerView};
pub use sandboxer::{Progress, Transfer};

/// What streams are made of: pieces of output and text decoding.
pub mod stream {
    pub use sandboxer::stream::{Chunk, Gap, OutputStream, TextDecoder};
}
