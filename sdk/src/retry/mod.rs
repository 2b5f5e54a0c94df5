//! Whether and when a failed try is followed by another.

pub(crate) mod after;
pub(crate) mod backoff;
pub(crate) mod budget;
pub(crate) mod policy;
