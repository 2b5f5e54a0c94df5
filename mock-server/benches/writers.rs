//! What a server that keeps its data does under many writers at once, and what those who only read feel of it.
//!
//! `cargo bench -p sandboxer-mock-server --bench writers`. Every writer renames a sandbox of its own again and again, each time
//! waiting for the answer, which goes out once the change is on disk; readers meanwhile ask for a sandbox.

#![expect(clippy::disallowed_methods, reason = "a measurement is about real time")]
#![expect(clippy::print_stdout, reason = "a benchmark prints what it finds")]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use sandboxer_mock_server::{MockServer, runner::RunnerKind};
use serde_json::json;

use support::{Client, percentiles, succeeded, timed};

const READERS: usize = 2;

/// How many changes are made in all, by however many writers.
const CHANGES: usize = 1920;

async fn rename(client: &Client, id: &str, name: String) {
    let request = client.request("PATCH", &format!("/sandboxes/{id}"));
    succeeded(request.json(&json!({"name": name}))).await;
}

async fn measure(client: &Client, ids: &[String], writers: usize) {
    let stop = Arc::new(AtomicBool::new(false));
    let reading: Vec<_> = (0..READERS)
        .map(|number| {
            let (client, stop, path) = (client.clone(), stop.clone(), format!("/sandboxes/{}", ids[number]));
            tokio::spawn(async move {
                let mut took = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    took.push(timed(client.text(&path)).await);
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
                    took.push(timed(rename(&client, &id, format!("name-{number}-{count}"))).await);
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
