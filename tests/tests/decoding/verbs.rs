//! What the verbs make of answers of the corpus: typed values, in both twins.

use std::time::Duration;

use sandboxer::{
    Desktop, Dialect, ErrorKind, EventMode, EventOptions, ListOptions, Outcome, ScopedKey,
    models::{
        DeletionStage, DeletionStatus, HostAccess, NamedSnapshotStatus, PromptRunStatus, SandboxHealth,
        SandboxState, SandboxType, SnapshotEntryKind, SnapshotKind, StopStatus, UsageParams,
    },
    stream::OutputStream,
};

use crate::{corpus, wire::Wire};

const SANDBOX: &str = "bx_7k2mq9xd";

/// What the verbs are tried with.
struct Bench(Wire);

impl Bench {
    fn new() -> Self {
        Self(Wire::new(Dialect::default()))
    }

    /// Answers with cases, in this order: operation and fixture of one name, and the case's name.
    fn answers(&self, cases: &[(&str, &str)]) -> &Wire {
        let turns: Vec<_> = cases
            .iter()
            .map(|(id, name)| {
                let cases = corpus::named(id).cases();
                let wanted = format!("{id}, {name}");
                let case =
                    cases.iter().find(|case| case.what == wanted).unwrap_or_else(|| panic!("no {wanted}"));
                self.0.turn(id, case.status, &case.headers, case.bodies(false).remove(0))
            })
            .collect();
        self.0.play(turns);
        &self.0
    }
}

/// The same call through both twins: an expression with the client as `$client`.
macro_rules! both {
    ($bench:expr, $cases:expr, |$client:ident| $call:expr, $check:expr) => {{
        let wire = $bench.answers($cases);
        let read = wire.run(async {
            let $client = &wire.client;
            $call.await
        });
        ($check)(read);
        let wire = $bench.answers($cases);
        let $client = &wire.blocking;
        ($check)($call);
    }};
}

#[test]
fn a_sandbox() {
    let bench = Bench::new();
    both!(
        bench,
        &[("create", "whole"), ("get", "whole")],
        |client| client.create(sandboxer::Create::new()),
        |made: Result<_, _>| {
            drop(made.unwrap());
        }
    );
    let wire = bench.answers(&[("get", "whole")]);
    let sandbox = wire.run(wire.client.get(SANDBOX)).unwrap();
    let info = sandbox.info().unwrap();
    assert_eq!((info.state.clone(), info.health.clone()), (SandboxState::Ready, Some(SandboxHealth::Ok)));
    assert_eq!((info.kind.clone(), info.memory_gb), (Some(SandboxType::Default), Some(8)));
    assert_eq!(info.created_at.as_ref().unwrap().as_str(), "2026-09-14T08:15:30.125Z");
    assert!(!format!("{info:?} {sandbox:?}").contains("desk-s3cr3t-41"));

    let wire = bench.answers(&[("get", "archived")]);
    let info = wire.run(wire.client.get(SANDBOX)).unwrap().info().unwrap();
    assert_eq!((info.state.clone(), info.vcpu, info.ip.as_deref()), (SandboxState::Archived, Some(4), None));
    assert_eq!(info.stop.as_ref().unwrap().status, StopStatus::Completed);

    let wire = bench.answers(&[("get", "everything new")]);
    let info = wire.blocking.get(SANDBOX).unwrap().info().unwrap();
    assert_eq!(info.state, SandboxState::Unknown("hibernating".into()));
    assert_eq!(info.kind, Some(SandboxType::Unknown("gigantic".into())));
    assert_eq!(info.stop.as_ref().unwrap().unknown_fields["waitsFor"], "upload");
    assert_eq!(info.unknown_fields["hydration"]["percent"], 40);

    let wire = bench.answers(&[("get", "no state")]);
    let error = wire.blocking.get(SANDBOX).unwrap_err();
    assert_eq!((error.kind(), error.sandbox_id()), (ErrorKind::Unexpected, Some(SANDBOX)));
    assert_eq!(
        error.message(),
        "the answer to get cannot be read: `sandbox.state` is essential and missing or of another type"
    );
}

