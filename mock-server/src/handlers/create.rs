//! New sandboxes, from nothing or from another one's disk, and stopped ones brought back.

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use serde_json::{Value, json};

use super::{
    Call,
    create_from::Origin,
    create_more::{self, More},
    data_retention, not_ready,
    starts::{self, Ttl},
};
use crate::{
    app::{App, FIRST_COURSE, lock},
    auth::{self, Access},
    lifecycle,
    reply::{Answer, ApiError, Outcome},
    snapshots, space,
    store::{Reader, typed},
    view,
    world::{
        accounts::Organisation,
        health,
        idempotency::{self, REMEMBERED_MS, UsedKey, used_key},
        ids,
        limits::{self, Wanted},
        pins::{self, Pin},
        sandboxes::{Sandbox, State},
        scenarios::Scenario,
        stops::StopStatus,
        time::{DAY, Millis},
    },
};

/// Refuses to make a sandbox that the key could not even see.
fn check_reach(call: &Call) -> Result<(), ApiError> {
    match &call.caller.key.sandboxes {
        None => Ok(()),
        Some(_) => {
            Err(ApiError::new(403, "forbidden", "the API key is limited to sandboxes that are there already"))
        }
    }
}

pub(super) async fn create(app: &Arc<App>, call: &Call) -> Outcome {
    check_reach(call)?;
    let organisation = app.read(|tx| payer(tx, call))?;
    let wallet_key = organisation.as_ref().map_or("", |organisation| organisation.id.as_str()).to_owned();
    let mut turn = match KeyTurn::take(app, call, "create", &wallet_key)? {
        Taken::Mine(turn) => turn,
        Taken::Before(sandboxes) => return created(app, call, &sandboxes),
    };
    app.sleep(app.machines().start_delay()).await;
    let now = app.now();
    let environment =
        app.read(|tx| starts::environment(tx, call, organisation.as_ref().map(|it| it.id.as_str()), true))?;
    let more = More::of(call, organisation.is_some())?;
    let origin = Origin::find(app, call, organisation.as_ref()).await?;
    let ttl = starts::ttl(&call.body).or(Some(starts::DEFAULT_TTL));
    let no_env = call.flag("noEnv");
    let mut sandbox = Sandbox {
        made_by: call.caller.made_by(),
        organisation: organisation.as_ref().map(|organisation| organisation.id.clone()),
        kind: call.text("type").unwrap_or("default").to_owned(),
        env: starts::env(&call.body).unwrap_or_default(),
        snapshots: call.flag_or("snapshots", true),
        monitoring: call.flag_or("monitoring", true),
        ttl_seconds: ttl,
        archive_after: starts::deadline(now, ttl),
        setup_script: call.text("setupScript").map(str::to_owned),
        setup_status: call.text("setupScript").map(|_| "pending".to_owned()),
        // Whoever would rather fail than wait for a machine has the one that was seen free.
        has_machine: call.flag("failFast"),
        ..Sandbox::new(ids::sandbox(), &call.caller.account.id, now)
    };
    if !no_env {
        environment.map_or_else(|| starts::default_environment(app, call), Ok)?.give(&mut sandbox);
    }
    more.give(&mut sandbox);
    if let Some(origin) = &origin {
        // Asked twice, as in a fork.
        app.read(|tx| {
            data_retention::apply(tx, call, &mut sandbox)?;
            let wallet = call.caller.wallet(tx, organisation.clone())?;
            // No disk is copied for the first of more than there may be.
            starts::allow(app, tx, call, &wallet, &sandbox, Wanted::fresh(more.count as u64), now)
        })?;
        origin.give(call, &mut sandbox);
    }
    let mut sandboxes = vec![sandbox];
    for _ in 1..more.count {
        sandboxes.push(sandboxes[0].another(ids::sandbox(), ids::subdomain()));
    }
    if let Some(origin) = &origin {
        for (index, sandbox) in sandboxes.iter().enumerate() {
            if let Err(error) = copy_disk(app, app.shelf.disk(&origin.snapshot.id), &sandbox.id).await {
                discard_all(app, &sandboxes[..index]).await;
                return Err(error);
            }
        }
    }
    // All of them, or none.
    let stored = app.write(|tx| {
        let wallet = call.caller.wallet(tx, organisation)?;
        starts::allow(app, tx, call, &wallet, &sandboxes[0], Wanted::fresh(more.count as u64), now)?;
        for sandbox in &mut sandboxes {
            data_retention::apply(&*tx, call, sandbox)?;
            limits::note_start(tx, &wallet.key, &sandbox.id, now)?;
            typed::put(tx, sandbox)?;
            more.keep(tx, &sandbox.id)?;
            if let Some(origin) = &origin {
                origin.count(tx, now)?;
            }
        }
        turn.remember(tx, sandboxes.iter().map(|sandbox| sandbox.id.clone()), now)
    });
    if let Err(error) = stored {
        if origin.is_some() {
            discard_all(app, &sandboxes).await;
        }
        return Err(error);
    }
    create_more::host(app, call, &sandboxes[0].id).await;
    // As it is before anything is done about it: only a call that repeats this one may find it ready.
    let answer = created(app, call, &sandboxes.iter().map(|sandbox| sandbox.id.clone()).collect::<Vec<_>>());
    for sandbox in &sandboxes {
        lifecycle::boot(app, sandbox, FIRST_COURSE);
    }
    app.deadlines_changed.notify_one();
    answer
}

