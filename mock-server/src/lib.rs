//! A local sandbox service that really runs commands: for tests, first steps and fault drills.
//!
//! It speaks the Sandboxer HTTP API v1 on a free port of this machine, keeps accounts, sandboxes and histories as the
//! service does, and runs commands as real processes.
//!
//! ```
//! use sandboxer_mock_server::MockServer;
//!
//! let server = MockServer::start();
//! assert!(server.url().ends_with("/api/v1"));
//! // Dropping it ends every process it started and removes its folders.
//! ```

// A peer's bytes must not end in a panic: what ships has none but those excepted by name.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]

pub mod agent;
mod app;
mod auth;
mod builder;
mod checkouts;
#[cfg(feature = "check-answers")]
#[doc(hidden)]
pub mod checks;
#[doc(hidden)]
pub mod cli;
mod cookies;
mod deliveries;
mod dialects;
mod environment;
mod folders;
mod generated;
mod handlers;
mod host;
mod hosting;
mod job;
mod lifecycle;
mod logs;
mod memory;
mod metering;
mod outbound;
mod output;
mod page;
mod patterns;
mod ranges;
mod reply;
mod router;
mod secret_files;
mod serve;
mod server;
mod setup;
mod signed;
mod snapshots;
mod store;
mod strays;
mod telemetry;
#[cfg(test)]
mod testing;
mod text;
mod validate;
mod view;
mod world;

pub mod faults;
pub mod record;
pub mod runner;
pub mod space;

pub use self::{
    builder::{MockServerBuilder, StartError},
    faults::{Reply, Script},
    record::Recorded,
    runner::{Network, RunnerKind},
    server::MockServer,
    world::{
        deliveries::WebhookDelivery,
        handle::World,
        scenarios::Scenario,
        seed::{
            AccountSeed, AgentsSeed, EnvironmentSeed, InviteSeed, KeySeed, MachinesSeed, MemberSeed,
            OrganisationSeed, PlanSeed, RepositorySeed, ScenarioSeed, SecretFileSeed, SelectedRepositorySeed,
            SessionSeed, StandingSeed, WebhookSeed, WorldError, WorldSeed,
        },
    },
};
