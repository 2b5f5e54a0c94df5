//! What is generated from the API document: the low-level client's methods. Everything below but this file is written by
//! `cargo run -p sandboxer-codegen`.

#[rustfmt::skip]
mod api;
