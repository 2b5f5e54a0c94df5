//! The `scripted` runner: output on the clock, input, ends.

mod runner_support;

use std::time::Duration;

use runner_support::*;
use sandboxer::clock::ManualClock;
use sandboxer_mock_server::runner::{CommandSpec, Exit, Runner as _, Script, ScriptedRunner, Space};

fn scene() -> (ManualClock, ScriptedRunner, tempfile::TempDir, Space) {
    let clock = ManualClock::new();
    let runner = ScriptedRunner::new(clock.shared());
    let folder = tempfile::tempdir().unwrap();
    let space = Space::new("one", folder.path());
    (clock, runner, folder, space)
}

#[tokio::test]
async fn a_script_is_played_on_the_clock() {
    let (clock, runner, _folder, space) = scene();
    let minute = Duration::from_secs(60);
    runner.on("make", Script::new().stdout("building\n").pause(minute).stderr("broken\n").exit(2));
    let running = runner.spawn(&space, shell("make test")).await.unwrap();
    in_time(clock.wait_for_sleep_of(minute)).await;
    assert_eq!(text(running.output().stdout()), "building\n");
    assert_eq!((running.output().stderr().end(), running.try_exit()), (0, None));
    clock.advance(minute);
    assert_eq!(in_time(running.wait()).await, Exit::with_code(2));
    assert_eq!(text(running.output().stderr()), "broken\n");
    assert!(running.output().stdout().is_closed());
}

#[tokio::test]
async fn unknown_commands_say_so_and_later_rules_win() {
    let (_clock, runner, _folder, space) = scene();
    let running = runner.spawn(&space, shell("ls -l")).await.unwrap();
    assert_eq!(in_time(running.wait()).await, Exit::with_code(127));
    assert_eq!(text(running.output().stderr()), "not scripted: ls -l\n");
    runner.on("ls", Script::new().exit(1)).on("ls -l", Script::new().stdout("long"));
    runner.on_match(|spec| spec.argv[0] == "kill-me", Script::new().die_of(6));
    runner.on("eat", Script::new().out_of_memory());
    for (spec, exit) in [
        (shell("ls"), Exit::with_code(1)),
        (CommandSpec::new(["ls", "-l", "x"]), Exit::with_code(0)),
        (CommandSpec::new(["kill-me"]), Exit::with_signal(6)),
        (shell("eat all"), Exit { oom_killed: true, ..Exit::with_signal(9) }),
    ] {
        assert_eq!(in_time(runner.spawn(&space, spec).await.unwrap().wait()).await, exit);
    }
}

#[tokio::test]
async fn input_is_echoed_until_it_ends() {
    let (_clock, runner, _folder, space) = scene();
    runner.on("cat", Script::new().echo_input().stdout("."));
    let mut spec = shell("cat");
    spec.stdin = true;
    let running = runner.spawn(&space, spec).await.unwrap();
    let mut stdin = running.take_stdin().unwrap();
    stdin.write(b"ping").await.unwrap();
    until_printed(&running, "ping").await;
    stdin.close().await.unwrap();
    assert_eq!(in_time(running.wait()).await, Exit::with_code(0));
    assert_eq!(text(running.output().stdout()), "ping.");
}

#[tokio::test]
async fn kills_and_signals_are_honoured() {
    let (clock, runner, _folder, space) = scene();
    runner.on("polite", Script::new().never_end()).on("stubborn", Script::new().never_end().ignore_term());
    let polite = runner.spawn(&space, shell("polite")).await.unwrap();
    polite.signal(18).await.unwrap();
    assert_eq!(polite.try_exit(), None);
    in_time(polite.kill_tree(GRACE)).await;
    assert_eq!(in_time(polite.wait()).await, Exit::with_signal(15));

    let stubborn = runner.spawn(&space, shell("stubborn")).await.unwrap();
    let kill = tokio::spawn({
        let stubborn = stubborn.clone();
        async move { stubborn.kill_tree(GRACE).await }
    });
    in_time(clock.wait_for_sleep_of(GRACE)).await;
    assert_eq!(stubborn.try_exit(), None);
    clock.advance(GRACE);
    in_time(kill).await.unwrap();
    assert_eq!(in_time(stubborn.wait()).await, Exit::with_signal(9));

    let interrupted = runner.spawn(&space, shell("polite")).await.unwrap();
    interrupted.signal(2).await.unwrap();
    assert_eq!(in_time(interrupted.wait()).await, Exit::with_signal(2));
    assert!(interrupted.signal(-1).await.is_err());

    let left = runner.spawn(&space, shell("stubborn")).await.unwrap();
    in_time(runner.shutdown()).await;
    assert_eq!(in_time(left.wait()).await, Exit::with_signal(9));
}
