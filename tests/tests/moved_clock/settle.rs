//! Waits for what takes long: setup, a stop, a deletion, a prompt, a desktop, a named snapshot.

use std::time::Duration;

use sandboxer::{CallOptions, Desktop, ErrorKind, Result, clock::Clock as _};
use serde_json::json;

use super::{
    leaping::Leaping,
    prompts::prompt,
    service::{Reply, Request, Service},
    twins::{Client, of, on, on_both},
    waits::{LOOK, assert_expired, info, info_with, seconds},
};

/// A wait, the answers it gets for the states of what it waits for, and what it makes of them.
struct Wait {
    wait: fn(&Client, Option<Duration>) -> Result<()>,
    answer: fn(&Request, &str) -> Reply,
    /// The state while there is nothing to tell.
    busy: &'static str,
    /// The states that end it well.
    good: &'static [&'static str],
    /// The states that end it badly, with the code and a part of the reason.
    bad: &'static [(&'static str, &'static str, &'static str)],
    /// Its limit when none is said; `None` is none at all.
    limit: Option<u64>,
    /// The pause between two looks; `None` where it grows.
    pause: Option<Duration>,
}

const STEADY: Option<Duration> = Some(Duration::from_secs(2));

fn waits() -> [Wait; 6] {
    [
        Wait {
            wait: |client, limit| on!(client.sandbox() => wait_for_setup(limit)),
            answer: |_, state| match state {
                "archived" | "error" | "cancelled" => info_with(state, &json!({"setupStatus": "running"})),
                "none" => info_with("ready", &json!({"setupStatus": null})),
                status => info_with("ready", &json!({"setupStatus": status, "setupError": "exit code 3"})),
            },
            busy: "running",
            good: &["done", "none"],
            bad: &[
                ("failed", "setup_failed", "exit code 3"),
                ("archived", "sandbox_archived", "archived"),
                ("error", "sandbox_error", "error"),
                ("cancelled", "sandbox_cancelled", "cancelled"),
            ],
            limit: Some(600),
            pause: STEADY,
        },
        Wait {
            wait: |client, limit| on!(client.sandbox() => wait_for_stop("st_1", limit)),
            answer: |request, status| {
                assert_eq!(request.call, "GET /sandboxes/bx_1/stops/st_1");
                let stop = json!({"id": "st_1", "status": status, "error": "disk full"});
                Reply::json(200, &json!({"ok": true, "type": "stop.status", "id": "bx_1", "stop": stop}))
            },
            busy: "pending",
            good: &["completed"],
            bad: &[("failing", "stop_failing", "disk full"), ("superseded", "stop_superseded", "resumed")],
            limit: Some(600),
            pause: STEADY,
        },
        Wait {
            wait: |client, limit| on!(*client => wait_for_deletion("op_1", limit)).map(drop),
            answer: |request, status| {
                if request.call == LOOK {
                    return if status == "gone" {
                        Reply::failure(404, "not_found")
                    } else {
                        info("archived")
                    };
                }
                let status = if status == "gone" { "processing" } else { status };
                let operation = json!({"id": "op_1", "kind": "sandbox", "targetId": "bx_1", "reason": "explicit",
                    "status": status, "attemptCount": 0, "requestedAt": "2026-01-01T00:00:00Z"});
                Reply::json(200, &json!({"ok": true, "type": "deletion.operation", "operation": operation}))
            },
            busy: "processing",
            good: &["completed", "gone"],
            bad: &[],
            limit: Some(600),
            pause: STEADY,
        },
        Wait {
            wait: |client, limit| {
                let run = of!(client.sandbox() => prompt_run("p1"));
                match limit {
                    Some(limit) => on!(run => wait_for(limit)).map(drop),
                    None => on!(run => wait()).map(drop),
                }
            },
            answer: |_, status| prompt(status),
            busy: "running",
            good: &["finished", "failed", "interrupted"],
            bad: &[],
            limit: None,
            pause: None,
        },
        Wait {
            wait: |client, limit| {
                let options = limit.into_iter().fold(Desktop::new(), Desktop::wait_limit);
                on!(client.sandbox() => desktop(options)).map(drop)
            },
            answer: |_, state| match state {
                "provisioning" => Reply::json(
                    200,
                    &json!({"ok": true, "type": "desktop.provisioning", "provisioning": true}),
                ),
                "none" => {
                    Reply::json(200, &json!({"ok": true, "type": "desktop.url", "message": "no screen"}))
                }
                _ => Reply::json(
                    200,
                    &json!({"ok": true, "type": "desktop.url", "desktopUrl": "https://d.example/"}),
                ),
            },
            busy: "provisioning",
            good: &["there"],
            bad: &[("none", "desktop_failed", "no screen")],
            limit: Some(300),
            pause: STEADY,
        },
        Wait {
            wait: |client, limit| on!(of!(*client => named_snapshots()) => wait("base", limit)).map(drop),
            answer: |_, status| {
                let snapshot = json!({"name": "base", "status": status, "error": "disk full",
                    "sourceSandboxId": "bx_1", "createdAt": "2026-01-01T00:00:00Z"});
                Reply::json(200, &json!({"ok": true, "type": "snapshot.named.info", "snapshot": snapshot}))
            },
            busy: "saving",
            good: &["ready"],
            bad: &[("failed", "snapshot_failed", "disk full")],
            limit: Some(1800),
            pause: STEADY,
        },
    ]
}

