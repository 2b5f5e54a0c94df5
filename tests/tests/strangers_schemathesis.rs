//! Schemathesis, which makes requests of an API document and judges the answers by it, against the local server.
//!
//! `strangers/schemathesis_run` holds how the cases are made, what they meet and what may differ.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use sandboxer::{
    Dialect,
    clock::{Clock as _, SystemClock},
};
use sandboxer_mock_server::{MockServer, MockServerBuilder, RunnerKind, WorldSeed};
use sandboxer_tests::{
    aloud,
    python::{self, Package},
    spec::Spec,
};
use serde_json::{Value, json};

const PACKAGE: Package = Package { title: "schemathesis", name: "schemathesis", module: "schemathesis" };
const KEY: &str = "sbx_live_under_test_k9x2";
const SESSION: &str = "somebody-is-here";
const LEAST_CASES: u64 = 2000;
/// How many of them are to be in chains: steps from what earlier answers gave to what can be done with it.
const LEAST_IN_CHAINS: u64 = 600;

/// What no case brings to a success: `recover` needs a machine that nothing reaches, and whatever else met that one would
/// rightly be answered with 502.
const WITHOUT_SUCCESS: [&str; 1] = ["recover"];

#[test]
fn what_the_document_allows_and_forbids_is_answered_as_it_says() {
    let Some(python) = python::with(&PACKAGE) else { return };
    let clock = SystemClock::new();
    let (server, isolated) = start();
    let given = json!({
        "url": server.url(),
        "key": KEY,
        "session": SESSION,
        "document": repository("specs/sandboxer.openapi.yaml"),
        "isolated": isolated,
        "program": std::env::current_exe().unwrap(),
        "requirements": repository("tests/requirements/schemathesis.txt"),
    });
    // Fails with what schemathesis says, which has a command to reproduce each difference.
    let report = python.run(&suite("main.py"), given.to_string().as_bytes());
    // Fails when an answer was not as documented by this repository's own checks.
    server.shutdown();

    fs::create_dir_all(repository("target/strangers")).unwrap();
    fs::write(repository("target/strangers/schemathesis.json"), &report).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let seen: BTreeMap<String, BTreeMap<u16, u64>> =
        serde_json::from_value(report["operations"].clone()).unwrap();
    let cases = report["cases"].as_u64().unwrap();
    let succeeded: BTreeSet<&str> = with_status(&seen, 200..300);
    let phases: BTreeMap<String, u64> = serde_json::from_value(report["phases"].clone()).unwrap();
    let links: BTreeMap<String, u64> = serde_json::from_value(report["links"].clone()).unwrap();
    let unfollowed: Vec<&String> =
        links.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name).collect();
    aloud(&summary(&report, cases, &seen, succeeded.len(), clock.elapsed().as_secs()));
    aloud(&format!(
        "STRANGER schemathesis: {phases:?}, {} of {} links led to a success, all but {unfollowed:?}",
        links.len() - unfollowed.len(),
        links.len(),
    ));

    // Streams are operations of their own in this list, but not in the report.
    let operations = Spec::read(Dialect::default()).operations();
    let operations: BTreeSet<&str> = operations
        .iter()
        .filter(|operation| operation.forced.is_empty())
        .map(|operation| operation.id.as_str())
        .collect();
    let met: BTreeSet<&str> = seen.keys().map(String::as_str).collect();
    assert_eq!(met, operations);
    let missing: BTreeSet<&str> = operations.difference(&succeeded).copied().collect();
    assert_eq!(missing, BTreeSet::from(WITHOUT_SUCCESS));
    assert_eq!(with_status(&seen, 500..600), BTreeSet::new());
    assert!(cases >= LEAST_CASES, "only {cases} cases");
    assert_eq!(phases.keys().collect::<Vec<_>>(), ["coverage", "examples", "fuzzing", "stateful"]);
    assert!(phases["stateful"] >= LEAST_IN_CHAINS, "only {} cases in chains", phases["stateful"]);
    // Which of them chance leads to is another matter in each version of the document, so not all are asked for.
    assert!(
        links.len() >= 40 && unfollowed.len() * 6 <= links.len(),
        "these links led nowhere: {unfollowed:?}"
    );
    for media in ["application/x-ndjson", "text/event-stream"] {
        assert!(report["streams"][media].as_u64() > Some(0), "no {media} was read: {}", report["streams"]);
    }
    is_as_before(&report, isolated);
}