/// The answer to a create, for the first call and for those that repeat it.
fn created(app: &App, call: &Call, ids: &[String]) -> Outcome {
    app.read(|tx| {
        let mut views = Vec::with_capacity(ids.len());
        // One that is asked for again may be up by now.
        let mut viewer = view::Viewer::new(tx).with_ways_in(&call.caller.key, app.now());
        let (mut is_starting, mut ttl) = (false, None);
        for id in ids {
            let (sandbox, access) = call.caller.see(tx, id)?;
            is_starting |= sandbox.state.is_starting();
            ttl = sandbox.ttl_seconds;
            views.push(viewer.sandbox(&sandbox, access)?);
        }
        let body = json!({
            "status": if is_starting { "provisioning" } else { "ready" },
            "ttlSeconds": ttl,
            "sandbox": views.first(),
        });
        let mut answer = Answer::new(202, "sandbox.created", body);
        if let [id] = ids
            && let Some(hosted) = create_more::hosted(tx, call, id)?
        {
            answer = answer.with("hostedPorts", hosted);
        }
        if views.len() > 1 {
            answer = answer.with("sandboxes", views);
        }
        Ok(answer)
    })
}

/// Who pays for a create: `org` of the body, then `teamId`, then what the query or the header named, then the wallet that
/// is active.
fn payer(tx: &dyn Reader, call: &Call) -> Result<Option<Organisation>, ApiError> {
    match call.body.get("org").or_else(|| call.body.get("teamId")) {
        Some(Value::String(named)) => auth::organisation(tx, &call.caller.account, named),
        Some(_) => Ok(None),
        None => call.caller.payer(tx),
    }
}

