//! What create, fork and resume have in common: whether a start is allowed, and what it was asked with.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Call, account};
use crate::{
    app::App,
    lifecycle,
    reply::ApiError,
    store::Reader,
    world::{
        limits::{self, Refusal, Wallet},
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

/// The environment to start with: there is only the one that every account begins with.
pub(super) fn environment(call: &Call) -> Result<Option<String>, ApiError> {
    match call.text("environment") {
        None => Ok(None),
        Some(name) if name.eq_ignore_ascii_case("base") => Ok(Some("base".into())),
        Some(_) => Err(ApiError::invalid(
            "unknown_environment",
            "environment",
            "names no environment of the account",
        )),
    }
}

/// Refuses a start that the wallet, the plan or the machines do not allow.
pub(super) fn allow(
    app: &App,
    tx: &dyn Reader,
    call: &Call,
    wallet: &Wallet,
    kind: &str,
    now: Millis,
) -> Result<(), ApiError> {
    if wallet.blocked {
        return Err(ApiError::new(402, "billing_required", "the wallet is empty or blocked")
            .detail("accessTier", wallet.plan.key.clone())
            .detail("billingUrl", "http://127.0.0.1/billing"));
    }
    if !wallet.plan.types.iter().any(|included| included == kind) {
        return Err(ApiError::new(
            403,
            "machine_class_plan_required",
            format!("the plan {} does not include machines of type {kind}", wallet.plan.key),
        )
        .detail("type", kind));
    }
    let machines = app.machines();
    if machines.paused {
        return Err(ApiError::new(503, "out_of_capacity", "starting sandboxes is paused").retry_after(5));
    }
    let standing = limits::standing(tx, wallet, now)?;
    if let Err(refusal) = limits::check(wallet, &standing, now) {
        return Err(refuse(refusal, account::describe(wallet, &standing, now)));
    }
    if call.flag("failFast") && !lifecycle::machine_is_free_in(tx, &machines, "")? {
        return Err(ApiError::new(503, "no_ready_machine", "no machine is free; nothing was created")
            .retryable(false));
    }
    Ok(())
}

fn refuse(refusal: Refusal, limits: Value) -> ApiError {
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
        Refusal::Quota { window, limit, retry_after_ms } => ApiError::new(
            429,
            "rate_limited",
            format!("{limit} starts a {} are allowed and used up", window.as_str()),
        )
        .detail("window", window.as_str())
        .detail("limit", limit)
        .retry_after(u64::try_from(retry_after_ms).unwrap_or(0).div_ceil(1000)),
    };
    let Value::Object(fields) = limits else { return error };
    fields.into_iter().fold(error, |error, (name, value)| error.detail(&name, value))
}
