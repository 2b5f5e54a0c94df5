//! Shared nothing: the examples are the other files of this crate.
