//! A field that is refused before anything is sent.

use std::fmt;

/// A field of a request that is out of its limits: which one, and what is allowed. Values are never part of it.
///
/// ```
/// use sandboxer::wire::InvalidField;
///
/// let fault = InvalidField::new("ttlSeconds", "must be from 1 to 2592000");
/// assert!(fault.to_string().contains("ttlSeconds"));
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// The field's name on the wire, such as `timeoutSeconds`; for an environment variable its name too, as in `env.A=B`.
    pub field: String,
    /// What is allowed, such as `must be a whole number, from 1 to 600`.
    pub problem: String,
}

impl InvalidField {
    /// A refusal of `field`.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

impl InvalidField {
    /// The same refusal of a field inside `outer`.
    pub(crate) fn inside(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

impl fmt::Display for InvalidField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.problem)
    }
}

impl std::error::Error for InvalidField {}
