//! Ending commands: whole trees, however they hide, and nothing but them.

mod runner_support;

use std::time::Duration;

use runner_support::*;
use sandboxer::clock::{Clock as _, ManualClock, SharedClock, SystemClock};
use sandboxer_mock_server::runner::{Exit, RunnerKind, Running, Space};

/// Seven ways for a `sleep` to get away from the command that started it; `$1` is how long it sleeps.
const RUNAWAYS: &str = r#"
sleep $1 &
setsid sleep $1 &
(sleep $1 &) &
sh -c "(setsid sleep $1 &) &"
env -i setsid sleep $1 &
env -i sh -c "setsid sh -c '(/bin/sleep $1 &)' &"
nohup sleep $1 >/dev/null 2>&1 &
"#;
const RUNAWAY_COUNT: usize = 7;

async fn start_runaways(bench: &Bench, space: &Space, before: &str, seconds: &str, after: &str) -> Running {
    let line = format!("{before}\nset -- {seconds}\n{RUNAWAYS}\n{after}");
    let running = bench.start(space, shell(&line)).await;
    until("all have started", || host_processes_with(&format!("sleep\0{seconds}")).len() >= RUNAWAY_COUNT)
        .await;
    running
}

fn sleepers(seconds: &str) -> usize {
    host_processes_with(&format!("sleep\0{seconds}")).len()
}

/// The runners and machines on which no process gets away.
async fn thorough(clock: impl Fn() -> SharedClock) -> Vec<Bench> {
    let mut benches = Vec::new();
    for kind in [RunnerKind::Isolated, RunnerKind::Process] {
        if let Some(bench) = Bench::with_clock(kind, clock()).await {
            if bench.runner.limitations().unwrap_or_default().contains("outlives a kill") {
                skip(format_args!("{}: commands cannot be marked here", bench.runner.name()));
                continue;
            }
            benches.push(bench);
        }
    }
    benches
}

#[tokio::test]
async fn a_kill_ends_the_whole_tree_at_once_when_term_suffices() {
    for bench in thorough(SystemClock::shared).await {
        let space = bench.space("one").await;
        let other = unique_seconds();
        let bystander = bench.start(&space, shell(&format!("sleep {other}"))).await;
        let seconds = unique_seconds();
        let running = start_runaways(&bench, &space, "", &seconds, &format!("exec sleep {seconds}")).await;
        let clock = SystemClock::new();
        in_time(running.kill_tree(GRACE)).await;
        assert!(clock.elapsed() < Duration::from_secs(4), "{:?}", clock.elapsed());
        assert_eq!(sleepers(&seconds), 0);
        assert_eq!(in_time(running.wait()).await, Exit::with_signal(15));
        assert_eq!((sleepers(&other), bystander.try_exit()), (1, None), "a bystander was hit");
        in_time(running.kill_tree(GRACE)).await;
        bench.runner.shutdown().await;
        assert_eq!(sleepers(&other), 0);
    }
}

