//! The rules of the WHATWG, each case cut at every byte.

use super::*;
use crate::{
    clock::ManualClock,
    error::{Error, ErrorKind, Result},
    stream::frames::scripted,
};

/// What a case gives: its items in short, and the id in effect at its end.
type Read = (Vec<String>, Option<String>);

fn read(pieces: &[&[u8]], after: Option<&str>, limit: usize) -> Result<Read, MessageTooLong> {
    let mut decoder = SseDecoder::with_limit(after, NonZeroUsize::new(limit).unwrap());
    let mut out = Vec::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(item) = decoder.next_item()? {
            out.push(match item {
                SseItem::Message { name, data } if name == "message" => {
                    format!("{data}#{}", decoder.last_id().unwrap_or(""))
                }
                SseItem::Message { name, data } => {
                    format!("{name}={data}#{}", decoder.last_id().unwrap_or(""))
                }
                SseItem::Retry(wait) => format!("retry {}", wait.as_millis()),
            });
        }
    }
    Ok((out, decoder.last_id().map(str::to_owned)))
}

/// Name, bytes, items, the id at the end; the connection begins without an id.
type Case = (&'static str, &'static [u8], &'static [&'static str], Option<&'static str>);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("nothing", b"", &[], None),
    ("one message", b"data: a\n\n", &["a#"], None),
    ("BOM", b"\xEF\xBB\xBFdata: a\n\n", &["a#"], None),
    ("only the first BOM is dropped", b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n", &["b#"], None),
    ("BOM in data", b"data: \xEF\xBB\xBFa\n\n", &["\u{feff}a#"], None),
    ("half a BOM", b"\xEF\xBBdata: a\n\ndata: b\n\n", &["b#"], None),
    ("CRLF", b"data: a\r\n\r\ndata: b\r\n\r\n", &["a#", "b#"], None),
    ("CR", b"data: a\r\rdata: b\r\r", &["a#", "b#"], None),
    ("mixed line ends", b"data: a\r\n\ndata: b\r\r\ndata: c\n\r", &["a#", "b#", "c#"], None),
    ("id before a message", b"id: 1\ndata: a\n\n", &["a#1"], Some("1")),
    ("id alone", b"data: a\nid: 1\n\nid: 2\n\n", &["a#1"], Some("2")),
    ("id alone at the start", b"id: 7\n\ndata: a\n\n", &["a#7"], Some("7")),
    ("id stays", b"id: 1\ndata: a\n\ndata: b\n\n", &["a#1", "b#1"], Some("1")),
    ("empty id takes it back", b"id: 1\ndata: a\n\nid:\ndata: b\n\n", &["a#1", "b#"], None),
    ("id without a colon takes it back", b"id: 1\ndata: a\n\nid\ndata: b\n\n", &["a#1", "b#"], None),
    ("id with NUL is ignored", b"id: 1\ndata: a\n\nid: 2\x003\ndata: b\n\n", &["a#1", "b#1"], Some("1")),
    ("last id of a block wins", b"id: 1\nid: 2\ndata: a\n\n", &["a#2"], Some("2")),
    ("id of half a message", b"id: 1\ndata: a\n\nid: 2\ndata: b\n", &["a#1"], Some("1")),
    ("id of half a line", b"id: 1\ndata: a\n\nid: 2", &["a#1"], Some("1")),
    ("retry", b"retry: 1500\ndata: a\n\n", &["retry 1500", "a#"], None),
    ("retry alone", b"retry: 0\n\n", &["retry 0"], None),
    ("retry with junk", b"retry: 1.5\nretry: -1\nretry: 5s\nretry: \nretry\ndata: a\n\n", &["a#"], None),
    ("retry too large", b"retry: 99999999999999999999\ndata: a\n\n", &["a#"], None),
    ("comments", b": hello\n:\n:data: x\n\ndata: a\n: in between\ndata: b\n\n", &["a\nb#"], None),
    ("several lines of data", b"data: a\ndata: b\ndata:\ndata: c\n\n", &["a\nb\n\nc#"], None),
    ("empty data", b"data\n\n", &["#"], None),
    ("empty data twice", b"data:\ndata\n\n", &["\n#"], None),
    ("no blank line at the end", b"data: a\n\ndata: b\n", &["a#"], None),
    ("no line end at the end", b"data: a\n\ndata: b", &["a#"], None),
    ("unknown fields", b"dat: x\ndatas: x\nData: x\n data: x\nfoo\ndata: a\n\n", &["a#"], None),
    ("one leading blank goes", b"data:  a\ndata:\tb\ndata:c\n\n", &[" a\n\tb\nc#"], None),
    ("colon in a value", b"data: a:b: c\n\n", &["a:b: c#"], None),
    ("name", b"event: ping\ndata: a\n\ndata: b\n\n", &["ping=a#", "b#"], None),
    ("name without data", b"event: ping\n\ndata: a\n\n", &["a#"], None),
    ("id of a block without data", b"event: ping\nid: 3\n\ndata: a\n\n", &["a#3"], Some("3")),
    ("last name wins", b"event: x\nevent: y\nevent\nevent: z\ndata: a\n\n", &["z=a#"], None),
    ("empty name", b"event: x\nevent:\ndata: a\n\n", &["a#"], None),
    ("other separators are text", "data: a\u{85}b\u{2028}c\u{2029}d\x0Be\x0Cf\n\n".as_bytes(),
        &["a\u{85}b\u{2028}c\u{2029}d\x0Be\x0Cf#"], None),
    ("NUL in data", b"data: a\0b\n\n", &["a\0b#"], None),
    ("characters of many bytes", "data: é€😀\nid: é\n\n".as_bytes(), &["é€😀#é"], Some("é")),
    ("invalid UTF-8", b"data: a\xFFb\n\n", &["a\u{fffd}b#"], None),
    ("many blank lines", b"\n\n\r\n\r\rdata: a\n\n\n\n\ndata: b\n\n\n", &["a#", "b#"], None),
];

