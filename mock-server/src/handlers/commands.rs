//! Running commands: to their end, as a stream, or in the background.

use std::{sync::Arc, time::Duration};

use sandboxer::dialects::Dialect;
use serde_json::{Value, json};

use super::{Call, files::file_error, following::Follower, hold_until_up, not_ready, scenarios, stream};
use crate::{
    app::App,
    environment,
    job::Job,
    logs,
    reply::{Answer, ApiError, Outcome},
    runner::{CommandSpec, OutputMode, RunnerError},
    space::LocatedKind,
    store::{StoreError, Writer, typed},
    text,
    view::signal_name,
    world::{
        commands::{Command, Kept, Mode, OUTPUT_LIMIT, Status, Stream, TEXT_LIMIT, claim_process_id},
        ids,
        sandboxes::Sandbox,
        time::iso,
    },
};

/// Seconds a command may run when the call does not say.
const DEFAULT_LIMIT: u64 = 30;

pub(super) async fn command(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let mode = match (call.flag("detached"), call.flag("stream")) {
        (true, _) => Mode::Detached,
        (false, true) => Mode::Stream,
        (false, false) => Mode::Sync,
    };
    // A caller that goes away while the sandbox starts leaves nothing behind. From here on the rest happens whether or
    // not it stays: what is begun is watched and recorded.
    let follower = Follower::new(app, call, &sandbox);
    hold_until_up(app, &app.live(&sandbox)).await?;
    let begun = begin(app.clone(), sandbox, Ask::of(call, mode));
    let begun = async move {
        let job = begun.await?;
        let consumers = stream::consumers(&job);
        Ok::<_, ApiError>((job, consumers))
    };
    let (job, consumers) = app.tasks.spawn(begun).await.map_err(ApiError::internal)??;
    match mode {
        Mode::Detached => Ok(started(&job)),
        Mode::Stream => Ok(Answer::Ndjson(stream::frames(app.clone(), job, consumers, follower))),
        _ => tokio::select! {
            biased;
            () = job.ended() => finished(&job),
            // Whether it goes on is not known to who waits for it.
            error = follower.machine_is_silent(app) => Err(error.detail("commandId", job.id())),
        },
    }
}

/// What a call asks for.
struct Ask {
    text: String,
    cwd: Option<String>,
    env: Vec<(String, String)>,
    mode: Mode,
    limit: Option<Duration>,
}

impl Ask {
    fn of(call: &Call, mode: Mode) -> Self {
        let env = call.body.get("env").and_then(Value::as_object);
        let pair =
            |(name, value): (&String, &Value)| (name.clone(), value.as_str().unwrap_or_default().to_owned());
        let seconds = call.body.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(DEFAULT_LIMIT);
        Self {
            text: call.text("command").unwrap_or_default().to_owned(),
            cwd: call.text("cwd").map(str::to_owned),
            env: env.into_iter().flatten().map(pair).collect(),
            mode,
            limit: (mode != Mode::Detached).then(|| Duration::from_secs(seconds)),
        }
    }
}

async fn begin(app: Arc<App>, sandbox: Sandbox, ask: Ask) -> Result<Arc<Job>, ApiError> {
    let live = app.live(&sandbox);
    let turn = loop {
        hold_until_up(&app, &live).await?;
        // Whoever stops the sandbox waits for this turn; so what is checked under it stays true until the command is
        // known to the sandbox.
        let turn = live.turn.read().await;
        let state = *live.watch().borrow();
        if state.is_up() {
            break turn;
        }
        if !state.is_starting() {
            return Err(not_ready(state));
        }
    };
    let sandbox: Sandbox =
        app.read(|tx| typed::get(tx, &sandbox.id))?.ok_or_else(|| ApiError::not_found("sandbox"))?;
    if let Some(error) = scenarios::cut_off(&app, &sandbox) {
        return Err(error);
    }
    let cwd = working_folder(&app, &sandbox, ask.cwd.as_deref()).await?;
    let started_at = app.now();
    let mut record = Command {
        history_ends: None,
        id: ids::command(started_at),
        sandbox: sandbox.id.clone(),
        text: text::head(&ask.text, TEXT_LIMIT).to_owned(),
        cwd: cwd.clone(),
        mode: ask.mode,
        process_id: None,
        pid: None,
        process_start: None,
        status: Status::Running,
        exit_code: None,
        signal: None,
        oom_killed: false,
        stdout: Kept::default(),
        stderr: Kept::default(),
        started_at,
        finished_at: None,
    };
    let spec = CommandSpec {
        cwd,
        env: environment::variables(&app, &sandbox, &ask.env),
        output: match ask.mode {
            Mode::Sync | Mode::Process => OutputMode::KeepFirst,
            Mode::Stream => OutputMode::Backpressure,
            Mode::Detached => OutputMode::KeepLast,
        },
        output_limit: OUTPUT_LIMIT,
        ..CommandSpec::new(environment::shell(&ask.text))
    };
    let running = match app.runner.spawn(&app.space(&sandbox.id), spec).await {
        Ok(running) => running,
        Err(error) => return Err(not_started(&app, &sandbox, record, error)),
    };
    record.pid = Some(running.pid());
    if let Err(error) = note_start(&app, &sandbox, &mut record) {
        // Nobody would watch over it.
        running.kill_tree(Duration::ZERO).await;
        return Err(error);
    }
    let job = Job::begin(&app, &live, record, running, sandbox.monitoring, ask.limit);
    app.watched.add(&*app.runner, &sandbox, &live);
    if ask.mode == Mode::Detached {
        begin_logs(&app, &sandbox.id, &job).await;
    }
    drop(turn);
    Ok(job)
}

