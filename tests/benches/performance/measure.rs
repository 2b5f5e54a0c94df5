//! Rounds in which every lane has its turn, and what is made of them.

use std::{future::Future, sync::Arc, time::Duration};

use sandboxer::clock::{Clock as _, SystemClock};
use tokio::runtime::Runtime;

/// One way to do a thing: does it as often as told and says how long each time took.
type Samples<'a> = Box<dyn FnMut(usize) -> Vec<Duration> + 'a>;

/// A lane of a table.
pub(crate) struct Lane<'a> {
    name: String,
    /// The lane that this one's ratio is against.
    peer: Option<&'static str>,
    take: Samples<'a>,
}

impl<'a> Lane<'a> {
    /// A lane that blocks this thread.
    pub(crate) fn blocking(name: impl Into<String>, mut body: impl FnMut() + 'a) -> Self {
        let clock = SystemClock::new();
        let take = move |count| {
            let one = |_| {
                let begin = clock.elapsed();
                body();
                clock.elapsed() - begin
            };
            (0..count).map(one).collect()
        };
        Self { name: name.into(), peer: None, take: Box::new(take) }
    }

    /// A lane that runs as a task of `runtime`.
    pub(crate) fn spawned<F, Fut>(name: impl Into<String>, runtime: &'a Runtime, body: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self::spawned_timed(name, runtime, move || {
            let run = body();
            async move {
                let clock = SystemClock::new();
                run.await;
                clock.elapsed()
            }
        })
    }

    /// The same for a body that says itself how long what counts of it took.
    pub(crate) fn spawned_timed<F, Fut>(name: impl Into<String>, runtime: &'a Runtime, body: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Duration> + Send + 'static,
    {
        let body = Arc::new(body);
        let take = move |count| {
            let body = body.clone();
            let task = runtime.spawn(async move {
                let mut samples = Vec::with_capacity(count);
                for _ in 0..count {
                    samples.push(body().await);
                }
                samples
            });
            runtime.block_on(task).expect("a lane does not panic")
        };
        Self { name: name.into(), peer: None, take: Box::new(take) }
    }

    /// Says which lane this one's ratio is against.
    pub(crate) fn against(mut self, peer: &'static str) -> Self {
        self.peer = Some(peer);
        self
    }
}

/// What a lane's samples come to.
pub(crate) struct Result {
    name: String,
    median: f64,
    high: f64,
    ratio: Option<(f64, &'static str)>,
}

/// Takes `samples` of every lane in each of `rounds`; one round before counts for nothing.
pub(crate) fn take_turns(lanes: &mut [Lane<'_>], rounds: usize, samples: usize) -> Vec<Result> {
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); lanes.len()];
    let mut medians: Vec<Vec<f64>> = vec![Vec::new(); lanes.len()];
    for round in 0..=rounds {
        for turn in 0..lanes.len() {
            let index = (turn + round) % lanes.len();
            let taken: Vec<f64> = (lanes[index].take)(samples).iter().map(Duration::as_secs_f64).collect();
            if round > 0 {
                medians[index].push(quantile(&taken, 0.5));
                all[index].extend(taken);
            }
        }
    }
    let result = |(index, lane): (usize, &Lane<'_>)| {
        let peer = lane.peer.and_then(|peer| lanes.iter().position(|other| other.name == peer));
        let ratio = peer.map(|peer| {
            let ratios = medians[index].iter().zip(&medians[peer]).map(|(own, other)| own / other);
            (quantile(&ratios.collect::<Vec<_>>(), 0.5), lane.peer.unwrap_or_default())
        });
        let (median, high) = (quantile(&all[index], 0.5), quantile(&all[index], 0.95));
        Result { name: lane.name.clone(), median, high, ratio }
    };
    lanes.iter().enumerate().map(result).collect()
}

/// Prints times, in the unit that suits them.
pub(crate) fn print_times(results: &[Result]) {
    println!("| way | median | p95 | ratio |\n|---|---|---|---|");
    for Result { name, median, high, ratio } in results {
        let ratio = ratio.map_or_else(|| "—".to_owned(), |(ratio, peer)| format!("{ratio:.2} × {peer}"));
        println!("| {name} | {} | {} | {ratio} |", time(*median), time(*high));
    }
}

/// Prints rates of transfers of `bytes`; the ratio is that of speeds.
pub(crate) fn print_rates(results: &[Result], bytes: u64) {
    println!("| way | median MB/s | slowest of 20 MB/s | ratio of speeds |\n|---|---|---|---|");
    for Result { name, median, high, ratio } in results {
        let ratio =
            ratio.map_or_else(|| "—".to_owned(), |(ratio, peer)| format!("{:.2} × {peer}", 1.0 / ratio));
        let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
        println!("| {name} | {:.0} | {:.0} | {ratio} |", rate(*median), rate(*high));
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 0.001 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

fn quantile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}