#[test]
fn every_case_at_every_cut() {
    for (name, bytes, items, id) in CASES {
        let expected = (items.iter().map(|item| item.to_string()).collect::<Vec<_>>(), id.map(str::to_owned));
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                let seen = read(&pieces, None, MAX_MESSAGE).unwrap();
                assert_eq!(seen, expected, "{name}: cut at {first} and {second}");
            }
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single, None, MAX_MESSAGE).unwrap(), expected, "{name}: byte by byte");
    }
}

#[test]
fn the_id_a_connection_began_with_stays_until_another_comes() {
    let seen = |text: &[u8]| read(&[text], Some("7"), 100).unwrap();
    assert_eq!(seen(b"data: a\n\n"), (vec!["a#7".into()], Some("7".into())));
    assert_eq!(seen(b"id: 8\n\n"), (vec![], Some("8".into())));
    assert_eq!(seen(b"id: 8\ndata: half"), (vec![], Some("7".into())));
    assert_eq!(seen(b"id\n\n"), (vec![], None));
    assert_eq!(read(&[b"data: a\n\n"], Some(""), 100).unwrap().1, None);
}

#[test]
fn what_is_over_the_limit_is_refused_however_it_arrives() {
    assert!(read(&[b"data: 12345\n\n"], None, 5).is_ok());
    assert!(read(&[b":123456789\nunknown: 123456789\ndata: 1\n\n"], None, 5).is_ok());
    for long in ["data: 123456\n\n", "data: 123\ndata: 456\n\n", "id: 123456\n\n", "event: 123456\n\n"] {
        let single: Vec<&[u8]> = long.as_bytes().chunks(1).collect();
        assert_eq!(read(&[long.as_bytes()], None, 5), Err(MessageTooLong), "{long:?}");
        assert_eq!(read(&single, None, 5), Err(MessageTooLong), "{long:?}");
    }
    assert!(matches!(read(&[&b"data\n".repeat(1000)], None, 5), Err(MessageTooLong)));
}

#[test]
fn a_long_message_is_taken() {
    let text = format!("data: {}\n\n", "x".repeat(MAX_MESSAGE - 1));
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(4096).collect();
    assert_eq!(read(&pieces, None, MAX_MESSAGE).unwrap().0[0].len(), MAX_MESSAGE);
}

async fn next(messages: &mut Messages) -> Option<Result<SseItem, MessageError>> {
    std::future::poll_fn(|context| messages.poll_next(context)).await
}

#[tokio::test]
async fn a_broken_body_is_an_error_after_its_whole_messages() {
    let cut = Error::new(ErrorKind::StreamCut, "stream_cut", "cut");
    let pieces = vec![Ok(Bytes::from_static(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")), Err(cut)];
    let mut messages = Messages::new(scripted(pieces), None, ManualClock::new().shared(), None);
    assert!(!messages.alive());
    assert!(matches!(next(&mut messages).await, Some(Ok(SseItem::Message { .. }))));
    assert!(messages.alive());
    assert!(matches!(next(&mut messages).await, Some(Err(MessageError::Broken(_)))));
    assert!(next(&mut messages).await.is_none());
    assert_eq!(messages.last_id(), Some("1"));
}

#[tokio::test]
async fn too_long_a_message_is_the_end() {
    let mut text = b"data: ".to_vec();
    text.extend(std::iter::repeat_n(b'x', MAX_MESSAGE + 1));
    text.extend_from_slice(b"\n\ndata: b\n\n");
    let mut messages =
        Messages::new(scripted(vec![Ok(text.into())]), None, ManualClock::new().shared(), None);
    let Some(Err(MessageError::TooLong(error))) = next(&mut messages).await else { panic!("it is too long") };
    assert_eq!((error.kind(), error.code()), (ErrorKind::TooLarge, "message_too_long"));
    assert!(next(&mut messages).await.is_none());
}

#[tokio::test]
async fn silence_is_measured_while_waiting_and_any_byte_ends_it() {
    let clock = ManualClock::new();
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<Result<Bytes>>(4);
    let source = Box::pin(futures_util::stream::poll_fn(move |context| receiver.poll_recv(context)));
    let idle = Duration::from_secs(45);
    let mut messages = Messages::new(source, None, clock.shared(), Some(idle));
    // A reader that does not ask hears no silence.
    clock.advance(Duration::from_secs(600));
    for _ in 0..3 {
        let poll = futures_util::poll!(std::pin::pin!(next(&mut messages)));
        assert!(poll.is_pending());
        clock.advance(Duration::from_secs(44));
        sender.send(Ok(Bytes::from_static(b":\n"))).await.unwrap();
    }
    assert!(futures_util::poll!(std::pin::pin!(next(&mut messages))).is_pending());
    clock.advance(idle);
    let Some(Err(MessageError::Broken(error))) = next(&mut messages).await else { panic!("it was silent") };
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("idle"));
    assert!(next(&mut messages).await.is_none() && sender.is_closed());
}