impl Wait {
    /// A service where the state is `then` from `moment` on.
    fn service(&self, clock: &Leaping, then: &'static str, moment: Duration) -> Service {
        let (answer, busy, clock) = (self.answer, self.busy, clock.clone());
        Service::start(move |request, _| answer(request, if clock.elapsed() < moment { busy } else { then }))
    }
}

/// What a sandbox says of itself while the wait's own state is `busy`.
fn last_seen(wait: &Wait) -> &'static str {
    // The setup is a part of the sandbox, whose state is what is told.
    if wait.good.contains(&"none") { "ready" } else { wait.busy }
}

#[test]
fn each_ends_well_soon_after_what_it_waits_for() {
    on_both(|client| {
        for wait in waits() {
            for good in wait.good {
                let clock = Leaping::new();
                let moment = Duration::from_millis(5200);
                let service = wait.service(&clock, good, moment);
                (wait.wait)(&client(&service, &clock), None).unwrap();
                let took = clock.elapsed();
                assert!((moment..=moment + seconds(2)).contains(&took), "{good}: {took:?}");
                if let Some(pause) = wait.pause {
                    assert_eq!(clock.pauses(), [pause; 3], "{good}");
                }
            }
        }
    });
}

#[test]
fn each_ends_at_once_when_it_cannot_happen_any_more_and_says_why() {
    on_both(|client| {
        for wait in waits() {
            for (bad, code, reason) in wait.bad {
                let clock = Leaping::new();
                let service = wait.service(&clock, bad, seconds(5));
                let error = (wait.wait)(&client(&service, &clock), None).unwrap_err();
                assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, *code), "{bad}");
                assert!(error.message().contains(reason), "{bad}: {error}");
                assert_eq!(error.sandbox_id(), Some("bx_1"), "{bad}");
                assert_eq!(clock.elapsed(), seconds(6), "{bad}");
            }
            let clock = Leaping::new();
            let service = Service::start(|_, _| Reply::failure(404, "not_found"));
            let error = (wait.wait)(&client(&service, &clock), None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert_eq!((clock.elapsed(), service.count()), (seconds(0), 1));
        }
    });
}

#[test]
fn each_ends_at_its_limit_with_what_was_last_seen_and_asks_nothing_after_it() {
    on_both(|client| {
        for wait in waits() {
            let state = last_seen(&wait);
            for limit in [Some(seconds(16)), None] {
                let Some(expected) = limit.or(wait.limit.map(seconds)) else { continue };
                let clock = Leaping::new();
                let service = wait.service(&clock, wait.busy, seconds(0));
                let client = client(&service, &clock);
                let error = (wait.wait)(&client, limit).unwrap_err();
                assert_expired(&error, &clock, seconds(0), expected, state);
                // One look, or two where the sandbox is looked at too, before each pause, and none after the last.
                let looks = service.requests().iter().filter(|request| request.call != LOOK).count();
                let looks = if looks == 0 { service.count() } else { looks };
                assert_eq!(looks, clock.pauses().len());
                let asked = service.count();
                drop(client);
                assert_eq!(service.count(), asked);
            }
        }
    });
}

#[test]
fn a_total_limit_is_the_limit_of_each() {
    on_both(|client| {
        for wait in waits() {
            let clock = Leaping::new();
            let service = wait.service(&clock, wait.busy, seconds(0));
            let client =
                client(&service, &clock).with(CallOptions::new().total(seconds(40)).attempt(seconds(13)));
            let error = (wait.wait)(&client, None).unwrap_err();
            assert_expired(&error, &clock, seconds(0), seconds(40), last_seen(&wait));
        }
    });
}
