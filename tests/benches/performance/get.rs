//! The round trip of a small answer.

use sandboxer::Create;
use sandboxer_blocking::Sandboxer;
use sandboxer_mock_server::RunnerKind;

use crate::{
    Effort,
    canned::Canned,
    measure::{Lane, print_times, take_turns},
    peers::{Raw, runtime, server},
};

pub(crate) fn run(effort: Effort) {
    let Some(server) = server(RunnerKind::Process) else { return };
    let runtime = runtime();
    let sandbox = runtime.block_on(server.client().create(Create::new())).expect("a sandbox");
    println!("### Reading a sandbox from the local server\n");
    let raw = Raw::new(server.url(), server.api_key());
    three_ways(effort, &server.client(), &raw, sandbox.id());

    let canned = Canned::start();
    println!("\n### The same from a server that answers from memory\n");
    three_ways(effort, &canned.client(), &Raw::new(canned.url(), "key"), "bx_1");
}

fn three_ways(effort: Effort, client: &sandboxer::AsyncSandboxer, raw: &Raw, id: &str) {
    let runtime = runtime();
    let twin = Sandboxer::from_async(client.clone());
    let api = client.api().clone();
    let (own, path, raw) = (id.to_owned(), format!("/sandboxes/{id}"), raw.clone());
    let mut lanes = [
        Lane::spawned("async", &runtime, move || {
            let (api, id) = (api.clone(), own.clone());
            async move { drop(api.get(&id).await.expect("an answer")) }
        })
        .against("raw GET"),
        Lane::blocking("blocking", || drop(twin.api().get(id).expect("an answer"))).against("async"),
        Lane::spawned("raw GET", &runtime, move || {
            let (raw, path) = (raw.clone(), path.clone());
            async move { drop(raw.get(&path).await) }
        }),
    ];
    print_times(&take_turns(&mut lanes, effort.pick(20, 5), effort.pick(200, 50)));
}
