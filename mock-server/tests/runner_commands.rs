//! What a command gets, prints and ends with: the same for both runners that really run commands.

mod runner_support;

use std::{path::Path, time::Duration};

use runner_support::*;
use sandboxer::clock::{Clock as _, ManualClock, SystemClock};
use sandboxer_mock_server::runner::{CommandSpec, Exit, OutputMode, PtySize, RunnerError, RunnerKind};

#[tokio::test]
async fn output_and_exit_codes_come_back() {
    for bench in Bench::real().await {
        let space = bench.space("one").await;
        let done = bench.sh(&space, "echo out; echo err >&2; exit 3").await;
        assert_eq!((done.stdout.as_str(), done.stderr.as_str(), done.code()), ("out\n", "err\n", 3));
        let done = bench.sh(&space, "kill -KILL $$").await;
        assert_eq!(done.exit, Exit::with_signal(9));
        let done = bench.sh(&space, "kill -TERM $$").await;
        assert_eq!(done.exit, Exit::with_signal(15));
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn arguments_and_variables_arrive_as_they_were_given() {
    for bench in Bench::real().await {
        let space = bench.space("one").await;
        let odd = ["", " ", "a b", "$HOME", "'\"\\", "-n", "\n", "é", "*"];
        let spec = with_env(CommandSpec::new(["printf", "[%s]"].into_iter().chain(odd)));
        let running = bench.start(&space, spec).await;
        assert_eq!(running.wait().await, Exit::with_code(0));
        assert_eq!(text(running.output().stdout()), odd.map(|word| format!("[{word}]")).concat());

        let mut spec = with_env(CommandSpec::new(["env", "-0"]));
        let given = [
            ("PLAIN", "1"),
            ("EMPTY", ""),
            ("ODD", "a b\n$(id) 'x' \"y\" \\ `z`"),
            ("with.dot", "dotted"),
            ("LD_LIBRARY_PATH", "/nonexistent"),
            ("IFS", "0123456789"),
            ("OPTIND", "not a number"),
            ("left", "l"),
        ];
        spec.env.extend(given.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let running = bench.start(&space, spec).await;
        assert_eq!(running.wait().await, Exit::with_code(0));
        let seen = text(running.output().stdout());
        let seen: Vec<&str> = seen.split_terminator('\0').collect();
        for (name, value) in given {
            assert!(seen.contains(&format!("{name}={value}").as_str()), "{name} is missing from {seen:?}");
        }
        assert!(!seen.iter().any(|entry| entry.to_lowercase().starts_with("_sandbox")), "{seen:?}");
        assert!(!seen.iter().any(|entry| entry.starts_with("CARGO")), "{seen:?}");
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn commands_start_in_their_folder() {
    for bench in Bench::real().await {
        let space = bench.space("one").await;
        assert_eq!(
            bench.sh(&space, "mkdir -p 'my dir'; pwd; cd; pwd").await.stdout.lines().collect::<Vec<_>>(),
            {
                let home = bench.home(&space).to_string_lossy().into_owned();
                [home.clone(), home]
            }
        );
        let mut spec = shell("echo here > file; pwd");
        spec.cwd = "/home/user/my dir".to_owned();
        let running = bench.start(&space, spec).await;
        assert_eq!(running.wait().await, Exit::with_code(0));
        assert_eq!(std::fs::read_to_string(space.home().join("my dir/file")).unwrap(), "here\n");
        for cwd in ["/home/user/none", "/usr", "/home/user/../..", "relative", "", "/home/username", "/home"]
        {
            let mut spec = shell("true");
            spec.cwd = cwd.to_owned();
            let refused = bench.runner.spawn(&space, spec).await;
            assert!(
                matches!(&refused, Err(RunnerError::BadCwd(folder)) if folder == cwd),
                "{cwd}: {refused:?}"
            );
        }
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_refused() {
    for bench in Bench::real().await {
        let space = bench.space("one").await;
        for program in ["no-such-program", "/home/user/none", "", "-c"] {
            let refused = bench.runner.spawn(&space, with_env(CommandSpec::new([program]))).await;
            assert!(matches!(&refused, Err(RunnerError::NotFound(name)) if name == program), "{refused:?}");
        }
        let mut bad_name = shell("true");
        bad_name.env.push(("A=B".to_owned(), String::new()));
        for spec in
            [CommandSpec::new(Vec::<String>::new()), with_env(CommandSpec::new(["echo", "a\0b"])), bad_name]
        {
            let refused = bench.runner.spawn(&space, spec).await;
            assert!(matches!(refused, Err(RunnerError::Invalid(_))), "{refused:?}");
        }
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn input_reaches_the_command_and_ends() {
    for bench in Bench::real().await {
        let space = bench.space("one").await;
        let mut spec = with_env(CommandSpec::new(["cat"]));
        spec.stdin = true;
        let running = bench.start(&space, spec).await;
        let mut stdin = running.take_stdin().unwrap();
        assert!(running.take_stdin().is_none());
        stdin.write(b"hello").await.unwrap();
        until_printed(&running, "hello").await;
        let big = vec![b'x'; 1_000_000];
        stdin.write(&big).await.unwrap();
        stdin.close().await.unwrap();
        assert_eq!(in_time(running.wait()).await, Exit::with_code(0));
        assert_eq!(running.output().stdout().end(), 1_000_005);

        let without = bench.start(&space, shell("cat; readlink /proc/self/fd/0")).await;
        assert!(without.take_stdin().is_none());
        in_time(without.wait()).await;
        assert_eq!(text(without.output().stdout()), "/dev/null\n");
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn bytes_survive_and_limits_hold() {
    for bench in Bench::real().await {
        let space = bench.space("one").await;
        let line = "head -c 100000 /dev/urandom > random; cat random";
        let running = bench.start(&space, shell(line)).await;
        in_time(running.wait()).await;
        assert_eq!(bytes(running.output().stdout()), std::fs::read(space.home().join("random")).unwrap());

        let mut spec = shell("head -c 300000 /dev/zero; echo end");
        spec.output_limit = 1000;
        let running = bench.start(&space, spec.clone()).await;
        assert_eq!(in_time(running.wait()).await, Exit::with_code(0));
        let out = running.output().stdout();
        assert_eq!((out.start(), out.end(), out.received(), out.truncated()), (0, 1000, 300_004, true));

        spec.output = OutputMode::KeepLast;
        let running = bench.start(&space, spec).await;
        assert_eq!(in_time(running.wait()).await, Exit::with_code(0));
        let out = running.output().stdout();
        assert_eq!((out.start(), out.end(), out.truncated()), (299_004, 300_004, true));
        assert!(bytes(out).ends_with(b"\0end\n"));
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn a_slow_reader_holds_the_command_back_and_loses_nothing() {
    for bench in Bench::real().await {
        let space = bench.space("one").await;
        let running = bench.start(&space, paced(shell("seq 1 200000; echo done > finished"), 10_000)).await;
        let mut reader = running.output().stdout().consumer(0);
        SystemClock::new().sleep(Duration::from_millis(100)).await;
        assert!(!space.home().join("finished").exists(), "the command ran ahead of its reader");
        let mut seen = Vec::new();
        while let Some(chunk) = in_time(reader.next(1000)).await {
            assert_eq!(chunk.offset, seen.len() as u64);
            seen.extend_from_slice(&chunk.bytes);
        }
        let expected: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
        assert!(seen == expected.as_bytes());
        assert_eq!(in_time(running.wait()).await, Exit::with_code(0));

        let running = bench.start(&space, paced(shell("seq 1 200000; exit 5"), 10_000)).await;
        drop(running.output().stdout().consumer(0));
        assert_eq!(in_time(running.wait()).await, Exit::with_code(5));

        let running = bench.start(&space, paced(shell("seq 1 200000; echo done > dropped"), 10_000)).await;
        drop(running);
        until("a command nobody reads ends", || space.home().join("dropped").exists()).await;
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn a_background_child_adds_to_the_answer_for_a_moment_and_lives_on() {
    for bench in Bench::real().await {
        let space = bench.space("one").await;
        for _ in 0..20 {
            let done = bench.sh(&space, "printf a; (sleep 0.05; printf b) &").await;
            assert_eq!(done.stdout, "ab");
        }
        let clock = SystemClock::new();
        let line = "(for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do sleep 0.1; echo $n; echo $n >> log; done) & echo first";
        let done = bench.sh(&space, line).await;
        assert!(clock.elapsed() < Duration::from_millis(900), "waited for a background child");
        assert!(done.stdout.starts_with("first\n") && !done.stdout.contains("9\n"), "{done:?}");
        let log = space.home().join("log");
        let before = file_len(&log);
        until("the child lives on", || file_len(&log) > before && file_len(&log) >= 33).await;
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn the_drain_window_is_250_ms_of_the_clock() {
    for kind in [RunnerKind::Isolated, RunnerKind::Process] {
        let clock = ManualClock::new();
        let Some(bench) = ({
            // The trial run of `isolated` has no background child, so nothing waits for the clock.
            Bench::with_clock(kind, clock.shared()).await
        }) else {
            continue;
        };
        let space = bench.space("one").await;
        let running = bench.start(&space, shell("echo first; sleep 1000 &")).await;
        in_time(clock.wait_for_sleep_of(Duration::from_millis(250))).await;
        assert_eq!(running.try_exit(), None);
        clock.advance(Duration::from_millis(249));
        tokio::task::yield_now().await;
        assert_eq!(running.try_exit(), None);
        clock.advance(Duration::from_millis(1));
        assert_eq!(in_time(running.wait()).await, Exit::with_code(0));
        assert_eq!(text(running.output().stdout()), "first\n");
        assert!(running.output().stdout().is_closed());
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn a_terminal_is_a_terminal() {
    for bench in Bench::real().await {
        let space = bench.space("one").await;
        let mut spec = shell("tty; stty size; echo err >&2; read line; stty size; echo \"got $line\"");
        spec.pty = Some(PtySize { rows: 33, cols: 99 });
        let running = bench.start(&space, spec.clone()).await;
        until_printed(&running, "err").await;
        running.resize(PtySize { rows: 20, cols: 70 }).unwrap();
        let mut stdin = running.take_stdin().unwrap();
        stdin.write(b"hello\n").await.unwrap();
        assert_eq!(in_time(running.wait()).await, Exit::with_code(0));
        let seen = text(running.output().stdout());
        let lines: Vec<&str> = seen.split("\r\n").collect();
        assert!(lines[0].starts_with("/dev/pts/"), "{lines:?}");
        assert_eq!(lines[1..], ["33 99", "err", "hello", "20 70", "got hello", ""]);
        assert_eq!(running.output().stderr().end(), 0);

        // The terminal is the controlling one: Ctrl-C interrupts, end-of-file ends the input.
        spec.argv =
            ["sh", "-c", "trap 'echo interrupted; exit 7' INT; echo ready; while :; do sleep 0.05; done"]
                .map(str::to_owned)
                .to_vec();
        let running = bench.start(&space, spec.clone()).await;
        until_printed(&running, "ready").await;
        running.take_stdin().unwrap().write(&[3]).await.unwrap();
        assert_eq!(in_time(running.wait()).await, Exit::with_code(7));
        assert!(text(running.output().stdout()).contains("interrupted"));

        spec.argv = vec!["cat".to_owned()];
        let running = bench.start(&space, spec).await;
        running.take_stdin().unwrap().close().await.unwrap();
        assert_eq!(in_time(running.wait()).await, Exit::with_code(0));

        let plain = bench.start(&space, shell("true")).await;
        assert!(plain.resize(PtySize { rows: 1, cols: 1 }).is_err());
        bench.runner.shutdown().await;
    }
}

/// A background job of a script, say, has the keyboard's signals ignored, and what it starts inherits that.
#[test]
fn signals_that_the_server_ignores_are_not_ignored_in_commands() {
    let can_reset = std::process::Command::new("env").args(["--default-signal", "true"]).output();
    if !can_reset.is_ok_and(|tried| tried.status.success()) || !Path::new("/proc/self/status").exists() {
        skip("this system's env cannot reset signals, or nothing tells which are ignored");
        return;
    }
    let tests = ["a_terminal_is_a_terminal", "signals_reach_the_command_and_every_waiter_learns_the_end"];
    let run = std::process::Command::new("sh")
        .args(["-c", r#"trap '' HUP INT QUIT TERM USR1; exec "$@""#, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .args(tests)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("2 passed"), "{said}");
}

#[tokio::test]
async fn signals_reach_the_command_and_every_waiter_learns_the_end() {
    for bench in Bench::real().await {
        let space = bench.space("one").await;
        let running = bench
            .start(&space, shell("trap 'echo usr; exit 4' USR1; echo ready; while :; do sleep 0.02; done"))
            .await;
        until_printed(&running, "ready").await;
        let waiters: Vec<_> = (0..3)
            .map(|_| {
                tokio::spawn({
                    let running = running.clone();
                    async move { running.wait().await }
                })
            })
            .collect();
        assert!(running.signal(99_999).await.is_err());
        running.signal(10).await.unwrap();
        for waiter in waiters {
            // Its `sleep` has no trap and dies of the signal; the shell's own answer is what counts.
            assert_eq!(in_time(waiter).await.unwrap(), Exit::with_code(4));
        }
        assert_eq!(running.try_exit(), Some(Exit::with_code(4)));
        bench.runner.shutdown().await;
    }
}

#[tokio::test]
async fn processes_are_listed() {
    for bench in Bench::real().await {
        let space = bench.space("one").await;
        assert!(bench.runner.processes(&space).await.unwrap().is_empty());
        let seconds = unique_seconds();
        let running = bench.start(&space, shell(&format!("sleep {seconds} & wait"))).await;
        let mut found = Vec::new();
        for _ in 0..200 {
            found = bench.runner.processes(&space).await.unwrap();
            if found.iter().any(|process| process.command == format!("sleep {seconds}")) {
                break;
            }
            SystemClock::new().sleep(Duration::from_millis(10)).await;
        }
        let sleep =
            found.iter().find(|process| process.command == format!("sleep {seconds}")).expect("the sleep");
        let main = found.iter().find(|process| process.pid == running.pid()).expect("the shell");
        assert_eq!(sleep.parent, main.pid);
        assert!(main.command.starts_with("/bin/sh -c sleep"));
        assert!(main.memory_mb > 0.01 && main.memory_mb < 1000.0, "{main:?}");
        assert!(main.cpu_percent >= 0.0);
        let age = SystemClock::new().now().duration_since(main.started_at).unwrap_or_default();
        assert!(age < Duration::from_secs(120), "{age:?}");
        if bench.runner.name() == "isolated" {
            assert_eq!(main.user, "user");
            assert!(main.pid < 1000, "the sandbox counts its own processes");
        }
        bench.runner.shutdown().await;
        assert_eq!(in_time(running.wait()).await, Exit::with_signal(9));
        let refused = bench.runner.spawn(&space, shell("true")).await;
        assert!(matches!(refused, Err(RunnerError::Unavailable(_))), "{refused:?}");
    }
}
