//! What happens to a sandbox after its answer went out: booting, stopping, being deleted, running out of time.

use std::{sync::Arc, time::Duration};

use crate::{
    app::{App, Live},
    reply::ApiError,
    setup, space,
    store::{Reader, StoreError, Writer, typed},
    view,
    world::{
        commands::{Command, Process, Status},
        deletions::Deletion,
        ids,
        sandboxes::{Sandbox, State},
        seed::MachinesSeed,
        stops::{Stop, StopStatus, stop_key},
        time::Millis,
        usage,
    },
};

/// How long a sandbox waits for a free machine before it is cancelled.
const MACHINE_WAIT: Duration = Duration::from_secs(300);

/// Stored samples keep this many processes and characters of a command line.
const SAMPLE_PROCESSES: usize = 12;
const SAMPLE_CHARACTERS: usize = 120;

/// Brings a sandbox up in the background: it is in `provisioning` when this is called.
pub(crate) fn boot(app: &Arc<App>, sandbox: &Sandbox) {
    let live = app.live(sandbox);
    live.announce(sandbox.state);
    let course = live.turn_to_new_course();
    let (app, id) = (app.clone(), sandbox.id.clone());
    let tasks = app.tasks.clone();
    tasks.spawn(async move {
        if let Err(problem) = bring_up(&app, &live, course, &id).await {
            tracing::error!(sandbox = %id, %problem, "a sandbox could not be started");
            let failed = advance(&app, &live, course, &id, |sandbox, _, _| {
                sandbox.state = State::Error;
                sandbox.has_machine = false;
                sandbox.error = Some(problem);
                Ok(())
            });
            report(failed);
            app.machine_freed.notify_waiters();
        }
    });
}

async fn bring_up(app: &Arc<App>, live: &Arc<Live>, course: u64, id: &str) -> Result<(), String> {
    if !wait_for_machine(app, live, course, id).await {
        return Ok(());
    }
    if !app.sleep(app.machines().boot_delay()).await {
        return Ok(());
    }
    let turn = live.turn.write().await;
    for state in [State::Provisioned, State::Cloning] {
        let moved = advance(app, live, course, id, |sandbox, _, _| {
            sandbox.state = state;
            Ok(())
        });
        if !moved.map_err(|error| error.to_string())? {
            return Ok(());
        }
    }
    app.runner
        .prepare(&app.space(id))
        .await
        .map_err(|error| format!("its folders could not be made: {error}"))?;
    let moved = advance(app, live, course, id, |sandbox, tx, now| {
        sandbox.state = State::Ready;
        sandbox.error = None;
        sandbox.started_once = true;
        // The time until the auto-stop runs from the moment the start was asked for, which set it already.
        if sandbox.setup_script.is_some() && sandbox.setup_status.as_deref() == Some("pending") {
            sandbox.setup_status = Some("running".into());
        }
        usage::begin(tx, &sandbox.id, &sandbox.kind, now)
    });
    drop(turn);
    if moved.map_err(|error| error.to_string())? {
        app.deadlines_changed.notify_one();
        setup::run(app, id);
    }
    Ok(())
}

/// Waits until a machine is free; false if the sandbox took another course meanwhile or was cancelled.
async fn wait_for_machine(app: &Arc<App>, live: &Arc<Live>, course: u64, id: &str) -> bool {
    let given_up = app.clock.sleep(MACHINE_WAIT);
    tokio::pin!(given_up);
    loop {
        let freed = app.machine_freed.notified();
        tokio::pin!(freed);
        freed.as_mut().enable();
        // Taking the machine and looking whether there is one are one transaction: two may wait for the last.
        let machines = app.machines();
        let mut is_free = false;
        let taken = advance(app, live, course, id, |sandbox, tx, _| {
            is_free = machine_is_free_in(tx, &machines, id)?;
            if is_free {
                sandbox.has_machine = true;
            }
            Ok(())
        });
        match taken {
            Ok(true) if is_free => return true,
            Ok(true) => {}
            Ok(false) => return false,
            Err(error) => report::<()>(Err(error)),
        }
        tokio::select! {
            () = &mut freed => {}
            () = app.closing.cancelled() => return false,
            () = &mut given_up => {
                report(advance(app, live, course, id, |sandbox, _, _| {
                    sandbox.state = State::Cancelled;
                    sandbox.error = Some("no machine became free in time".into());
                    Ok(())
                }));
                return false;
            }
        }
    }
}

