//! The small worlds that tests begin with: people and their keys, organisations, a server of theirs.

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, MockServerBuilder, WorldSeed, runner::RunnerKind};

use crate::http::Api;

/// Alice owns it and Bob is in it.
pub(crate) const ACME: &str = r#"
[[organisations]]
name = "Acme"
members = [{ account = "alice", role = "owner" }, { account = "bob" }]
"#;

/// Their names differ in case alone, and Alice is in both.
pub(crate) const TWINS: &str = r#"
[[organisations]]
name = "Twins"
id = "team_1"
members = [{ account = "alice" }]
[[organisations]]
name = "twins"
id = "team_2"
members = [{ account = "alice" }]
"#;

/// An account, what is said of it besides its login, and a key that opens all of it: `key-` and the login.
pub(crate) fn person(login: &str, more: &str) -> String {
    let key = format!("[[keys]]\nsecret = \"key-{login}\"\naccount = \"{login}\"\n");
    format!("[[accounts]]\nlogin = \"{login}\"\n{more}\n{key}")
}

/// Persons of whom nothing else is said.
pub(crate) fn people<const N: usize>(logins: [&str; N]) -> String {
    logins.map(|login| person(login, "")).concat()
}

/// Whoever has the key of one of them.
pub(crate) fn with_key_of(server: &MockServer, login: &str) -> Api {
    Api::with_key(&server.url(), &format!("key-{login}"))
}

/// Whoever has the keys of these.
pub(crate) fn with_keys_of<const N: usize>(server: &MockServer, logins: [&str; N]) -> [Api; N] {
    logins.map(|login| with_key_of(server, login))
}

/// A server with this world that really runs commands.
pub(crate) fn running(world: &str) -> MockServer {
    MockServer::builder().world(WorldSeed::from_toml(world).unwrap()).start().unwrap()
}

/// A server with this world that runs nothing.
pub(crate) fn scripted(world: &str) -> MockServerBuilder {
    MockServer::builder().world(WorldSeed::from_toml(world).unwrap()).runner(RunnerKind::Scripted)
}

/// The same, and a clock that stands still until it is moved.
pub(crate) fn scripted_and_clock(world: &str) -> (MockServer, ManualClock) {
    let clock = ManualClock::new();
    (scripted(world).clock(clock.shared()).start().unwrap(), clock)
}
