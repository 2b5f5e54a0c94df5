//! What HTTP/2 peers say about requests they did not look at.

use super::{builder, post};
use crate::{AsyncSandboxer, Delivery, ErrorKind};
use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;

#[derive(Clone, Copy)]
enum Reply {
    /// An empty answer with status 200.
    Ok,
    /// This request is reset.
    Reset(u32),
    /// The connection ends; the last stream that was looked at, and why.
    GoAway(u32, u32),
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

fn read_frame(connection: &mut TcpStream) -> std::io::Result<(u8, u8, u32)> {
    let mut head = [0; 9];
    connection.read_exact(&mut head)?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    connection.read_exact(&mut vec![0; length])?;
    Ok((head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]])))
}

/// Answers the whole requests of one connection with `replies`, counted over all connections.
fn serve(mut connection: TcpStream, replies: &[Reply], count: &AtomicUsize) -> std::io::Result<()> {
    connection.read_exact(&mut [0; 24])?; // the client's preface
    connection.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    loop {
        let (kind, flags, stream) = read_frame(&mut connection)?;
        if kind == SETTINGS && flags & 1 == 0 {
            connection.write_all(&frame(SETTINGS, 1, 0, &[]))?;
        }
        if !(matches!(kind, HEADERS | DATA) && flags & 1 == 1) {
            continue;
        }
        let number = count.fetch_add(1, Ordering::SeqCst);
        match replies[number.min(replies.len() - 1)] {
            Reply::Ok => connection.write_all(&frame(HEADERS, 5, stream, &[0x88]))?,
            Reply::Reset(reason) => connection.write_all(&frame(RESET, 0, stream, &reason.to_be_bytes()))?,
            Reply::GoAway(last, reason) => {
                let payload = [last.to_be_bytes(), reason.to_be_bytes()].concat();
                connection.write_all(&frame(GO_AWAY, 0, 0, &payload))?;
                // Closing with something unread would reset the connection, and the frame might be lost with it.
                connection.shutdown(Shutdown::Write)?;
                return connection.read_to_end(&mut Vec::new()).map(drop);
            }
        }
    }
}

fn start(replies: &'static [Reply]) -> (AsyncSandboxer, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = seen.clone();
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let seen = seen.clone();
            thread::spawn(move || serve(connection, replies, &seen));
        }
    });
    let http = reqwest::Client::builder()
        .http2_prior_knowledge()
        .no_proxy()
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    (builder(&url).http_client(http).build().unwrap(), counted)
}

#[tokio::test]
async fn a_refused_stream_was_not_sent() {
    let (client, count) = start(&[Reply::Reset(REFUSED_STREAM), Reply::Ok]);
    post(&client).await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_stream_above_the_last_of_a_closing_connection_was_not_sent() {
    let (client, count) = start(&[Reply::GoAway(0, NO_ERROR), Reply::Ok]);
    post(&client).await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn other_resets_leave_a_doubt() {
    for replies in [
        &[Reply::Reset(INTERNAL_ERROR)][..],
        &[Reply::GoAway(1, NO_ERROR)],
        &[Reply::GoAway(1, INTERNAL_ERROR)],
    ] {
        let (client, count) = start(replies);
        let error = post(&client).await.unwrap_err();
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connection, Delivery::Unknown), "{error:?}");
        assert_eq!((error.attempts(), count.load(Ordering::SeqCst)), (1, 1));
    }
}
