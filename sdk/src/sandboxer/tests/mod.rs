//! The verbs against a scripted service.

mod account;
mod births;
mod boat_files;
mod care;
mod commands;
mod files;
mod lifecycle;
mod prompts;
mod saved;
mod service;
mod types;
mod ways_in;