pub(super) async fn fork(app: &Arc<App>, call: &Call) -> Outcome {
    let source = call.own_sandbox(app)?;
    check_reach(call)?;
    let mut turn = match KeyTurn::take(app, call, &format!("fork {}", source.id), "")? {
        Taken::Mine(turn) => turn,
        Taken::Before(sandboxes) => return forked(app, call, sandboxes.first().map_or("", String::as_str)),
    };
    app.sleep(app.machines().start_delay()).await;
    check_forkable(&source)?;
    let now = app.now();
    check_data(app, &source, now)?;
    let environment = app.read(|tx| starts::environment(tx, call, source.organisation.as_deref(), true))?;
    let ttl = starts::ttl(&call.body).or(Some(starts::DEFAULT_TTL));
    let no_env = call.flag("noEnv") || source.environment.is_none();
    let mut copy = Sandbox {
        made_by: call.caller.made_by(),
        organisation: source.organisation.clone(),
        name: source.name.clone(),
        kind: call.text("type").map_or_else(|| source.kind.clone(), str::to_owned),
        env: starts::env(&call.body).unwrap_or_else(|| source.env.clone()),
        snapshots: source.snapshots,
        monitoring: call.flag_or("monitoring", source.monitoring),
        ttl_seconds: ttl,
        archive_after: starts::deadline(now, ttl),
        has_machine: call.flag("failFast"),
        started_once: true,
        ..Sandbox::new(ids::sandbox(), &call.caller.account.id, now)
    };
    match environment.or_else(|| Pin::of(&source)) {
        _ if no_env => {}
        Some(pin) => {
            starts::check_environment(call, pin.environment())?;
            pin.give(&mut copy);
        }
        None => copy.environment.clone_from(&source.environment),
    }
    starts::check_size(app, &source, &copy.kind)?;
    let allow = |tx: &dyn Reader, copy: &Sandbox| {
        let organisation = match &copy.organisation {
            Some(id) => typed::get(tx, id)?,
            None => None,
        };
        let wallet = call.caller.wallet(tx, organisation)?;
        starts::allow(app, tx, call, &wallet, copy, Wanted::fresh(1), now)?;
        Ok::<_, ApiError>(wallet)
    };
    // Asked twice: before the copy, to refuse early, and with the start itself, when somebody else may have come first.
    app.read(|tx| {
        data_retention::apply(tx, call, &mut copy)?;
        allow(tx, &copy)
    })?;
    {
        // Whoever removes the source's disk waits until it is copied.
        let live = app.live(&source);
        let _disk = live.disk.read().await;
        // Secret files stay as they are said to be until they are copied.
        let _placing = live.placing.lock().await;
        let source = call.own_sandbox(app)?;
        check_forkable(&source)?;
        // What is on the disk that is copied; what the copy is not to have goes before it is up.
        copy.secret_files.clone_from(&source.secret_files);
        let _held = match &source.restore_from {
            Some(snapshot) => Some(app.shelf.hold(snapshot).await),
            None => None,
        };
        if app.scenarios().is_on(Scenario::BrokenDisk, &source) {
            return Err(ApiError::internal("a disk could not be copied: it is broken"));
        }
        copy_disk(app, snapshots::disk_of(app, &source), &copy.id).await?;
    }
    let stored = app.write(|tx| {
        let wallet = allow(tx, &copy)?;
        data_retention::apply(&*tx, call, &mut copy)?;
        limits::note_start(tx, &wallet.key, &copy.id, now)?;
        typed::put(tx, &copy)?;
        turn.remember(tx, [copy.id.clone()], now)
    });
    if let Err(error) = stored {
        discard(app, &copy.id).await;
        return Err(error);
    }
    let answer = forked(app, call, &copy.id);
    lifecycle::boot(app, &copy, FIRST_COURSE);
    app.deadlines_changed.notify_one();
    answer
}

fn forked(app: &App, call: &Call, id: &str) -> Outcome {
    app.read(|tx| {
        let (sandbox, access) = call.caller.see(tx, id)?;
        let mut viewer = view::Viewer::new(tx).with_ways_in(&call.caller.key, app.now());
        let body = json!({
            "id": sandbox.id,
            "status": "forking",
            "sandbox": viewer.sandbox(&sandbox, access)?,
        });
        Ok(Answer::new(202, "sandbox.forking", body))
    })
}

pub(super) fn check_forkable(source: &Sandbox) -> Result<(), ApiError> {
    match source.state {
        State::Archived if !source.has_disk() => Err(no_snapshot()),
        state if source.holds_others_secrets => Err(not_ready(state)),
        State::Archived | State::Archiving | State::Ready | State::Idle | State::Running => Ok(()),
        state => Err(not_ready(state)),
    }
}

