//! What create, fork and resume have in common: whether a start is allowed, and what it was asked with.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Call, limits as wallets};
use crate::{
    app::App,
    lifecycle,
    reply::ApiError,
    store::Reader,
    world::{
        accounts::AccountStanding,
        environments::{self, BASE},
        limits::{self, Refusal, Wallet, Wanted, Window},
        pins::Pin,
        sandboxes::{MACHINE_CLASSES, Sandbox},
        scenarios::Scenario,
        time::Millis,
    },
};

/// Seconds until a sandbox stops by itself when the call does not say.
pub(super) const DEFAULT_TTL: u64 = 3600;

/// The longest a sandbox waits for its auto-stop, as its field may be left out, null or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ttl {
    LeftOut,
    Never,
    Seconds(u64),
}

/// `ttlSeconds` of a body that has been checked.
pub(super) fn ttl(body: &Value) -> Ttl {
    match body.get("ttlSeconds") {
        None => Ttl::LeftOut,
        Some(value) => value.as_u64().map_or(Ttl::Never, Ttl::Seconds),
    }
}

impl Ttl {
    /// The length, with `otherwise` for one that was left out.
    pub(super) fn or(self, otherwise: Option<u64>) -> Option<u64> {
        match self {
            Ttl::LeftOut => otherwise,
            Ttl::Never => None,
            Ttl::Seconds(seconds) => Some(seconds),
        }
    }
}

/// When a length that starts now is over.
pub(super) fn deadline(now: Millis, ttl: Option<u64>) -> Option<Millis> {
    ttl.map(|seconds| {
        now.saturating_add(Millis::try_from(seconds.saturating_mul(1000)).unwrap_or(Millis::MAX))
    })
}

/// `env` of a body that has been checked; `None` if it was left out.
pub(super) fn env(body: &Value) -> Option<BTreeMap<String, String>> {
    let fields = body.get("env")?.as_object()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(fields.iter().map(|(name, value)| (name.clone(), text(value))).collect())
}

/// The environment that a start names, by its name or its id: one of the caller's own, or one that the organisation which pays
/// shares. `None` if it names none.
pub(super) fn environment(
    tx: &dyn Reader,
    call: &Call,
    organisation: Option<&str>,
    is_owner: bool,
) -> Result<Option<Pin>, ApiError> {
    let Some(named) = call.text("environment") else { return Ok(None) };
    let own = is_owner.then(|| format!("account/{}", call.caller.account.id));
    let shared = organisation.map(|id| format!("organisation/{id}"));
    for owner in [own, shared].into_iter().flatten() {
        let found = match environments::by_name(tx, &owner, named)? {
            Some(found) => Some(found),
            None => environments::by_id(tx, &owner, named)?,
        };
        if let Some(found) = found.filter(|it| call.caller.key.covers_environment(&it.id)) {
            return Ok(Some(Pin::latest(tx, &found)?));
        }
    }
    // The first one is there as soon as it is asked for.
    let has_none = environments::default_of(tx, &format!("account/{}", call.caller.account.id))?.is_none();
    if named == BASE && is_owner && has_none {
        return Ok(None);
    }
    Err(ApiError::invalid("unknown_environment", "environment", "names no environment of the account"))
}

/// The environment of a start that names none: the default one of the caller's own.
pub(super) fn default_environment(app: &App, call: &Call) -> Result<Pin, ApiError> {
    let owner = format!("account/{}", call.caller.account.id);
    let environment = match app.read(|tx| environments::default_of(tx, &owner))? {
        Some(found) => found,
        None => app.write(|tx| environments::ensure_default(tx, &owner, app.now()))?,
    };
    check_environment(call, &environment.id)?;
    Ok(app.read(|tx| Pin::latest(tx, &environment))?)
}

/// Refuses to start a sandbox with an environment that the key may not use.
pub(super) fn check_environment(call: &Call, environment: &str) -> Result<(), ApiError> {
    match call.caller.key.covers_environment(environment) {
        true => Ok(()),
        false => {
            Err(ApiError::new(403, "forbidden", "the API key may not use that environment; name another one"))
        }
    }
}