/// Whether there is a machine for one sandbox more; `id` is one that waits for it itself.
pub(crate) fn machine_is_free_in(
    tx: &dyn Reader,
    machines: &MachinesSeed,
    id: &str,
) -> Result<bool, StoreError> {
    let Some(count) = machines.count else { return Ok(true) };
    let all = typed::with_prefix::<Sandbox>(tx, "")?;
    Ok((all.iter().filter(|other| other.id != id && other.has_machine).count() as u64) < count)
}

/// Changes a sandbox if it is still on the course that the change belongs to; says whether it was.
fn advance(
    app: &App,
    live: &Live,
    course: u64,
    id: &str,
    change: impl FnOnce(&mut Sandbox, &mut dyn Writer, Millis) -> Result<(), StoreError>,
) -> Result<bool, StoreError> {
    let now = app.now();
    let changed = app.write(|tx| {
        let Some(mut sandbox) = typed::get::<Sandbox>(tx, id)? else { return Ok(None) };
        // New courses are taken inside transactions, and those come one after the other.
        if !live.is_on(course) {
            return Ok(None);
        }
        change(&mut sandbox, tx, now)?;
        sandbox.updated_at = now;
        typed::put(tx, &sandbox)?;
        Ok::<_, StoreError>(Some(sandbox.state))
    })?;
    if let Some(state) = changed {
        live.announce(state);
    }
    Ok(changed.is_some())
}

fn report<T>(result: Result<T, StoreError>) {
    if let Err(error) = result {
        tracing::error!(%error, "a change of state could not be stored");
    }
}

/// Begins to stop a sandbox, or joins a stop that is pending; hands back the sandbox and the stop.
pub(crate) fn begin_stop(app: &Arc<App>, id: &str, force: bool) -> Result<(Sandbox, Stop), ApiError> {
    let now = app.now();
    let live = match app.read(|tx| typed::get::<Sandbox>(tx, id))? {
        Some(sandbox) => app.live(&sandbox),
        None => return Err(ApiError::not_found("sandbox")),
    };
    let (sandbox, stop, course) = app.write(|tx| {
        let mut sandbox: Sandbox = typed::get(tx, id)?.ok_or_else(|| ApiError::not_found("sandbox"))?;
        if sandbox.state == State::Archived {
            let view = view::sandbox(tx, &sandbox, crate::auth::Access::Owner)?;
            return Err(
                ApiError::new(400, "stop_failed", "the sandbox is stopped already").detail("sandbox", view)
            );
        }
        if sandbox.state == State::Archiving
            && let Some(stop_id) = &sandbox.stop
            && let Some(stop) = typed::get::<Stop>(tx, &stop_key(id, stop_id))?
        {
            return Ok((sandbox, stop, None));
        }
        let stop = Stop {
            id: ids::stop(),
            sandbox: id.to_owned(),
            status: StopStatus::Pending,
            requested_at: now,
            last_attempt_at: Some(now),
            ended_at: None,
        };
        typed::put(tx, &stop)?;
        usage::end(tx, id, now)?;
        sandbox.state = State::Archiving;
        sandbox.stop = Some(stop.id.clone());
        sandbox.archive_after = None;
        sandbox.updated_at = now;
        typed::put(tx, &sandbox)?;
        Ok((sandbox, stop, Some(live.turn_to_new_course())))
    })?;
    if force {
        live.forced.notify_one();
    }
    if let Some(course) = course {
        live.announce(State::Archiving);
        app.tasks.spawn(carry_out_stop(app.clone(), live, course, id.to_owned(), stop.id.clone()));
    }
    Ok((sandbox, stop))
}

