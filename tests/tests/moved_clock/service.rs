//! A service on loopback that answers as a test says, and cuts, ends or holds its connections.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex, mpsc},
    thread,
};

use serde_json::{Value, json};
use url::Url;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The method, and the path after the base URL.
    pub(crate) call: String,
    /// The parameters of the query, decoded.
    pub(crate) query: HashMap<String, String>,
    /// The headers, their names in lower case.
    pub(crate) headers: HashMap<String, String>,
}

impl Request {
    /// A parameter of the query.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// A header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Whether it asks for server-sent events.
    pub(crate) fn wants_events(&self) -> bool {
        self.header("accept").is_some_and(|accept| accept.contains("text/event-stream"))
    }
}

/// What is done with a request.
pub(crate) struct Reply {
    status: u16,
    kind: &'static str,
    headers: String,
    body: Vec<u8>,
    end: End,
}

enum End {
    Whole,
    Ended,
    Cut,
    Held,
    Fed(mpsc::Receiver<Vec<u8>>),
}

impl Reply {
    fn new(status: u16, kind: &'static str, body: impl Into<Vec<u8>>, end: End) -> Self {
        Self { status, kind, headers: String::new(), body: body.into(), end }
    }

    /// A JSON answer.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string(), End::Whole)
    }

    /// A failure of this code.
    pub(crate) fn failure(status: u16, code: &str) -> Self {
        let error = json!({"code": code, "message": "no", "status": status});
        let body = json!({"ok": false, "type": "sandbox.error", "status": status, "code": code, "message": "no",
            "requestId": "req_1", "error": error});
        Self::json(status, &body)
    }

    /// Server-sent events, after which the connection is cut.
    pub(crate) fn events(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", body, End::Cut)
    }

    /// Frames of a command, after which the connection is cut.
    pub(crate) fn frames(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "application/x-ndjson", body, End::Cut)
    }

    /// Bytes of any kind, to their end.
    pub(crate) fn bytes(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, "application/octet-stream", body, End::Whole)
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers += &format!("{name}: {value}\r\n");
        self
    }

    /// The connection is cut after the body, which therefore never ends.
    pub(crate) fn cut(mut self) -> Self {
        self.end = End::Cut;
        self
    }

    /// The body ends as it should.
    pub(crate) fn ended(mut self) -> Self {
        self.end = End::Ended;
        self
    }

    /// Nothing more comes, and the connection stays open until the client ends it.
    pub(crate) fn held(mut self) -> Self {
        self.end = End::Held;
        self
    }

    /// More comes from this channel; the connection is cut when it is closed.
    pub(crate) fn fed(mut self, more: mpsc::Receiver<Vec<u8>>) -> Self {
        self.end = End::Fed(more);
        self
    }
}

type Answer = dyn Fn(&Request, usize) -> Reply + Send + Sync;

/// The service.
pub(crate) struct Service {
    /// The base URL.
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Service {
    /// Answers with `answer`, which is told the request and how many of the same call came before.
    pub(crate) fn start(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/api/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer): (_, Arc<Answer>) = (requests.clone(), Arc::new(answer));
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (seen, answer) = (seen.clone(), answer.clone());
                thread::spawn(move || serve(connection, &seen, &*answer));
            }
        });
        Self { url, requests }
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// How many requests there were.
    pub(crate) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// The values of a parameter of the query, request by request.
    pub(crate) fn params(&self, name: &str) -> Vec<Option<String>> {
        self.requests().iter().map(|request| request.param(name).map(str::to_owned)).collect()
    }
}

fn serve(mut connection: TcpStream, seen: &Mutex<Vec<Request>>, answer: &Answer) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let request = read(&mut reader)?;
    let before = {
        let mut seen = seen.lock().unwrap();
        let before = seen.iter().filter(|earlier| earlier.call == request.call).count();
        seen.push(request.clone());
        before
    };
    let Reply { status, kind, headers, body, end } = answer(&request, before);
    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: {kind}\r\n{headers}");
    if let End::Whole = end {
        connection.write_all(format!("{head}content-length: {}\r\n\r\n", body.len()).as_bytes()).ok()?;
        return connection.write_all(&body).ok();
    }
    connection.write_all(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes()).ok()?;
    write_chunk(&mut connection, &body)?;
    match end {
        End::Ended => connection.write_all(b"0\r\n\r\n").ok()?,
        End::Held => drop(reader.read_to_end(&mut Vec::new())),
        End::Fed(more) => {
            while let Ok(piece) = more.recv() {
                write_chunk(&mut connection, &piece)?;
            }
        }
        End::Cut | End::Whole => {}
    }
    connection.shutdown(Shutdown::Both).ok()
}

fn write_chunk(connection: &mut TcpStream, piece: &[u8]) -> Option<()> {
    if piece.is_empty() {
        return Some(());
    }
    let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
    connection.write_all(&chunk).ok()
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let url = Url::parse(&format!("http://x{target}")).ok()?;
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    reader.read_exact(&mut vec![0; length]).ok()?;
    Some(Request {
        call: format!("{method} {}", url.path().trim_start_matches("/api/v1")),
        query: url.query_pairs().into_owned().collect(),
        headers,
    })
}