/// Refuses to start what is wanted, sandboxes like this one, if the wallet, the plan or the machines do not allow it.
pub(super) fn allow(
    app: &App,
    tx: &dyn Reader,
    call: &Call,
    wallet: &Wallet,
    sandbox: &Sandbox,
    wanted: Wanted,
    now: Millis,
) -> Result<(), ApiError> {
    let kind = sandbox.kind.as_str();
    wallets::check_paid(wallet)?;
    if wallet.account.standing != AccountStanding::Active {
        let standing = wallet.account.standing.as_str();
        return Err(ApiError::new(
            403,
            "forbidden",
            format!("the account is {standing} and may start nothing"),
        )
        .detail("accountStatus", standing));
    }
    if !wallet.plan.types.iter().any(|included| *included == kind) {
        return Err(ApiError::new(
            403,
            "machine_class_plan_required",
            format!("the plan {} does not include machines of type {kind}", wallet.plan.key),
        )
        .detail("type", kind));
    }
    if kind == "xlarge" && app.scenarios().is_everywhere(Scenario::ProviderRequired) {
        let problem = "machines of type xlarge need a provider named, which this version cannot";
        return Err(ApiError::new(400, "machine_provider_required", problem).detail("type", kind));
    }
    let machines = app.machines();
    if machines.paused {
        return Err(ApiError::new(503, "out_of_capacity", "starting sandboxes is paused").retry_after(5));
    }
    let standing = limits::standing(tx, wallet, now)?;
    if let Some(refusal) = limits::refusal(tx, wallet, &standing, wanted, now)? {
        return Err(refuse(refusal, wanted.starts, wallets::describe(tx, wallet, &standing, now)?));
    }
    if call.flag("failFast") && !lifecycle::machine_is_free_in(tx, &machines, &sandbox.id)? {
        return Err(ApiError::new(503, "no_ready_machine", "no machine is free; nothing was created")
            .retryable(false));
    }
    Ok(())
}

/// Refuses a machine that what is on the disk does not fit.
pub(super) fn check_size(app: &App, sandbox: &Sandbox, kind: &str) -> Result<(), ApiError> {
    let size = |kind: &str| MACHINE_CLASSES.iter().position(|class| class.name == kind);
    match size(kind) < size(&sandbox.kind) && app.scenarios().is_on(Scenario::FullDisk, sandbox) {
        false => Ok(()),
        true => Err(ApiError::new(409, "type_too_small", format!("the disk does not fit a {kind} machine"))
            .retryable(false)
            .detail("type", kind)),
    }
}

fn refuse(refusal: Refusal, count: u64, limits: Value) -> ApiError {
    let error = match refusal {
        Refusal::Blocked => ApiError::new(402, "billing_required", "the wallet is empty or blocked"),
        Refusal::TooManyActive => {
            ApiError::new(429, "limit_reached", "as many sandboxes are active as the plan allows")
                .retryable(false)
        }
        Refusal::TooManyOfMember => ApiError::new(
            429,
            "member_limit_reached",
            "as many sandboxes are active as the organisation allows this member",
        )
        .retryable(false),
        Refusal::Quota { window, limit, retry_after_ms: Some(left) } => {
            over_quota(window, limit, format!("{limit} starts a {} are allowed and used up", window.as_str()))
                .retry_after(u64::try_from(left).unwrap_or(0).div_ceil(1000))
        }
        Refusal::Quota { window, limit, retry_after_ms: None } => {
            let problem = format!("{limit} starts a {} are allowed, never {count} at once", window.as_str());
            over_quota(window, limit, problem).retryable(false)
        }
    };
    let error = error.detail("billingUrl", wallets::BILLING_URL);
    let Value::Object(fields) = limits else { return error };
    fields.into_iter().fold(error, |error, (name, value)| error.detail(&name, value))
}

fn over_quota(window: Window, limit: u64, problem: String) -> ApiError {
    ApiError::new(429, "rate_limited", problem).detail("window", window.as_str()).detail("limit", limit)
}
