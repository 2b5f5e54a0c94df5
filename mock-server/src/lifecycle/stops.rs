//! From up to `archived`: everything that runs is ended, the disk is kept.

use std::{io, sync::Arc, time::Duration};

use super::{advance, report};
use crate::{
    agent::{self, Ending},
    app::{App, Live},
    auth::Access,
    metering::process_look,
    reply::ApiError,
    snapshots::{self, Captured, Keep},
    space,
    store::{Reader, StoreError, Writer, typed},
    strays, view,
    world::{
        ids, retention,
        sandboxes::{CaptureStatus, Sandbox, State},
        scenarios::Scenario,
        stops::{Stop, StopStatus, stop_key},
        time::Millis,
        usage,
    },
};

/// How long after a save that failed the next one is tried.
const RETRY: Duration = Duration::from_secs(30);

/// Begins to stop a sandbox, or joins a stop that goes on; hands back the sandbox and the stop.
pub(crate) fn begin_stop(app: &Arc<App>, id: &str, force: bool) -> Result<(Sandbox, Stop), ApiError> {
    let now = app.now();
    let live = match app.read(|tx| typed::get::<Sandbox>(tx, id))? {
        Some(sandbox) => app.live(&sandbox),
        None => return Err(ApiError::not_found("sandbox")),
    };
    let (sandbox, stop, course, is_new) = app.write(|tx| {
        let mut sandbox: Sandbox = typed::get(&*tx, id)?.ok_or_else(|| ApiError::not_found("sandbox"))?;
        if sandbox.state == State::Archived {
            let view = view::sandbox(&*tx, &sandbox, Access::Owner)?;
            return Err(
                ApiError::new(400, "stop_failed", "the sandbox is stopped already").detail("sandbox", view)
            );
        }
        if let Some(mut stop) = open_stop(&*tx, &sandbox)? {
            if force && !stop.forced {
                stop.forced = true;
                typed::put(tx, &stop)?;
            }
            return Ok((sandbox, stop, live.course(), false));
        }
        agent::end_open(tx, id, None, &Ending::Interrupted, now)?;
        if sandbox.state == State::Running {
            sandbox.state = State::Idle;
        }
        let mut stop = Stop::new(ids::stop(), id, sandbox.state, now);
        stop.forced = force;
        typed::put(tx, &stop)?;
        usage::end(tx, id, now)?;
        sandbox.state = State::Archiving;
        sandbox.stop = Some(stop.id.clone());
        sandbox.archive_after = None;
        sandbox.updated_at = now;
        typed::put(tx, &sandbox)?;
        Ok((sandbox, stop, live.turn_to_new_course(), true))
    })?;
    if force {
        live.force(course);
    }
    if is_new {
        live.announce(State::Archiving);
        app.agents.cancel(id);
        app.tasks.spawn(carry_out_stop(app.clone(), live, course, id.to_owned(), stop.id.clone()));
    }
    Ok((sandbox, stop))
}

/// The stop of a sandbox that goes on.
pub(crate) fn open_stop(tx: &dyn Reader, sandbox: &Sandbox) -> Result<Option<Stop>, StoreError> {
    let Some(id) = &sandbox.stop else { return Ok(None) };
    let stop: Option<Stop> = typed::get(tx, &stop_key(&sandbox.id, id))?;
    Ok(stop.filter(|stop| stop.status.is_open()))
}

pub(super) async fn carry_out_stop(app: Arc<App>, live: Arc<Live>, course: u64, id: String, stop: String) {
    let stopping = Stopping { app, live, course, id, stop };
    loop {
        let was_forced = stopping.live.is_forced(course);
        match stopping.attempt().await {
            Ok(Outcome::Over) => return,
            Ok(Outcome::Failing) => {}
            Err(error) => report::<()>(Err(error)),
        }
        let goes_on = tokio::select! {
            goes_on = stopping.app.sleep(RETRY) => goes_on,
            () = stopping.live.forced(course), if !was_forced => true,
            // Resumed or deleted meanwhile.
            () = stopping.live.off_course(stopping.course) => false,
        };
        if !goes_on {
            return;
        }
    }
}

/// How an attempt to stop a sandbox ended.
enum Outcome {
    /// It is stopped, or has taken another course.
    Over,
    /// Its disk could not be saved; it has to be tried again.
    Failing,
}

/// A sandbox that is being stopped.
struct Stopping {
    app: Arc<App>,
    live: Arc<Live>,
    course: u64,
    id: String,
    stop: String,
}

