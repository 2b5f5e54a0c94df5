//! How fast output comes through: text of lines of 80 bytes, from a command and from memory.

use std::sync::atomic::{AtomicI64, Ordering};

use sandboxer::{AsyncSandbox, Command, CommandStatusParams, Create, stream::Chunk};
use sandboxer_blocking::Sandboxer;
use sandboxer_mock_server::RunnerKind;
use serde_json::json;

use crate::{
    Effort,
    canned::{Canned, text},
    measure::{Lane, print_rates, take_turns},
    peers::{Raw, runtime, server},
};
