//! Typed async client for cloud code sandboxes.
pub mod clock;
