//! Output in every shape, cut anywhere.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use ::bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use super::*;
use crate::{
    error::{Error, ErrorKind, Offsets},
    sandboxer::ledger::Ledger,
};

const OUT: OutputStream = OutputStream::Stdout;
const ERR: OutputStream = OutputStream::Stderr;

/// A command that writes these pieces and ends well.
fn run_of(pieces: &[(OutputStream, &str)]) -> ExecStream {
    let mut body = frames(pieces);
    body += "{\"type\":\"exit\",\"exitCode\":0,\"success\":true}\n";
    ExecStream::new(Box::pin(stream::iter([Ok(Bytes::from(body))])), "bx_1", None)
}

fn frames(pieces: &[(OutputStream, &str)]) -> String {
    let frames = pieces
        .iter()
        .map(|(stream, data)| format!("{}\n", serde_json::json!({"type": stream.as_str(), "data": data})));
    frames.collect()
}

fn line(stream: OutputStream, text: &str, complete: bool) -> Line {
    Line { stream, text: text.to_owned(), complete }
}

async fn all_lines(mut lines: OutputLines) -> (Vec<Line>, Output) {
    let mut seen = Vec::new();
    while let Some(line) = lines.next().await {
        seen.push(line.unwrap());
    }
    assert_eq!(lines.outcome(), Some(Outcome::Exited(0)));
    (seen, lines.wait().await.unwrap())
}

#[tokio::test]
async fn lines_are_whole_wherever_they_are_cut() {
    let text = "one\r\n\nzwei €\nlast";
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    for cut in ends {
        let pieces = [(OUT, &text[..cut]), (ERR, "warn"), (OUT, &text[cut..]), (ERR, "ing\n")];
        let (seen, _) = all_lines(run_of(&pieces).lines()).await;
        let (out, err): (Vec<Line>, Vec<Line>) = seen.into_iter().partition(|line| line.stream == OUT);
        let expected = [
            line(OUT, "one", true),
            line(OUT, "", true),
            line(OUT, "zwei €", true),
            line(OUT, "last", false),
        ];
        assert_eq!(out, expected, "cut at {cut}");
        assert_eq!(err, [line(ERR, "warning", true)], "cut at {cut}");
    }
}

#[tokio::test]
async fn one_stream_alone_is_given_out_and_both_are_kept() {
    let pieces = [(OUT, "a\n"), (ERR, "b\n"), (OUT, "c\n")];
    let (seen, output) = all_lines(run_of(&pieces).keep_output(10).lines().only(ERR)).await;
    assert_eq!(seen, [line(ERR, "b", true)]);
    assert_eq!((&*output.stdout_text(), &*output.stderr_text()), ("a\nc\n", "b\n"));
    let bytes: Vec<Bytes> = run_of(&pieces).bytes().only(OUT).map(Result::unwrap).collect().await;
    assert_eq!(bytes.concat(), b"a\nc\n");
    let text: String = run_of(&pieces).text().map(Result::unwrap).collect().await;
    assert_eq!(text, "a\nb\nc\n");
}

#[tokio::test]
async fn a_line_over_the_limit_is_an_error_and_the_outcome_is_still_told() {
    let pieces = [(OUT, "12345\n"), (OUT, "123"), (OUT, "456\nmore\n")];
    let mut lines = run_of(&pieces).lines().max_line(5);
    assert_eq!(lines.next().await.unwrap().unwrap().text, "12345");
    let error = lines.next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::TooLarge, "line_too_long"));
    assert!(error.message().contains("line 2 of stdout") && error.message().contains("5 bytes"), "{error}");
    assert!(lines.next().await.is_none());
    assert_eq!(lines.wait().await.unwrap().exit_code(), Some(0));
}

#[tokio::test]
async fn a_reader_that_stops_early_still_learns_the_outcome() {
    let pieces = [(OUT, "a\nb\nc\n")];
    let mut lines = run_of(&pieces).lines();
    assert_eq!(lines.next().await.unwrap().unwrap().text, "a");
    assert_eq!(lines.outcome(), None);
    let output = lines.wait().await.unwrap();
    assert_eq!((output.exit_code(), &*output.stdout_text()), (Some(0), "a\nb\nc\n"));
}

