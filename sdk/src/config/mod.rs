//! What a client is built from.

pub(crate) mod base_url;
mod builder;
pub(crate) mod headers;
mod key;

pub use builder::Builder;
pub use key::ApiKey;

#[cfg(test)]
mod tests;