/// Begins a command that an agent in a sandbox runs.
pub(crate) async fn begin_for_agent(
    app: &Arc<App>,
    sandbox: &str,
    line: String,
) -> Result<Arc<Job>, ApiError> {
    let sandbox: Sandbox =
        app.read(|tx| typed::get(tx, sandbox))?.ok_or_else(|| ApiError::not_found("sandbox"))?;
    let ask = Ask { text: line, cwd: None, env: Vec::new(), mode: Mode::Sync, limit: None };
    begin(app.clone(), sandbox, ask).await
}

/// Puts a command that has just been started into the store.
fn note_start(app: &App, sandbox: &Sandbox, record: &mut Command) -> Result<(), ApiError> {
    let (is_detached, is_streamed) = (record.mode == Mode::Detached, record.mode == Mode::Stream);
    let note = |tx: &mut dyn Writer| {
        if let (true, Some(pid)) = (is_detached, record.pid) {
            record.process_id = Some(claim_process_id(tx, &sandbox.id, pid, &record.id)?);
        }
        if sandbox.monitoring {
            typed::put::<Command>(tx, record)?;
        }
        Ok::<_, ApiError>(())
    };
    match (is_detached, sandbox.monitoring) {
        // The answer promises a process id, or the first frame a command's: a server that is killed after it must know
        // the id again.
        (true, _) => app.write(note),
        (false, true) if is_streamed => app.write(note),
        (false, true) => app.write_later(note),
        (false, false) => Ok(()),
    }
}

/// The folder to run in, links resolved.
async fn working_folder(app: &App, sandbox: &Sandbox, cwd: Option<&str>) -> Result<String, ApiError> {
    let Some(cwd) = cwd else { return Ok("/home/user".into()) };
    let files = environment::files(app, &sandbox.id).map_err(|error| file_error(error, "cwd"))?;
    let located = files.locate(cwd).await.map_err(|error| file_error(error, "cwd"))?;
    match located.kind {
        LocatedKind::Folder => located.path.into_string().map_err(|_| {
            ApiError::invalid("invalid_path", "cwd", "leads to a folder whose name is not UTF-8")
        }),
        _ => Err(ApiError::invalid("invalid_path", "cwd", "must be a folder that is there")),
    }
}

/// A command that never ran: recorded as failed, answered as an error.
fn not_started(app: &App, sandbox: &Sandbox, record: Command, error: RunnerError) -> ApiError {
    let record = Command { status: Status::Failed, finished_at: Some(app.now()), ..record };
    if sandbox.monitoring
        && let Err(error) = app.write_later::<_, StoreError>(|tx| typed::put(tx, &record))
    {
        tracing::error!(%error, "a record is lost");
    }
    match error {
        RunnerError::BadCwd(_) => {
            ApiError::invalid("invalid_path", "cwd", "must be a folder that can be entered")
        }
        other => ApiError::new(502, "sandbox_direct_failed", format!("the command was not started: {other}"))
            .retryable(false),
    }
}

fn started(job: &Job) -> Answer {
    let record = job.record();
    let [log, err_log] = log_paths(record.process_id.unwrap_or_default());
    Answer::ok(
        "command.started",
        json!({
            "success": true,
            "commandId": record.id,
            "processId": record.process_id,
            "pid": record.pid,
            "command": record.text,
            "cwd": record.cwd,
            "startedAt": iso(record.started_at),
            "logPath": log,
            "errLogPath": err_log,
        }),
    )
}

