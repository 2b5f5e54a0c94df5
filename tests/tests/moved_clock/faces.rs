//! The operations whose answer is a stream, through `Api`, in both twins: what comes, how it ends and how it breaks.

use std::io::{self, BufRead as _, Read as _};

use bytes::Bytes;
use sandboxer::{
    ByteBody, CallOptions, Delivery, ErrorKind, Operation, Result,
    models::{
        ArtifactParams, AttachCommandParams, CommandRequest, EventsStreamParams, GetSnapshotFileParams,
    },
};
use sandboxer_blocking::ByteIter;

use super::{
    leaping::Leaping,
    service::{Reply, Service},
    twins::{Client, Twin, on_both},
    waits::seconds,
};

type Body = Twin<ByteBody, ByteIter>;

macro_rules! open {
    ($client:expr => $($call:tt)+) => {
        match $client {
            Twin::Async(runtime, client) => {
                runtime.block_on(client.api().$($call)+).map(|body| Twin::Async(runtime.clone(), body))
            }
            Twin::Blocking(client) => client.api().$($call)+.map(Twin::Blocking),
        }
    };
}

impl Body {
    fn next(&mut self) -> Option<Result<Bytes>> {
        match self {
            Twin::Async(runtime, body) => runtime.block_on(body.next()),
            Twin::Blocking(body) => body.next(),
        }
    }

    fn collect(self, limit: usize) -> Result<Bytes> {
        match self {
            Twin::Async(runtime, body) => runtime.block_on(body.collect(limit)),
            Twin::Blocking(body) => body.read_all(limit),
        }
    }

    fn received(&self) -> u64 {
        match self {
            Twin::Async(_, body) => body.received(),
            Twin::Blocking(body) => body.received(),
        }
    }

    fn status(&self) -> u16 {
        match self {
            Twin::Async(_, body) => body.status().as_u16(),
            Twin::Blocking(body) => body.status().as_u16(),
        }
    }

    fn header(&self, name: &str) -> Option<String> {
        let headers = match self {
            Twin::Async(_, body) => body.headers(),
            Twin::Blocking(body) => body.headers(),
        };
        headers.get(name).map(|value| value.to_str().unwrap().to_owned())
    }

    /// The pieces up to so many bytes.
    fn take(&mut self, length: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        while taken.len() < length {
            taken.extend_from_slice(&self.next().expect("more comes").unwrap());
        }
        taken
    }
}

const SNAPSHOT: &str = "0b9c8f3e-6a53-4d53-8f0c-0a0b7a0c5d1e";

/// An operation with a stream for an answer.
struct Face {
    operation: Operation,
    open: fn(&Client) -> Result<Body>,
    call: &'static str,
    accept: &'static str,
    params: &'static [(&'static str, &'static str)],
    /// The longest silence.
    idle: u64,
}

const FACES: [Face; 5] = [
    Face {
        operation: Operation::CommandStream,
        open: |client| open!(client => command_stream("bx_1", CommandRequest::new("true"))),
        call: "POST /sandboxes/bx_1/commands",
        accept: "application/x-ndjson",
        params: &[],
        idle: 120,
    },
    Face {
        operation: Operation::AttachCommand,
        open: |client| {
            let request = AttachCommandParams::new().stdout_offset(5).stderr_offset(2);
            open!(client => attach_command("bx_1", 7, request))
        },
        call: "GET /sandboxes/bx_1/commands/7/stream",
        accept: "application/x-ndjson",
        params: &[("stdoutOffset", "5"), ("stderrOffset", "2")],
        idle: 45,
    },
    Face {
        operation: Operation::EventsStream,
        open: |client| {
            let mut request = EventsStreamParams::new();
            (request.cursor, request.kind) = (Some("c1".to_owned()), Some("prompt".to_owned()));
            open!(client => events_stream("bx_1", request))
        },
        call: "GET /sandboxes/bx_1/events",
        accept: "text/event-stream",
        params: &[("cursor", "c1"), ("type", "prompt")],
        idle: 45,
    },
    Face {
        operation: Operation::Artifact,
        open: |client| open!(client => artifact("bx_1", ArtifactParams::new("/tmp/x y"))),
        call: "GET /sandboxes/bx_1/artifacts",
        accept: "*/*",
        params: &[("path", "/tmp/x y")],
        idle: 60,
    },
    Face {
        operation: Operation::GetSnapshotFile,
        open: |client| open!(client => get_snapshot_file(SNAPSHOT, GetSnapshotFileParams::new().path("x y"))),
        call: "GET /snapshots/0b9c8f3e-6a53-4d53-8f0c-0a0b7a0c5d1e/files",
        accept: "*/*",
        params: &[("path", "x y")],
        idle: 60,
    },
];

