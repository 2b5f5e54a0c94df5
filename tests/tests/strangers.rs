//! Published clients that run unchanged against the local server: see `strangers/README.md`.

use std::{path::Path, time::Duration};

use sandboxer_mock_server::{MockServer, WorldSeed};
use sandboxer_tests::{
    ahead::Ahead,
    python::{self, Package},
    strangers::Suite,
};

/// A world of a suite, below `strangers`.
fn world(path: &str) -> WorldSeed {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("strangers").join(path);
    WorldSeed::from_file(&path).unwrap()
}

/// One face of a published Python client, and how many methods it has; all meet the same world.
fn python_client(client: &str, package: &Package, face: &str, methods: usize) {
    let clock = Ahead::default();
    let moved_by = clock.listen().unwrap().to_string();
    let builder = MockServer::builder().world(world("sandboxer_sdk/world.toml")).allow_loopback_targets();
    let server = builder.clock(clock.shared()).start().unwrap();
    Suite {
        name: &format!("{client}-{face}"),
        client,
        methods,
        package,
        script: &format!("{}/main.py", client.replace('-', "_")),
        arguments: &[face],
        environment: &[("STRANGER_URL", &server.url()), ("STRANGER_CLOCK", &moved_by)],
        limit: Duration::from_secs(300),
    }
    .run();
    server.shutdown();
}

#[test]
fn the_waiting_face_of_sandboxer_sdk_does_all_it_can() {
    python_client("sandboxer-sdk", &python::CLIENT, "sync", 191);
}

#[test]
fn the_awaited_face_of_sandboxer_sdk_does_all_it_can() {
    python_client("sandboxer-sdk", &python::CLIENT, "async", 186);
}

#[test]
fn the_plain_methods_of_boat_sdk_and_its_helpers_do_all_they_can() {
    python_client("boat-sdk", &python::SIBLING, "plain", 108);
}

#[test]
fn the_methods_of_boat_sdk_that_tell_the_status_do_all_they_can() {
    python_client("boat-sdk", &python::SIBLING, "info", 94);
}

#[test]
fn the_methods_of_boat_sdk_that_leave_answers_unread_do_all_they_can() {
    python_client("boat-sdk", &python::SIBLING, "unread", 94);
}
