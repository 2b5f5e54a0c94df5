//! Records as the answers show them.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::{
    auth::Access,
    hosting::WaysIn,
    reply::ApiError,
    runner::ProcessSample,
    store::{Reader, typed, typed::Record},
    world::{
        accounts::{Account, Organisation},
        commands::{Command, Kept, Status},
        deletions::Deletion,
        keys::Key,
        sandboxes::{Capture, Sandbox, State, machine_class},
        stops::{Stop, stop_key},
        time::{self, Millis, iso},
    },
};

/// A time, or null.
pub(crate) fn time_or_null(at: Option<Millis>) -> Value {
    at.map(iso).into()
}

/// A sandbox.
pub(crate) fn sandbox(tx: &dyn Reader, sandbox: &Sandbox, access: Access) -> Result<Value, ApiError> {
    Viewer::new(tx).sandbox(sandbox, access)
}

/// Shows many sandboxes, whose creators and organisations are as a rule the same few.
pub(crate) struct Viewer<'a> {
    tx: &'a dyn Reader,
    /// Whether whoever looks may open desktops, and the time; without it no ways in are shown.
    ways_in: Option<(bool, Millis)>,
    organisations: HashMap<String, Option<Organisation>>,
    accounts: HashMap<String, Option<Account>>,
}

impl<'a> Viewer<'a> {
    /// Nothing is looked up yet.
    pub(crate) fn new(tx: &'a dyn Reader) -> Self {
        Self { tx, ways_in: None, organisations: HashMap::new(), accounts: HashMap::new() }
    }

    /// Shows the ways into those that are up as well, as far as a key may use them.
    pub(crate) fn with_ways_in(self, key: &Key, now: Millis) -> Self {
        Self { ways_in: Some((key.grants(Some("desktop")), now)), ..self }
    }

    fn cached<'c, R: Record>(
        tx: &dyn Reader,
        cache: &'c mut HashMap<String, Option<R>>,
        id: &str,
    ) -> Result<Option<&'c R>, ApiError> {
        if !cache.contains_key(id) {
            cache.insert(id.to_owned(), typed::get(tx, id)?);
        }
        Ok(cache.get(id).and_then(Option::as_ref))
    }

    /// A sandbox.
    pub(crate) fn sandbox(&mut self, sandbox: &Sandbox, access: Access) -> Result<Value, ApiError> {
        let team = match &sandbox.organisation {
            Some(id) => Self::cached(self.tx, &mut self.organisations, id)?,
            None => None,
        };
        let creator = Self::cached(self.tx, &mut self.accounts, &sandbox.account)?;
        let stop = match &sandbox.stop {
            Some(id) => typed::get(self.tx, &stop_key(&sandbox.id, id))?,
            None => None,
        };
        let ways_in = match self.ways_in {
            Some((opens_desktops, now)) if sandbox.state.is_up() => {
                WaysIn::of(self.tx, &sandbox.id, opens_desktops && access != Access::View, now)?
            }
            _ => WaysIn::default(),
        };
        Ok(show(sandbox, access, team, creator, stop.as_ref(), &ways_in))
    }
}

fn show(
    sandbox: &Sandbox,
    access: Access,
    team: Option<&Organisation>,
    creator: Option<&Account>,
    stop: Option<&Stop>,
    ways_in: &WaysIn,
) -> Value {
    if sandbox.state == State::Cancelled {
        return json!({"id": sandbox.id, "state": "cancelled", "error": sandbox.error});
    }
    let class = machine_class(&sandbox.kind);
    let (over, under) = class.multiplier;
    let is_stopped = matches!(sandbox.state, State::Archived | State::Error);
    let while_up = |value: Value| if is_stopped { Value::Null } else { value };
    let attempt = match (sandbox.save_failed_at, sandbox.capture, sandbox.snapshot_at) {
        (Some(at), _, _) => Some((at, "failed")),
        (None, Some(Capture { at, status }), _) => Some((at, status.as_str())),
        (None, None, at) => at.map(|at| (at, "completed")),
    };
    let snapshot_available = sandbox.snapshots && sandbox.snapshot_at.is_some();
    json!({
        "id": sandbox.id,
        "name": sandbox.name,
        "state": sandbox.state.as_str(),
        "error": sandbox.error,
        "health": if sandbox.health_reason.is_some() { "degraded" } else { "ok" },
        "healthReason": sandbox.health_reason,
        "degradedSince": time_or_null(sandbox.degraded_since),
        "hydrated": sandbox.hydrated,
        "hydratedAt": time_or_null(sandbox.hydrated_at),
        "type": class.name,
        "vcpu": class.vcpu,
        "memoryGB": class.memory_gb,
        "billingMultiplier": f64::from(over) / f64::from(under),
        "machineProvider": while_up("baremetal".into()),
        "url": ways_in.url,
        "ip": while_up("127.0.0.1".into()),
        "sshEndpoint": ways_in.ssh,
        "createdAt": iso(sandbox.created_at),
        "updatedAt": iso(sandbox.updated_at),
        "archiveAfter": time_or_null(sandbox.archive_after),
        "desktopAvailable": !sandbox.state.is_starting(),
        "desktopUrl": ways_in.desktop,
        "snapshots": sandbox.snapshots,
        "monitoring": sandbox.monitoring,
        "snapshotAvailable": snapshot_available,
        "snapshotCompletedAt": time_or_null(sandbox.snapshot_at),
        "snapshotVerifiedAt": time_or_null(sandbox.snapshot_at),
        "team": team.map(|team| json!({"id": team.id, "name": team.name})),
        "createdBy": creator.map(|creator| creator.login.as_str()),
        "createdById": sandbox.account,
        "access": access.as_str(),
        "holdsCreatorLogins": sandbox.holds_logins(),
        "wipePendingUntilRestart": sandbox.shared && sandbox.holds_logins(),
        "subdomain": sandbox.subdomain,
        "lastSnapshotAttemptAt": time_or_null(attempt.map(|(at, _)| at)),
        "lastSnapshotStatus": attempt.map(|(_, status)| status),
        "setupStatus": sandbox.setup_status,
        "setupError": sandbox.setup_error,
        "environment": sandbox.environment,
        "environmentVersion": sandbox.environment.as_ref().map(|_| sandbox.environment_version.unwrap_or(1)),
        "stop": stop.map(on_sandbox),
    })
}

