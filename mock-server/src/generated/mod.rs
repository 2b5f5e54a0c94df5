//! What is generated from the API document: the route table and what requests may hold. Everything below but this file is
//! written by `cargo run -p sandboxer-codegen`.

#[allow(dead_code, reason = "the table can say more than the document says now")]
#[rustfmt::skip]
pub(crate) mod bodies;
#[allow(dead_code, reason = "the table can say more than the document says now")]
#[rustfmt::skip]
pub(crate) mod router;