async fn carry_out_stop(app: Arc<App>, live: Arc<Live>, course: u64, id: String, stop: String) {
    let _turn = live.turn.write().await;
    keep_sample(&app, &id).await;
    empty(&app, &live, &id).await;
    // The local disk needs no saving; the delay stands for the time that a real save takes, and force cuts it short.
    let goes_on = tokio::select! {
        goes_on = app.sleep(app.machines().stop_delay()) => goes_on,
        () = live.forced.notified() => true,
    };
    if !goes_on {
        return;
    }
    let mut is_erased = false;
    let archived = advance(&app, &live, course, &id, |sandbox, tx, now| {
        sandbox.state = State::Archived;
        sandbox.has_machine = false;
        is_erased = !sandbox.snapshots;
        sandbox.snapshot_at = (!is_erased && sandbox.started_once).then_some(now);
        if let Some(mut stop) = typed::get::<Stop>(tx, &stop_key(&id, &stop))? {
            stop.status = StopStatus::Completed;
            stop.ended_at = Some(now);
            typed::put(tx, &stop)?;
        }
        Ok(())
    });
    if is_erased {
        let _disk = live.disk.write().await;
        if let Err(error) = space::remove_tree(app.space(&id).root).await {
            tracing::error!(sandbox = %id, %error, "a disk could not be erased");
        }
    }
    report(archived);
    app.machine_freed.notify_waiters();
}

/// Ends everything that runs in a sandbox and waits until its commands are recorded.
async fn empty(app: &App, live: &Live, id: &str) {
    let jobs = live.jobs();
    for job in &jobs {
        job.lose();
    }
    app.runner.end_space(id).await;
    for job in jobs {
        job.ended().await;
    }
    live.clear_jobs();
}

/// Keeps the last look at the processes, for questions that come while the sandbox is stopped.
async fn keep_sample(app: &App, id: &str) {
    let Ok(mut processes) = app.runner.processes(&app.space(id)).await else { return };
    let total = processes.len();
    processes.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent));
    let shown: Vec<_> = processes
        .iter()
        .take(SAMPLE_PROCESSES)
        .map(|sample| view::process(sample, None, SAMPLE_CHARACTERS))
        .collect();
    let sample = serde_json::json!({"sampledAt": app.now(), "total": total, "processes": shown});
    report(app.write_later(|tx| tx.put(crate::store::Table::Samples, id, sample.to_string().as_bytes())));
}

/// Takes a sandbox out of sight and purges it in the background.
pub(crate) fn begin_delete(app: &Arc<App>, sandbox: &Sandbox, account: &str) -> Result<Deletion, ApiError> {
    let now = app.now();
    let live = app.live(sandbox);
    let id = &sandbox.id;
    let deletion = app.write(|tx| {
        if typed::get::<Sandbox>(tx, id)?.is_none() {
            return Err(ApiError::not_found("sandbox"));
        }
        let deletion = Deletion {
            id: ids::deletion(),
            account: account.to_owned(),
            target: id.clone(),
            requested_at: now,
            completed_at: None,
            attempts: 1,
        };
        typed::put(tx, &deletion)?;
        typed::remove::<Sandbox>(tx, id)?;
        live.turn_to_new_course();
        Ok(deletion)
    })?;
    app.forget(id);
    live.announce(State::Cancelled);
    app.tasks.spawn(purge(app.clone(), Some(live), deletion.clone()));
    Ok(deletion)
}

/// Ends and removes everything of a sandbox that is out of sight.
pub(crate) async fn purge(app: Arc<App>, live: Option<Arc<Live>>, mut deletion: Deletion) {
    let id = deletion.target.clone();
    match &live {
        Some(live) => {
            let _turn = live.turn.write().await;
            empty(&app, live, &id).await;
        }
        None => app.runner.end_space(&id).await,
    }
    app.machine_freed.notify_waiters();
    let _disk = match &live {
        Some(live) => Some(live.disk.write().await),
        None => None,
    };
    while let Err(error) = space::remove_tree(app.space(&id).root).await {
        tracing::error!(sandbox = %id, %error, "a disk could not be removed");
        deletion.attempts += 1;
        report(app.write(|tx| typed::put(tx, &deletion)));
        if !app.sleep(Duration::from_secs(5)).await {
            return;
        }
    }
    deletion.completed_at = Some(app.now());
    report(app.write(|tx| {
        forget_history(tx, &id)?;
        typed::put(tx, &deletion)
    }));
}

