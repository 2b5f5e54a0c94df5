//! Attach over scripted connections, on a clock that the test moves.

use std::{sync::Mutex, time::Duration};

use bytes::Bytes;
use serde_json::json;

use super::*;
use crate::{
    clock::{Clock, ManualClock},
    error::{Delivery, ErrorKind},
    stream::{Gap, OutputStream, frames::scripted},
};

const OUT: &str = "alpha é\nbeta €\ngamma 😀\nend\n";
const ERR: &str = "warn ü\nerror\n";

type Asked = Arc<Mutex<Vec<Offsets>>>;
type Connect = Box<dyn FnMut(usize, Offsets) -> Result<Vec<Result<Bytes>>> + Send>;

/// A follower whose nth connection, asked for at some offsets, brings what `connect` says.
async fn follow(clock: &ManualClock, from: Offsets, mut connect: Connect) -> (Result<Attach>, Asked) {
    let asked = Asked::default();
    let log = asked.clone();
    let opener: Opener = Box::new(move |offsets| {
        let number = log.lock().unwrap().len();
        log.lock().unwrap().push(offsets);
        let pieces = connect(number, offsets);
        Box::pin(async move { pieces.map(scripted) })
    });
    let ledger = Ledger::new("bx_1", Some("cmd_1".into()));
    (Attach::open(opener, from, ledger, Arc::default(), clock.shared()).await, asked)
}

/// Runs a future, moving the clock to the next sleep whenever it waits for one.
async fn run<T>(clock: &ManualClock, future: impl Future<Output = T>) -> T {
    tokio::pin!(future);
    loop {
        tokio::select! {
            biased;
            done = &mut future => return done,
            () = tokio::task::yield_now() => clock.advance(clock.next_due().unwrap_or_default()),
        }
    }
}

/// What a well-behaved service answers from these offsets: pieces of three characters, a heartbeat between them.
fn service(from: Offsets) -> String {
    let mut text =
        json!({"type": "attached", "stdoutOffset": from.stdout, "stderrOffset": from.stderr}).to_string();
    let mut frames = |stream: &str, log: &str, from: u64| {
        let mut next = from;
        let rest: Vec<char> = log[from as usize..].chars().collect();
        for piece in rest.chunks(3) {
            let data: String = piece.iter().collect();
            next += data.len() as u64;
            text += &format!("\n{}", json!({"type": stream, "data": data, "nextOffset": next}));
            text += "\n{\"type\":\"heartbeat\"}";
        }
    };
    frames("stdout", OUT, from.stdout);
    frames("stderr", ERR, from.stderr);
    let exit = json!({"type": "exit", "status": "exited", "exitCode": 0,
        "stdoutOffset": OUT.len(), "stderrOffset": ERR.len()});
    format!("{text}\n{exit}\n")
}

fn piece(text: &str) -> Result<Bytes> {
    Ok(Bytes::copy_from_slice(text.as_bytes()))
}

fn reset() -> Result<Bytes> {
    Err(Error::new(ErrorKind::Connection, "connection_error", "reset").with_delivery(Delivery::Unknown))
}

#[tokio::test]
async fn two_cuts_anywhere_lose_and_repeat_nothing() {
    let whole = service(Offsets::default()).len();
    for first in 0..whole {
        for second in [0, 97, 333, first] {
            let clock = ManualClock::new();
            let connect: Connect = Box::new(move |number, offsets| {
                let text = service(offsets);
                let cut = [first, second].get(number).map_or(text.len(), |cut| (*cut).min(text.len() - 2));
                let bytes = Ok(Bytes::copy_from_slice(&text.as_bytes()[..cut]));
                // A clean early end and a reset are the same to the follower.
                Ok(if number == 0 { vec![bytes] } else { vec![bytes, reset()] })
            });
            let (attach, asked) = follow(&clock, Offsets::default(), connect).await;
            let output = run(&clock, attach.unwrap().keep_output(1 << 20).wait()).await.unwrap();
            assert_eq!(output.stdout_text(), OUT, "cuts at {first} and {second}");
            assert_eq!(output.stderr_text(), ERR, "cuts at {first} and {second}");
            assert_eq!(output.outcome(), Outcome::Exited(0));
            assert!(!output.truncated() && !output.lossy());
            assert!(asked.lock().unwrap().len() <= 3);
        }
    }
}

