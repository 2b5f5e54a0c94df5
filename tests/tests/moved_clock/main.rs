//! Waits, events and streams of commands on a clock that the test moves, over real connections, in both twins.

mod attach;
mod events;
mod faces;
mod leaping;
mod prompts;
mod service;
mod settle;
mod twins;
mod waits;
