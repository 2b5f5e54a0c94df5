//! The verbs against a scripted service.

mod account;
mod births;
mod boat_files;
mod care;
mod commands;
mod files;
mod lifecycle;
mod prompts;
mod repeated;
mod run;
mod saved;
mod service;
mod setup;
mod types;
mod ways_in;
