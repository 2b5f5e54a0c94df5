//! Setup scripts: those of repositories when these were checked out, and that of a sandbox in the background once it is up.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::future::join_all;
use tokio::sync::RwLockReadGuard;

use crate::{
    app::{App, Live},
    environment, logs,
    runner::{CommandSpec, Consumer, Exit, OutputMode, OutputRing},
    space::{FILE_LIMIT, Files},
    store::{StoreError, typed},
    view::signal_name,
    world::{
        given_files::{GivenFile, GivenFiles},
        repositories::Selected,
        sandboxes::Sandbox,
    },
};

/// How much of its standard error a failed script leaves in `setupError`, in bytes.
const TAIL: usize = 2000;

/// How much of a script's output is held until it is in the log, in bytes a stream; a script that has written more waits.
const KEPT: usize = 1 << 20;

/// The log of all setup scripts of a sandbox.
const LOG: &str = ".sandboxer/setup.log";

/// How long a sandbox that is starting waits for the script of a repository.
const BLOCKING: Duration = Duration::from_secs(600);

const HOME: &str = "/home/user";

/// Runs what is left to run in a sandbox that has just come up: the scripts of repositories, then its own if that is due.
/// What has not begun when somebody stops or deletes the sandbox does not begin.
pub(crate) fn run(
    app: &Arc<App>,
    live: &Arc<Live>,
    course: u64,
    id: &str,
    repositories: Vec<Selected>,
    own_is_due: bool,
) {
    let (app, live, id) = (app.clone(), live.clone(), id.to_owned());
    let tasks = app.tasks.clone();
    tasks.spawn(async move {
        for selected in &repositories {
            let Some((sandbox, turn)) = turn_in(&app, &live, course, &id).await else { break };
            let failure = run_for_repository(&app, &sandbox, selected, turn).await;
            note(&sandbox, selected, failure);
        }
        if !own_is_due {
            return;
        }
        let failure = match turn_in(&app, &live, course, &id).await {
            Some((sandbox, turn)) => match (write_given(&app, &id).await, &sandbox.setup_script) {
                (Err(problem), _) => Some(problem),
                (Ok(()), Some(script)) => run_script(&app, &sandbox, script, HOME, turn).await,
                (Ok(()), None) => None,
            },
            None => Some("the sandbox lost the process".into()),
        };
        let stored = app.write(|tx| {
            let Some(mut now) = typed::get::<Sandbox>(tx, &id)? else { return Ok(()) };
            typed::remove::<GivenFiles>(tx, &id)?;
            now.setup_status = Some(if failure.is_some() { "failed" } else { "done" }.into());
            now.setup_error = failure;
            now.updated_at = app.now();
            typed::put(tx, &now)
        });
        if let Err::<(), StoreError>(error) = stored {
            tracing::error!(%error, "the end of a setup script could not be stored");
        }
    });
}

