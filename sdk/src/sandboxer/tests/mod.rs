//! The verbs against a scripted service.

mod births;
mod commands;
mod files;
mod lifecycle;
mod service;
mod types;