#[test]
fn a_waiter_meets_states_it_does_not_know() {
    let bench = Bench::new();
    // A new state is neither ready nor failed: it is waited on.
    both!(
        bench,
        &[("create", "new state and fields"), ("get", "everything new"), ("get", "whole")],
        |client| client.create(sandboxer::Create::new()),
        |made: Result<_, _>| {
            drop(made.unwrap());
        }
    );
    let cases = [("create", "whole"), ("get", "cancelled")];
    let wire = bench.answers(&cases);
    let error = wire.run(wire.client.create(sandboxer::Create::new())).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, "sandbox_cancelled"));
    assert_eq!(error.sandbox_id(), Some(SANDBOX));
    // One that has stopped already is as good as stopped.
    both!(
        bench,
        &[("stop", "before stops had ids"), ("get", "archived")],
        |client| client.sandbox(SANDBOX).stop(),
        |stopped: Result<(), _>| stopped.unwrap()
    );
}

#[test]
fn a_list() {
    let bench = Bench::new();
    let wire = bench.answers(&[("sandboxes", "whole"), ("sandboxes", "last page")]);
    let all = wire.run(wire.client.list(ListOptions::new()).collect()).unwrap();
    let states: Vec<_> = all.iter().map(|one| one.info().unwrap().state.clone()).collect();
    assert_eq!(
        states,
        [SandboxState::Ready, SandboxState::Archived, SandboxState::Ready, SandboxState::Archived]
    );
    let wire = bench.answers(&[("sandboxes", "unknown state in one"), ("sandboxes", "empty")]);
    let all: Vec<_> = wire.blocking.list(ListOptions::new()).map(Result::unwrap).collect();
    let states: Vec<_> = all.iter().map(|one| one.info().unwrap().state.to_string()).collect();
    assert_eq!(states, ["ready", "hibernating"]);
    // More pages and no way to them would be asked for without end.
    let wire = bench.answers(&[("sandboxes", "before paging")]);
    assert_eq!(wire.blocking.list(ListOptions::new()).count(), 2);
}

#[test]
fn a_command() {
    let bench = Bench::new();
    both!(bench, &[("command", "whole")], |client| client.sandbox(SANDBOX).exec("x"), |output: Result<
        sandboxer::Output,
        _,
    >| {
        let output = output.unwrap();
        assert_eq!((output.outcome(), &*output.stdout_text()), (Outcome::Exited(0), "héllo\n"));
        assert_eq!(
            (output.duration(), output.cwd()),
            (Some(Duration::from_millis(1500)), Some("/home/user"))
        );
    });
    for (case, outcome, truncated) in [
        ("before history", Outcome::Exited(0), false),
        ("exit code is text", Outcome::Exited(0), false),
        ("ran out of time", Outcome::TimedOut, false),
        ("killed for memory", Outcome::Signalled(sandboxer::Signal::new("SIGKILL")), true),
        ("exit code beyond", Outcome::Exited(i32::MAX), false),
    ] {
        both!(bench, &[("command", case)], |client| client.sandbox(SANDBOX).exec("x"), |output: Result<
            sandboxer::Output,
            _,
        >| {
            let output = output.unwrap();
            assert_eq!((output.outcome(), output.stdout_truncated()), (outcome.clone(), truncated), "{case}");
        });
    }
    for (case, says) in [
        ("in the background", "started in the background"),
        ("new kind", "does not know"),
        ("no stdout", "`stdout` is essential"),
        ("stopped sandbox", "not running"),
    ] {
        both!(bench, &[("command", case)], |client| client.sandbox(SANDBOX).exec("x"), |output: Result<
            sandboxer::Output,
            sandboxer::Error,
        >| {
            let error = output.unwrap_err();
            assert!(error.message().contains(says), "{case}: {error}");
            assert_eq!(error.sandbox_id(), Some(SANDBOX), "{case}");
        });
    }
    let logs = [("command", "in the background"), ("commandLogs", "whole")];
    both!(bench, &logs, |client| client.sandbox(SANDBOX).start("x"), |started: Result<_, _>| drop(
        started.unwrap()
    ));
    let wire = bench.answers(&logs);
    let command = wire.blocking.sandbox(SANDBOX).start("x").unwrap();
    assert_eq!((command.process_id(), command.pid()), (7, Some(412)));
    let bytes = command.logs(OutputStream::Stdout).read_all(64).unwrap();
    assert_eq!(&bytes[..], [0xFF, 0x0F, 0x00, 0x41]);
}