#[tokio::test]
async fn a_service_that_starts_too_early_repeats_nothing_to_the_caller() {
    let clock = ManualClock::new();
    let connect: Connect = Box::new(|number, _| {
        // It ignores the offsets it is asked for and always begins at 0.
        let text = service(Offsets::default());
        Ok(vec![piece(&text[..if number == 0 { 300 } else { text.len() }])])
    });
    let (attach, _) = follow(&clock, Offsets::default(), connect).await;
    let output = run(&clock, attach.unwrap().keep_output(1 << 20).wait()).await.unwrap();
    assert_eq!((&*output.stdout_text(), &*output.stderr_text()), (OUT, ERR));
}

#[tokio::test]
async fn the_services_own_reconnect_is_followed() {
    let clock = ManualClock::new();
    let connect: Connect = Box::new(|number, offsets| {
        if number == 0 {
            let head = "{\"type\":\"attached\",\"stdoutOffset\":0,\"stderrOffset\":0}\n\
                {\"type\":\"stdout\",\"data\":\"alpha \",\"nextOffset\":6}\n\
                {\"type\":\"reconnect\",\"stdoutOffset\":6,\"stderrOffset\":0}\n";
            return Ok(vec![piece(head)]);
        }
        Ok(vec![piece(&service(offsets))])
    });
    let (attach, asked) = follow(&clock, Offsets::default(), connect).await;
    let output = run(&clock, attach.unwrap().wait()).await.unwrap();
    assert_eq!(output.stdout_text(), OUT);
    assert_eq!(*asked.lock().unwrap(), [Offsets::default(), Offsets::new(6, 0)]);
}

#[tokio::test]
async fn empty_answers_are_backed_off_and_given_up() {
    let clock = ManualClock::new();
    let (attach, asked) = follow(&clock, Offsets::new(7, 2), Box::new(|_, _| Ok(vec![]))).await;
    let error = run(&clock, attach.unwrap().wait()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StreamCut);
    assert_eq!(error.resume_offsets(), Some(Offsets::new(7, 2)));
    assert_eq!((error.sandbox_id(), error.command_id()), (Some("bx_1"), Some("cmd_1")));
    assert_eq!(asked.lock().unwrap().len(), 11);
    // 0.1 + 0.2 + ... + 5 + 5 s at the least, twice that at the most.
    assert!(
        (Duration::from_secs(20)..=Duration::from_secs(55)).contains(&clock.elapsed()),
        "{:?}",
        clock.elapsed()
    );
}

#[tokio::test]
async fn a_quiet_command_on_a_flapping_connection_is_followed_for_as_long_as_it_beats() {
    let clock = ManualClock::new();
    let connect: Connect = Box::new(|number, offsets| {
        Ok(match number {
            0..40 => vec![piece("{\"type\":\"attached\"}\n{\"type\":\"heartbeat\"}\n"), reset()],
            _ => vec![piece(&service(offsets))],
        })
    });
    let (attach, asked) = follow(&clock, Offsets::default(), connect).await;
    assert_eq!(run(&clock, attach.unwrap().wait()).await.unwrap().stdout_text(), OUT);
    assert_eq!(asked.lock().unwrap().len(), 41);
}

#[tokio::test]
async fn output_that_is_gone_is_reported() {
    let clock = ManualClock::new();
    let connect: Connect = Box::new(|_, _| {
        Ok(vec![piece(
            "{\"type\":\"attached\",\"stdoutOffset\":100,\"stderrOffset\":0}\n\
             {\"type\":\"stdout\",\"data\":\"tail\",\"nextOffset\":104}\n\
             {\"type\":\"exit\",\"status\":\"exited\",\"exitCode\":0,\"stdoutOffset\":104,\"stderrOffset\":0}\n",
        )])
    });
    let (attach, _) = follow(&clock, Offsets::new(10, 0), connect).await;
    let mut attach = attach.unwrap();
    let gap = Gap { stream: OutputStream::Stdout, from: 10, to: 100 };
    assert_eq!(attach.next().await.unwrap().unwrap(), Chunk::Gap(gap));
    assert_eq!(attach.offsets(), Offsets::new(100, 0));
    assert_eq!(attach.next().await.unwrap().unwrap(), Chunk::Stdout("tail".into()));
    assert_eq!(attach.offsets(), Offsets::new(104, 0));
    let output = attach.wait().await.unwrap();
    assert!(output.stdout_truncated() && !output.stderr_truncated());
}

