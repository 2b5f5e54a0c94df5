//! Files that a sandbox was created with and that are still to be written into it.

use serde::{Deserialize, Serialize};

use crate::store::{Table, typed::Record};

/// What is to be written into one sandbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GivenFiles {
    pub(crate) sandbox: String,
    pub(crate) files: Vec<GivenFile>,
}

/// One of the files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GivenFile {
    pub(crate) path: String,
    /// In base64.
    pub(crate) content: String,
}

impl Record for GivenFiles {
    const TABLE: Table = Table::GivenFiles;

    fn key(&self) -> String {
        self.sandbox.clone()
    }
}