#[test]
fn a_file() {
    let bench = Bench::new();
    for (cases, content) in [
        (&[("readFile", "whole")][..], "héllo\n"),
        (&[("readFile", "no size")], "héllo\n"),
        (&[("readFile", "size is text")], "héllo\n"),
        (&[("readFile", "empty")], ""),
    ] {
        both!(bench, cases, |client| client.sandbox(SANDBOX).files().read("notes.txt"), |read: Result<
            String,
            _,
        >| {
            assert_eq!(read.unwrap(), content, "{cases:?}");
        });
    }
    both!(
        bench,
        &[("readFile", "bytes")],
        |client| client.sandbox(SANDBOX).files().read_bytes("a"),
        |read: Result<bytes::Bytes, _>| {
            assert_eq!(&read.unwrap()[..], [0xFF, 0x00]);
        }
    );
    // What did not come in a way that is exact is not passed off as the file.
    both!(
        bench,
        &[("readFile", "more")],
        |client| client.sandbox(SANDBOX).files().read_bytes("a"),
        |read: Result<bytes::Bytes, sandboxer::Error>| {
            assert_eq!(read.unwrap_err().code(), "unexpected_response");
        }
    );
}

#[test]
fn ways_in_and_their_secrets() {
    let bench = Bench::new();
    both!(bench, &[("hostPort", "whole")], |client| client.sandbox(SANDBOX).host(3000), |url: Result<
        sandboxer::wire::SecretUrl,
        _,
    >| {
        let url = url.unwrap();
        assert!(url.expose().ends_with("?_token=port-s3cr3t-88"));
        assert!(!format!("{url} {url:?}").contains("s3cr3t"));
    });
    both!(bench, &[("hostPort", "no url")], |client| client.sandbox(SANDBOX).host(3000), |url: Result<
        _,
        sandboxer::Error,
    >| {
        assert!(url.unwrap_err().message().contains("`url` is essential"));
    });
    both!(
        bench,
        &[("listHostedPorts", "port alone")],
        |client| client.sandbox(SANDBOX).hosted_ports(),
        |ports: Result<Vec<sandboxer::models::HostedPort>, _>| {
            let ports = ports.unwrap();
            assert_eq!((ports[0].port, ports[0].access.clone()), (3000, None));
        }
    );
    both!(
        bench,
        &[("listHostedPorts", "whole")],
        |client| client.sandbox(SANDBOX).hosted_ports(),
        |ports: Result<Vec<sandboxer::models::HostedPort>, _>| {
            assert_eq!(ports.unwrap()[0].access, Some(HostAccess::Private));
        }
    );
    both!(
        bench,
        &[("desktop", "whole")],
        |client| client.sandbox(SANDBOX).desktop(Desktop::new()),
        |url: Result<sandboxer::wire::SecretUrl, _>| {
            assert!(!format!("{:?}", url.unwrap()).contains("s3cr3t"));
        }
    );
    both!(
        bench,
        &[("desktop", "url odd")],
        |client| client.sandbox(SANDBOX).desktop(Desktop::new()),
        |url: Result<_, sandboxer::Error>| {
            assert_eq!(url.unwrap_err().code(), "desktop_failed");
        }
    );
    both!(
        bench,
        &[("createScopedApiKey", "whole")],
        |client| client.api_keys().create_scoped(ScopedKey::new()),
        |made: Result<sandboxer::models::ApiKeySecretResponse, _>| {
            let made = made.unwrap();
            assert_eq!(made.secret.expose(), "sbx_live_9f3b61d07ae84c52c4d1");
            assert!(!format!("{made:?}").contains("9f3b61d0"));
        }
    );
}

