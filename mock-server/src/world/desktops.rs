//! What is shown in the place of a sandbox's desktop.

use serde::{Deserialize, Serialize};

use super::time::Millis;
use crate::store::{Table, typed::Record};

/// The desktop of a sandbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Desktop {
    pub(crate) sandbox: String,
    /// The port of this machine that leads to it.
    pub(crate) outside: u16,
    /// What lets in where not everybody may.
    pub(crate) token: String,
    pub(crate) public: bool,
    /// `light` or `dark`; as the viewer likes it if `None`.
    #[serde(default)]
    pub(crate) theme: Option<String>,
    /// Until then it is being made.
    pub(crate) ready_at: Millis,
}

impl Record for Desktop {
    const TABLE: Table = Table::Desktops;

    fn key(&self) -> String {
        self.sandbox.clone()
    }
}
