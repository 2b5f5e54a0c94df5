use std::{future::Future as _, task::Poll};

use futures_util::task::noop_waker;

use super::*;

/// Writes as far as it goes without waiting; says whether all was taken.
fn write_now(ring: &OutputRing, data: &[u8]) -> bool {
    let waker = noop_waker();
    let mut context = std::task::Context::from_waker(&waker);
    let write = ring.write(data);
    tokio::pin!(write);
    write.as_mut().poll(&mut context) == Poll::Ready(())
}

fn text(ring: &OutputRing, offset: u64, max: usize) -> (u64, String) {
    let chunk = ring.read_at(offset, max);
    (chunk.offset, String::from_utf8(chunk.bytes.to_vec()).unwrap())
}

#[test]
fn keep_first_keeps_the_first_bytes_and_says_so() {
    let ring = OutputRing::new(OutputMode::KeepFirst, 5);
    assert!(write_now(&ring, b"abc"));
    assert!(!ring.truncated());
    assert!(write_now(&ring, b"defg"));
    assert_eq!((ring.start(), ring.end(), ring.received()), (0, 5, 7));
    assert!(ring.truncated());
    assert_eq!(text(&ring, 0, 100), (0, "abcde".to_owned()));
}

#[test]
fn keep_last_moves_its_start() {
    let ring = OutputRing::new(OutputMode::KeepLast, 5);
    assert!(write_now(&ring, b"abcdef"));
    assert_eq!((ring.start(), ring.end()), (1, 6));
    assert_eq!(text(&ring, 0, 3), (1, "bcd".to_owned()));
    assert!(write_now(&ring, b"0123456789"));
    assert_eq!(text(&ring, 2, 100), (11, "56789".to_owned()));
    assert!(ring.truncated());
}

#[test]
fn reads_across_the_seam_and_past_the_end() {
    let ring = OutputRing::new(OutputMode::KeepLast, 8);
    for round in 0..50u8 {
        assert!(write_now(&ring, &[b'a' + round % 26, b'0' + round % 10, b'-']));
        let end = ring.end();
        let whole = ring.read_at(0, 100);
        assert_eq!(whole.end, end);
        for offset in whole.offset..=end {
            let part = ring.read_at(offset, 2);
            let skip = (offset - whole.offset) as usize;
            assert_eq!(part.bytes, whole.bytes.slice(skip..(skip + 2).min(whole.bytes.len())));
        }
    }
    let beyond = ring.read_at(10_000, 10);
    assert_eq!((beyond.offset, beyond.bytes.len()), (150, 0));
}

#[test]
fn back_pressure_waits_for_the_reader_and_keeps_what_it_has_not_read() {
    let ring = OutputRing::new(OutputMode::Backpressure, 4);
    let mut reader = ring.consumer(0);
    assert!(!write_now(&ring, b"abcdef"), "two bytes have to wait");
    assert_eq!(ring.end(), 4);
    reader.consume_to(3);
    assert!(write_now(&ring, b"ef"));
    assert_eq!(text(&ring, 3, 10), (3, "def".to_owned()));
    assert!(!write_now(&ring, b"gh"));
    drop(reader);
    assert!(write_now(&ring, b"hijk"), "without a reader nothing waits");
    assert_eq!(text(&ring, 0, 10), (7, "hijk".to_owned()));
}

#[tokio::test]
async fn a_paced_stream_arrives_whole() {
    let ring = OutputRing::new(OutputMode::Backpressure, 1000);
    let mut reader = ring.consumer(0);
    let sent: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    let (writer, expected) = (ring.clone(), sent.clone());
    tokio::spawn(async move {
        for piece in sent.chunks(777) {
            writer.write(piece).await;
        }
        writer.close();
    });
    let mut seen = Vec::new();
    while let Some(chunk) = reader.next(333).await {
        assert_eq!(chunk.offset, seen.len() as u64);
        seen.extend_from_slice(&chunk.bytes);
    }
    assert_eq!(seen, expected);
}

#[test]
fn the_end_of_a_command_lifts_the_limit_for_a_slow_reader() {
    let ring = OutputRing::new(OutputMode::Backpressure, 4);
    let _reader = ring.consumer(0);
    assert!(!write_now(&ring, b"abcdef"));
    ring.ending();
    assert!(write_now(&ring, b"efgh"));
    ring.close();
    assert!(write_now(&ring, b"dropped"));
    assert_eq!(text(&ring, 0, 100), (0, "abcdefgh".to_owned()));
}

#[tokio::test]
async fn changes_are_seen_by_every_waiter() {
    let ring = OutputRing::new(OutputMode::KeepLast, 100);
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let ring = ring.clone();
            tokio::spawn(async move {
                ring.changed_since(0).await;
                ring.changed_since(3).await;
                ring.is_closed()
            })
        })
        .collect();
    tokio::task::yield_now().await;
    ring.write(b"abc").await;
    tokio::task::yield_now().await;
    ring.close();
    for waiter in waiters {
        assert!(waiter.await.unwrap());
    }
}
