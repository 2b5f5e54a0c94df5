//! A peer that does what a script says with each request, down to not answering it, and keeps what came.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use crate::pacer::Pacer;

/// What happens to one try.
#[derive(Clone, Debug)]
pub enum Turn {
    /// The name of the peer is not resolved.
    Unresolved,
    /// Nobody listens where the peer is said to be.
    Refused,
    /// The request is read, then the connection ends.
    Cut,
    /// It ends within the head of the answer.
    HalfHead,
    /// It ends within the body of an answer of this status and media type.
    HalfBody(u16, String),
    /// The request is read, then nothing happens until the limit of the try runs out.
    Stall,
    /// An answer.
    Reply {
        /// Its status.
        status: u16,
        /// Its headers besides the length.
        headers: Vec<(String, String)>,
        /// Its body.
        body: Vec<u8>,
    },
}

impl Turn {
    /// Whether it happens before anything is sent.
    pub fn is_before_sending(&self) -> bool {
        matches!(self, Self::Unresolved | Self::Refused)
    }
}

/// A request as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The HTTP method.
    pub method: String,
    /// Path and query, still encoded.
    pub target: String,
    /// Names in small letters, and values as UTF-8.
    pub headers: Vec<(String, String)>,
    /// The body, unchunked.
    pub body: Vec<u8>,
}

impl Seen {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// A listening peer. Every answer closes its connection, so that each try makes one of its own.
#[derive(Clone, Debug)]
pub struct Peer {
    port: u16,
    script: Arc<Mutex<Script>>,
}

#[derive(Debug, Default)]
struct Script {
    turns: VecDeque<Turn>,
    seen: Vec<Seen>,
    pacer: Pacer,
}

impl Peer {
    /// Starts to listen on loopback; it ends with the process.
    ///
    /// # Panics
    /// When there is no port.
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port on loopback");
        let port = listener.local_addr().expect("an address").port();
        let peer = Self { port, script: Arc::default() };
        let own = peer.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let own = own.clone();
                // A connection that breaks is the client's doing, and its test's to judge.
                thread::spawn(move || own.serve(stream).ok());
            }
        });
        peer
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Forgets what came; from now on a turn is taken for each try, the last one again and again.
    pub fn play(&self, turns: impl IntoIterator<Item = Turn>, pacer: &Pacer) {
        *self.lock() = Script { turns: turns.into_iter().collect(), seen: Vec::new(), pacer: pacer.clone() };
    }

    /// What came.
    pub fn seen(&self) -> Vec<Seen> {
        self.lock().seen.clone()
    }

    /// The next turn, if it happens before anything is sent: then it is taken.
    pub fn before_sending(&self) -> Option<Turn> {
        let mut script = self.lock();
        if !script.turns.front()?.is_before_sending() {
            return None;
        }
        script.take()
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(&stream);
        let Some(seen) = read(&mut reader)? else { return Ok(()) };
        let (turn, pacer) = {
            let mut script = self.lock();
            script.seen.push(seen);
            (script.take(), script.pacer.clone())
        };
        let mut writer = &stream;
        match turn {
            Some(Turn::Reply { status, headers, body }) => {
                let mut head = format!("HTTP/1.1 {status} Scripted\r\nconnection: close\r\n");
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                let length = body.len();
                writer.write_all(format!("{head}content-length: {length}\r\n\r\n").as_bytes())?;
                writer.write_all(&body)?;
            }
            Some(Turn::HalfHead) => writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-")?,
            Some(Turn::HalfBody(status, media)) => {
                let head =
                    format!("HTTP/1.1 {status} OK\r\ncontent-type: {media}\r\ncontent-length: 999\r\n\r\n");
                writer.write_all(format!("{head}{{\"ok\":true,").as_bytes())?;
            }
            Some(Turn::Stall) => {
                pacer.expire();
                reader.read_to_end(&mut Vec::new())?;
            }
            Some(Turn::Cut | Turn::Unresolved | Turn::Refused) | None => {}
        }
        stream.shutdown(Shutdown::Write)
    }
}

impl Script {
    fn take(&mut self) -> Option<Turn> {
        if self.turns.len() > 1 { self.turns.pop_front() } else { self.turns.front().cloned() }
    }
}

/// Reads one request; `None` when the connection ends before it.
fn read(reader: &mut impl BufRead) -> io::Result<Option<Seen>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_ascii_whitespace().map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut seen = Seen { method, target, ..Seen::default() };
    loop {
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line)?;
        let line = String::from_utf8_lossy(&line);
        let Some((name, value)) = line.trim().split_once(':') else { break };
        seen.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    if seen.header("transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk)?;
            if size == 0 {
                break;
            }
            seen.body.extend_from_slice(&chunk[..size]);
        }
    } else if let Some(length) = seen.header("content-length") {
        seen.body = vec![0; length.parse().map_err(io::Error::other)?];
        reader.read_exact(&mut seen.body)?;
    }
    Ok(Some(seen))
}
