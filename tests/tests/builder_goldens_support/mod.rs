//! A recording peer, the book of lines, and what the lines cover.

pub(crate) mod answers;
pub(crate) mod book;
pub(crate) mod calls;
pub(crate) mod coverage;
pub(crate) mod peer;
