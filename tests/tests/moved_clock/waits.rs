//! Waits for a sandbox's state, and the verbs that end with one.

use std::time::Duration;

use sandboxer::{
    CallOptions, Create, Error, ErrorKind, Fork, Result, Resume, Stop, clock::Clock as _,
    models::SandboxState,
};
use serde_json::{Value, json};

use super::{
    leaping::Leaping,
    service::{Reply, Service},
    twins::{Handle, done, of, on, on_both},
};

pub(crate) const LOOK: &str = "GET /sandboxes/bx_1";

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn with_state(kind: &str, status: u16, state: &str, more: &Value) -> Reply {
    let mut sandbox = json!({"id": "bx_1", "state": state});
    for (name, value) in more.as_object().into_iter().flatten() {
        sandbox[name] = value.clone();
    }
    Reply::json(status, &json!({"ok": true, "type": kind, "id": "bx_1", "status": state, "sandbox": sandbox}))
}

/// The sandbox in this state, with more fields.
pub(crate) fn info_with(state: &str, more: &Value) -> Reply {
    with_state("sandbox.info", 200, state, more)
}

/// The sandbox in this state.
pub(crate) fn info(state: &str) -> Reply {
    info_with(state, &Value::Null)
}

/// A service whose sandbox is in the first state, and in the second from a moment on; it takes every verb.
fn turning(clock: &Leaping, first: &'static str, then: &'static str, moment: Duration) -> Service {
    let clock = clock.clone();
    Service::start(move |request, _| match request.call.as_str() {
        "POST /sandboxes" => with_state("sandbox.created", 202, "provisioning", &Value::Null),
        "POST /sandboxes/bx_0/fork" => with_state("sandbox.forking", 202, "cloning", &Value::Null),
        "POST /sandboxes/bx_1/resume" => with_state("sandbox.resuming", 202, "provisioning", &Value::Null),
        "POST /sandboxes/bx_1/stop" => with_state("sandbox.stopping", 202, "archiving", &Value::Null),
        LOOK => info(if clock.elapsed() < moment { first } else { then }),
        other => panic!("{other}"),
    })
}

/// The waits of this file, by name.
type Wait = fn(&Handle, Option<Duration>) -> Result<()>;

/// A verb that waits by itself.
type Verb = fn(&Handle) -> Result<()>;

/// The sandbox's state and the stop's status, and the code and reason of the failure they are.
type StopCase = (&'static str, &'static str, Option<(&'static str, &'static str)>);

fn until_ready(handle: &Handle, _: Option<Duration>) -> Result<()> {
    on!(*handle => wait_until_ready())
}

fn until_idle(handle: &Handle, limit: Option<Duration>) -> Result<()> {
    on!(*handle => wait_until_idle(limit))
}

fn for_archived(handle: &Handle, limit: Option<Duration>) -> Result<()> {
    on!(*handle => wait_for_state(&[SandboxState::Archived], limit))
}

fn for_running(handle: &Handle, limit: Option<Duration>) -> Result<()> {
    on!(*handle => wait_for_state(&[SandboxState::Running], limit))
}

/// What is asserted of every wait that ran out: how long, with what state, and that nothing was asked at the limit.
pub(crate) fn assert_expired(error: &Error, clock: &Leaping, begun: Duration, limit: Duration, state: &str) {
    assert_eq!((error.kind(), error.code()), (ErrorKind::WaitTimeout, "wait_timeout"), "{error}");
    assert_eq!(clock.elapsed() - begun, limit, "{error}");
    let message = error.message();
    assert!(message.contains(&format!("within {limit:?}")), "{message}");
    assert!(message.contains(&format!("`{state}` when last read")), "{message}");
    assert_eq!(error.details().unwrap()["state"], state);
}

#[test]
fn a_state_that_comes_after_1200_ms_is_seen_by_1500_ms() {
    on_both(|client| {
        let clock = Leaping::new();
        let moment = Duration::from_millis(1200);
        let waits: [(Wait, &'static str, &'static str); 4] = [
            (until_ready, "provisioning", "ready"),
            (until_idle, "running", "idle"),
            (for_running, "ready", "running"),
            (for_archived, "archiving", "archived"),
        ];
        for (wait, first, then) in waits {
            let clock = Leaping::new();
            let service = turning(&clock, first, then, moment);
            let handle = client(&service, &clock).sandbox();
            wait(&handle, None).unwrap();
            assert!(
                (moment..=Duration::from_millis(1500)).contains(&clock.elapsed()),
                "{:?}",
                clock.elapsed()
            );
            assert_eq!(handle.state().as_deref(), Some(then));
            assert!(service.count() <= 8, "{} looks", service.count());
        }
        // The verbs that wait by themselves do no worse.
        let within = |begun: Duration| {
            let took = clock.elapsed() - begun;
            assert!((moment..=Duration::from_millis(1500)).contains(&took), "{took:?}");
        };
        let service = turning(&clock, "provisioning", "ready", moment);
        done!(client(&service, &clock) => create(Create::new())).unwrap();
        within(Duration::ZERO);
        let verbs: [(Verb, &'static str, &'static str); 2] = [
            (|handle| on!(*handle => resume(Resume::new())), "archived", "ready"),
            (|handle| on!(*handle => stop()), "archiving", "archived"),
        ];
        for (verb, first, then) in verbs {
            let begun = clock.elapsed();
            let service = turning(&clock, first, then, begun + moment);
            verb(&client(&service, &clock).sandbox()).unwrap();
            within(begun);
        }
    });
}

