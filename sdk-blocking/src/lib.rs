//! Blocking twin of the SDK.