/// Writes the files that a sandbox was created with; the error says which could not be.
async fn write_given(app: &App, id: &str) -> Result<(), String> {
    let given = app.read(|tx| typed::get::<GivenFiles>(tx, id));
    let Some(given) = given.map_err(|error: StoreError| error.to_string())? else { return Ok(()) };
    let files = environment::files(app, id).map_err(|error| error.to_string())?;
    for GivenFile { path, content } in given.files {
        let failed = |problem: &dyn std::fmt::Display| format!("{path} could not be written: {problem}");
        let content = STANDARD.decode(content).map_err(|error| failed(&error))?;
        files.write(&path, content.into(), FILE_LIMIT).await.map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// The sandbox and the turn to start something in it, unless it took another course meanwhile.
async fn turn_in<'a>(
    app: &App,
    live: &'a Live,
    course: u64,
    id: &str,
) -> Option<(Sandbox, RwLockReadGuard<'a, ()>)> {
    let turn = live.turn.read().await;
    let sandbox = app.read(|tx| typed::get::<Sandbox>(tx, id)).ok().flatten()?;
    live.is_on(course).then_some((sandbox, turn))
}

/// Runs the scripts that a sandbox waits for, while it is starting; hands back the repositories whose scripts are left. How
/// they end does not change how the sandbox starts: its setup log has what they wrote.
pub(crate) async fn run_blocking(app: &App, id: &str, repositories: Vec<Selected>) -> Vec<Selected> {
    let (waited_for, left): (Vec<Selected>, Vec<Selected>) =
        repositories.into_iter().filter(|it| it.setup_script.is_some()).partition(|it| it.setup_blocking);
    for selected in &waited_for {
        let Ok(Some(sandbox)) = app.read(|tx| typed::get::<Sandbox>(tx, id)) else { continue };
        let failure = tokio::select! {
            // Whoever brings it up has the turn.
            failure = run_for_repository(app, &sandbox, selected, ()) => failure,
            () = app.clock.sleep(BLOCKING) => Some("it did not end in time; it runs on".into()),
            () = app.closing.cancelled() => break,
        };
        note(&sandbox, selected, failure);
    }
    left
}

async fn run_for_repository<T>(app: &App, sandbox: &Sandbox, selected: &Selected, turn: T) -> Option<String> {
    let script = selected.setup_script.as_deref()?;
    run_script(app, sandbox, script, &format!("{HOME}/{}", selected.repository.name()), turn).await
}

fn note(sandbox: &Sandbox, selected: &Selected, failure: Option<String>) {
    if let Some(problem) = failure {
        // What the script wrote may hold secrets: that is in the sandbox's own log alone.
        let problem = problem.split(':').next().unwrap_or_default();
        let repository = &selected.repository.full_name;
        tracing::warn!(sandbox = %sandbox.id, %repository, %problem, "the script of a repository failed");
    }
}

/// Why the script failed; `None` if it did not. The turn is held until it has started.
async fn run_script<T>(app: &App, sandbox: &Sandbox, script: &str, cwd: &str, turn: T) -> Option<String> {
    let space = app.space(&sandbox.id);
    let spec = CommandSpec {
        env: environment::variables(app, sandbox, &[]),
        cwd: cwd.to_owned(),
        output: OutputMode::Backpressure,
        output_limit: KEPT,
        ..CommandSpec::new(environment::shell(script))
    };
    let spawned = app.runner.spawn(&space, spec).await;
    drop(turn);
    let running = match spawned {
        Ok(running) => running,
        Err(error) => return Some(error.to_string()),
    };
    app.meters.watch(&sandbox.id);
    // Without a log there is nothing to wait for: then these are dropped at once.
    let streams =
        [running.output().stdout(), running.output().stderr()].map(|ring| (ring.clone(), ring.consumer(0)));
    // Tasks of their own: whoever stops waiting for the script does not end its log.
    let copies: Vec<_> = match environment::files(app, &sandbox.id) {
        Ok(files) => {
            let copy = |(ring, reader)| app.tasks.spawn(copy_to_log(files.clone(), ring, reader));
            streams.into_iter().map(copy).collect()
        }
        Err(_) => {
            drop(streams);
            Vec::new()
        }
    };
    let Exit { code, signal, .. } = running.wait().await;
    join_all(copies).await;
    let stderr = running.output().stderr();
    let tail = stderr.read_at(stderr.end().saturating_sub(TAIL as u64), TAIL).bytes;
    let tail = String::from_utf8_lossy(&tail);
    match (code, signal) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit code {code}: {}", tail.trim_end())),
        (None, signal) => {
            let signal = signal.map_or_else(|| "an unknown signal".to_owned(), signal_name);
            Some(format!("ended by {signal}: {}", tail.trim_end()))
        }
    }
}

async fn copy_to_log(files: Files, ring: OutputRing, mut reader: Consumer) {
    if let Err(error) = logs::copy(&files, LOG, &ring, |offset| reader.consume_to(offset)).await {
        tracing::warn!(%error, "the log of a setup script could not be written");
    }
}
