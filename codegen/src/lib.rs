//! Turns `specs/` into the generated parts of the suite.
