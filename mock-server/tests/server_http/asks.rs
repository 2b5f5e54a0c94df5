//! A call of every operation that nothing is wrong with, but that it may be about nothing.

use sandboxer::Operation;
use serde_json::{Value, json};

const SSH_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

/// Every query parameter that an operation cannot do without.
pub(crate) const QUERY: &str = "?path=a&pattern=a&port=80";

/// The path of an operation, with these ids; whatever else it names is not there.
pub(crate) fn path_to(operation: Operation, sandbox: &str, process: &str) -> String {
    let pieces = operation.info().path.split('/').map(|piece| match piece.strip_prefix('{') {
        Some("sandboxId}") => sandbox,
        Some("processId}") => process,
        Some("key}") => "KEY",
        Some(_) => "id_1",
        None => piece,
    });
    pieces.collect::<Vec<_>>().join("/")
}

/// What a body has to have, for every operation that cannot do without.
pub(crate) fn body_of(operation: Operation, sandbox: &str) -> Value {
    match operation {
        Operation::Command | Operation::CommandStream => json!({"command": "true"}),
        Operation::WriteFile => json!({"path": "a", "content": ""}),
        Operation::CreateFolder | Operation::CreateUploadUrl | Operation::CreateDownloadUrl => {
            json!({"path": "a"})
        }
        Operation::MoveFile => json!({"source": "a", "destination": "b"}),
        Operation::SetFilePermissions => json!({"path": "a", "mode": "0644"}),
        Operation::ReplaceInFiles => json!({"paths": ["a"], "pattern": "a", "newValue": "b"}),
        Operation::Prompt => json!({"prompt": "hello"}),
        Operation::Steer => json!({"message": "hello"}),
        Operation::HostPort => json!({"port": 80}),
        Operation::SshKey => json!({"key": SSH_KEY}),
        Operation::Update | Operation::UpdateWebhook => json!({"name": "taken"}),
        Operation::SaveNamedSnapshot => json!({"sandboxId": sandbox, "name": "kept"}),
        Operation::SetEnvironmentVar => json!({"value": "x"}),
        Operation::SetEnvironmentSecretFile => json!({"path": "a", "contents": "x"}),
        Operation::AddEnvironmentRepo => json!({"repositoryId": "20"}),
        _ => json!({}),
    }
}
