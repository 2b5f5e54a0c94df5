//! Every byte a command wrote arrives before its end is told, and nobody waits for its surviving children.

use std::time::Duration;

use futures_util::StreamExt as _;
use sandboxer::{
    Create, Outcome,
    clock::{Clock as _, SystemClock},
    stream::Chunk,
};
use sandboxer_tests::servers;

const RUNS: usize = 500;

#[tokio::test(flavor = "multi_thread")]
async fn every_byte_arrives_before_the_exit_frame() {
    for (runner, server) in servers() {
        let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
        let failures = futures_util::stream::iter(0..RUNS)
            .map(|run| {
                let sandbox = sandbox.clone();
                async move {
                    let mut stream = sandbox.exec_stream("printf x").await.expect("the stream opens");
                    let mut seen = Vec::new();
                    while let Some(chunk) = stream.next().await {
                        match chunk.expect("a chunk") {
                            Chunk::Stdout(bytes) => seen.extend_from_slice(&bytes),
                            other => panic!("run {run}: {other:?}"),
                        }
                    }
                    assert_eq!(stream.outcome(), Some(Outcome::Exited(0)), "run {run}");
                    (seen != b"x").then_some((run, seen))
                }
            })
            .buffer_unordered(4)
            .filter_map(|failure| async move { failure })
            .collect::<Vec<_>>()
            .await;
        assert!(failures.is_empty(), "{runner}: {failures:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_child_writes_within_a_quarter_second_belongs_to_the_answer() {
    for (runner, server) in servers() {
        let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
        let wrong = futures_util::stream::iter(0..RUNS)
            .map(|run| {
                let sandbox = sandbox.clone();
                async move {
                    let output = sandbox.exec("printf a; (sleep 0.05; printf b) &").await.expect("it runs");
                    (output.stdout().as_ref() != b"ab" || output.exit_code() != Some(0))
                        .then_some((run, output))
                }
            })
            .buffer_unordered(4)
            .filter_map(|wrong| async move { wrong })
            .collect::<Vec<_>>()
            .await;
        assert!(wrong.is_empty(), "{runner}: {wrong:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_child_that_lives_on_and_it_keeps_writing() {
    for (runner, server) in servers() {
        let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
        let clock = SystemClock::new();
        let output = sandbox
            .exec("printf now; (for i in $(seq 40); do echo $i >>ticks; echo $i; sleep 0.1; done) &")
            .await
            .expect("it runs");
        let took = clock.elapsed();
        assert!(output.stdout_text().starts_with("now"), "{runner}: {output:?}");
        assert!(
            took < Duration::from_millis(1500),
            "{runner}: the answer took {took:?}, its child runs for 4 s"
        );

        let ticks = async || sandbox.files().read("ticks").await.expect("ticks").lines().count();
        let early = ticks().await;
        clock.sleep(Duration::from_secs(1)).await;
        let late = ticks().await;
        assert!(
            late >= early + 5,
            "{runner}: {early} lines, then {late}: the child has to live on and keep writing"
        );
    }
}