#[tokio::test]
async fn what_came_before_a_cut_is_given_out_before_the_error() {
    let cut = || {
        let pieces = [(OUT, "a\nhalf"), (ERR, "x")];
        ExecStream::new(Box::pin(stream::iter([Ok(Bytes::from(frames(&pieces)))])), "bx_1", None)
    };
    let mut lines = cut().lines();
    for expected in [line(OUT, "a", true), line(OUT, "half", false), line(ERR, "x", false)] {
        assert_eq!(lines.next().await.unwrap().unwrap(), expected);
    }
    assert_eq!(lines.next().await.unwrap().unwrap_err().kind(), ErrorKind::StreamCut);
    assert!(lines.next().await.is_none());
    assert_eq!(lines.wait().await.unwrap_err().kind(), ErrorKind::StreamCut);

    let mut text = cut().text();
    assert_eq!(text.next().await.unwrap().unwrap(), "a\nhalf");
    assert_eq!(text.next().await.unwrap().unwrap(), "x");
    assert_eq!(text.next().await.unwrap().unwrap_err().kind(), ErrorKind::StreamCut);
    assert_eq!(text.wait().await.unwrap_err().kind(), ErrorKind::StreamCut);
}

/// Following a command whose log lost bytes in the middle of a line.
async fn gapped() -> Attach {
    let frames = [
        "{\"type\":\"attached\",\"stdoutOffset\":0,\"stderrOffset\":0}",
        "{\"type\":\"stdout\",\"data\":\"ab\",\"nextOffset\":2}",
        "{\"type\":\"stdout\",\"data\":\"yz\\n\",\"nextOffset\":30}",
        "{\"type\":\"exit\",\"status\":\"exited\",\"exitCode\":0,\"stdoutOffset\":30,\"stderrOffset\":0}\n",
    ];
    let opener: crate::sandboxer::attach::Opener = Box::new(move |_| {
        let body = Bytes::from(frames.join("\n"));
        Box::pin(async move { Ok(Box::pin(stream::iter([Ok::<_, Error>(body)])) as _) })
    });
    let clock = crate::clock::ManualClock::new().shared();
    let kills = Arc::default();
    Attach::open(opener, Offsets::default(), Ledger::new("bx_1", None), kills, clock).await.unwrap()
}

#[tokio::test]
async fn a_part_that_is_missing_does_not_join_two_lines() {
    let mut lines = gapped().await.lines();
    assert_eq!(lines.next().await.unwrap().unwrap(), line(OUT, "ab", false));
    assert_eq!(lines.next().await.unwrap().unwrap(), line(OUT, "yz", true));
    assert_eq!(lines.missing(), 25);
    assert!(lines.next().await.is_none());
    assert!(lines.wait().await.unwrap().stdout_truncated());
    let mut bytes = gapped().await.bytes().only(ERR);
    assert!(bytes.next().await.is_none());
    assert_eq!(bytes.missing(), 0, "the other stream's");
}

/// A body that tells when it is dropped.
struct Watched(Arc<AtomicBool>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[tokio::test]
async fn dropping_it_ends_the_connection() {
    let gone = Arc::new(AtomicBool::new(false));
    let watched = Watched(gone.clone());
    let first = Bytes::from(frames(&[(OUT, "a\nb\n")]));
    let body = stream::iter([Ok(first)]).chain(stream::pending()).map(move |piece| {
        let _ = &watched;
        piece
    });
    let mut lines = ExecStream::new(Box::pin(body), "bx_1", None).lines();
    assert_eq!(lines.next().await.unwrap().unwrap().text, "a");
    assert!(!gone.load(Ordering::Acquire));
    drop(lines);
    assert!(gone.load(Ordering::Acquire));
}

#[tokio::test]
async fn chosen_late_the_other_stream_is_silent_all_the_same() {
    let pieces = [(OUT, "one\n"), (ERR, "half"), (OUT, "two\n")];
    let mut lines = run_of(&pieces).lines();
    assert_eq!(lines.next().await.unwrap().unwrap(), line(OUT, "one", true));
    assert_eq!(lines.next().await.unwrap().unwrap(), line(OUT, "two", true));
    let (seen, _) = all_lines(lines.only(OUT)).await;
    assert_eq!(seen, []);
}
