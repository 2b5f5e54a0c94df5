//! Ports of sandboxes that can be reached from outside.

use serde::{Deserialize, Serialize};

use crate::store::{Table, typed::Record};

/// The most ports that a sandbox hosts.
pub(crate) const MOST: usize = 50;

/// A port that can be reached from outside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HostedPort {
    pub(crate) sandbox: String,
    pub(crate) port: u16,
    /// The port of this machine that leads to it.
    pub(crate) outside: u16,
    /// What lets in where not everybody may; stays as long as the port is hosted.
    pub(crate) token: String,
    pub(crate) public: bool,
    /// Whether a program that listens on a loopback address alone is reached.
    pub(crate) localhost: bool,
    #[serde(default)]
    pub(crate) title: Option<String>,
}

/// The key of a hosted port.
pub(crate) fn hosted_key(sandbox: &str, port: u16) -> String {
    format!("{sandbox}/{port:05}")
}

impl Record for HostedPort {
    const TABLE: Table = Table::Hosted;

    fn key(&self) -> String {
        hosted_key(&self.sandbox, self.port)
    }
}
