//! How a suite calls operations that it does not know by name; [`crate::generated`] has one entry for each.

use futures_util::future::BoxFuture;
use sandboxer::{Api, Dialect, Operation, Result};

/// One way to call an operation, through either twin. What it answers is dropped.
#[derive(Clone, Copy)]
pub struct Way {
    /// Through the async client.
    pub call: for<'a> fn(&'a Api) -> BoxFuture<'a, Result<()>>,
    /// Through the blocking client.
    pub blocking: fn(&sandboxer_blocking::Api) -> Result<()>,
    /// What is given, as JSON: below `path`, `query`, `header` and `body`, by names on the wire of the default dialect.
    pub sent: &'static str,
}

/// An operation and the ways to call it.
#[derive(Clone, Copy)]
pub struct Drive {
    /// The operation.
    pub operation: Operation,
    /// With what is required alone.
    pub least: Way,
    /// With every argument and every field of the request.
    pub most: Way,
    /// The same where a dialect takes more.
    pub others: &'static [(Dialect, Way)],
}

impl Drive {
    /// With everything that the dialect takes.
    pub fn most_of(&self, dialect: Dialect) -> Way {
        let own = self.others.iter().find(|(known, _)| *known == dialect);
        own.map_or(self.most, |(_, way)| *way)
    }
}
