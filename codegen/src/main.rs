//! Command-line entry of the code generator.
fn main() {}
