//! What holds for the verbs as types.

use super::super::*;
use crate::{Command, Offsets, models};

fn is_send<T: Send>(_: T) {}

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