#[tokio::test]
async fn offsets_of_another_log_are_an_error_and_no_success_without_output() {
    let log = |from: u64, end: u64| {
        let text = "x".repeat((end - from) as usize);
        [
            json!({"type": "attached", "stdoutOffset": from, "stderrOffset": 0}).to_string(),
            json!({"type": "stdout", "data": text, "nextOffset": end}).to_string(),
            json!({"type": "exit", "status": "exited", "exitCode": 0, "stdoutOffset": end, "stderrOffset": 0})
                .to_string(),
        ]
        .join("\n")
            + "\n"
    };
    // A log of ten bytes that grows to sixty.
    let clock = ManualClock::new();
    let connect: Connect = Box::new(move |_, _| Ok(vec![piece(&log(10, 60))]));
    let (attach, _) = follow(&clock, Offsets::new(100, 0), connect).await;
    let error = attach.unwrap().wait().await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "log_replaced"));
    assert_eq!(error.details(), Some(&json!({"stream": "stdout", "offset": 100})));
    assert_eq!((error.delivery(), error.command_id()), (Delivery::Answered, Some("cmd_1")));
    assert_eq!(error.resume_offsets(), Some(Offsets::default()), "the log that is there, from its beginning");

    // A new connection finds a shorter log than the one before.
    let connect: Connect = Box::new(move |number, _| match number {
        0 => Ok(vec![piece("{\"type\":\"stdout\",\"data\":\"0123456789\",\"nextOffset\":10}\n")]),
        _ => Ok(vec![piece(&log(0, 4))]),
    });
    let (attach, asked) = follow(&clock, Offsets::default(), connect).await;
    let error = run(&clock, attach.unwrap().wait()).await.unwrap_err();
    assert_eq!(error.code(), "log_replaced");
    assert_eq!(error.partial_output().unwrap().stdout, "0123456789");
    assert_eq!(*asked.lock().unwrap(), [Offsets::default(), Offsets::new(10, 0)]);

    // The same on the other stream alone.
    let connect: Connect = Box::new(move |_, _| Ok(vec![piece(&log(0, 4))]));
    let (attach, _) = follow(&clock, Offsets::new(4, 1), connect).await;
    let error = attach.unwrap().wait().await.unwrap_err();
    assert_eq!(error.details().unwrap()["stream"], "stderr");
    assert_eq!(
        error.resume_offsets(),
        Some(Offsets::default()),
        "the other log is not of these offsets either"
    );
}

#[tokio::test]
async fn a_lost_command_of_which_less_is_left_is_lost_and_its_output_truncated() {
    let exit = |stdout: u64, stderr: u64| {
        json!({"type": "exit", "status": "lost", "stdoutOffset": stdout, "stderrOffset": stderr}).to_string()
            + "\n"
    };
    let attached = |stdout: u64| {
        json!({"type": "attached", "stdoutOffset": stdout, "stderrOffset": 0}).to_string() + "\n"
    };
    // What is left of each stream, what was asked for, and which streams lack something.
    for (left, asked, truncated) in [
        ((300, 9), Offsets::new(500, 9), (true, false)),
        ((300, 8), Offsets::new(300, 9), (false, true)),
        ((300, 9), Offsets::new(300, 9), (false, false)),
    ] {
        let clock = ManualClock::new();
        let text = attached(left.0) + &exit(left.0, left.1);
        let connect: Connect = Box::new(move |_, _| Ok(vec![piece(&text)]));
        let (attach, _) = follow(&clock, asked, connect).await;
        let output = attach.unwrap().wait().await.unwrap();
        assert_eq!(output.outcome(), Outcome::Lost);
        assert_eq!((output.stdout_truncated(), output.stderr_truncated()), truncated, "{asked:?}");
    }
    // A follower that was further than the copy that is left.
    let clock = ManualClock::new();
    let rest = attached(4) + &exit(4, 0);
    let connect: Connect = Box::new(move |number, _| match number {
        0 => Ok(vec![piece("{\"type\":\"stdout\",\"data\":\"0123456789\",\"nextOffset\":10}\n")]),
        _ => Ok(vec![piece(&rest)]),
    });
    let (attach, _) = follow(&clock, Offsets::default(), connect).await;
    let output = run(&clock, attach.unwrap().wait()).await.unwrap();
    assert_eq!((output.outcome(), &*output.stdout_text()), (Outcome::Lost, "0123456789"));
    assert!(output.stdout_truncated() && !output.stderr_truncated());
}