/// How long the data of a stopped sandbox is there where it is not kept for good.
const DATA_KEPT: Millis = 14 * DAY;

/// Refuses a stopped sandbox whose data is gone.
fn check_data(app: &App, sandbox: &Sandbox, now: Millis) -> Result<(), ApiError> {
    let is_old = sandbox.snapshot_at.is_some_and(|at| at.saturating_add(DATA_KEPT) <= now);
    if sandbox.state == State::Archived && is_old && app.scenarios().is_on(Scenario::DataExpires, sandbox) {
        let problem = "the data of the sandbox was removed 14 days after it stopped";
        return Err(ApiError::new(409, "snapshot_data_expired", problem).retryable(false));
    }
    Ok(())
}

pub(super) fn no_snapshot() -> ApiError {
    ApiError::new(409, "no_snapshot", "the sandbox keeps no snapshots and its disk is gone").retryable(false)
}

/// Copies a disk as it is now, before the answer goes out: what the source writes later is not in the copy.
async fn copy_disk(app: &App, from: PathBuf, to: &str) -> Result<(), ApiError> {
    let target = app.space(to).root;
    match space::copy_tree(from, target).await {
        Ok(_) => Ok(()),
        Err(error) => {
            discard(app, to).await;
            Err(ApiError::internal(format!("a disk could not be copied: {error}")))
        }
    }
}

async fn discard_all(app: &App, sandboxes: &[Sandbox]) {
    for sandbox in sandboxes {
        discard(app, &sandbox.id).await;
    }
}

async fn discard(app: &App, id: &str) {
    if let Err(error) = space::remove_tree(app.space(id).root).await {
        tracing::error!(sandbox = %id, %error, "a copied disk could not be removed");
    }
}

pub(super) fn resume(app: &Arc<App>, call: &Call) -> Outcome {
    let now = app.now();
    let id = call.id("sandboxId");
    let (sandbox, access, course) = app.write(|tx| {
        let (_, access) = call.caller.see(&*tx, id)?;
        let mut sandbox = call.caller.using(&*tx, id)?;
        let is_owner = access == Access::Owner;
        let environment = starts::environment(&*tx, call, sandbox.organisation.as_deref(), is_owner)?;
        let open_stop = lifecycle::open_stop(&*tx, &sandbox)?;
        match sandbox.state {
            State::Archived | State::Archiving | State::Error => {}
            // Up, but about to stop as soon as its disk can be saved.
            _ if open_stop.is_some() => {}
            state => return Err(not_ready(state)),
        }
        if !sandbox.has_disk() && sandbox.state != State::Error {
            return Err(no_snapshot());
        }
        check_data(app, &sandbox, now)?;
        if let Some(kind) = call.text("type") {
            starts::check_size(app, &sandbox, kind)?;
            sandbox.kind = kind.to_owned();
        }
        let organisation = match &sandbox.organisation {
            Some(id) => typed::get(tx, id)?,
            None => None,
        };
        let wallet = call.caller.wallet(tx, organisation)?;
        // One that is up has its place and its machine already.
        let is_up = sandbox.state.is_taken();
        let wanted = Wanted { starts: 1, active: u64::from(!is_up) };
        starts::allow(app, tx, call, &wallet, &sandbox, wanted, now)?;
        limits::note_start(tx, &wallet.key, &format!("{id}-{}", ids::request()), now)?;
        if let Some(mut stop) = open_stop {
            stop.end(StopStatus::Superseded, now);
            typed::put(tx, &stop)?;
        }
        if let Some(env) = starts::env(&call.body) {
            sandbox.env = env;
        }
        if call.flag("noEnv") {
            pins::take(&mut sandbox);
        } else if sandbox.environment.is_some()
            && let Some(pin) = environment
        {
            pin.give(&mut sandbox);
        }
        let ttl = starts::ttl(&call.body);
        if ttl != Ttl::LeftOut {
            sandbox.ttl_seconds = ttl.or(None);
        }
        sandbox.archive_after = starts::deadline(now, sandbox.ttl_seconds);
        sandbox.state = State::Provisioning;
        sandbox.has_machine = is_up && sandbox.has_machine || call.flag("failFast");
        sandbox.resumed = true;
        sandbox.error = None;
        (sandbox.hydrated, sandbox.hydrated_at, sandbox.hydrates_at) = (false, None, None);
        (sandbox.save_failed_at, sandbox.recovers_at) = (None, None);
        sandbox.updated_at = now;
        health::settle(tx, &mut sandbox, &app.scenarios(), now)?;
        typed::put(tx, &sandbox)?;
        let course = app.live(&sandbox).turn_to_new_course();
        Ok((sandbox, access, course))
    })?;
    lifecycle::boot(app, &sandbox, course);
    app.deadlines_changed.notify_one();
    app.read(|tx| {
        let body = json!({
            "id": sandbox.id,
            "status": "resuming",
            "sandbox": view::sandbox(tx, &sandbox, access)?,
        });
        Ok(Answer::new(202, "sandbox.resuming", body))
    })
}