/// A stop as a sandbox shows it: without the time it was asked for once it has ended.
fn on_sandbox(found: &Stop) -> Value {
    let mut view = stop(found);
    if !found.status.is_open() {
        view["requestedAt"] = Value::Null;
    }
    view
}

/// A stop read by its id.
pub(crate) fn stop(stop: &Stop) -> Value {
    json!({
        "id": stop.id,
        "status": stop.status.as_str(),
        "requestedAt": iso(stop.requested_at),
        "lastAttemptAt": time_or_null(stop.last_attempt_at),
        "error": stop.error,
        "endedAt": time_or_null(stop.ended_at),
    })
}

/// A deletion.
pub(crate) fn deletion(deletion: &Deletion) -> Value {
    let (status, stage) = deletion.progress();
    json!({
        "id": deletion.id,
        "kind": deletion.kind.as_str(),
        "targetId": deletion.target,
        "reason": deletion.reason.as_str(),
        "status": status,
        "stage": stage,
        "expectedBy": time_or_null(deletion.waits_until),
        "attemptCount": deletion.attempts,
        "requestedAt": iso(deletion.requested_at),
        "completedAt": time_or_null(deletion.completed_at),
    })
}

/// A command of the history.
pub(crate) fn command(command: &Command) -> Value {
    let Kept { written: stdout, .. } = command.stdout;
    let Kept { written: stderr, .. } = command.stderr;
    json!({
        "commandId": command.id,
        "sandboxId": command.sandbox,
        "command": command.text,
        "cwd": Some(&command.cwd).filter(|cwd| !cwd.is_empty()),
        "mode": command.mode.as_str(),
        "processId": command.process_id,
        "status": command.status.as_str(),
        "exitCode": command.exit_code,
        "signal": command.signal.map(signal_name),
        "stdoutBytes": stdout,
        "stderrBytes": stderr,
        "outputTruncated": command.is_truncated(),
        "startedAt": iso(command.started_at),
        "finishedAt": time_or_null(command.finished_at),
    })
}

/// What a detached command's status is called.
pub(crate) fn process_status(status: Status) -> &'static str {
    match status {
        Status::Running => "running",
        Status::Lost => "lost",
        Status::Exited | Status::TimedOut | Status::Failed | Status::Killed => "exited",
    }
}

/// A process; its command line is cut to `limit` characters.
pub(crate) fn process(sample: &ProcessSample, command_id: Option<&str>, limit: usize) -> Value {
    json!({
        "pid": sample.pid,
        "parentPid": sample.parent,
        "user": sample.user,
        "cpuPercent": (sample.cpu_percent * 100.0).round() / 100.0,
        "memoryMB": (sample.memory_mb * 100.0).round() / 100.0,
        "startedAt": iso(time::of(sample.started_at)),
        "command": sample.command.chars().take(limit).collect::<String>(),
        "commandId": command_id,
    })
}

/// A signal's name, such as `SIGKILL`.
pub(crate) fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let index = usize::try_from(signal).unwrap_or(0);
    match NAMES.get(index.wrapping_sub(1)) {
        Some(name) => format!("SIG{name}"),
        None => format!("SIGRTMIN+{}", signal - 34),
    }
}