impl Stopping {
    async fn attempt(&self) -> Result<Outcome, StoreError> {
        if self.is_in_doubt()? {
            // What runs is not ended for a save that fails once more.
            match self.capture().await {
                Ok(Some(captured)) => captured.discard(&self.app).await,
                Ok(None) => {}
                Err(error) => return self.fail(&error),
            }
        }
        match self.begin()? {
            None => return Ok(Outcome::Over),
            Some(false) => return Ok(Outcome::Failing),
            Some(true) => self.app.agents.cancel(&self.id),
        }
        let _turn = self.live.turn.write().await;
        keep_sample(&self.app, &self.id).await;
        empty(&self.app, &self.live, &self.id).await;
        let captured = match self.capture().await {
            Ok(captured) => captured,
            Err(error) => return self.fail(&error),
        };
        // A copy of a local disk is made quickly; the delay stands for the time that a real save takes, and force cuts it
        // short.
        let goes_on = tokio::select! {
            goes_on = self.app.sleep(self.app.machines().stop_delay()) => goes_on,
            () = self.live.forced(self.course) => true,
            // Then what was captured is of no use.
            () = self.live.off_course(self.course) => true,
        };
        if goes_on {
            self.archive(captured).await?;
        }
        Ok(Outcome::Over)
    }

    async fn capture(&self) -> io::Result<Option<Captured>> {
        snapshots::at_stop(&self.app, &self.live, self.course, &self.id, &self.stop).await
    }

    /// Whether something may run in it that the last attempt to save its disk, which failed, has not ended.
    fn is_in_doubt(&self) -> Result<bool, StoreError> {
        let scenarios = self.app.scenarios();
        self.app.read(|tx| {
            let sandbox: Option<Sandbox> = typed::get(tx, &self.id)?;
            let stop: Option<Stop> = typed::get(tx, &stop_key(&self.id, &self.stop))?;
            let has_failed = |sandbox: &Sandbox| {
                let capture = sandbox.capture.is_some_and(|it| it.status == CaptureStatus::Failed);
                (capture || sandbox.save_failed_at.is_some())
                    && !scenarios.is_on(Scenario::BrokenDisk, sandbox)
            };
            Ok(sandbox.is_some_and(|it| has_failed(&it)) && stop.is_some_and(|it| was_up(&it).is_some()))
        })
    }

    /// Looks whether the disk can be saved: true if the stop goes on, false if it has to be tried again. Meanwhile the
    /// sandbox is up, as it was. `None` if it took another course.
    fn begin(&self) -> Result<Option<bool>, StoreError> {
        let scenarios = self.app.scenarios();
        let mut saves = true;
        let is_on_course = self.advance(|sandbox, tx, now| {
            let Some(mut stop) = typed::get::<Stop>(&*tx, &stop_key(&self.id, &self.stop))? else {
                return Ok(());
            };
            let is_broken = was_up(&stop).is_some() && scenarios.is_on(Scenario::BrokenDisk, sandbox);
            saves = stop.forced || !is_broken;
            if !saves {
                return failed(tx, sandbox, stop, "the disk cannot be saved", now);
            }
            stop.last_attempt_at = Some(now);
            (stop.status, stop.error, sandbox.state) = (StopStatus::Pending, None, State::Archiving);
            sandbox.save_failed_at = None;
            agent::end_open(tx, &self.id, None, &Ending::Interrupted, now)?;
            typed::put(tx, &stop)
        })?;
        Ok(is_on_course.then_some(saves))
    }

    /// Notes that the disk could not be saved. The sandbox is up meanwhile if it was before; what ran in it may have ended.
    fn fail(&self, error: &io::Error) -> Result<Outcome, StoreError> {
        if self.app.closing.is_cancelled() {
            // Given up for that, and taken up when the server starts again.
            return Ok(Outcome::Over);
        }
        let is_on_course = self.advance(|sandbox, tx, now| {
            match typed::get::<Stop>(&*tx, &stop_key(&self.id, &self.stop))? {
                // Told to give up meanwhile, which the next attempt does.
                Some(stop) if stop.forced => Ok(()),
                Some(stop) => {
                    tracing::error!(sandbox = %self.id, %error, "a disk could not be saved");
                    failed(tx, sandbox, stop, &format!("the disk could not be saved: {error}"), now)
                }
                None => Ok(()),
            }
        })?;
        Ok(if is_on_course { Outcome::Failing } else { Outcome::Over })
    }

