//! What holds for the verbs as types.

use super::super::*;
use crate::{Command, Offsets, models};

fn is_send<T: Send>(_: T) {}

/// What a task can own and a stream combinator can take.
fn is_a_stream<T: futures_core::Stream + Unpin + Send + 'static>() {}

#[test]
fn streams_can_be_owned_by_tasks() {
    is_a_stream::<ExecStream>();
    is_a_stream::<Attach>();
    is_a_stream::<LogStream>();
    is_a_stream::<crate::ByteBody>();
    is_a_stream::<crate::stream::Pager<AsyncSandbox>>();
}

#[test]
fn values_can_cross_threads() {
    fn is_a_value<T: Send + Sync + 'static>() {}
    is_a_value::<crate::Error>();
    is_a_value::<crate::Output>();
    is_a_value::<Create>();
    is_a_value::<Command>();
    is_a_value::<crate::CallOptions>();
    is_a_value::<crate::Builder>();
    assert_eq!(size_of::<crate::Error>(), size_of::<usize>());
}

#[expect(
    dead_code,
    reason = "it only has to compile: a spawned task must be able to hold every verb's future"
)]
fn every_future_can_be_spawned(client: AsyncSandboxer, sandbox: AsyncSandbox, command: AsyncCommand) {
    is_send(client.create(Create::new()));
    is_send(client.get("id"));
    is_send(client.list(ListOptions::new()).collect());
    is_send(client.scoped(Create::new(), |sandbox| async move { sandbox.exec("true").await }));
    is_send(client.close());
    is_send(client.me());
    is_send(client.limits());
    is_send(client.api().request(http::Method::GET, "/me", RequestOptions::new()));
    is_send(client.api().command("id", models::CommandRequest::new("true")));
    is_send(sandbox.refresh());
    is_send(sandbox.wait_until_ready());
    is_send(sandbox.stop_with(Stop::new()));
    is_send(sandbox.update(Update::new()));
    is_send(sandbox.extend(Ttl::Never));
    is_send(sandbox.usage(models::UsageParams::new()));
    is_send(sandbox.files().read("a"));
    is_send(sandbox.files().read_bytes("a"));
    is_send(sandbox.files().write("a", vec![0_u8]));
    is_send(sandbox.files().download("a"));
    is_send(sandbox.files().download_to("a", Vec::new()));
    is_send(command.attach());
    is_send(command.status(models::CommandStatusParams::new()));
    is_send(command.logs(crate::stream::OutputStream::Stdout).collect(1));
    is_send(sandbox.exec("true"));
    is_send(sandbox.exec(["true"]));
    is_send(sandbox.exec_stream(Command::shell("true")));
    is_send(sandbox.start("true"));
    is_send(sandbox.stop());
    is_send(sandbox.resume(Resume::new()));
    is_send(sandbox.fork(Fork::new()));
    is_send(sandbox.delete());
    is_send(sandbox.wait_for_state(&[models::SandboxState::Ready], None));
    is_send(command.attach_from(Offsets::default()));
    is_send(command.wait());
    is_send(command.kill());
    is_send(async move { command.attach().await?.wait().await });
    is_send(async move { sandbox.exec_stream("true").await?.wait().await });
}

#[test]
fn handles_are_shareable() {
    fn is_shareable<T: Clone + Send + Sync + 'static>() {}
    is_shareable::<AsyncSandboxer>();
    is_shareable::<AsyncSandbox>();
    is_shareable::<AsyncCommand>();
    is_shareable::<AsyncFiles>();
    is_shareable::<Api>();
}