#[test]
fn an_exception_allows_what_it_names_and_nothing_besides() {
    let Some(python) = python::with(&PACKAGE) else { return };
    let judged: Value = serde_json::from_slice(&python.run(&suite("judge.py"), b"")).unwrap();
    assert_eq!(judged, json!({"judged": 8}));
}

/// Compares the run with an earlier one of the same inputs, if there was one: the same requests, with the same statuses.
fn is_as_before(report: &Value, isolated: bool) {
    let wall = if isolated { "isolated" } else { "process" };
    let place = repository(&format!("target/strangers/schemathesis-{wall}.lines"));
    let inputs = report["inputs"].as_str().unwrap();
    let lines: Vec<&str> =
        report["lines"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let now = format!("{inputs}\n{}\n", lines.join("\n"));
    let before = fs::read_to_string(&place).unwrap_or_default();
    if before.lines().next() != Some(inputs) {
        fs::write(&place, now).unwrap();
        return;
    }
    let mut pairs = before.lines().zip(now.lines()).enumerate();
    let first = pairs.find(|(_, (before, now))| before != now);
    assert!(
        before == now,
        "a run of the same inputs went otherwise before, {first:?} is the first difference: {}",
        place.display()
    );
}

/// A server with things to meet; commands behind a wall where that works.
fn start() -> (MockServer, bool) {
    let builder = || -> MockServerBuilder {
        let world = WorldSeed::from_file(&suite("world.toml")).unwrap();
        // The targets are addresses of the script itself; nothing else is sent to.
        MockServer::builder().world(world).api_key(KEY).session(SESSION).allow_loopback_targets()
    };
    match builder().runner(RunnerKind::Isolated).start() {
        Ok(server) => (server, true),
        Err(error) => {
            aloud(&format!(
                "STRANGER schemathesis: only known commands are run, for there is no wall: {error}"
            ));
            (builder().runner(RunnerKind::Process).start().unwrap(), false)
        }
    }
}

/// The operations that were answered with one of these statuses.
fn with_status(
    seen: &BTreeMap<String, BTreeMap<u16, u64>>,
    statuses: std::ops::Range<u16>,
) -> BTreeSet<&str> {
    let had = |counts: &BTreeMap<u16, u64>| counts.keys().any(|status| statuses.contains(status));
    seen.iter().filter(|(_, counts)| had(counts)).map(|(name, _)| name.as_str()).collect()
}

fn summary(
    report: &Value,
    cases: u64,
    seen: &BTreeMap<String, BTreeMap<u16, u64>>,
    succeeded: usize,
    seconds: u64,
) -> String {
    let exceptions = report["exceptions"].as_array().unwrap();
    let named = exceptions.iter().map(|one| {
        let name = |part: &str| one[part].as_str().unwrap_or_default().to_owned();
        format!("  {} of {}: {}", name("check"), name("operation"), one["answer"])
    });
    let named: Vec<String> = named.collect();
    format!(
        "STRANGER schemathesis: {cases} cases, {} operations, {succeeded} with a success, run {}, {seconds} seconds, {} exceptions:\n{}",
        seen.len(),
        report["digest"].as_str().unwrap_or_default(),
        named.len(),
        named.join("\n"),
    )
}

fn suite(name: &str) -> PathBuf {
    repository("tests/strangers/schemathesis_run").join(name)
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
