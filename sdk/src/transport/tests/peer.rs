//! A server that reads one request a connection and answers with scripted bytes.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// What is done with one connection.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// These bytes, then the end of the connection.
    Answer(String),
    /// The end of the connection without an answer, the request read.
    Drop,
    /// These bytes, then nothing until the client goes away.
    Stall(String),
}

/// A 200 with this JSON.
pub(super) fn ok(body: &str) -> Step {
    answer(200, &[], body)
}

pub(super) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Step {
    let mut text = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    Step::Answer(format!("{text}\r\n{body}"))
}

/// A server that goes through its steps, one a connection, the last again and again.
pub(super) struct Peer {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    left: Arc<AtomicUsize>,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// All values of a header.
    pub(super) fn values(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
    }
}

impl Peer {
    pub(super) fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/api/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let left = Arc::new(AtomicUsize::new(0));
        let (seen, leaving) = (requests.clone(), left.clone());
        thread::spawn(move || {
            for (number, connection) in listener.incoming().enumerate() {
                let step = steps[number.min(steps.len() - 1)].clone();
                let (Ok(connection), seen, left) = (connection, seen.clone(), leaving.clone()) else {
                    return;
                };
                thread::spawn(move || {
                    serve(connection, step, &seen);
                    left.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { url, requests, left }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until this many requests have arrived.
    pub(super) async fn arrived(&self, count: usize) {
        while self.requests.lock().unwrap().len() < count {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until this many connections are over.
    pub(super) async fn left(&self, count: usize) {
        while self.left.load(Ordering::SeqCst) < count {
            tokio::task::yield_now().await;
        }
    }
}

fn serve(mut connection: TcpStream, step: Step, seen: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let length = Request { head: head.clone(), body: Vec::new() };
    let length = length.values("content-length").first().and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    seen.lock().unwrap().push(Request { head, body });
    match step {
        Step::Answer(text) => {
            let _ = connection.write_all(text.as_bytes());
        }
        Step::Drop => {}
        Step::Stall(text) => {
            let _ = connection.write_all(text.as_bytes());
            let _ = reader.read_to_end(&mut Vec::new());
        }
    }
}
