//! Who calls, and what they may start.

use serde_json::{Value, json};

use super::Call;
use crate::{
    app::App,
    auth,
    reply::{Answer, ApiError, Outcome},
    world::{
        accounts::Plan,
        limits::{self, Refusal, Standing, Wallet, Window},
        sandboxes::ACTIVE_STATES,
        usage::SECONDS_PER_DOLLAR,
    },
};

pub(super) fn me(call: &Call) -> Outcome {
    let account = &call.caller.account;
    Ok(Answer::ok(
        "user.info",
        json!({"user": {
            "id": account.id,
            "login": account.login,
            "email": account.email,
            "displayName": account.display_name,
            "connectionMethod": "service",
            "connectionMethods": ["service"],
            "accountPlan": account.plan,
            "serviceAccount": false,
            "accountStatus": "active",
            "suspended": false,
            "suspendedAt": null,
            "suspendedReason": null,
            "closed": false,
            "closedAt": null,
            "purgeAt": null,
            "purgedAt": null,
            "closureContactEmail": null,
            "zeroDataRetention": false,
            "zeroDataRetentionEnabledAt": null,
        }}),
    ))
}

pub(super) fn limits(app: &App, call: &Call) -> Outcome {
    let now = app.now();
    let body = app.read(|tx| {
        let organisation = match call.query("teamId") {
            Some(named) => auth::organisation(tx, &call.caller.account, named)?,
            None => call.caller.organisation.clone(),
        };
        let wallet = call.caller.wallet(tx, organisation)?;
        let standing = limits::standing(tx, &wallet, now)?;
        Ok::<_, ApiError>(describe(&wallet, &standing, now))
    })?;
    Ok(Answer::ok("limits.info", body))
}

/// The whole answer about a wallet's limits; refusals of a start carry it too.
pub(super) fn describe(wallet: &Wallet, standing: &Standing, now: i64) -> Value {
    let plan = &wallet.plan;
    let refusal = limits::check(wallet, standing, now).err();
    let reason = refusal.map(|refusal| match refusal {
        Refusal::Blocked => "billing_required",
        Refusal::TooManyActive => "limit_reached",
        Refusal::TooManyOfMember => "member_limit_reached",
        Refusal::Quota { .. } => "rate_limited",
    });
    let unlimited = !has_quota(plan);
    let mut body = json!({
        "canStart": refusal.is_none(),
        "startBlockedReason": reason,
        "blockedReason": wallet.blocked.then_some("billing_required"),
        "accessTier": plan.key,
        "activeSandboxes": standing.active,
        "activeStates": ACTIVE_STATES,
        "maxActiveSandboxes": plan.max_active,
        "maxCreationRequestsPerMinute": plan.starts_per_minute,
        "maxCreationRequestsPerDay": plan.starts_per_day,
        "currentLimits": {
            "activeSandboxes": plan.max_active,
            "creationRatePerMinute": plan.starts_per_minute,
            "creationRequestsPerHour": plan.starts_per_hour,
            "creationRequestsPerDay": plan.starts_per_day,
        },
        "startLimits": start_limits(plan),
        "starts": starts(plan, standing),
        "billingStatus": if wallet.blocked { "blocked" } else { "active" },
        "plan": plan.key,
        "planName": plan.name,
        "accountPlan": wallet.account.plan,
        "unlimited": unlimited,
        "serviceAccount": false,
        "creditSecondsPerDollar": SECONDS_PER_DOLLAR,
    });
    if let Some(organisation) = &wallet.organisation {
        body["teamId"] = organisation.id.clone().into();
        body["teamRole"] = wallet.role().into();
    }
    body
}

fn has_quota(plan: &Plan) -> bool {
    Window::ALL.into_iter().any(|window| window.limit(plan).is_some())
}

/// The start quotas by window; null when there are none.
pub(super) fn start_limits(plan: &Plan) -> Value {
    match has_quota(plan) {
        true => json!({
            "perMinute": plan.starts_per_minute,
            "perHour": plan.starts_per_hour,
            "perDay": plan.starts_per_day,
        }),
        false => Value::Null,
    }
}

/// What is used of each start quota.
pub(super) fn starts(plan: &Plan, standing: &Standing) -> Value {
    let mut body = json!({"unlimited": !has_quota(plan)});
    for (window, used) in Window::ALL.into_iter().zip(standing.starts) {
        let limit = window.limit(plan);
        body[window.as_str()] = json!({
            "limit": limit,
            "used": used,
            "remaining": limit.map(|limit| limit.saturating_sub(used)),
        });
    }
    body
}