#[test]
fn looks_grow_to_2_s_apart_and_none_is_made_at_the_limit() {
    on_both(|client| {
        let waits: [(Wait, &'static str, u64, bool); 4] = [
            // It takes no limit but the view's.
            (until_ready, "provisioning", 300, false),
            (until_idle, "running", 600, true),
            (for_running, "ready", 300, true),
            (for_archived, "archiving", 300, true),
        ];
        for (wait, state, default, takes_limit) in waits {
            for limit in [None, Some(seconds(16))] {
                if limit.is_some() && !takes_limit {
                    continue;
                }
                let clock = Leaping::new();
                let service = turning(&clock, state, state, seconds(0));
                let handle = client(&service, &clock).sandbox();
                let error = wait(&handle, limit).unwrap_err();
                assert_expired(&error, &clock, seconds(0), limit.unwrap_or(seconds(default)), state);
                assert_eq!(error.sandbox_id(), Some("bx_1"));
                let pauses = clock.pauses();
                assert_eq!(pauses[..2], [Duration::from_millis(10), Duration::from_millis(100)]);
                assert!(pauses.iter().all(|pause| *pause <= seconds(2)));
                // One look before each pause, and none after the last, which the limit cut short.
                assert_eq!(service.count(), pauses.len());
                let begun: Duration = pauses[..pauses.len() - 1].iter().sum();
                assert!(begun < clock.elapsed());
            }
        }
    });
}

#[test]
fn a_total_limit_is_the_limit_of_a_wait_and_covers_what_came_before_it() {
    on_both(|client| {
        let options = CallOptions::new().total(seconds(40));
        for wait in [until_ready as Wait, until_idle, for_running] {
            let clock = Leaping::new();
            let service = turning(&clock, "provisioning", "provisioning", seconds(0));
            let handle = client(&service, &clock).with(options.clone()).sandbox();
            let error = wait(&handle, None).unwrap_err();
            assert_expired(&error, &clock, seconds(0), seconds(40), "provisioning");
        }
        // Ten seconds go by before the create is answered.
        let clock = Leaping::new();
        let service = Service::start({
            let clock = clock.clone();
            move |request, _| match request.call.as_str() {
                "POST /sandboxes" => {
                    clock.advance(seconds(10));
                    with_state("sandbox.created", 202, "provisioning", &Value::Null)
                }
                _ => info("provisioning"),
            }
        });
        let error = done!(client(&service, &clock).with(options) => create(Create::new())).unwrap_err();
        assert_eq!((error.kind(), error.sandbox_id()), (ErrorKind::WaitTimeout, Some("bx_1")));
        assert_eq!(clock.elapsed(), seconds(40));
    });
}

#[test]
fn an_answer_that_does_not_come_ends_with_the_limit() {
    on_both(|client| {
        let clock = Leaping::new();
        let service = Service::start(|_, before| match before {
            0 => info("provisioning"),
            _ => Reply::json(200, &Value::Null).held(),
        });
        let handle = client(&service, &clock).sandbox();
        // After the first pause of 10 ms.
        clock.expire(Duration::from_millis(49_990));
        let error = on!(handle => wait_for_state(&[SandboxState::Ready], Some(seconds(50)))).unwrap_err();
        assert_expired(&error, &clock, seconds(0), seconds(50), "provisioning");
    });
}

#[test]
fn states_without_a_way_on_end_a_wait_at_once_with_their_reason() {
    on_both(|client| {
        for wait in [until_ready as Wait, until_idle, for_running] {
            for (state, code) in [
                ("error", "sandbox_error"),
                ("cancelled", "sandbox_cancelled"),
                ("archived", "sandbox_archived"),
            ] {
                let clock = Leaping::new();
                let service = Service::start({
                    let clock = clock.clone();
                    move |_, _| match clock.elapsed() < seconds(3) {
                        true => info("provisioning"),
                        false => info_with(state, &json!({"error": "no machine"})),
                    }
                });
                let handle = client(&service, &clock).sandbox();
                let error = wait(&handle, None).unwrap_err();
                assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, code));
                assert!(error.message().contains("no machine"), "{error}");
                assert_eq!(error.details().unwrap()["state"], state);
                assert!(clock.elapsed() <= seconds(5), "{:?}", clock.elapsed());
            }
        }
        // What is waited for is no failure.
        let clock = Leaping::new();
        let service = turning(&clock, "ready", "archived", seconds(3));
        for_archived(&client(&service, &clock).sandbox(), None).unwrap();
    });
}

