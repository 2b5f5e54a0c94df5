//! The server as a program.
fn main() {}
