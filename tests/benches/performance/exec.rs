//! The round trip of a command that does nothing.

use sandboxer::Create;
use sandboxer_blocking::Sandboxer;
use sandboxer_mock_server::RunnerKind;
use serde_json::json;

use crate::{
    Effort,
    measure::{Lane, print_times, take_turns},
    peers::{Raw, RunnerAlone, bare, runtime, server},
};

const PROGRAM: [&str; 1] = ["/bin/true"];
const LINE: [&str; 3] = ["bash", "-c", "true"];

pub(crate) fn run(effort: Effort) {
    for kind in [RunnerKind::Process, RunnerKind::Isolated] {
        one_runner(kind, effort);
    }
}

fn one_runner(kind: RunnerKind, effort: Effort) {
    let Some(server) = server(kind) else { return };
    let runtime = runtime();
    let sandbox = runtime.block_on(server.client().create(Create::new())).expect("a sandbox");
    let client = Sandboxer::from_async(server.client());
    let twin = client.sandbox(sandbox.id());
    let raw = Raw::new(server.url(), server.api_key());
    let path = format!("/sandboxes/{}/commands", sandbox.id());
    let alone = runtime.block_on(RunnerAlone::new(kind));

    let (argv, shell) = (sandbox.clone(), sandbox);
    let runner = alone.clone();
    let mut lanes = [
        Lane::spawned("async, argv `/bin/true`", &runtime, move || {
            let sandbox = argv.clone();
            async move { assert!(sandbox.exec(PROGRAM).await.expect("an output").success()) }
        }),
        Lane::spawned("async, shell `true`", &runtime, move || {
            let sandbox = shell.clone();
            async move { assert!(sandbox.exec("true").await.expect("an output").success()) }
        })
        .against("raw POST"),
        Lane::blocking("blocking, argv `/bin/true`", || {
            assert!(twin.exec(PROGRAM).expect("an output").success());
        })
        .against("async, argv `/bin/true`"),
        Lane::blocking("blocking, shell `true`", || {
            assert!(twin.exec("true").expect("an output").success());
        })
        .against("async, shell `true`"),
        Lane::spawned("raw POST", &runtime, move || {
            let (raw, path) = (raw.clone(), path.clone());
            async move { drop(raw.post(&path, &json!({"command": "true"})).await) }
        }),
        Lane::spawned("runner alone, `bash -c true`", &runtime, move || {
            let runner = runner.clone();
            async move { runner.run(&LINE).await }
        })
        .against("bare `bash -c true`"),
        Lane::spawned("bare `bash -c true`", &runtime, || bare(&LINE)),
        Lane::spawned("bare `/bin/true`", &runtime, || bare(&PROGRAM)),
    ];
    let results = take_turns(&mut lanes, effort.pick(15, 4), effort.pick(20, 10));
    println!("### Round trip, runner `{kind}`\n");
    print_times(&results);
    println!();
    drop(lanes);
    runtime.block_on(alone.close());
}
