//! What the suite compares with, and how the documents are read.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
    sync::OnceLock,
};

use serde_json::Value;

/// Every code that the two services are known to answer with: the code, its status, and whether only boat has it. Where a
/// code has been seen under more than one status, the first one told of.
pub(crate) const CODES: &[(&str, u16, bool)] = &[
    ("unauthorized", 401, false),
    ("forbidden", 403, false),
    ("session_required", 403, false),
    ("not_org_member", 403, false),
    ("machine_class_plan_required", 403, false),
    ("billing_required", 402, false),
    ("not_found", 404, false),
    ("snapshot_not_found", 404, false),
    ("repository_not_found", 404, false),
    ("path_not_found", 404, false),
    ("credential_profile_not_found", 404, true),
    ("invalid_json", 400, false),
    ("invalid_request", 400, false),
    ("invalid_limit", 400, false),
    ("invalid_timeout", 400, false),
    ("invalid_path", 400, false),
    ("invalid_env", 400, false),
    ("invalid_key", 400, false),
    ("invalid_name", 400, false),
    ("invalid_secret_path", 400, false),
    ("update_failed", 400, false),
    ("create_failed", 409, false),
    ("unknown_environment", 400, false),
    ("invalid_setup_script", 400, false),
    ("invalid_webhook_url", 400, false),
    ("fast_mode_not_supported", 400, false),
    ("stop_failed", 400, false),
    ("machine_not_running", 409, false),
    ("invalid_hosted_ports", 400, true),
    ("invalid_files", 400, true),
    ("count_requires_from", 400, true),
    ("count_with_fail_fast", 400, true),
    ("count_with_hosted_ports", 400, true),
    ("fail_fast_with_hosted_ports", 400, true),
    ("not_org_sandbox", 400, false),
    ("not_an_api_key", 400, true),
    ("ai_proxy_off", 400, true),
    ("invalid_access", 400, true),
    ("machine_provider_required", 400, false),
    ("sandbox_starting", 409, false),
    ("sandbox_not_ready", 409, false),
    ("boat_restoring", 409, true),
    ("sandbox_direct_failed", 502, false),
    ("idempotency_in_progress", 409, false),
    ("idempotency_key_reused", 409, false),
    ("type_too_small", 409, false),
    ("monitoring_off", 409, false),
    ("monitoring_off_for_account", 409, false),
    ("snapshots_off_for_account", 409, false),
    ("agent_outdated", 409, false),
    ("no_running_turn", 409, false),
    ("sandbox_is_reachable", 409, false),
    ("too_soon", 409, false),
    ("no_machine", 409, false),
    ("recover_unsupported", 409, false),
    ("reset_failed", 409, false),
    ("delete_confirmation_required", 409, false),
    ("provider_not_configured", 409, false),
    ("ambiguous_org", 409, false),
    ("save_in_progress", 409, false),
    ("named_snapshot_limit", 409, false),
    ("snapshot_data_expired", 409, true),
    ("legacy_snapshot", 409, false),
    ("snapshot_not_indexed", 409, false),
    ("base_image_file", 409, false),
    ("is_symlink", 409, false),
    ("is_default", 409, true),
    ("in_use", 409, true),
    ("api_key_expired", 409, false),
    ("rate_limited", 429, false),
    ("limit_reached", 429, false),
    ("member_limit_reached", 429, false),
    ("gateway_error", 502, false),
    ("no_ready_machine", 503, false),
    ("out_of_capacity", 503, false),
    ("scoped_api_key_creation_disabled", 503, false),
    ("browser_not_ready", 503, false),
    ("ssh_host_key_unavailable", 503, false),
    ("boat_starting", 409, true),
    ("boat_direct_failed", 502, true),
];

/// The operations that each action of an API key lets one call; `session` takes a signed-in person.
pub(crate) const ACTIONS: &[(&str, &str)] = &[
    (
        "account.read",
        "me listOrganizations orgMembers getDataRetention limits apiKeys apiKeyUsage listWebhooks getWebhook providerModels",
    ),
    (
        "account.admin",
        "createOrganization setActiveOrganization selectRepo createScopedApiKey createWebhook updateWebhook deleteWebhook rotateWebhookSigningSecret getTelemetry setTelemetry deleteTelemetry updateSecrets createEnvironment updateEnvironment deleteEnvironment upgradeEnvironment setEnvironmentVar deleteEnvironmentVar setEnvironmentSecretFile deleteEnvironmentSecretFile addEnvironmentRepo deleteEnvironmentRepo",
    ),
    ("session", "updateDataRetention revokeApiKey rotateApiKey"),
    ("environment.read", "repos secrets environments"),
    (
        "sandbox.read",
        "getDeletionOperation sandboxes metricsSummary get getStop processes usage promptRunStatus events conversations stats metrics",
    ),
    ("sandbox.create", "create"),
    ("sandbox.update", "update share recover"),
    ("sandbox.delete-own", "deleteSandbox"),
    ("sandbox.stop", "stop"),
    ("sandbox.resume", "resume"),
    ("sandbox.fork", "fork"),
    (
        "exec",
        "command commandStatus stopCommand attachCommand commandHistory getCommand commandLogs sshKey execWebSocket sshWebSocket",
    ),
    ("file.read", "readFile artifact"),
    ("file.write", "writeFile"),
    ("agent.prompt", "prompt steer interrupt"),
    ("desktop", "desktop"),
    ("host", "listHostedPorts hostPort unhostPort"),
    (
        "snapshot.read",
        "listNamedSnapshots getNamedSnapshot listSnapshotShares listSnapshots listSandboxSnapshots getLatestSandboxSnapshot getSnapshotTree getSnapshotFile getSnapshotDownload",
    ),
    (
        "snapshot.write",
        "saveNamedSnapshot deleteNamedSnapshot createSnapshotShare revokeSnapshotShare deleteSandboxSnapshots deleteSnapshot",
    ),
];

/// The classes of operations in the repeat table.
pub(crate) fn classes() -> [&'static str; 5] {
    ["safe", "keyed", "replace", "command", "write"]
}

/// The API document.
pub(crate) fn document() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs/sandboxer.openapi.yaml");
    serde_yaml_ng::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The document with boat's overlay, which only the generator can apply; it is asked once.
pub(crate) fn boat_document() -> Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(print_boat).clone()
}

fn print_boat() -> Value {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "-p", "sandboxer-codegen", "--", "--print", "boat"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The operations of a document, without their streaming faces.
pub(crate) fn operations(document: &Value) -> Vec<&Value> {
    let paths = document["paths"].as_object().unwrap().values();
    let items = paths.flat_map(|item| item.as_object().unwrap());
    items.filter(|(method, _)| *method != "parameters").map(|(_, operation)| operation).collect()
}