#[tokio::test]
async fn replaced_bytes_make_it_lossy() {
    let clock = ManualClock::new();
    let connect: Connect = Box::new(|_, _| {
        Ok(vec![piece(
            "{\"type\":\"stdout\",\"data\":\"a\\ufffdb\",\"nextOffset\":3}\n\
             {\"type\":\"exit\",\"status\":\"exited\",\"exitCode\":0,\"stdoutOffset\":3,\"stderrOffset\":0}\n",
        )])
    });
    let (attach, _) = follow(&clock, Offsets::default(), connect).await;
    let output = attach.unwrap().wait().await.unwrap();
    assert!(output.lossy() && !output.truncated());
    assert_eq!(output.stdout_text(), "a\u{fffd}b");
}

#[tokio::test]
async fn a_refusal_for_good_ends_it_with_what_came() {
    let clock = ManualClock::new();
    let connect: Connect = Box::new(|number, _| match number {
        0 => Ok(vec![piece("{\"type\":\"stdout\",\"data\":\"abc\",\"nextOffset\":3}\n")]),
        1 => Err(Error::new(ErrorKind::Connection, "connection_error", "refused").with_retryable(true)),
        _ => Err(Error::new(ErrorKind::Conflict, "machine_not_running", "stopped").with_status(409)),
    });
    let (attach, asked) = follow(&clock, Offsets::default(), connect).await;
    let error = run(&clock, attach.unwrap().wait()).await.unwrap_err();
    assert_eq!((error.code(), error.status()), ("machine_not_running", Some(409)));
    assert_eq!(error.resume_offsets(), Some(Offsets::new(3, 0)));
    assert_eq!(error.partial_output().unwrap().stdout, "abc");
    assert_eq!(asked.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_hint_of_the_service_is_waited_for_in_full_or_not_at_all() {
    for (hint, waited) in [(90, true), (300, true), (301, false), (u64::MAX, false)] {
        let clock = ManualClock::new();
        let busy = move || {
            Error::new(ErrorKind::RateLimited, "rate_limited", "later")
                .with_retryable(true)
                .with_retry_after(Duration::from_secs(hint))
        };
        let connect: Connect = Box::new(move |number, offsets| match number {
            0 => Ok(vec![reset()]),
            1 => Err(busy()),
            _ => Ok(vec![piece(&service(offsets))]),
        });
        let (attach, _) = follow(&clock, Offsets::default(), connect).await;
        let ended = run(&clock, attach.unwrap().wait()).await;
        if waited {
            assert_eq!(ended.unwrap().stdout_text(), OUT);
            assert!(clock.elapsed() >= Duration::from_secs(hint), "{:?}", clock.elapsed());
        } else {
            let error = ended.unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::StreamCut, "stream_cut"));
            assert_eq!(error.retry_after(), Some(Duration::from_secs(hint)));
            assert_eq!(error.resume_offsets(), Some(Offsets::default()));
            assert!(clock.elapsed() < Duration::from_secs(1));
        }
    }
}

