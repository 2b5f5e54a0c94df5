//! Setup scripts: those of repositories when these were checked out, and that of a sandbox in the background once it is up.

use std::{sync::Arc, time::Duration};

use crate::{
    app::App,
    environment,
    runner::{CommandSpec, Exit, OutputMode},
    store::{StoreError, typed},
    view::signal_name,
    world::{repositories::Selected, sandboxes::Sandbox},
};

/// How much of its standard error a failed script leaves in `setupError`, in bytes.
const TAIL: usize = 2000;

/// How much of a script's output is kept, in bytes a stream.
const KEPT: usize = 1 << 20;

/// How long a sandbox that is starting waits for the script of a repository.
const BLOCKING: Duration = Duration::from_secs(600);

const HOME: &str = "/home/user";

/// Runs the script of a sandbox whose `setupStatus` is `running`, after those of the repositories; nothing if there is none.
pub(crate) fn run(app: &Arc<App>, id: &str, repositories: Vec<Selected>) {
    let (app, id) = (app.clone(), id.to_owned());
    let tasks = app.tasks.clone();
    tasks.spawn(async move {
        let find = || app.read(|tx| typed::get::<Sandbox>(tx, &id));
        for selected in &repositories {
            let Ok(Some(sandbox)) = find() else { return };
            run_for_repository(&app, &sandbox, selected, false).await;
        }
        let sandbox = match find() {
            Ok(Some(sandbox)) if sandbox.setup_status.as_deref() == Some("running") => sandbox,
            _ => return,
        };
        let Some(script) = sandbox.setup_script.clone() else { return };
        let failure = {
            let live = app.live(&sandbox);
            let turn = live.turn.read().await;
            run_script(&app, &sandbox, &script, HOME, turn).await
        };
        let stored = app.write(|tx| {
            let Some(mut now) = typed::get::<Sandbox>(tx, &id)? else { return Ok(()) };
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

/// Runs the scripts that a sandbox waits for, while it is starting; hands back the repositories whose scripts are left. How
/// they end does not change how the sandbox starts: its setup log has what they wrote.
pub(crate) async fn run_blocking(app: &App, id: &str, repositories: Vec<Selected>) -> Vec<Selected> {
    let (waited_for, left): (Vec<Selected>, Vec<Selected>) =
        repositories.into_iter().filter(|it| it.setup_script.is_some()).partition(|it| it.setup_blocking);
    for selected in &waited_for {
        if let Ok(Some(sandbox)) = app.read(|tx| typed::get::<Sandbox>(tx, id)) {
            run_for_repository(app, &sandbox, selected, true).await;
        }
    }
    left
}

async fn run_for_repository(app: &App, sandbox: &Sandbox, selected: &Selected, is_starting: bool) {
    let Some(script) = &selected.setup_script else { return };
    let folder = format!("{HOME}/{}", selected.repository.name());
    let failure = if is_starting {
        // Whoever brings it up has the turn.
        tokio::select! {
            failure = run_script(app, sandbox, script, &folder, ()) => failure,
            () = app.clock.sleep(BLOCKING) => Some("it did not end in time; it runs on".into()),
            () = app.closing.cancelled() => return,
        }
    } else {
        let live = app.live(sandbox);
        let turn = live.turn.read().await;
        run_script(app, sandbox, script, &folder, turn).await
    };
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
        output: OutputMode::KeepLast,
        output_limit: KEPT,
        ..CommandSpec::new(environment::shell(script))
    };
    let spawned = app.runner.spawn(&space, spec).await;
    drop(turn);
    let running = match spawned {
        Ok(running) => running,
        Err(error) => return Some(error.to_string()),
    };
    let Exit { code, signal, .. } = running.wait().await;
    let (stdout, stderr) = (running.output().stdout(), running.output().stderr());
    if let Ok(files) = environment::files(app, &sandbox.id) {
        for ring in [stdout, stderr] {
            let written =
                files.append_log(".sandboxer/setup.log", ring.read_at(0, KEPT).bytes, KEPT as u64 * 2).await;
            if let Err(error) = written {
                tracing::warn!(%error, "the log of a setup script could not be written");
            }
        }
    }
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
