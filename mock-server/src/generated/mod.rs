//! What is generated from the API document: the route table and what requests may hold. Everything below but this file is
//! written by `cargo run -p sandboxer-codegen`.

#[allow(dead_code, reason = "a document may need kinds of value that this one does not")]
#[rustfmt::skip]
pub(crate) mod bodies;
#[rustfmt::skip]
pub(crate) mod router;
