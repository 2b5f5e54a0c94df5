//! Reading documentation: its examples, what lacks one, what generated items say.

pub(crate) mod examples;
pub(crate) mod generated;
pub(crate) mod undocumented;
