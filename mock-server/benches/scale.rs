//! How long lists, single reads and histories take in a full world, against a world that is almost empty, in one run.
//!
//! `cargo bench -p sandboxer-mock-server --bench scale`. Times are what a call takes as the client sees it; the run fails if a page or a read of the full world takes longer than the limit at the 95th percentile.

#![expect(clippy::disallowed_methods, reason = "a measurement is about real time")]
#![expect(clippy::print_stdout, reason = "a benchmark prints what it finds")]

mod support;

use std::time::Instant;

use sandboxer_mock_server::{MockServer, runner::RunnerKind};
use serde_json::Value;

use support::{Client, percentiles, timed};

const SANDBOXES: usize = 10_000;
const COMMANDS: usize = 100_000;

/// How often each call is made.
const CALLS: usize = 400;

/// What a call of the full world may take at the 95th percentile, in milliseconds.
const LIMIT: f64 = 5.0;

/// A place in a list: how many entries lie before it.
struct Page {
    depth: usize,
    query: String,
}

async fn json(client: &Client, path: &str) -> Value {
    serde_json::from_str(&client.text(path).await).expect("JSON")
}

/// Milliseconds at the 50th and the 95th percentile.
async fn measure(client: &Client, path: &str) -> (f64, f64) {
    let mut took = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        took.push(timed(client.text(path)).await);
    }
    percentiles(took)
}

/// The pages of a list that begin at or just after these depths.
async fn pages(client: &Client, path: &str, limit: usize, depths: &[usize]) -> Vec<Page> {
    let mut pages = Vec::new();
    let (mut depth, mut cursor) = (0, String::new());
    let mut wanted = depths.iter().copied().peekable();
    loop {
        let query = format!("{path}limit={limit}{cursor}");
        if wanted.next_if(|wanted| *wanted <= depth).is_some() {
            pages.push(Page { depth, query: query.clone() });
        }
        let body = json(client, &query).await;
        let next = body["nextCursor"].as_str().or_else(|| body["pageInfo"]["nextCursor"].as_str());
        let Some(next) = next else { return pages };
        cursor = format!("&cursor={}", next.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D"));
        depth += limit;
    }
}

/// Resident memory of this process, server and client together, in MiB.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib: Option<f64> =
        line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse().ok());
    kib.unwrap_or_default() / 1024.0
}

fn show(what: &str, (median, p95): (f64, f64)) {
    println!("{what:<58} p50 {median:>7.3} ms   p95 {p95:>7.3} ms");
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().expect("a server");
    let (client, world) = (Client::of(&server), server.world());
    let before = memory();

    let one = world.fill(server.api_key(), 1, 50).expect("a sandbox");
    let only = format!("/sandboxes/{}", one[0]);
    show("almost empty: list (1 sandbox)", measure(&client, "/sandboxes").await);
    show("almost empty: get", measure(&client, &only).await);
    show(
        "almost empty: history (50 records)",
        measure(&client, &format!("{only}/command-history?limit=50")).await,
    );

    let begun = Instant::now();
    let ids = world.fill(server.api_key(), SANDBOXES, COMMANDS).expect("a full world");
    let filling = begun.elapsed().as_secs_f64();
    let after = memory();
    println!("filled with {SANDBOXES} sandboxes and {COMMANDS} records in {filling:.1} s");
    println!("memory: {before:.0} MiB before, {after:.0} MiB after");

    let mut worst: f64 = 0.0;
    let mut judge = |what: &str, took: (f64, f64)| {
        show(what, took);
        worst = worst.max(took.1);
    };
    for limit in [20, 100] {
        for page in pages(&client, "/sandboxes?", limit, &[0, SANDBOXES / 2, SANDBOXES - 2 * limit]).await {
            let what = format!("full: list, limit {limit}, {} before the page", page.depth);
            judge(&what, measure(&client, &page.query).await);
        }
    }
    judge(
        "full: list, state=ready (none of them)",
        measure(&client, "/sandboxes?state=ready,idle,running").await,
    );
    judge("full: list, state=archived, limit 100", measure(&client, "/sandboxes?state=archived").await);
    judge("full: get, the newest", measure(&client, &format!("/sandboxes/{}", ids[SANDBOXES - 1])).await);
    judge("full: get, the oldest", measure(&client, &format!("/sandboxes/{}", ids[0])).await);
    let history = format!("/sandboxes/{}/command-history?", ids[0]);
    for page in pages(&client, &history, 100, &[0, COMMANDS / 2, COMMANDS - 200]).await {
        let what = format!("full: history, limit 100, {} before the page", page.depth);
        judge(&what, measure(&client, &page.query).await);
    }
    println!("memory: {:.0} MiB at the end", memory());
    println!("slowest 95th percentile of the full world: {worst:.3} ms; the limit is {LIMIT} ms");
    if worst >= LIMIT {
        std::process::exit(1);
    }
}
