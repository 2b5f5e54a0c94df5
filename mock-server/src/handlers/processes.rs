//! Background commands and the process table.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Call, commands::log_paths, history::monitored, not_running};
use crate::{
    app::App,
    output::Source,
    reply::{Answer, ApiError, Outcome},
    store::typed,
    strays::{self, Owners},
    view::{self, process_status, signal_name, time_or_null},
    world::{
        commands::{Status, Stream},
        process_looks::ProcessLook,
        time::{self, iso},
    },
};

/// The most bytes of a stream that one status shows.
const STATUS_LIMIT: usize = 8 << 20;

/// The most processes that are listed, and characters of a command line.
const LISTED: usize = 500;
const CHARACTERS: usize = 1000;

pub(super) fn status(app: &App, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let source = Source::process(app, &sandbox, call.id("processId"))?;
    if !sandbox.state.is_up() {
        return Err(not_running(sandbox.state));
    }
    let offsets = ["stdoutOffset", "stderrOffset"].map(|name| call.number(name));
    let by_offset = offsets.iter().any(Option::is_some);
    let tail = call.number("tailBytes").and_then(|tail| usize::try_from(tail).ok()).unwrap_or(STATUS_LIMIT);
    // Read before the record: what is said to have ended has then been shown to its end.
    let record = source.record();
    let is_running = record.status == Status::Running;
    let mut body = json!({
        "success": record.status == Status::Exited && record.exit_code == Some(0),
        "processId": record.process_id,
        "pid": record.pid,
        "status": process_status(record.status),
        "known": record.status != Status::Lost,
        "running": is_running,
        "exitCode": record.exit_code.filter(|_| record.status != Status::Lost),
        "signal": record.signal.filter(|_| record.status != Status::Lost).map(signal_name),
        "oomKilled": record.oom_killed,
        "command": record.text,
        "cwd": record.cwd,
        "startedAt": iso(record.started_at),
        "finishedAt": time_or_null(record.finished_at),
    });
    let mut more = false;
    for (stream, offset) in [Stream::Stdout, Stream::Stderr].into_iter().zip(offsets) {
        let name = stream.as_str();
        let (text, cut) = if by_offset {
            let part = source.part(app, stream, offset.unwrap_or(0), STATUS_LIMIT)?;
            more |= part.next() < part.end;
            body[format!("{name}Offset")] = part.offset.into();
            body[format!("{name}NextOffset")] = part.next().into();
            (String::from_utf8_lossy(&part.bytes).into_owned(), part.offset > offset.unwrap_or(0))
        } else {
            let end = stream.kept(&record).end;
            let part = source.part(app, stream, end.saturating_sub(tail as u64), tail)?;
            (String::from_utf8_lossy(&part.bytes).into_owned(), part.offset > 0)
        };
        body[name] = text.into();
        body[format!("{name}Truncated")] = cut.into();
    }
    if by_offset {
        body["more"] = more.into();
    }
    let [log, err_log] = log_paths(record.process_id.unwrap_or_default());
    body["logPath"] = log.into();
    body["errLogPath"] = err_log.into();
    Ok(Answer::ok("command.status", body))
}

pub(super) async fn stop(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let source = Source::process(app, &sandbox, call.id("processId"))?;
    if !sandbox.state.is_up() {
        return Err(not_running(sandbox.state));
    }
    let signaled = match &source {
        Source::Live(job) => {
            // Carried through even if the caller goes away.
            let job = job.clone();
            app.tasks.spawn(async move { job.kill().await }).await.map_err(ApiError::internal)?
        }
        Source::Stored(_) => false,
    };
    let record = source.record();
    let body = json!({
        "processId": record.process_id,
        "running": false,
        "signaled": signaled,
        "command": view::command(&record),
    });
    Ok(Answer::ok("command.stopped", body))
}

pub(super) async fn list(app: &App, call: &Call) -> Outcome {
    let (sandbox, _) = app.read(|tx| call.caller.see(tx, call.id("sandboxId")))?;
    monitored(&sandbox)?;
    if !sandbox.state.is_up() || app.scenarios().cut_off(&sandbox) {
        return stored(app, &sandbox.id);
    }
    let samples = app.runner.processes(&app.space(&sandbox.id)).await.map_err(ApiError::internal)?;
    let jobs = app.live(&sandbox).jobs();
    let mut known: Vec<_> =
        jobs.iter().map(|job| job.record()).filter(|job| job.status == Status::Running).collect();
    // Those that no command stands for have records of their own once they were sampled.
    let mut recorded = app.read(|tx| strays::running(tx, &sandbox.id))?;
    recorded.retain(|record| {
        samples.iter().any(|sample| strays::is_of(record, sample.pid, time::of(sample.started_at)))
    });
    known.splice(..0, recorded);
    let owners = Owners::among(&samples, &known);
    let owner = |pid| owners.of(pid).map(|command| command.id.as_str());
    let shown: Vec<Value> = samples
        .iter()
        .take(LISTED)
        .map(|sample| view::process(sample, owner(sample.pid), CHARACTERS))
        .collect();
    let body = json!({"live": true, "sampledAt": iso(app.now()), "total": samples.len(), "processes": shown});
    Ok(Answer::ok("process.list", body))
}

/// The last look at the processes, before the sandbox was stopped or nothing reached it any more.
fn stored(app: &App, id: &str) -> Outcome {
    let seen: Option<ProcessLook> = app.read(|tx| typed::get(tx, id))?;
    let seen = seen.filter(|seen| seen.is_kept(app.now()));
    let sampled_at = seen.as_ref().map(|seen| seen.at);
    let seen = seen.unwrap_or_default();
    let body = json!({
        "live": false,
        "sampledAt": time_or_null(sampled_at),
        "total": seen.total,
        "processes": seen.processes,
    });
    Ok(Answer::ok("process.list", body))
}