#[test]
fn each_brings_its_bytes_as_they_are_and_asks_once() {
    on_both(|client| {
        for face in FACES {
            let service = Service::start(|_, _| Reply::bytes(200, b"\xFF\0bytes\n".as_slice()));
            let clock = Leaping::new();
            let body = (face.open)(&client(&service, &clock)).unwrap();
            assert_eq!((body.status(), body.header("content-length").as_deref()), (200, Some("8")));
            assert_eq!(&body.collect(8).unwrap()[..], b"\xFF\0bytes\n");
            let body = (face.open)(&client(&service, &clock)).unwrap();
            assert_eq!(body.collect(7).unwrap_err().kind(), ErrorKind::TooLarge);
            let requests = service.requests();
            assert_eq!((requests.len(), requests[0].call.as_str()), (2, face.call));
            assert!(requests[0].header("accept").unwrap().contains(face.accept), "{:?}", requests[0]);
            for (name, value) in face.params {
                assert_eq!(requests[0].param(name), Some(*value), "{}", face.call);
            }
        }
    });
}

#[test]
fn each_is_pulled_piece_by_piece_and_a_cut_is_no_end() {
    on_both(|client| {
        for face in FACES {
            let service = Service::start(|_, before| match before {
                0 => Reply::bytes(200, "whole").ended(),
                1 => Reply::bytes(200, "half").cut(),
                _ => Reply::failure(409, "sandbox_not_ready"),
            });
            let clock = Leaping::new();
            let client = client(&service, &clock);
            let mut body = (face.open)(&client).unwrap();
            assert_eq!(body.take(5), b"whole");
            assert!(body.next().is_none());

            let mut body = (face.open)(&client).unwrap();
            assert_eq!(body.take(4), b"half");
            let error = body.next().unwrap().unwrap_err();
            assert_eq!((error.kind(), error.delivery()), (ErrorKind::StreamCut, Delivery::Unknown));
            assert_eq!(error.operation(), Some(face.operation));
            assert!(body.next().is_none());
            assert_eq!((body.received(), service.count()), (4, 2), "it is not opened again");

            let error = (face.open)(&client).err().unwrap();
            assert_eq!((error.code(), error.operation()), ("sandbox_not_ready", Some(face.operation)));
        }
    });
}

#[test]
fn silence_beyond_the_idle_limit_ends_each() {
    on_both(|client| {
        for face in FACES {
            let service = Service::start(|_, _| Reply::bytes(200, "first").held());
            let clock = Leaping::new();
            let mut body = (face.open)(&client(&service, &clock)).unwrap();
            assert_eq!(body.take(5), b"first");
            clock.expire(seconds(face.idle));
            let error = body.next().unwrap().unwrap_err();
            assert_eq!(
                (error.kind(), error.delivery()),
                (ErrorKind::Timeout, Delivery::Unknown),
                "{}",
                face.call
            );
            assert!(body.next().is_none());
            let limits = CallOptions::new().idle(seconds(13));
            let mut body = (face.open)(&client(&service, &clock).with(limits)).unwrap();
            assert_eq!(body.take(5), b"first");
            clock.expire(seconds(13));
            assert_eq!(body.next().unwrap().unwrap_err().kind(), ErrorKind::Timeout);
        }
    });
}

