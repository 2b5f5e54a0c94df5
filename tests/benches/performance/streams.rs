//! How fast output comes through: plain text in lines of 80 bytes, from a command and from memory.

use sandboxer::{AsyncCommand, AsyncSandbox, Command, Create, stream::Chunk};
use sandboxer_blocking::Sandboxer;
use sandboxer_mock_server::RunnerKind;
use serde_json::json;

use crate::{
    Effort,
    canned::{Canned, text},
    measure::{Lane, print_rates, take_turns},
    peers::{Raw, runtime, server},
};

/// What the local server keeps of a background command's output, and so the most that an attach can read afterwards.
const KEPT: u64 = 8 << 20;

pub(crate) fn run(effort: Effort) {
    let bytes = effort.pick(256_u64 << 20, 32 << 20);
    let rounds = effort.pick(5, 3);
    println!("### {} MiB from a server that answers from memory, frames of 8 KiB\n", bytes >> 20);
    from_memory(bytes, rounds);
    for kind in [RunnerKind::Process, RunnerKind::Isolated] {
        from_command(kind, bytes, rounds);
    }
}

/// A command that prints `bytes` bytes of text.
pub(crate) fn printing(bytes: u64) -> Command {
    Command::shell(line_that_prints(bytes)).timeout(std::time::Duration::from_secs(120))
}

fn line_that_prints(bytes: u64) -> String {
    format!("yes '{}' | head -c {bytes}", text(79))
}

fn from_memory(bytes: u64, rounds: usize) {
    let runtime = runtime();
    let canned = Canned::streaming(bytes);
    let sandbox = canned.client().sandbox("bx_1");
    let client = Sandboxer::from_async(canned.client());
    let twin = client.sandbox("bx_1");
    let raw = Raw::new(canned.url(), "key");
    let (posting, command) = (raw.clone(), sandbox.command(7));
    let mut lanes = [
        Lane::spawned("exec_stream, async", &runtime, move || {
            stream(sandbox.clone(), "anything".into(), bytes)
        })
        .against("raw drain of exec_stream"),
        Lane::blocking("exec_stream, blocking", || {
            let mut run = twin.exec_stream("anything").expect("a stream");
            let length: u64 = (&mut run).map(|chunk| length(&chunk.expect("a chunk"))).sum();
            assert_eq!(length, bytes);
        })
        .against("exec_stream, async"),
        Lane::spawned("raw drain of exec_stream", &runtime, move || {
            let raw = posting.clone();
            async move {
                let body = json!({"command": "anything", "stream": true});
                assert!(raw.post_and_drain("/sandboxes/bx_1/commands", &body).await > bytes);
            }
        }),
        Lane::spawned("attach, async", &runtime, move || attach(command.clone(), bytes))
            .against("raw drain of attach"),
        Lane::spawned("raw drain of attach", &runtime, move || {
            let raw = raw.clone();
            async move { assert!(raw.drain("/sandboxes/bx_1/commands/7/stream").await > bytes) }
        }),
    ];
    print_rates(&take_turns(&mut lanes, rounds, 1), bytes);
}

fn from_command(kind: RunnerKind, bytes: u64, rounds: usize) {
    let Some(server) = server(kind) else { return };
    let runtime = runtime();
    let sandbox = runtime.block_on(server.client().create(Create::new())).expect("a sandbox");
    let client = Sandboxer::from_async(server.client());
    let twin = client.sandbox(sandbox.id());
    let raw = Raw::new(server.url(), server.api_key());
    let path = format!("/sandboxes/{}/commands", sandbox.id());
    let body = json!({"command": line_that_prints(bytes), "stream": true, "timeoutSeconds": 120});

    // In a sandbox of its own: the streams below would push its output out of the 32 MiB that a sandbox keeps.
    let kept = runtime.block_on(async {
        let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
        let command = sandbox.start(printing(KEPT)).await.expect("it starts");
        command.wait().await.expect("its end");
        command
    });
    let attached = format!("/sandboxes/{}/commands/{}/stream", kept.sandbox().id(), kept.process_id());
    let getting = raw.clone();
    let mut lanes = [
        Lane::spawned("exec_stream, async", &runtime, move || {
            stream(sandbox.clone(), printing(bytes), bytes)
        })
        .against("raw drain"),
        Lane::blocking("exec_stream, blocking", || {
            let mut run = twin.exec_stream(printing(bytes)).expect("a stream");
            let length: u64 = (&mut run).map(|chunk| length(&chunk.expect("a chunk"))).sum();
            assert_eq!(length, bytes);
        })
        .against("exec_stream, async"),
        Lane::spawned("raw drain", &runtime, move || {
            let (raw, path, body) = (raw.clone(), path.clone(), body.clone());
            async move { assert!(raw.post_and_drain(&path, &body).await > bytes) }
        }),
    ];
    println!("\n### {} MiB from a command on the local server, runner `{kind}`\n", bytes >> 20);
    print_rates(&take_turns(&mut lanes, rounds, 1), bytes);

    let mut lanes = [
        Lane::spawned("attach, async", &runtime, move || attach(kept.clone(), KEPT)).against("raw drain"),
        Lane::spawned("raw drain", &runtime, move || {
            let (raw, path) = (getting.clone(), attached.clone());
            async move { assert!(raw.drain(&path).await > KEPT) }
        }),
    ];
    println!("\n### The {} MiB kept of a background command, runner `{kind}`\n", KEPT >> 20);
    print_rates(&take_turns(&mut lanes, rounds, 3), KEPT);
}

async fn stream(sandbox: AsyncSandbox, command: Command, bytes: u64) {
    let mut run = sandbox.exec_stream(command).await.expect("a stream");
    let mut seen = 0;
    while let Some(chunk) = run.next().await {
        seen += length(&chunk.expect("a chunk"));
    }
    assert_eq!(seen, bytes);
    assert!(run.wait().await.expect("its end").success());
}

async fn attach(command: AsyncCommand, bytes: u64) {
    let mut attach = command.attach().await.expect("a stream");
    let mut seen = 0;
    while let Some(chunk) = attach.next().await {
        seen += length(&chunk.expect("a chunk"));
    }
    assert_eq!(seen, bytes);
}

fn length(chunk: &Chunk) -> u64 {
    chunk.bytes().len() as u64
}