    /// Ends the stop, with what was captured of the disk.
    async fn archive(&self, captured: Option<Captured>) -> Result<(), StoreError> {
        let (app, id) = (&self.app, &self.id);
        let (mut is_erased, mut is_stored, mut is_cleared) = (false, false, false);
        let archived = self.advance(|sandbox, tx, now| {
            sandbox.state = State::Archived;
            // Its disk is not brought back from that any more, or from another.
            is_cleared = sandbox.restore_from.is_some();
            sandbox.has_machine = false;
            sandbox.recovers_at = None;
            let stop: Option<Stop> = typed::get(&*tx, &stop_key(id, &self.stop))?;
            if !sandbox.snapshots || retention::of_account(&*tx, &sandbox.account)?.zero_at.is_some() {
                // Of what is erased there is nothing to resume from, and nothing to be seen from the same moment on.
                (sandbox.started_once, sandbox.snapshot_at, sandbox.restore_from) = (false, None, None);
                snapshots::hide_of_sandbox(tx, id, now)?;
                (is_erased, is_cleared) = (true, true);
            } else if let Some(captured) = &captured {
                let saved = snapshots::record(tx, captured, sandbox, Keep::Lasting, now)?;
                sandbox.saved(now);
                // What was to be brought back was not yet: the disk beside the snapshot is given up still.
                sandbox.restore_from = sandbox.restore_from.take().map(|_| saved.id);
                is_cleared |= snapshots::thin(&app.shelf, tx, id, 0, now)?;
                is_stored = true;
            } else if sandbox.has_disk() && stop.as_ref().is_some_and(|stop| stop.forced) {
                is_erased = snapshots::lose_disk(&*tx, sandbox)?;
            }
            if let Some(mut stop) = stop {
                stop.end(StopStatus::Completed, now);
                typed::put(tx, &stop)?;
            }
            Ok(())
        });
        if archived.is_err() {
            // Nothing of it is true, and it is tried again.
            (is_erased, is_stored, is_cleared) = (false, false, false);
        }
        if is_erased {
            let _disk = self.live.disk.write().await;
            if let Err(error) = space::remove_tree(app.space(id).root).await {
                tracing::error!(sandbox = %id, %error, "a disk could not be erased");
            }
        }
        if let Some(captured) = captured.filter(|_| !is_stored) {
            captured.discard(app).await;
        }
        if is_cleared {
            snapshots::clear_away_later(app);
        }
        app.machine_freed.notify_waiters();
        archived.map(drop)
    }

    fn advance(
        &self,
        change: impl FnOnce(&mut Sandbox, &mut dyn Writer, Millis) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        advance(&self.app, &self.live, self.course, &self.id, change)
    }
}

/// The state that a sandbox was in before its stop, if it was up.
fn was_up(stop: &Stop) -> Option<State> {
    stop.before.filter(|before| before.is_up())
}

/// Makes a stop one that fails.
fn failed(
    tx: &mut dyn Writer,
    sandbox: &mut Sandbox,
    mut stop: Stop,
    problem: &str,
    now: Millis,
) -> Result<(), StoreError> {
    sandbox.save_failed_at = Some(now);
    stop.last_attempt_at = Some(now);
    (stop.status, stop.error) = (StopStatus::Failing, Some(problem.into()));
    // What an agent has begun since goes on.
    if let Some(before) = was_up(&stop).filter(|_| sandbox.state != State::Running) {
        sandbox.state = before;
    }
    typed::put(tx, &stop)
}

/// Ends everything that runs in a sandbox and waits until its commands are recorded.
pub(super) async fn empty(app: &App, live: &Live, id: &str) {
    let jobs = live.jobs();
    for job in &jobs {
        job.lose();
    }
    app.runner.end_space(id).await;
    for job in jobs {
        job.ended().await;
    }
    live.clear_jobs();
    report(app.read(|tx| strays::running(tx, id)).and_then(|lost| match lost.is_empty() {
        true => Ok(()),
        false => app.write_later(|tx| strays::lose(tx, id, app.now())),
    }));
}

/// Keeps the last look at the processes, for questions that come while the sandbox is stopped.
async fn keep_sample(app: &App, id: &str) {
    let Ok(processes) = app.runner.processes(&app.space(id)).await else { return };
    let seen = process_look(id, app.now(), processes);
    report(app.write_later(|tx| typed::put(tx, &seen)));
}
