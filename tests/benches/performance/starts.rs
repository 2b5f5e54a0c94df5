//! From nothing to a sandbox, its first command, its end.

use sandboxer::{
    AsyncSandbox, AsyncSandboxer, Create,
    clock::{Clock as _, SystemClock},
};
use sandboxer_mock_server::RunnerKind;

use crate::{
    Effort,
    measure::{Lane, print_times, take_turns},
    peers::{runtime, server},
};

pub(crate) fn run(effort: Effort) {
    for kind in [RunnerKind::Process, RunnerKind::Isolated] {
        one_runner(kind, effort);
    }
}

/// A part of a sandbox's life that is timed; the rest is done, too, but does not count.
#[derive(Clone, Copy, PartialEq)]
enum Timed {
    Create,
    First,
    Delete,
}

fn one_runner(kind: RunnerKind, effort: Effort) {
    let Some(server) = server(kind) else { return };
    let runtime = runtime();
    let lane = |name, timed| {
        let client = server.client();
        Lane::spawned_timed(name, &runtime, move || {
            let client = client.clone();
            async move { life(&client, timed).await }
        })
    };
    let mut lanes = [
        lane("create until ready", Timed::Create),
        lane("first command `true`", Timed::First),
        lane("delete", Timed::Delete),
    ];
    let results = take_turns(&mut lanes, effort.pick(10, 3), effort.pick(4, 2));
    println!("### A sandbox's beginning and end, runner `{kind}`\n");
    print_times(&results);
    println!();
}

async fn life(client: &AsyncSandboxer, timed: Timed) -> std::time::Duration {
    let clock = SystemClock::new();
    let mut taken = std::time::Duration::ZERO;
    let mut note = |part, begin| {
        if part == timed {
            taken = clock.elapsed() - begin;
        }
    };
    let begin = clock.elapsed();
    let sandbox: AsyncSandbox = client.create(Create::new()).await.expect("a sandbox");
    note(Timed::Create, begin);
    let begin = clock.elapsed();
    assert!(sandbox.exec("true").await.expect("an output").success());
    note(Timed::First, begin);
    let begin = clock.elapsed();
    sandbox.delete().await.expect("it goes");
    note(Timed::Delete, begin);
    taken
}