fn forget_history(tx: &mut dyn Writer, id: &str) -> Result<(), StoreError> {
    use crate::store::{Order, Table};
    let prefix = format!("{id}/");
    for command in typed::with_prefix::<Command>(tx, &prefix)? {
        remove_all(tx, Table::Outputs, &format!("{}/", command.id))?;
    }
    for table in [Table::Commands, Table::Processes, Table::Stops, Table::Usage] {
        remove_all(tx, table, &prefix)?;
    }
    tx.remove(Table::Samples, id)?;

    fn remove_all(tx: &mut dyn Writer, table: Table, prefix: &str) -> Result<(), StoreError> {
        let mut keys = Vec::new();
        tx.scan(table, prefix, typed::after_prefix(prefix).as_deref(), Order::Ascending, &mut |key, _| {
            keys.push(key.to_owned());
            std::ops::ControlFlow::Continue(())
        })?;
        keys.iter().try_for_each(|key| tx.remove(table, key))
    }
    Ok(())
}

/// Stops sandboxes whose time is over, for as long as the server runs.
pub(crate) async fn keep_deadlines(app: Arc<App>) {
    loop {
        let changed = app.deadlines_changed.notified();
        let now = app.now();
        let all = app.read(|tx| typed::with_prefix::<Sandbox>(tx, "")).unwrap_or_else(|error| {
            report::<()>(Err(error));
            Vec::new()
        });
        let mut next: Option<Millis> = None;
        for sandbox in all.iter().filter(|sandbox| sandbox.state.is_up() || sandbox.state.is_starting()) {
            match sandbox.archive_after {
                Some(at) if at <= now && sandbox.state.is_up() => {
                    if let Err(error) = begin_stop(&app, &sandbox.id, false) {
                        tracing::error!(code = error.code(), "an auto-stop failed");
                    }
                }
                // One that is still starting is looked at again as soon as it is up.
                Some(at) if at > now => next = Some(next.map_or(at, |next| next.min(at))),
                _ => {}
            }
        }
        let wait = next.map(|at| Duration::from_millis(u64::try_from(at - now).unwrap_or(0)));
        tokio::select! {
            () = changed => {}
            () = app.closing.cancelled() => return,
            () = async { match wait {
                Some(wait) => app.clock.sleep(wait).await,
                None => std::future::pending().await,
            } } => {}
        }
    }
}

/// Takes up what a server that used the same store left undone.
pub(crate) fn take_up(app: &Arc<App>) -> Result<(), StoreError> {
    let now = app.now();
    let (sandboxes, deletions) = app.write(|tx| {
        for mut command in typed::with_prefix::<Command>(tx, "")? {
            if command.status == Status::Running {
                command.status = Status::Lost;
                command.finished_at = Some(now);
                typed::put(tx, &command)?;
            }
        }
        let mut sandboxes = typed::with_prefix::<Sandbox>(tx, "")?;
        for sandbox in &mut sandboxes {
            if sandbox.setup_status.as_deref() == Some("running") {
                sandbox.setup_status = Some("failed".into());
                sandbox.setup_error = Some("the sandbox lost the process".into());
                typed::put(tx, sandbox)?;
            }
        }
        let open = typed::with_prefix::<Deletion>(tx, "")?;
        let open: Vec<_> = open.into_iter().filter(|deletion| deletion.completed_at.is_none()).collect();
        Ok::<_, StoreError>((sandboxes, open))
    })?;
    for deletion in deletions {
        app.tasks.spawn(purge(app.clone(), None, deletion));
    }
    for sandbox in sandboxes {
        match (sandbox.state, sandbox.stop.clone()) {
            (state, _) if state.is_starting() => boot(app, &sandbox),
            (State::Archiving, Some(stop)) => {
                let live = app.live(&sandbox);
                let course = live.turn_to_new_course();
                app.tasks.spawn(carry_out_stop(app.clone(), live, course, sandbox.id, stop));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A process id for a new background command: its own, unless an earlier command of the sandbox had that one.
pub(crate) fn claim_process_id(
    tx: &mut dyn Writer,
    sandbox: &str,
    pid: u32,
    command: &str,
) -> Result<u64, StoreError> {
    let taken = typed::with_prefix::<Process>(tx, &format!("{sandbox}/"))?;
    let is_taken = |id: u64| taken.iter().any(|process| process.process_id == id);
    let mut process_id = u64::from(pid.max(1));
    if is_taken(process_id) {
        process_id = taken.last().map_or(1, |process| process.process_id + 1);
    }
    typed::put(tx, &Process { sandbox: sandbox.to_owned(), process_id, command: command.to_owned() })?;
    Ok(process_id)
}