fn finished(job: &Job) -> Outcome {
    let record = job.record();
    if record.status == Status::Lost {
        return Err(ApiError::new(
            502,
            "sandbox_direct_failed",
            "the sandbox went away while the command ran",
        )
        .retryable(false)
        .detail("commandId", record.id));
    }
    if job.is_unkept() {
        return Err(ApiError::internal("the end of a command is not recorded").detail("commandId", record.id));
    }
    let mut body = result(&record);
    for stream in [Stream::Stdout, Stream::Stderr] {
        let (_, bytes, _) = job.output(stream, 0, OUTPUT_LIMIT);
        body[stream.as_str()] = String::from_utf8_lossy(&bytes).into();
    }
    Ok(Answer::ok("command.finished", body))
}

/// What became of a command, without its output.
pub(super) fn result(record: &Command) -> Value {
    let timed_out = record.status == Status::TimedOut;
    json!({
        "success": record.exit_code == Some(0) && !timed_out,
        "commandId": record.id,
        "exitCode": record.exit_code,
        "signal": record.signal.map(signal_name),
        "oomKilled": record.oom_killed,
        "stdoutTruncated": record.stdout.is_cut(),
        "stderrTruncated": record.stderr.is_cut(),
        "timedOut": timed_out,
        "cwd": record.cwd,
        "startedAt": iso(record.started_at),
        "finishedAt": crate::view::time_or_null(record.finished_at),
    })
}

/// The files that the output of a background command goes to as well: standard output, standard error.
pub(super) fn log_paths(process_id: u64) -> [String; 2] {
    let folder = Dialect::Sandboxer.info().log_folder;
    [format!("{folder}/{process_id}.log"), format!("{folder}/{process_id}.err.log")]
}

/// Begins the logs of a background command, and has what it writes copied there. Whoever is told of them reads of this command
/// alone: a disk that was copied has the logs of the sandbox it is from, where other commands had the same numbers.
async fn begin_logs(app: &App, sandbox: &str, job: &Arc<Job>) {
    let Some(process_id) = job.record().process_id else { return };
    let Ok(files) = environment::files(app, sandbox) else { return };
    for (stream, path) in [Stream::Stdout, Stream::Stderr].into_iter().zip(log_paths(process_id)) {
        let path = path.trim_start_matches("~/").to_owned();
        let given_up = |error| tracing::debug!(%error, "the log of a background command is given up");
        if let Err(error) = files.begin_log(&path).await {
            given_up(error);
            continue;
        }
        let (files, job) = (files.clone(), job.clone());
        app.tasks.spawn(async move {
            if let Err(error) = logs::copy(&files, &path, job.ring(stream), |_| {}).await {
                given_up(error);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{testing::Setting, world::sandboxes::State};

    #[tokio::test]
    async fn a_command_whose_end_is_not_on_disk_is_not_said_to_have_ended() {
        let set = Setting::new();
        let sandbox = set.sandbox(State::Ready).await;
        for (fails, expected) in [(true, Some("internal_error")), (false, None)] {
            set.faults.set_durable(fails);
            let job = begin_for_agent(&set.app, &sandbox.id, "true".into()).await;
            let job = job.map_err(|error| error.message().to_owned()).unwrap();
            job.ended().await;
            assert_eq!(finished(&job).err().map(|error| error.code()), expected);
        }
    }

    #[tokio::test]
    async fn whoever_is_told_of_a_log_reads_nothing_of_another_command() {
        let set = Setting::new();
        let sandbox = set.sandbox(State::Ready).await;
        let home = set.app.space(&sandbox.id).home();
        let logs = |process_id| log_paths(process_id).map(|path| home.join(path.trim_start_matches("~/")));
        for path in (0..10).flat_map(logs) {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "of another sandbox").unwrap();
        }
        let ask = Ask { text: "x".into(), cwd: None, env: Vec::new(), mode: Mode::Detached, limit: None };
        let job = begin(set.app.clone(), sandbox, ask).await;
        let job = job.map_err(|error| error.message().to_owned()).unwrap();
        for path in logs(job.record().process_id.unwrap()) {
            assert_eq!(std::fs::read_to_string(path).unwrap(), "");
        }
        job.ended().await;
    }
}
