//! A command at its limit is ended with everything it started.

use std::time::Duration;

use sandboxer::{
    Command, Create, Outcome,
    clock::{Clock as _, SystemClock},
};
use sandboxer_mock_server::RunnerKind;
use sandboxer_tests::{processes, server};

/// The ways a process tries to get away; each ends in `sleep 30` with a marker of its own in `$0` or its arguments.
fn escapes(marker: &str) -> Vec<(&'static str, String, bool)> {
    let sleeper = format!("bash -c 'exec -a {marker} sleep 30'");
    vec![
        ("plain", sleeper.clone(), true),
        ("setsid", format!("setsid {sleeper} & {sleeper}"), true),
        ("double fork", format!("( ( {sleeper} ) & ) ; {sleeper}"), true),
        ("env -i", format!("env -i setsid {sleeper} & {sleeper}"), true),
        ("TERM ignored", format!("trap '' TERM; setsid {sleeper} & {sleeper}"), false),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_command_outlives_its_limit() {
    let Some(server) = server(RunnerKind::Isolated) else { return };
    let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
    for (index, (name, line, term_suffices)) in escapes("marker").into_iter().enumerate() {
        let marker = format!("sandboxer-limit-{}-{index}", std::process::id());
        let line = line.replace("marker", &marker);
        let clock = SystemClock::new();
        let output = sandbox
            .exec(Command::shell(line).timeout(Duration::from_secs(1)))
            .await
            .expect("an answer, not an error");
        let took = clock.elapsed();
        assert_eq!(output.outcome(), Outcome::TimedOut, "{name}: {output:?}");
        assert_eq!(output.exit_code(), None, "{name}");
        assert_eq!(processes::with_marker(&marker), Vec::<u32>::new(), "{name}: something lives on");
        let limit = if term_suffices { 2.5 } else { 7.5 };
        assert!(took >= Duration::from_secs(1), "{name}: ended early, after {took:?}");
        assert!(took < Duration::from_secs_f64(limit), "{name}: answered only after {took:?}");
        if !term_suffices {
            assert!(
                took >= Duration::from_secs(6),
                "{name}: KILL came before the grace was over, after {took:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_process_runner_ends_the_tree_it_can_see() {
    let server = server(RunnerKind::Process).expect("the process runner works everywhere");
    let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
    let marker = format!("sandboxer-process-{}", std::process::id());
    let line = format!("bash -c 'exec -a {marker} sleep 30' & bash -c 'exec -a {marker} sleep 30'");
    let output = sandbox.exec(Command::shell(line).timeout(Duration::from_secs(1))).await.expect("an answer");
    assert_eq!(output.outcome(), Outcome::TimedOut);
    assert_eq!(processes::with_marker(&marker), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamed_and_a_killed_command_leave_nothing_either() {
    let Some(server) = server(RunnerKind::Isolated) else { return };
    let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
    let marker = format!("sandboxer-kill-{}", std::process::id());
    let line = format!("setsid bash -c 'exec -a {marker} sleep 30' & echo up; sleep 30");

    let stream = sandbox
        .exec_stream(Command::shell(line.as_str()).timeout(Duration::from_secs(1)))
        .await
        .expect("it opens");
    let output = stream.keep_output(1024).wait().await.expect("its end");
    assert_eq!(output.outcome(), Outcome::TimedOut);
    assert_eq!(output.stdout_text(), "up\n");
    assert_eq!(processes::with_marker(&marker), Vec::<u32>::new(), "after a streamed command's limit");

    let command = sandbox.start(line.as_str()).await.expect("start");
    let mut attach = command.attach().await.expect("attach");
    assert_eq!(attach.next().await.expect("output").expect("a chunk").bytes(), b"up\n");
    assert!(!processes::with_marker(&marker).is_empty(), "the command runs");
    command.kill().await.expect("kill");
    assert_eq!(processes::with_marker(&marker), Vec::<u32>::new(), "after a kill");
    let output = command.wait().await.expect("its end");
    assert!(!output.success(), "{output:?}");
}
