//! Setup scripts: run in the background once a sandbox is up.

use std::sync::Arc;

use crate::{
    app::App,
    environment,
    runner::{CommandSpec, Exit, OutputMode},
    store::{StoreError, typed},
    view::signal_name,
    world::sandboxes::Sandbox,
};

/// How much of its standard error a failed script leaves in `setupError`, in bytes.
const TAIL: usize = 2000;

/// How much of a script's output is kept, in bytes a stream.
const KEPT: usize = 1 << 20;

/// Runs the script of a sandbox whose `setupStatus` is `running`; nothing if it has none.
pub(crate) fn run(app: &Arc<App>, id: &str) {
    let (app, id) = (app.clone(), id.to_owned());
    let tasks = app.tasks.clone();
    tasks.spawn(async move {
        let sandbox = match app.read(|tx| typed::get::<Sandbox>(tx, &id)) {
            Ok(Some(sandbox)) if sandbox.setup_status.as_deref() == Some("running") => sandbox,
            _ => return,
        };
        let failure = run_script(&app, &sandbox).await;
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

/// Why the script failed; `None` if it did not.
async fn run_script(app: &App, sandbox: &Sandbox) -> Option<String> {
    let script = sandbox.setup_script.clone()?;
    let live = app.live(sandbox);
    let space = app.space(&sandbox.id);
    let spec = CommandSpec {
        env: environment::variables(sandbox, &[]),
        output: OutputMode::KeepLast,
        output_limit: KEPT,
        ..CommandSpec::new(environment::shell(&script))
    };
    let running = {
        let _turn = live.turn.read().await;
        match app.runner.spawn(&space, spec).await {
            Ok(running) => running,
            Err(error) => return Some(error.to_string()),
        }
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