/// An idempotency key while its call is at work; gives the key back when the call ends without a sandbox.
struct KeyTurn<'a> {
    at_work: &'a std::sync::Mutex<HashSet<String>>,
    /// Nothing if the call has no key.
    used: Option<UsedKey>,
}

enum Taken<'a> {
    /// This call is the first with its key, or has none.
    Mine(KeyTurn<'a>),
    /// An earlier call with the key and the same body made these sandboxes.
    Before(Vec<String>),
}

impl<'a> KeyTurn<'a> {
    fn take(app: &'a App, call: &Call, what: &str, wallet: &str) -> Result<Taken<'a>, ApiError> {
        let at_work = &app.keys_at_work;
        let Some(key) = call.header("idempotency-key") else {
            return Ok(Taken::Mine(Self { at_work, used: None }));
        };
        let used = UsedKey {
            account: call.caller.account.id.clone(),
            key: key.to_owned(),
            fingerprint: idempotency::fingerprint(what, wallet, &call.body),
            sandbox: String::new(),
            more: Vec::new(),
            used_at: app.now(),
        };
        let name = used_key(&used.account, &used.key);
        // Taken first and looked up second: the first call stores its sandbox before it gives the key back.
        if !lock(at_work).insert(name.clone()) {
            return Err(ApiError::new(
                409,
                "idempotency_in_progress",
                "another call with this Idempotency-Key is still at work",
            )
            .retryable(true)
            .retry_after(1));
        }
        let fingerprint = used.fingerprint.clone();
        let turn = Self { at_work, used: Some(used) };
        let before = app.read(|tx| typed::get::<UsedKey>(tx, &name))?;
        match before.filter(|before| before.used_at > app.now() - REMEMBERED_MS) {
            None => Ok(Taken::Mine(turn)),
            Some(before) if before.fingerprint == fingerprint => {
                Ok(Taken::Before([vec![before.sandbox], before.more].concat()))
            }
            Some(_) => Err(ApiError::new(
                409,
                "idempotency_key_reused",
                "this Idempotency-Key was used with another body in the last 24 hours",
            )
            .retryable(false)),
        }
    }

    /// Binds the key to the sandboxes that the call made.
    fn remember(
        &mut self,
        tx: &mut dyn crate::store::Writer,
        sandboxes: impl IntoIterator<Item = String>,
        now: Millis,
    ) -> Result<(), ApiError> {
        let mut sandboxes = sandboxes.into_iter();
        if let (Some(used), Some(sandbox)) = (&self.used, sandboxes.next()) {
            let more = sandboxes.collect();
            typed::put(tx, &UsedKey { sandbox, more, used_at: now, ..used.clone() })?;
        }
        Ok(())
    }
}

impl Drop for KeyTurn<'_> {
    fn drop(&mut self) {
        if let Some(used) = &self.used {
            lock(self.at_work).remove(&used_key(&used.account, &used.key));
        }
    }
}
