//! A background command followed over connections that are cut.

use std::{
    sync::{Mutex, mpsc},
    thread,
    time::Duration,
};

use sandboxer::{
    ErrorKind, Offsets, Outcome,
    clock::Clock as _,
    stream::{Chunk, OutputStream},
};
use serde_json::json;

use super::{
    leaping::Leaping,
    service::{Reply, Request, Service},
    twins::{Attach, Client, of, on_both},
    waits::seconds,
};

const OUT: &str = "alpha é\nbeta €\ngamma 😀\nend\n";
const ERR: &str = "warn ü\nerror\n";

fn follow_from(client: &Client, from: Offsets) -> sandboxer::Result<Attach> {
    of!(client.sandbox() => command(7)).attach(from)
}

fn follow(client: &Client) -> Attach {
    follow_from(client, Offsets::default()).unwrap()
}

/// Where a connection is asked to begin.
fn offsets(request: &Request) -> Offsets {
    assert_eq!(request.call, "GET /sandboxes/bx_1/commands/7/stream");
    let offset = |name: &str| request.param(name).map_or(0, |offset| offset.parse().unwrap());
    Offsets::new(offset("stdoutOffset"), offset("stderrOffset"))
}

fn attached(from: Offsets) -> String {
    format!(
        "{}\n",
        json!({"type": "attached", "processId": 7, "stdoutOffset": from.stdout, "stderrOffset": from.stderr})
    )
}

fn output(stream: &str, data: &str, next: usize) -> String {
    format!("{}\n", json!({"type": stream, "data": data, "nextOffset": next}))
}

fn exit(status: &str) -> String {
    let (out, err) = (OUT.len(), ERR.len());
    format!(
        "{}\n",
        json!({"type": "exit", "status": status, "exitCode": 0, "stdoutOffset": out, "stderrOffset": err})
    )
}

/// The next character from the offsets on, or the end.
fn one_character(from: Offsets) -> String {
    for (stream, log, from) in [("stdout", OUT, from.stdout as usize), ("stderr", ERR, from.stderr as usize)]
    {
        if let Some(character) = log[from..].chars().next() {
            return output(stream, &character.to_string(), from + character.len_utf8());
        }
    }
    exit("exited")
}

const BEAT: &str = "{\"type\":\"heartbeat\"}\n";

fn assert_whole(output: &sandboxer::Output) {
    assert_eq!((&*output.stdout_text(), &*output.stderr_text()), (OUT, ERR));
    assert!(!output.truncated() && !output.lossy());
}

#[test]
fn a_cut_after_each_character_loses_and_repeats_none() {
    on_both(|client| {
        let service = Service::start(|request, _| {
            let from = offsets(request);
            Reply::frames(format!("{}{BEAT}{}{BEAT}{{\"type\":\"stdo", attached(from), one_character(from)))
        });
        let clock = Leaping::new();
        let output = follow(&client(&service, &clock)).wait().unwrap();
        assert_whole(&output);
        assert_eq!(output.outcome(), Outcome::Exited(0));
        let characters = OUT.chars().count() + ERR.chars().count();
        assert_eq!(service.count(), characters + 1);
        // Every connection brought output, so every pause is a first one.
        assert_eq!(clock.pauses().len(), characters);
        let first = Duration::from_millis(100)..=Duration::from_millis(200);
        assert!(clock.pauses().iter().all(|pause| first.contains(pause)), "{:?}", clock.pauses());
    });
}

#[test]
fn the_services_reconnect_is_followed_and_offsets_can_be_stored() {
    on_both(|client| {
        let service = Service::start(|request, before| {
            let from = offsets(request);
            match before {
                0 => {
                    let reconnect = json!({"type": "reconnect", "stdoutOffset": 6, "stderrOffset": 0});
                    // The connection itself stays open: the frame is what ends it.
                    let text = format!("{}{}{reconnect}\n", attached(from), output("stdout", "alpha ", 6));
                    Reply::frames(text).held()
                }
                _ => {
                    let (out, err) = (&OUT[from.stdout as usize..], &ERR[from.stderr as usize..]);
                    let out = output("stdout", out, OUT.len());
                    Reply::frames(format!(
                        "{}{out}{}{}",
                        attached(from),
                        output("stderr", err, ERR.len()),
                        exit("exited")
                    ))
                }
            }
        });
        let clock = Leaping::new();
        let mut attach = follow(&client(&service, &clock));
        assert_eq!(attach.next().unwrap().unwrap(), Chunk::Stdout("alpha ".into()));
        let stored = attach.offsets();
        assert_eq!(stored, Offsets::new(6, 0));
        assert_whole(&attach.wait().unwrap());
        let rest = follow_from(&client(&service, &clock), stored).unwrap().wait().unwrap();
        assert_eq!((&*rest.stdout_text(), &*rest.stderr_text()), (&OUT[6..], ERR));
        let asked: Vec<Offsets> = service.requests().iter().map(offsets).collect();
        assert_eq!(asked, [Offsets::default(), stored, stored]);
    });
}

