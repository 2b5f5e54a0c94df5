//! What stands at the other end of webhook deliveries and telemetry: keeps what comes, answers what it is told to.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{Router, body::Body};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, request};
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::http::until;

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Status(u16),
    Says(u16, &'static str),
    Redirect(String),
    RetryAfter(u16, u64),
    /// No answer for as long as the sender waits.
    Hang,
}

#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    seen: Mutex<Vec<Seen>>,
    script: Mutex<VecDeque<Reply>>,
    otherwise: Mutex<Option<Reply>>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        Self::on("127.0.0.1:0".parse().unwrap()).await
    }

    pub(crate) async fn on(address: SocketAddr) -> Self {
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let receiving = state.clone();
        let router =
            Router::new().fallback(async move |request: Request<Body>| receiving.receive(request).await);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, state }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers so, once; several such replies are given one after the other.
    pub(crate) fn next(&self, reply: Reply) {
        self.state.script.lock().unwrap().push_back(reply);
    }

    /// Answers so whenever there is nothing else to answer; 204 unless set.
    pub(crate) fn otherwise(&self, reply: Reply) {
        *self.state.otherwise.lock().unwrap() = Some(reply);
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// Waits until so many requests have come.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Seen> {
        until(async || self.seen().len() >= count).await;
        self.seen()
    }
}

impl State {
    async fn receive(&self, request: Request<Body>) -> Response<Body> {
        let (request::Parts { uri, headers, .. }, body) = request.into_parts();
        let Ok(body) = body.collect().await else { return Response::new(Body::empty()) };
        let seen = Seen { path: uri.to_string(), headers, body: body.to_bytes() };
        self.seen.lock().unwrap().push(seen);
        let scripted = self.script.lock().unwrap().pop_front();
        let otherwise = self.otherwise.lock().unwrap().clone();
        let mut response = Response::builder();
        let mut body = Body::empty();
        match scripted.or(otherwise).unwrap_or(Reply::Status(204)) {
            Reply::Status(status) => response = response.status(status),
            Reply::Says(status, text) => {
                response = response.status(status);
                body = text.into();
            }
            Reply::Redirect(to) => response = response.status(302).header("location", to),
            Reply::RetryAfter(status, seconds) => {
                response = response.status(status).header("retry-after", seconds);
            }
            Reply::Hang => std::future::pending().await,
        }
        response.body(body).unwrap()
    }
}
