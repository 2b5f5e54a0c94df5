//! What the service knows: one file a resource, each a record and the rules that concern it alone.

pub(crate) mod accounts;
pub(crate) mod commands;
pub(crate) mod deletions;
pub(crate) mod handle;
pub(crate) mod idempotency;
pub(crate) mod ids;
pub(crate) mod limits;
pub(crate) mod sandboxes;
pub(crate) mod seed;
pub(crate) mod stops;
pub(crate) mod time;
pub(crate) mod usage;
