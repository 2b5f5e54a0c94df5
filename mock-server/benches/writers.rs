//! What a server that keeps its data does under many writers at once, and what those who only read feel of it.
//!
//! `cargo bench -p sandboxer-mock-server --bench writers`. Every writer renames a sandbox of its own again and again, each time
//! waiting for the answer, which goes out once the change is on disk; readers meanwhile ask for a sandbox.

#![expect(clippy::disallowed_methods, reason = "a measurement is about real time")]
#![expect(clippy::print_stdout, reason = "a benchmark prints what it finds")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use sandboxer_mock_server::{MockServer, runner::RunnerKind};
use serde_json::json;

const READERS: usize = 2;

/// How many changes are made in all, by however many writers.
const CHANGES: usize = 1920;

#[derive(Clone)]
struct Client {
    http: reqwest::Client,
    base: String,
    key: String,
}

impl Client {
    fn of(server: &MockServer) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { http, base: server.url(), key: server.api_key().to_owned() }
    }

    async fn rename(&self, id: &str, name: String) {
        let request = self.http.patch(format!("{}/sandboxes/{id}", self.base)).bearer_auth(&self.key);
        let response = request.json(&json!({"name": name})).send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        response.bytes().await.expect("a body");
    }

    async fn read(&self, id: &str) {
        let request = self.http.get(format!("{}/sandboxes/{id}", self.base)).bearer_auth(&self.key);
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        response.bytes().await.expect("a body");
    }
}

/// Milliseconds at the 50th and the 95th percentile.
fn percentiles(mut took: Vec<f64>) -> (f64, f64) {
    took.sort_by(f64::total_cmp);
    let at = |share: usize| took.get(took.len() * share / 100).copied().unwrap_or_default();
    (at(50), at(95))
}

async fn timed(work: impl Future<Output = ()>) -> f64 {
    let begun = Instant::now();
    work.await;
    begun.elapsed().as_secs_f64() * 1000.0
}

async fn measure(client: &Client, ids: &[String], writers: usize) {
    let stop = Arc::new(AtomicBool::new(false));
    let reading: Vec<_> = (0..READERS)
        .map(|number| {
            let (client, stop, id) = (client.clone(), stop.clone(), ids[number].clone());
            tokio::spawn(async move {
                let mut took = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    took.push(timed(client.read(&id)).await);
                }
                took
            })
        })
        .collect();
    let begun = Instant::now();
    let writing: Vec<_> = (0..writers)
        .map(|number| {
            let (client, id) = (client.clone(), ids[number].clone());
            tokio::spawn(async move {
                let mut took = Vec::new();
                for count in 0..CHANGES / writers {
                    took.push(timed(client.rename(&id, format!("name-{number}-{count}"))).await);
                }
                took
            })
        })
        .collect();
    let mut wrote = Vec::new();
    for work in writing {
        wrote.extend(work.await.expect("a writer"));
    }
    let seconds = begun.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let mut read = Vec::new();
    for work in reading {
        read.extend(work.await.expect("a reader"));
    }
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let rate = wrote.len() as f64 / seconds;
    let (write, look) = (percentiles(wrote), percentiles(read));
    println!(
        "{writers:>3} writers: {rate:>6.0} changes/s   change p50 {:>7.2} ms p95 {:>7.2} ms   read p50 {:>6.2} ms p95 {:>6.2} ms",
        write.0, write.1, look.0, look.1
    );
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let builder = MockServer::builder().data_dir(folder.path()).runner(RunnerKind::Scripted);
    let server = builder.start().expect("a server");
    let client = Client::of(&server);
    let ids = server.world().fill(server.api_key(), 64, 0).expect("sandboxes");
    for writers in [1, 8, 64] {
        measure(&client, &ids, writers).await;
    }
}
