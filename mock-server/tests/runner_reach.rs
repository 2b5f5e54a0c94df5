//! Connections to programs in a sandbox; passes as root and as an ordinary user.
#![cfg(target_os = "linux")]

mod runner_support;

use std::{
    io::ErrorKind,
    net::{Ipv4Addr, TcpListener},
};

use runner_support::*;
use sandboxer::clock::SystemClock;
use sandboxer_mock_server::runner::{CommandSpec, Network, RunnerKind, RunnerOptions, Running, Space};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Answers each connection with what came on it, in capitals, once the other side has said all.
const PROGRAM: &str = "use IO::Socket::INET; $| = 1; \
    my $l = IO::Socket::INET->new(LocalAddr => $ARGV[0], LocalPort => $ARGV[1], Listen => 5, ReuseAddr => 1) or die; \
    print qq(up\n); while (my $c = $l->accept) { local $/; my $said = <$c>; print $c uc $said; close $c }";

async fn listen(bench: &Bench, space: &Space, address: &str, port: u16) -> Running {
    let port = port.to_string();
    let spec = with_env(CommandSpec::new(["perl", "-e", PROGRAM, address, &port]));
    let running = bench.start(space, spec).await;
    until_printed(&running, "up").await;
    running
}

async fn refused(bench: &Bench, space: &Space, port: u16, loopback: bool) -> String {
    let error = in_time(bench.runner.connect(space, port, loopback)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
    error.to_string()
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

async fn benches() -> Vec<Bench> {
    let mut benches = Bench::real().await;
    let shared = RunnerOptions::new(SystemClock::shared()).network(Network::Host);
    benches.extend(Bench::with_options(RunnerKind::Isolated, shared).await);
    benches
}

#[tokio::test]
async fn what_listens_is_reached_and_says_all_it_has_to_say() {
    for bench in benches().await {
        let (space, port) = (bench.space("one").await, free_port());
        refused(&bench, &space, port, true).await;
        let running = listen(&bench, &space, "0.0.0.0", port).await;
        for loopback in [false, true] {
            let mut stream = in_time(bench.runner.connect(&space, port, loopback)).await.unwrap();
            let said = "a".repeat(300_000);
            in_time(stream.write_all(said.as_bytes())).await.unwrap();
            // The other side waits for the end of this one.
            stream.shutdown().await.unwrap();
            let mut heard = String::new();
            in_time(stream.read_to_string(&mut heard)).await.unwrap();
            assert!(heard == said.to_uppercase(), "{} bytes", heard.len());
        }
        running.kill_tree(GRACE).await;
        refused(&bench, &space, port, true).await;
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn loopback_is_reached_only_where_that_is_wanted() {
    for bench in benches().await {
        let (space, port) = (bench.space("one").await, free_port());
        let _running = listen(&bench, &space, "127.0.0.1", port).await;
        assert!(refused(&bench, &space, port, false).await.contains("loopback"));
        in_time(bench.runner.connect(&space, port, true)).await.unwrap();
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn the_hosts_programs_and_other_sandboxes_are_out_of_reach() {
    for bench in benches().await {
        let own = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let port = own.local_addr().unwrap().port();
        let (space, other) = (bench.space("one").await, bench.space("other").await);
        for space in [&space, &other] {
            bench.sh(space, "true").await;
            refused(&bench, space, port, true).await;
        }
        let free = free_port();
        let _running = listen(&bench, &space, "0.0.0.0", free).await;
        refused(&bench, &other, free, true).await;
        in_time(bench.runner.connect(&space, free, false)).await.unwrap();
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn a_runner_without_programs_says_that_it_has_none() {
    let bench = Bench::new(RunnerKind::Scripted).await.unwrap();
    let space = bench.space("one").await;
    let error = bench.runner.connect(&space, 80, true).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    bench.runner.shutdown().await;
}