#[test]
fn snapshots_and_deletions() {
    let bench = Bench::new();
    both!(bench, &[("getSnapshotTree", "whole")], |client| client.snapshot("s").tree(), |tree: Result<
        sandboxer::models::SnapshotTreeResponse,
        _,
    >| {
        let kinds: Vec<_> = tree.unwrap().entries.into_iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [SnapshotEntryKind::Dir, SnapshotEntryKind::File, SnapshotEntryKind::Symlink]);
    });
    both!(
        bench,
        &[("getSnapshotDownload", "whole")],
        |client| client.snapshot("s").manifest(),
        |manifest: Result<sandboxer::models::SnapshotDownloadResponse, _>| {
            let manifest = manifest.unwrap();
            assert_eq!(
                (manifest.kind.clone(), manifest.expires_in_seconds),
                (SnapshotKind::Incremental, 3600)
            );
            assert_eq!(manifest.chunks.iter().map(|chunk| chunk.generation).collect::<Vec<_>>(), [0, 1]);
        }
    );
    both!(
        bench,
        &[("getLatestSandboxSnapshot", "none")],
        |client| client.sandbox(SANDBOX).latest_snapshot(),
        |latest: Result<Option<sandboxer::models::SnapshotSummary>, _>| {
            assert_eq!(latest.unwrap(), None);
        }
    );
    both!(
        bench,
        &[("getNamedSnapshot", "failed")],
        |client| client.named_snapshots().get("base-v2"),
        |found: Result<sandboxer::models::NamedSnapshot, _>| {
            let found = found.unwrap();
            assert_eq!(
                (found.status, found.error.as_deref()),
                (NamedSnapshotStatus::Failed, Some("disk gone"))
            );
        }
    );
    both!(
        bench,
        &[("deleteSandbox", "new values")],
        |client| client.sandbox(SANDBOX).delete(),
        |deleted: Result<Option<sandboxer::models::DeletionOperation>, _>| {
            let operation = deleted.unwrap().unwrap();
            assert_eq!(operation.status, DeletionStatus::Unknown("paused".into()));
            assert_eq!(operation.stage, Some(DeletionStage::Unknown("shredding".into())));
        }
    );
    both!(
        bench,
        &[("usage", "whole")],
        |client| client.sandbox(SANDBOX).usage(UsageParams::new()),
        |usage: Result<sandboxer::models::SandboxUsageResponse, _>| {
            let usage = usage.unwrap();
            assert_eq!((usage.seconds, usage.dollars, usage.sandbox_type), (1200, 0.012, SandboxType::Large));
        }
    );
    both!(bench, &[("limits", "the four")], |client| client.limits(), |limits: Result<
        sandboxer::models::LimitsResponse,
        _,
    >| {
        let limits = limits.unwrap();
        assert_eq!((limits.can_start, limits.max_active_sandboxes, limits.starts), (true, 5, None));
    });
}

#[test]
fn agents_and_events() {
    let bench = Bench::new();
    both!(bench, &[("prompt", "whole")], |client| client.sandbox(SANDBOX).prompt("x"), |run: Result<
        _,
        _,
    >| drop(
        run.unwrap()
    ));
    let wire = bench.answers(&[
        ("prompt", "before conversations"),
        ("promptRunStatus", "new status"),
        ("promptRunStatus", "whole"),
    ]);
    let run = wire.run(wire.client.sandbox(SANDBOX).prompt("x")).unwrap();
    assert_eq!(run.conversation_id(), None);
    assert_eq!(wire.run(run.status()).unwrap().status, PromptRunStatus::Unknown("reviewing".into()));
    assert_eq!(wire.run(run.wait()).unwrap().status, PromptRunStatus::Finished);

    let options = || EventOptions::new().mode(EventMode::Poll).from_start(true).follow(false);
    for (case, kinds) in [
        ("type alone", &["prompt", "response"][..]),
        ("new kinds", &["shield", "response", "widget"]),
        ("before conversations", &["prompt"]),
    ] {
        // Without what a page says of itself it is the last one; with it another follows, which is empty.
        let wire = bench.answers(&[("events", case), ("events", "nothing was asked")]);
        let events: Vec<_> =
            wire.blocking.sandbox(SANDBOX).events(options()).unwrap().map(Result::unwrap).collect();
        assert_eq!(events.iter().map(sandboxer::Event::kind).collect::<Vec<_>>(), kinds, "{case}");
    }
    let wire = bench.answers(&[("events", "whole"), ("events", "nothing was asked")]);
    let events: Vec<_> =
        wire.blocking.sandbox(SANDBOX).events(options()).unwrap().map(Result::unwrap).collect();
    assert_eq!(events.len(), 6);
    let prompt = events[0].as_prompt().unwrap();
    assert_eq!((prompt.prompt, prompt.is_reverted), ("fix it", false));
    assert_eq!(events[1].as_response().unwrap().content, "Done.");
    assert_eq!(events[2].as_response().unwrap().tools.len(), 1);
    assert_eq!(events[3].as_steer().unwrap().message, "faster");
    // A page with something else in it cannot be gone on from without a gap.
    let wire = bench.answers(&[("events", "odd elements")]);
    let error = wire.blocking.sandbox(SANDBOX).events(options()).unwrap().next().unwrap().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "malformed_event"));
}