#[test]
fn heartbeats_are_life_and_silence_is_the_end_of_a_connection() {
    on_both(|client| {
        let (feed, fed) = mpsc::channel::<Vec<u8>>();
        let fed = Mutex::new(Some(fed));
        let service = Service::start(move |request, before| {
            let from = offsets(request);
            let text = format!("{}{}", attached(from), one_character(from));
            match before {
                0 => Reply::frames(text).held(),
                1 => Reply::frames(text).fed(fed.lock().unwrap().take().unwrap()),
                _ => Reply::frames(exit("exited")),
            }
        });
        let clock = Leaping::new();
        let mut attach = follow(&client(&service, &clock));
        assert_eq!(attach.next().unwrap().unwrap(), Chunk::Stdout("a".into()));
        clock.expire(seconds(45));
        assert_eq!(attach.next().unwrap().unwrap(), Chunk::Stdout("l".into()));
        let silence = clock.elapsed();
        assert!((seconds(45)..=Duration::from_millis(45_200)).contains(&silence), "{silence:?}");
        let beating = thread::spawn({
            let clock = clock.clone();
            move || {
                for _ in 0..20 {
                    clock.await_sleep(seconds(45));
                    clock.advance(seconds(15));
                    feed.send(BEAT.as_bytes().to_vec()).unwrap();
                }
                clock.await_sleep(seconds(45));
                drop(feed);
            }
        });
        // What did not come before the end is missing, and said to be.
        for (stream, from, to) in [(OutputStream::Stdout, 2, OUT.len()), (OutputStream::Stderr, 0, ERR.len())]
        {
            let Some(Ok(Chunk::Gap(gap))) = attach.next() else { panic!("a gap") };
            assert_eq!((gap.stream, gap.from, gap.to), (stream, from, to as u64));
        }
        assert!(attach.next().is_none());
        beating.join().unwrap();
        assert_eq!(service.count(), 3);
        let all = clock.elapsed() - silence;
        assert!((seconds(300)..=Duration::from_millis(300_200)).contains(&all), "{all:?}");
    });
}

#[test]
fn a_quiet_command_is_followed_as_long_as_it_beats_but_not_in_a_storm() {
    on_both(|client| {
        let service = Service::start(|request, before| {
            let from = offsets(request);
            let beats = format!("{}{BEAT}", attached(from));
            Reply::frames(if before < 40 { beats } else { exit("lost") })
        });
        let clock = Leaping::new();
        let mut attach = follow(&client(&service, &clock));
        while let Some(chunk) = attach.next() {
            assert!(matches!(chunk.unwrap(), Chunk::Gap(_)));
        }
        let output = attach.wait().unwrap();
        assert_eq!(output.outcome(), Outcome::Lost);
        assert_eq!(service.count(), 41);
        let pauses = clock.pauses();
        assert!(pauses[7..].iter().all(|pause| (seconds(5)..=seconds(10)).contains(pause)), "{pauses:?}");
    });
}

#[test]
fn connections_that_bring_nothing_are_backed_off_and_given_up() {
    on_both(|client| {
        for text in [String::new(), attached(Offsets::new(7, 2)), "{\"type\":\"reconnect\"}\n".to_owned()] {
            let service = Service::start(move |_, _| Reply::frames(text.clone()));
            let clock = Leaping::new();
            let attach = follow_from(&client(&service, &clock), Offsets::new(7, 2)).unwrap();
            let error = attach.wait().unwrap_err();
            assert_eq!(
                (error.kind(), error.resume_offsets()),
                (ErrorKind::StreamCut, Some(Offsets::new(7, 2)))
            );
            assert_eq!(error.sandbox_id(), Some("bx_1"));
            assert_eq!(service.requests().iter().map(offsets).collect::<Vec<_>>(), [Offsets::new(7, 2); 11]);
            let bounds = [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000].map(Duration::from_millis);
            let pauses = clock.pauses();
            assert_eq!(pauses.len(), bounds.len());
            for (pause, bound) in pauses.iter().zip(bounds) {
                assert!((bound..=2 * bound).contains(pause), "{pauses:?}");
            }
        }
    });
}

#[test]
fn a_command_that_is_lost_or_unknown_is_told_apart() {
    on_both(|client| {
        let service = Service::start(|request, before| match before {
            0 => Reply::frames(format!("{}{}", attached(offsets(request)), one_character(offsets(request)))),
            _ => Reply::frames(format!("{}\n", json!({"type": "exit", "status": "lost", "exitCode": null}))),
        });
        let clock = Leaping::new();
        let output = follow(&client(&service, &clock)).wait().unwrap();
        assert_eq!((output.outcome(), &*output.stdout_text()), (Outcome::Lost, "a"));

        let service = Service::start(|request, before| match before {
            0 => Reply::frames(format!("{}{}", attached(offsets(request)), one_character(offsets(request)))),
            _ => Reply::failure(409, "sandbox_not_ready"),
        });
        let error = follow(&client(&service, &clock)).wait().unwrap_err();
        assert_eq!((error.code(), error.resume_offsets()), ("sandbox_not_ready", Some(Offsets::new(1, 0))));
        assert_eq!(error.partial_output().unwrap().stdout, "a");

        let service = Service::start(|_, _| Reply::failure(404, "not_found"));
        let error = follow_from(&client(&service, &clock), Offsets::default()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    });
}
