//! The local server as its clients see it: over HTTP.

mod absent;
mod binary;
mod commands;
mod errors;
mod faults;
mod files;
mod hardening;
mod http;
mod lifecycle;
mod persistence;
mod streams;
mod tenants;
