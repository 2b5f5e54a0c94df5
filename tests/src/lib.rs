//! The harness that the suites share: servers by runner, a proxy that cuts connections, bytes to compare,
//! what a crate shows by its source.

pub mod ahead;
pub mod cutter;
pub mod drive;
#[rustfmt::skip]
pub mod generated;
pub mod pacer;
pub mod peer;
pub mod processes;
pub mod python;
pub mod spec;
pub mod strangers;
pub mod surface;

use std::io::Write as _;

use sandboxer_mock_server::{MockServer, RunnerKind};

/// A server with this runner; `None`, with a line that says so, where the `isolated` runner cannot work.
pub fn server(runner: RunnerKind) -> Option<MockServer> {
    match MockServer::builder().runner(runner).start() {
        Ok(server) => Some(server),
        Err(error) if runner == RunnerKind::Isolated => {
            skipped(&format!("the isolated runner does not work here: {error}"));
            None
        }
        Err(error) => panic!("the server did not start: {error}"),
    }
}

/// The servers that a behaviour has to be shown on: `process`, and `isolated` where it works.
pub fn servers() -> Vec<(RunnerKind, MockServer)> {
    [RunnerKind::Process, RunnerKind::Isolated]
        .into_iter()
        .filter_map(|runner| server(runner).map(|server| (runner, server)))
        .collect()
}

/// Says that something was not tested, and why.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// Writes a line that shows also when the test passes: the test runner holds back only what is printed by macros.
pub fn aloud(line: &str) {
    // In one piece, so that two tests do not mix theirs; that nobody reads it is no reason to fail.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// `length` bytes that repeat only after a long while; the same for the same seed.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        })
        .collect()
}

/// Numbered lines, `length` bytes in all, so that a lost or repeated piece shows.
pub fn numbered_lines(length: usize) -> String {
    let mut text = String::with_capacity(length + 16);
    for number in 0.. {
        if text.len() >= length {
            break;
        }
        text.push_str(&format!("line {number:>9}\n"));
    }
    text.truncate(length);
    text
}
