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

mod app;
mod auth;
mod builder;
#[doc(hidden)]
pub mod cli;
mod environment;
mod folders;
mod generated;
mod handlers;
mod host;
mod job;
mod lifecycle;
mod output;
mod reply;
mod router;
mod serve;
mod server;
mod setup;
mod store;
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
        handle::World,
        seed::{
            AccountSeed, KeySeed, MachinesSeed, MemberSeed, OrganisationSeed, PlanSeed, WorldError, WorldSeed,
        },
    },
};
