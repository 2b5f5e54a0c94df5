//! Harness shared by the suites.