#[tokio::test]
async fn a_tree_that_ignores_term_is_killed_after_the_grace() {
    let clock = ManualClock::new();
    for bench in thorough(|| clock.shared()).await {
        let space = bench.space("one").await;
        let seconds = unique_seconds();
        let running =
            start_runaways(&bench, &space, "trap '' TERM", &seconds, "while :; do sleep 1; done").await;
        let killed = tokio::spawn({
            let running = running.clone();
            async move { running.kill_tree(GRACE).await }
        });
        in_time(clock.wait_for_sleep_of(GRACE)).await;
        clock.advance(GRACE - Duration::from_millis(1));
        SystemClock::new().sleep(Duration::from_millis(50)).await;
        assert!(!killed.is_finished() && sleepers(&seconds) == RUNAWAY_COUNT);
        clock.advance(Duration::from_millis(1));
        in_time(killed).await.unwrap();
        assert_eq!(sleepers(&seconds), 0);
        assert_eq!(in_time(running.wait()).await, Exit::with_signal(9));
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn a_kill_that_nobody_waits_for_is_carried_through() {
    let clock = ManualClock::new();
    for bench in thorough(|| clock.shared()).await {
        let space = bench.space("one").await;
        let seconds = unique_seconds();
        let running = bench
            .start(&space, shell(&format!("trap '' TERM; echo ready; while :; do sleep {seconds}; done")))
            .await;
        until_printed(&running, "ready").await;
        {
            let killed = running.kill_tree(GRACE);
            tokio::select! {
                biased;
                () = killed => panic!("TERM was ignored"),
                () = clock.wait_for_sleep_of(GRACE) => {}
            }
        }
        clock.advance(GRACE);
        assert_eq!(in_time(running.wait()).await, Exit::with_signal(9));
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn stopped_commands_can_be_continued_and_killed() {
    for bench in thorough(SystemClock::shared).await {
        let space = bench.space("one").await;
        let running = bench.start(&space, shell("echo before; kill -STOP $$; echo after")).await;
        until_printed(&running, "before").await;
        SystemClock::new().sleep(Duration::from_millis(50)).await;
        assert_eq!(running.try_exit(), None);
        running.signal(18).await.unwrap();
        assert_eq!(in_time(running.wait()).await, Exit::with_code(0));
        assert_eq!(text(running.output().stdout()), "before\nafter\n");

        let running = bench.start(&space, shell("echo before; kill -STOP $$; echo after")).await;
        until_printed(&running, "before").await;
        in_time(running.kill_tree(Duration::ZERO)).await;
        assert_eq!(in_time(running.wait()).await, Exit::with_signal(9));
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn a_command_that_ended_leaves_its_background_children_to_later_ones() {
    for bench in thorough(SystemClock::shared).await {
        let space = bench.space("one").await;
        let seconds = unique_seconds();
        let first = start_runaways(&bench, &space, "", &seconds, "exit 0").await;
        assert_eq!(in_time(first.wait()).await, Exit::with_code(0));
        let others = unique_seconds();
        let second = start_runaways(&bench, &space, "", &others, "wait").await;
        in_time(second.kill_tree(GRACE)).await;
        assert_eq!((sleepers(&seconds), sleepers(&others)), (RUNAWAY_COUNT, 0));
        in_time(first.kill_tree(GRACE)).await;
        assert_eq!(sleepers(&seconds), 0);
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn ending_a_sandbox_ends_all_of_it_and_only_it() {
    for bench in thorough(SystemClock::shared).await {
        let (one, two) = (bench.space("one").await, bench.space("two").await);
        let (mine, background, theirs) = (unique_seconds(), unique_seconds(), unique_seconds());
        let running = start_runaways(&bench, &one, "trap '' TERM", &mine, "wait").await;
        let ended = start_runaways(&bench, &one, "", &background, "exit 0").await;
        in_time(ended.wait()).await;
        let other = start_runaways(&bench, &two, "", &theirs, "wait").await;
        in_time(bench.runner.end_space("one")).await;
        assert_eq!((sleepers(&mine), sleepers(&background), sleepers(&theirs)), (0, 0, RUNAWAY_COUNT));
        assert_eq!(in_time(running.wait()).await, Exit::with_signal(9));
        assert_eq!(other.try_exit(), None);
        in_time(bench.runner.end_space("one")).await;
        in_time(bench.runner.end_space("unknown")).await;
        assert_eq!(
            bench.sh(&one, "echo again").await.stdout,
            "again\n",
            "a sandbox can be used after a stop"
        );
        in_time(bench.runner.shutdown()).await;
        assert_eq!(sleepers(&theirs), 0);
        let folder = bench.folder.path().to_string_lossy().into_owned();
        assert_eq!(host_processes_with(&folder), [0u32; 0], "something of the runner was left behind");
    }
}

#[tokio::test]
async fn washing_off_the_mark_does_not_help() {
    let Some(bench) = Bench::new(RunnerKind::Isolated).await else { return };
    let space = bench.space("one").await;
    let seconds = unique_seconds();
    let line = format!(
        "unshare --user --cgroup --fork sleep {seconds} &\n\
         (setsid unshare --user --cgroup sh -c '(sleep {seconds} &)' &)\nwait; echo ready; sleep {seconds}"
    );
    let running = bench.start(&space, shell(&line)).await;
    // Where user namespaces are forbidden the mark cannot be washed off to begin with.
    until("they run or cannot", || {
        sleepers(&seconds) >= 2 || text(running.output().stdout()).contains("ready")
    })
    .await;
    in_time(running.kill_tree(GRACE)).await;
    assert_eq!(sleepers(&seconds), 0);
    bench.runner.shutdown().await;
}

#[tokio::test]
async fn a_process_that_forks_faster_than_it_can_be_killed_ends_with_its_sandbox() {
    let Some(bench) = Bench::new(RunnerKind::Isolated).await else { return };
    let space = bench.space("one").await;
    let seconds = unique_seconds();
    let line = format!("f() {{ : {seconds}; (f &) ; }}; trap '' TERM; echo ready; f; sleep {seconds}");
    let running = bench.start(&space, shell(&line)).await;
    until_printed(&running, "ready").await;
    in_time(running.kill_tree(Duration::from_millis(100))).await;
    in_time(running.wait()).await;
    assert_eq!(host_processes_with(&seconds), [0u32; 0]);
    bench.runner.shutdown().await;
}

#[tokio::test]
async fn killing_everything_inside_does_not_end_the_sandbox() {
    let Some(bench) = Bench::new(RunnerKind::Isolated).await else { return };
    let space = bench.space("one").await;
    let seconds = unique_seconds();
    let other = bench.start(&space, shell(&format!("sleep {seconds}"))).await;
    bench.sh(&space, "echo kept > /tmp/file; kill -KILL 1; kill -KILL -1; true").await;
    assert_eq!(in_time(other.wait()).await, Exit::with_signal(9));
    let before = bench.sh(&space, "cat /tmp/file; stat -c %Y /proc/1").await.stdout;
    assert!(before.starts_with("kept\n"));
    assert_eq!(bench.sh(&space, "cat /tmp/file; stat -c %Y /proc/1").await.stdout, before);
    bench.runner.shutdown().await;
}

#[tokio::test]
async fn a_command_whose_watcher_was_killed_is_not_left_alone() {
    let Some(bench) = Bench::new(RunnerKind::Isolated).await else { return };
    let space = bench.space("one").await;
    let seconds = unique_seconds();
    let running = bench.start(&space, shell(&format!("echo ready; sleep {seconds}; echo {seconds}"))).await;
    until_printed(&running, "ready").await;
    // It says that it is ready before it has started this.
    let sleeping = || host_processes_with(&format!("sleep\0{seconds}"));
    until("it sleeps", || !sleeping().is_empty()).await;
    let main = sleeping()[0];
    let parent_of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse::<u32>().unwrap()
    };
    let watcher = parent_of(parent_of(main));
    assert_ne!(watcher, std::process::id());
    assert!(
        std::process::Command::new("kill").args(["-KILL", &watcher.to_string()]).status().unwrap().success()
    );
    assert_eq!(in_time(running.wait()).await, Exit::with_signal(9));
    assert_eq!(sleepers(&seconds), 0);
    bench.runner.shutdown().await;
}

#[tokio::test]
async fn dropping_the_runner_ends_every_sandbox() {
    let Some(bench) = Bench::new(RunnerKind::Isolated).await else { return };
    let space = bench.space("one").await;
    let seconds = unique_seconds();
    let running = bench.start(&space, shell(&format!("setsid sleep {seconds} & sleep {seconds}"))).await;
    until("both run", || sleepers(&seconds) == 2).await;
    drop(running);
    let Bench { runner, folder: _folder } = bench;
    drop(runner);
    until("both are gone", || sleepers(&seconds) == 0).await;
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_nothing() {
    for bench in thorough(SystemClock::shared).await {
        let space = bench.space("one").await;
        bench.sh(&space, "true").await;
        let seconds = unique_seconds();
        for step in 0..30u64 {
            let spec = shell(&format!("sleep {seconds}"));
            let started = bench.runner.spawn(&space, spec);
            tokio::select! {
                started = started => started.unwrap().kill_tree(Duration::ZERO).await,
                () = SystemClock::new().sleep(Duration::from_micros(step * 200)) => {}
            }
        }
        until("what was given up has ended", || host_processes_with(&seconds).is_empty()).await;
        bench.runner.shutdown().await;
    }
}
