//! What the suite is measured against: the same HTTP library without the SDK, the runner without HTTP, bare processes.

use std::{process::Stdio, sync::Arc};

use sandboxer::clock::SystemClock;
use sandboxer_mock_server::{
    MockServer, RunnerKind,
    runner::{CommandSpec, Runner, RunnerOptions, Space, open},
};
use serde_json::Value;
use tokio::runtime::Runtime;

/// The runtime that async lanes run on.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// A server with this runner; `None`, with a line that says so, where it does not work.
pub(crate) fn server(runner: RunnerKind) -> Option<MockServer> {
    let started = MockServer::builder().runner(runner).start();
    started.map_err(|error| println!("{runner} is left out: {error}\n")).ok()
}

/// A client of reqwest and nothing else.
#[derive(Clone)]
pub(crate) struct Raw {
    http: reqwest::Client,
    base: String,
    key: String,
}

impl Raw {
    pub(crate) fn new(base: String, key: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build().expect("a client");
        Self { http, base, key: key.to_owned() }
    }

    /// Gets a path and reads the body whole.
    pub(crate) async fn get(&self, path: &str) -> bytes::Bytes {
        let request = self.http.get(format!("{}{path}", self.base)).bearer_auth(&self.key);
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        response.bytes().await.expect("a body")
    }

    /// Gets a path and counts the bytes of the body as they come.
    pub(crate) async fn drain(&self, path: &str) -> u64 {
        count(self.http.get(format!("{}{path}", self.base)).bearer_auth(&self.key)).await
    }

    /// Posts JSON and reads the body whole.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> bytes::Bytes {
        let request = self.http.post(format!("{}{path}", self.base)).bearer_auth(&self.key).json(body);
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        response.bytes().await.expect("a body")
    }

    /// Posts JSON and counts the bytes of the body as they come.
    pub(crate) async fn post_and_drain(&self, path: &str, body: &Value) -> u64 {
        count(self.http.post(format!("{}{path}", self.base)).bearer_auth(&self.key).json(body)).await
    }
}

async fn count(request: reqwest::RequestBuilder) -> u64 {
    let mut response = request.send().await.expect("an answer");
    assert_eq!(response.status(), 200);
    let mut bytes = 0;
    while let Some(chunk) = response.chunk().await.expect("a piece") {
        bytes += chunk.len() as u64;
    }
    bytes
}

/// A runner with one sandbox, without a server around it.
#[derive(Clone)]
pub(crate) struct RunnerAlone {
    runner: Arc<dyn Runner>,
    space: Space,
    _folder: Arc<tempfile::TempDir>,
}

impl RunnerAlone {
    pub(crate) async fn new(kind: RunnerKind) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (runner, _) = open(kind, &RunnerOptions::new(SystemClock::shared())).await.expect("a runner");
        let space = Space::new("bench", folder.path().join("bench"));
        runner.prepare(&space).await.expect("folders");
        Self { runner, space, _folder: Arc::new(folder) }
    }

    /// Runs a program to its end.
    pub(crate) async fn run(&self, argv: &[&str]) {
        let mut spec = CommandSpec::new(argv.iter().copied());
        spec.env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let running = self.runner.spawn(&self.space, spec).await.expect("it starts");
        assert_eq!(running.wait().await.code, Some(0));
    }

    /// Ends what the sandbox holds.
    pub(crate) async fn close(&self) {
        self.runner.shutdown().await;
    }
}

/// Runs a program with nothing but Tokio around it; its output is piped and read, as everybody's is here.
pub(crate) async fn bare(argv: &[&str]) {
    let mut command = tokio::process::Command::new(argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().await.expect("it runs");
    assert!(output.status.success());
}