const CONTENT: &[u8] = b"0123456789\xFF\xFEabcdef";

/// Answers with the range that is asked for, as the service does, and breaks off after seven bytes of it.
fn ranged(request: &super::service::Request) -> Reply {
    let Some(range) = request.header("range").map(str::to_owned) else {
        return Reply::bytes(200, &CONTENT[..7]).cut();
    };
    let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    let first: usize = first.parse().unwrap();
    let end = last.parse::<usize>().map_or(CONTENT.len(), |last| last + 1);
    let content_range = format!("bytes {first}-{}/{}", end - 1, CONTENT.len());
    let part = &CONTENT[first..end];
    let reply = match part.len() {
        0..=7 => Reply::bytes(206, part),
        _ => Reply::bytes(206, &part[..7]).cut(),
    };
    reply.header("content-range", &content_range)
}

#[test]
fn a_download_that_broke_goes_on_with_a_range() {
    on_both(|client| {
        let snapshot: fn(&Client, Option<String>) -> Result<Body> = |client, range| {
            let mut request = GetSnapshotFileParams::new().path("f");
            request.range = range;
            open!(client => get_snapshot_file(SNAPSHOT, request))
        };
        let artifact: fn(&Client, Option<String>) -> Result<Body> = |client, range| {
            let options =
                range.into_iter().fold(CallOptions::new(), |options, range| options.header("Range", range));
            let view = client.with(options);
            open!(&view => artifact("bx_1", ArtifactParams::new("f")))
        };
        for open in [snapshot, artifact] {
            let service = Service::start(|request, _| ranged(request));
            let clock = Leaping::new();
            let client = client(&service, &clock);
            let (mut whole, mut range) = (Vec::new(), None::<String>);
            while whole.len() < CONTENT.len() {
                let mut body = open(&client, range.clone()).unwrap();
                assert_eq!(body.status(), if range.is_none() { 200 } else { 206 });
                let expected = range.is_some().then(|| format!("bytes {}-17/18", whole.len()));
                assert_eq!(body.header("content-range"), expected);
                let before = whole.len() as u64;
                while let Some(Ok(piece)) = body.next() {
                    whole.extend_from_slice(&piece);
                }
                assert_eq!(body.received(), whole.len() as u64 - before);
                range = Some(format!("bytes={}-", whole.len()));
            }
            assert_eq!(whole, CONTENT);
            assert_eq!(service.count(), 3);
            let part = open(&client, Some("bytes=3-6".to_owned())).unwrap();
            assert_eq!((part.status(), &part.collect(10).unwrap()[..]), (206, &CONTENT[3..7]));
        }
    });
}

#[test]
fn the_blocking_bodies_are_readers_whose_errors_are_typed() {
    on_both(|client| {
        for face in FACES {
            let service = Service::start(|_, before| match before {
                0 => Reply::bytes(200, "one\ntwo\n").ended(),
                1 => Reply::bytes(200, "one\ntw").cut(),
                _ => Reply::bytes(200, "one\ntw").held(),
            });
            let clock = Leaping::new();
            let client = client(&service, &clock);
            let mut failures = Vec::new();
            for number in 0..3 {
                let Twin::Blocking(mut body) = (face.open)(&client).unwrap() else { return };
                let (mut line, mut rest) = (String::new(), String::new());
                assert_eq!(body.read_line(&mut line).unwrap(), 4);
                if number == 2 {
                    clock.expire(seconds(face.idle));
                }
                match body.read_to_string(&mut rest) {
                    Ok(_) => assert_eq!((&*line, &*rest), ("one\n", "two\n")),
                    Err(error) => {
                        let inner =
                            error.get_ref().and_then(|error| error.downcast_ref::<sandboxer::Error>());
                        failures.push((error.kind(), inner.unwrap().kind()));
                    }
                }
            }
            let cut = (io::ErrorKind::UnexpectedEof, ErrorKind::StreamCut);
            assert_eq!(failures, [cut, (io::ErrorKind::TimedOut, ErrorKind::Timeout)]);
        }
    });
}
