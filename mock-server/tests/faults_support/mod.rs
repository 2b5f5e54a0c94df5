//! A tiny service behind the faults, and a client that sees every byte.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::disallowed_methods,
    reason = "shared by several suites; the guard waits for real"
)]

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use sandboxer::{
    Operation,
    clock::{ManualClock, SharedClock},
};
use sandboxer_mock_server::{
    faults::{Connection, Faults, FaultyListener, FaultyStream},
    record::Recorder,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

pub struct Service {
    pub faults: Faults,
    pub recorder: Recorder,
    pub clock: ManualClock,
    pub address: SocketAddr,
    pub runs: Arc<AtomicU64>,
}

impl Service {
    pub async fn start() -> Self {
        let clock = ManualClock::new();
        let shared: SharedClock = clock.shared();
        let faults = Faults::new(shared.clone());
        let recorder = Recorder::new(shared);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = FaultyListener::new(listener, faults.wire()).unwrap();
        let address = listener.local_addr();
        let runs = Arc::new(AtomicU64::new(0));
        let service = Self { faults, recorder, clock, address, runs };
        let (faults, recorder, runs) =
            (service.faults.clone(), service.recorder.clone(), service.runs.clone());
        tokio::spawn(async move {
            while let Ok(stream) = listener.accept().await {
                tokio::spawn(serve(stream, faults.clone(), recorder.clone(), runs.clone()));
            }
        });
        service
    }

    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }

    pub async fn connect(&self) -> Client {
        Client { socket: TcpStream::connect(self.address).await.unwrap() }
    }

    /// One request over a connection of its own: everything that came back, and how it ended.
    pub async fn ask(&self, request: &str) -> (String, io::Result<()>) {
        let mut client = self.connect().await;
        client.send(request).await;
        client.rest().await
    }
}

async fn serve(stream: FaultyStream, faults: Faults, recorder: Recorder, runs: Arc<AtomicU64>) {
    let connection = stream.connection().clone();
    let handle = connection.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        exchange(request, handle.clone(), faults.clone(), recorder.clone(), runs.clone())
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // Two answers are compared byte for byte, and may be a second apart.
    builder.http1().auto_date_header(false);
    let driven = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(driven);
    let mut leaving = false;
    loop {
        tokio::select! {
            _ = driven.as_mut() => return,
            () = connection.going_away(), if !leaving => {
                leaving = true;
                driven.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn exchange(
    request: Request<Incoming>,
    connection: Connection,
    faults: Faults,
    recorder: Recorder,
    runs: Arc<AtomicU64>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let operation = match head.uri.path() {
        "/create" => Some(Operation::Create),
        "/get" => Some(Operation::Get),
        "/attach" => Some(Operation::AttachCommand),
        "/command" => Some(Operation::Command),
        _ => None,
    };
    let recorded = recorder.record(operation, &head, &body, Some(connection.number()));
    let handler = || async move {
        runs.fetch_add(1, Ordering::SeqCst);
        match head.uri.path() {
            // A body of unknown length in ten pieces.
            "/attach" => {
                let pieces = (0..10).map(|n| Ok::<_, Infallible>(Bytes::from(format!("piece {n}..\n"))));
                Response::new(Body::from_stream(futures_util::stream::iter(pieces)))
            }
            _ => Response::new(Body::from("the real answer")),
        }
    };
    Ok(faults.answer(&recorded, Some(&connection), handler).await)
}

pub struct Client {
    pub socket: TcpStream,
}

impl Client {
    pub async fn send(&mut self, request: &str) {
        self.socket.write_all(request.as_bytes()).await.unwrap();
    }

    /// Reads until the connection ends.
    pub async fn rest(&mut self) -> (String, io::Result<()>) {
        let mut all = Vec::new();
        let end = within(async {
            loop {
                let mut part = [0; 4096];
                match self.socket.read(&mut part).await {
                    Ok(0) => return Ok(()),
                    Ok(read) => all.extend_from_slice(&part[..read]),
                    Err(error) => return Err(error),
                }
            }
        })
        .await;
        (String::from_utf8_lossy(&all).into_owned(), end)
    }

    /// Reads until `text` has come.
    pub async fn read_to(&mut self, text: &str) -> String {
        let mut all = Vec::new();
        within(async {
            while !String::from_utf8_lossy(&all).contains(text) {
                let mut part = [0; 4096];
                let read = self.socket.read(&mut part).await.unwrap();
                assert_ne!(read, 0, "ended early: {:?}", String::from_utf8_lossy(&all));
                all.extend_from_slice(&part[..read]);
            }
        })
        .await;
        String::from_utf8_lossy(&all).into_owned()
    }

    /// Whether nothing at all comes for a moment, not even an end.
    pub async fn is_silent(&mut self) -> bool {
        let mut part = [0; 64];
        tokio::time::timeout(Duration::from_millis(150), self.socket.read(&mut part)).await.is_err()
    }
}

/// A request that asks for its connection to be closed after the answer.
pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
}

/// A request that keeps its connection.
pub fn keep(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")
}

pub fn post(path: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// What came after the head of an answer.
pub fn body_of(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// Against hangs only.
pub async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it hangs")
}
