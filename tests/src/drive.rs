//! How a suite calls operations that it does not know by name; [`crate::generated`] has one entry for each.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use sandboxer::{Api, Dialect, Operation, Result};
use serde::Serialize;
use serde_json::Value;

/// What a client made of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Its model, written as JSON again; null when the answer is a stream, which is dropped.
    pub value: Value,
    /// What `Debug` shows of it.
    pub printed: String,
}

impl Made {
    /// Of a model.
    ///
    /// # Panics
    /// When the model cannot be written as JSON.
    #[allow(clippy::needless_pass_by_value, reason = "what the calls answer is handed on as it is")]
    pub fn of<T: Serialize + Debug>(model: T) -> Self {
        Self { value: serde_json::to_value(&model).expect("a model is JSON"), printed: format!("{model:?}") }
    }

    /// Of a stream.
    pub fn stream<T: Debug>(stream: T) -> Self {
        Self { value: Value::Null, printed: format!("{stream:?}") }
    }
}

/// One way to call an operation, through either twin.
#[derive(Clone, Copy)]
pub struct Way {
    /// Through the async client.
    pub call: for<'a> fn(&'a Api) -> BoxFuture<'a, Result<Made>>,
    /// Through the blocking client.
    pub blocking: fn(&sandboxer_blocking::Api) -> Result<Made>,
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