#[tokio::test]
async fn odd_frames_neither_panic_nor_repeat_nor_invent_an_end() {
    let attached = "{\"type\":\"attached\",\"stdoutOffset\":18446744073709551615,\"stderrOffset\":-1}\n";
    let odd = [
        "{\"type\":\"stdout\",\"data\":\"abc\",\"nextOffset\":0}\n",
        "{\"type\":\"stdout\",\"data\":\"abc\",\"nextOffset\":9223372036854775807}\n",
        "{\"type\":\"stdout\",\"data\":\"\",\"nextOffset\":18446744073709551615}\n",
        "{\"type\":\"stderr\",\"data\":\"abc\",\"nextOffset\":-5}\n",
        "{\"type\":\"stderr\",\"data\":\"abc\",\"nextOffset\":1e30}\n",
        "{\"type\":\"stdin\",\"data\":\"abc\",\"nextOffset\":7}\n",
        "{\"type\":\"heartbeat\",\"stdoutOffset\":99}\n",
        attached,
    ];
    for first in odd {
        for second in odd {
            for third in odd {
                let clock = ManualClock::new();
                let text = format!("{first}{second}{third}");
                let connect: Connect = Box::new(move |number, _| match number {
                    0 | 1 => Ok(vec![piece(&text)]),
                    _ => Ok(vec![piece(
                        "{\"type\":\"exit\",\"exitCode\":1}\n{\"type\":\"exit\",\"exitCode\":2}\n",
                    )]),
                });
                let (attach, _) = follow(&clock, Offsets::default(), connect).await;
                let mut attach = attach.unwrap();
                let mut came = 0;
                while let Some(chunk) = run(&clock, attach.next()).await {
                    came += chunk.unwrap().bytes().len();
                }
                assert_eq!(attach.outcome(), Some(Outcome::Exited(1)));
                assert!(came <= 18, "three frames of three bytes on each of two connections: {came}");
                assert!(attach.offsets().stdout >= attach.machine.wanted().stdout);
            }
        }
    }
}

#[tokio::test]
async fn endless_reconnects_are_given_up() {
    let clock = ManualClock::new();
    let connect: Connect =
        Box::new(|_, _| Ok(vec![piece("{\"type\":\"attached\"}\n{\"type\":\"reconnect\"}\n")]));
    let (attach, asked) = follow(&clock, Offsets::default(), connect).await;
    let error = run(&clock, attach.unwrap().wait()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StreamCut);
    assert_eq!(asked.lock().unwrap().len(), 11);
}

#[tokio::test]
async fn ends_are_told_apart() {
    let cases = [
        ("\"status\":\"exited\",\"exitCode\":7", false, Outcome::Exited(7)),
        ("\"status\":\"lost\"", false, Outcome::Lost),
        ("\"status\":\"exited\",\"signal\":\"SIGTERM\"", true, Outcome::Stopped),
        ("\"status\":\"exited\",\"exitCode\":0", true, Outcome::Exited(0)),
    ];
    for (end, killed, outcome) in cases {
        let clock = ManualClock::new();
        let connect: Connect =
            Box::new(move |_, _| Ok(vec![piece(&format!("{{\"type\":\"exit\",{end}}}\n"))]));
        let (attach, _) = follow(&clock, Offsets::default(), connect).await;
        let attach = attach.unwrap();
        attach.kills.store(usize::from(killed), Ordering::Release);
        assert_eq!(attach.wait().await.unwrap().outcome(), outcome, "{end}");
    }
}

#[tokio::test]
async fn an_error_frame_or_a_bad_line_ends_it() {
    for (text, code) in [
        (
            "{\"type\":\"error\",\"error\":\"agent_gone\",\"message\":\"m\",\"stdoutOffset\":0}\n",
            "agent_gone",
        ),
        ("{\"type\":\"stdout\"}\n", "malformed_frame"),
        ("{\"data\":\"x\"}\n", "malformed_frame"),
        ("nonsense\n", "malformed_frame"),
    ] {
        let clock = ManualClock::new();
        let (attach, _) =
            follow(&clock, Offsets::default(), Box::new(move |_, _| Ok(vec![piece(text)]))).await;
        let mut attach = attach.unwrap();
        assert_eq!(attach.next().await.unwrap().unwrap_err().code(), code);
        assert!(attach.next().await.is_none());
        assert_eq!(attach.wait().await.unwrap_err().code(), code);
    }
}

#[tokio::test]
async fn an_unknown_command_is_an_error_of_the_call() {
    let clock = ManualClock::new();
    let connect: Connect = Box::new(|_, _| Err(Error::new(ErrorKind::NotFound, "not_found", "none")));
    let (attach, _) = follow(&clock, Offsets::default(), connect).await;
    assert_eq!(attach.unwrap_err().code(), "not_found");
    assert_eq!(clock.elapsed(), Duration::ZERO);
}
