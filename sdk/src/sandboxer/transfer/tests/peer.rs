//! A peer over plain sockets: what it is sent it keeps as it came, what it answers is bytes.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::Value;

use crate::{AsyncSandboxer, Builder, Dialect};

/// A request as it arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Got {
    /// Method and target.
    pub(super) call: String,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
    /// Whether all that was announced came.
    pub(super) is_whole: bool,
    pub(super) is_ended: bool,
}

impl Got {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// What the peer does with a request.
pub(super) enum Act {
    /// Sends these bytes and closes.
    Say(Vec<u8>),
    /// Does nothing, for as long as the test runs.
    Ignore,
}

pub(super) struct Peer {
    pub(super) url: String,
    seen: Arc<Mutex<Vec<Got>>>,
}

type Haste = dyn Fn(&Got) -> Option<Act> + Send + Sync;
type Answer = dyn Fn(&Got, usize) -> Act + Send + Sync;

impl Peer {
    /// Answers with `answer`, which is told the request and how many there were before.
    pub(super) fn start(answer: impl Fn(&Got, usize) -> Act + Send + Sync + 'static) -> Self {
        Self::start_hasty(|_| None, answer)
    }

    /// The same, but `haste` is asked first, before the request's body is read.
    pub(super) fn start_hasty(
        haste: impl Fn(&Got) -> Option<Act> + Send + Sync + 'static,
        answer: impl Fn(&Got, usize) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, haste, answer): (_, Arc<Haste>, Arc<Answer>) =
            (seen.clone(), Arc::new(haste), Arc::new(answer));
        thread::spawn(move || {
            for connection in listener.incoming() {
                let (Ok(connection), kept) = (connection, kept.clone()) else { return };
                let (haste, answer) = (haste.clone(), answer.clone());
                thread::spawn(move || serve(connection, &kept, &*haste, &*answer));
            }
        });
        Self { url, seen }
    }

    pub(super) fn builder(&self, dialect: Dialect) -> Builder {
        let builder = AsyncSandboxer::builder().ignore_env().no_proxy().api_key("hush-key").retries(0);
        builder.dialect(dialect).base_url(format!("{}/api/v1", self.url))
    }

    pub(super) fn client(&self, dialect: Dialect) -> AsyncSandboxer {
        self.builder(dialect).build().unwrap()
    }

    pub(super) fn seen(&self) -> Vec<Got> {
        self.seen.lock().unwrap().clone()
    }

    pub(super) fn calls(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|got| got.call.clone()).collect()
    }

    /// How many requests were read until nothing more came.
    pub(super) fn ended(&self) -> usize {
        self.seen.lock().unwrap().iter().filter(|got| got.is_ended).count()
    }
}

fn serve(mut connection: TcpStream, kept: &Mutex<Vec<Got>>, haste: &Haste, answer: &Answer) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let line = head.lines().next().unwrap_or_default().to_owned();
    let call = line.trim_end_matches(" HTTP/1.1").replace("/api/v1", "");
    let mut got = Got { call, head, ..Got::default() };
    let number = {
        let mut kept = kept.lock().unwrap();
        kept.push(got.clone());
        kept.len() - 1
    };
    let act = match haste(&got) {
        Some(act) => act,
        None => {
            got.is_whole = read_body(&mut reader, &mut got).is_some();
            got.is_ended = true;
            kept.lock().unwrap()[number] = got.clone();
            answer(&got, number)
        }
    };
    match act {
        Act::Say(reply) => drop(connection.write_all(&reply)),
        Act::Ignore => loop {
            thread::park();
        },
    }
}

fn read_body(reader: &mut BufReader<TcpStream>, got: &mut Got) -> Option<()> {
    if got.header("transfer-encoding") != Some("chunked") {
        let length: u64 = got.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        reader.take(length).read_to_end(&mut got.body).ok()?;
        return (got.body.len() as u64 == length).then_some(());
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let length = usize::from_str_radix(line.trim(), 16).ok()?;
        let mut piece = vec![0; length + 2];
        reader.read_exact(&mut piece).ok()?;
        got.body.extend_from_slice(&piece[..length]);
        if length == 0 {
            return Some(());
        }
    }
}

/// An answer with these header lines and exactly these bytes after them, whatever the lines announce.
pub(super) fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut reply = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
    for (name, value) in headers {
        reply += &format!("{name}: {value}\r\n");
    }
    let mut reply = (reply + "\r\n").into_bytes();
    reply.extend_from_slice(body);
    reply
}

pub(super) fn json(status: u16, body: &Value) -> Act {
    let body = body.to_string();
    let length = body.len().to_string();
    let headers = [("content-type", "application/json"), ("content-length", &length)];
    Act::Say(answer(status, &headers, body.as_bytes()))
}

/// Bytes whose length is announced, with more header lines.
pub(super) fn bytes(status: u16, headers: &[(&str, &str)], announced: usize, body: &[u8]) -> Act {
    let length = announced.to_string();
    let mut lines = vec![("content-type", "application/octet-stream"), ("content-length", &*length)];
    lines.extend_from_slice(headers);
    Act::Say(answer(status, &lines, body))
}

/// Bytes in one chunk, with the end of the chunks or without.
pub(super) fn chunked(body: &[u8], is_ended: bool) -> Act {
    let mut framed = format!("{:x}\r\n", body.len()).into_bytes();
    framed.extend_from_slice(body);
    framed.extend_from_slice(if is_ended { b"\r\n0\r\n\r\n" } else { b"\r\n" });
    Act::Say(answer(200, &[("transfer-encoding", "chunked")], &framed))
}