#[test]
fn cancelled_is_told_once_by_the_service_and_remembered_here() {
    on_both(|client| {
        let clock = Leaping::new();
        let service = Service::start(|_, before| match before {
            0..3 => info("provisioning"),
            3 => info("cancelled"),
            _ => Reply::failure(404, "not_found"),
        });
        let handle = client(&service, &clock).sandbox();
        for wait in [
            until_ready as Wait,
            until_idle,
            for_running,
            |handle, limit| on!(*handle => wait_for_setup(limit)),
        ] {
            let error = wait(&handle, None).unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, "sandbox_cancelled"));
            assert_eq!(error.sandbox_id(), Some("bx_1"));
        }
        // Where nobody saw it, a create says that the sandbox is gone, and not merely that it was not found.
        let service = Service::start(|request, before| match (request.call.as_str(), before) {
            ("POST /sandboxes", _) => with_state("sandbox.created", 202, "provisioning", &Value::Null),
            (_, 0) => info("provisioning"),
            // The one answer that tells it is lost on its way.
            (_, 1) => info("cancelled").cut(),
            _ => Reply::failure(404, "not_found"),
        });
        let error = done!(client(&service, &clock) => create(Create::new())).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, "sandbox_gone"));
    });
}

#[test]
fn archived_is_old_news_for_15_s_after_a_resume_and_for_no_time_after_a_fork() {
    on_both(|client| {
        let resumed = |moment: u64| {
            let clock = Leaping::new();
            let service = turning(&clock, "archived", "ready", seconds(moment));
            let ended = on!(client(&service, &clock).sandbox() => resume(Resume::new()));
            (ended, clock.elapsed())
        };
        let (ended, took) = resumed(14);
        ended.unwrap();
        assert!((seconds(14)..=seconds(16)).contains(&took), "{took:?}");
        let (ended, took) = resumed(100);
        assert_eq!(ended.unwrap_err().code(), "sandbox_archived");
        assert!((seconds(15)..=seconds(17)).contains(&took), "{took:?}");

        let clock = Leaping::new();
        let service = turning(&clock, "archived", "ready", seconds(14));
        let source = of!(client(&service, &clock) => sandbox("bx_0"));
        let error = done!(source => fork(Fork::new())).unwrap_err();
        assert_eq!(error.code(), "sandbox_archived");
        assert_eq!(clock.elapsed(), seconds(0));
    });
}

/// A service whose stop is in the first status, and in the second from a moment on, as the sandbox tells of it.
fn stopping(clock: &Leaping, then: (&'static str, &'static str), reason: Value) -> Service {
    let clock = clock.clone();
    let stop = move |status: &str, reason: &Value| json!({"stop": {"id": "st_1", "status": status, "error": reason}});
    Service::start(move |request, _| match request.call.as_str() {
        "POST /sandboxes/bx_1/stop" => {
            with_state("sandbox.stopping", 202, "archiving", &stop("pending", &Value::Null))
        }
        LOOK if clock.elapsed() < seconds(5) => info_with("archiving", &stop("pending", &Value::Null)),
        _ => info_with(then.0, &stop(then.1, &reason)),
    })
}

#[test]
fn a_stop_ends_with_what_becomes_of_it() {
    on_both(|client| {
        let cases: [StopCase; 5] = [
            ("archived", "completed", None),
            ("archiving", "failing", Some(("stop_failing", "disk full"))),
            ("ready", "superseded", Some(("stop_superseded", "resumed"))),
            ("error", "pending", Some(("sandbox_error", "error"))),
            ("cancelled", "pending", Some(("sandbox_cancelled", "cancelled"))),
        ];
        for (state, status, failure) in cases {
            let clock = Leaping::new();
            let service = stopping(&clock, (state, status), json!("disk full"));
            let stopped = on!(client(&service, &clock).sandbox() => stop());
            match failure {
                None => stopped.unwrap(),
                Some((code, reason)) => {
                    let error = stopped.unwrap_err();
                    assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, code));
                    assert!(error.message().contains(reason), "{error}");
                    assert_eq!(error.details().unwrap()["state"], state);
                }
            }
            assert!((seconds(5)..=seconds(7)).contains(&clock.elapsed()), "{:?}", clock.elapsed());
        }
        for (limit, expected) in [(None, 600), (Some(seconds(20)), 20)] {
            let clock = Leaping::new();
            let service = stopping(&clock, ("archiving", "pending"), Value::Null);
            let options = limit.into_iter().fold(Stop::new(), Stop::wait_limit);
            let error = on!(client(&service, &clock).sandbox() => stop_with(options)).unwrap_err();
            assert_expired(&error, &clock, seconds(0), seconds(expected), "archiving");
        }
    });
}
