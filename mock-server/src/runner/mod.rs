//! Command runners: what really happens when a sandbox is asked to run something.
//!
//! * [`IsolatedRunner`] (Linux): every sandbox has namespaces of its own, a read-only system and no network but loopback.
//! * [`ProcessRunner`] (any Unix): commands are plain processes of the server's own user; nothing is fenced off.
//! * [`ScriptedRunner`]: no processes at all; a test says what each command prints and how it ends.
//!
//! [`detect`] takes the best one that works on this machine; [`open`] takes the one that was asked for.

#[cfg(target_os = "linux")]
mod account;
#[cfg(target_os = "linux")]
mod confine;
mod detect;
mod env_program;
#[cfg(target_os = "linux")]
mod holder;
#[cfg(target_os = "linux")]
mod isolated;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only marks made by `unshare` need the handshake")
)]
mod launch;
mod process;
#[cfg(target_os = "linux")]
mod procfs;
#[cfg(target_os = "linux")]
mod reach;
mod ring;
mod running;
#[cfg(target_os = "linux")]
mod sample;
mod scripted;
#[cfg(target_os = "linux")]
mod sockets;
mod spec;
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only marks made by `unshare` need the handshake")
)]
mod streams;
mod supervise;
#[cfg(target_os = "linux")]
mod tags;
mod terminal;
mod tools;
mod tree;

use std::io;

use futures_util::future::BoxFuture;
use tokio::net::TcpStream;

#[cfg(target_os = "linux")]
pub use self::{account::SANDBOX_ID, isolated::IsolatedRunner};
pub use self::{
    detect::{Network, RunnerKind, RunnerOptions, detect, open},
    process::ProcessRunner,
    ring::{Chunk, Consumer, OutputRing},
    running::{Output, Running, Stdin},
    scripted::{Script, ScriptedRunner},
    spec::{
        CommandSpec, DEFAULT_OUTPUT_LIMIT, Exit, MemoryShare, OutputMode, Owner, ProcessSample, PtySize,
        RunnerError, Space,
    },
};

/// Starts commands in sandboxes and ends them again.
pub trait Runner: Send + Sync + 'static {
    /// `isolated`, `process` or `scripted`.
    fn name(&self) -> &'static str;

    /// One line about what this runner does not do, to be said when the server starts.
    fn limitations(&self) -> Option<String>;

    /// Who must own the files below a space, when that is not the server's own user.
    fn owner(&self) -> Option<Owner> {
        None
    }

    /// Creates the folders of `space` with the right owner and mode; fine to repeat.
    ///
    /// # Errors
    /// What the file system said.
    fn prepare<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, io::Result<()>>;

    /// Starts a command; when this returns, the command has been handed its program.
    ///
    /// Dropping the future before it is done means that the command may never run, and never that it runs unobserved.
    ///
    /// # Errors
    /// [`RunnerError`]: no such program, no such working folder, or the sandbox itself could not be set up.
    fn spawn<'a>(
        &'a self,
        space: &'a Space,
        spec: CommandSpec,
    ) -> BoxFuture<'a, Result<Running, RunnerError>>;

    /// Ends every process of that sandbox, background ones included; returns when they are gone.
    fn end_space<'a>(&'a self, space_id: &'a str) -> BoxFuture<'a, ()>;

    /// The processes of that sandbox, as seen right now.
    ///
    /// # Errors
    /// The process table could not be read.
    fn processes<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, io::Result<Vec<ProcessSample>>>;

    /// Whether [`Runner::memory_beyond`] ever tells anything; it is not asked otherwise.
    fn watches_memory(&self) -> bool {
        false
    }

    /// What each process of that sandbox holds of memory, if it is more than `limit` bytes together. Memory that several share
    /// counts once, and what is a copy of files does not count. `None` also if this runner cannot tell.
    ///
    /// # Errors
    /// The process table could not be read.
    fn memory_beyond<'a>(
        &'a self,
        space: &'a Space,
        limit: u64,
    ) -> BoxFuture<'a, io::Result<Option<Vec<MemoryShare>>>> {
        let _ = (space, limit);
        Box::pin(async { Ok(None) })
    }

    /// A connection to a port that a program of that sandbox listens on. Without `loopback`, one that listens on a loopback
    /// address alone is out of reach. Nothing else can be reached: neither the host's programs nor another sandbox's.
    ///
    /// # Errors
    /// `ConnectionRefused` if no program of the sandbox listens there, `Unsupported` if this runner has no way in.
    fn connect<'a>(
        &'a self,
        space: &'a Space,
        port: u16,
        loopback: bool,
    ) -> BoxFuture<'a, io::Result<TcpStream>> {
        let _ = (space, port, loopback);
        let why = format!("the {} runner has no programs that could be reached", self.name());
        Box::pin(async move { Err(io::Error::new(io::ErrorKind::Unsupported, why)) })
    }

    /// Ends every process of every sandbox; returns when they are gone.
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}
