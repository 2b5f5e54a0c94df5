//! The Sandboxer service: its low-level API, the client, and what is built on them.

mod allowance;
mod api;
mod attach;
mod client;
mod create;
mod exec;
mod files;
mod frame;
mod gone;
mod ledger;
mod lifecycle;
mod list;
mod logs;
mod options;
mod process;
pub(crate) mod reaper;
mod request;
mod run;
mod sandbox;
mod scoped;
mod wait;

pub use api::Api;
pub use attach::Attach;
pub use client::AsyncSandboxer;
pub use files::{AsyncFiles, MAX_FILE};
pub use list::ListOptions;
pub use logs::LogStream;
pub use options::{Create, Fork, Resume, Stop, Ttl, Update};
pub use process::AsyncCommand;
pub use request::RequestOptions;
pub use run::ExecStream;
pub use sandbox::AsyncSandbox;

#[cfg(test)]
mod tests;
