//! What a wallet may run and start, and what of it is used.

use serde_json::{Value, json};

use super::Call;
use crate::{
    app::App,
    auth,
    reply::{Answer, ApiError, Outcome},
    store::{Reader, StoreError, typed},
    world::{
        accounts::Plan,
        limits::{self, Refusal, Standing, Wallet, Wanted, Window},
        sandboxes::ACTIVE_STATES,
        seed_accounts::DEFAULT_PLAN,
        usage::{self, PaidFor, SECONDS_PER_DOLLAR},
    },
};

/// The key of the plan that counts as a trial.
const TRIAL: &str = "trial";

/// Where a wallet would be filled; the local server takes no money.
pub(super) const BILLING_URL: &str = "http://127.0.0.1/billing";

/// Refuses what a wallet that is empty or blocked does not pay for.
pub(super) fn check_paid(wallet: &Wallet) -> Result<(), ApiError> {
    match wallet.blocked {
        true => Err(ApiError::new(402, "billing_required", "the wallet is empty or blocked")
            .detail("accessTier", wallet.plan.key.clone())
            .detail("billingUrl", BILLING_URL)),
        false => Ok(()),
    }
}

pub(super) fn limits(app: &App, call: &Call) -> Outcome {
    let now = app.now();
    let body = app.read(|tx| {
        let organisation = match call.query("teamId") {
            Some(named) => auth::organisation(tx, &call.caller.account, named)?,
            None => call.caller.payer(tx)?,
        };
        let wallet = call.caller.wallet(tx, organisation)?;
        let standing = limits::standing(tx, &wallet, now)?;
        Ok::<_, ApiError>(describe(tx, &wallet, &standing, now)?)
    })?;
    Ok(Answer::ok("limits.info", body))
}

/// The whole answer about a wallet's limits; refusals of a start carry it too.
pub(super) fn describe(
    tx: &dyn Reader,
    wallet: &Wallet,
    standing: &Standing,
    now: i64,
) -> Result<Value, StoreError> {
    let plan = &wallet.plan;
    let plans: Vec<Plan> = typed::with_prefix(tx, "")?;
    let refusal = limits::refusal(tx, wallet, standing, Wanted::fresh(1), now)?;
    let reason = refusal.map(|refusal| match refusal {
        Refusal::Blocked => "billing_required",
        Refusal::TooManyActive => "limit_reached",
        Refusal::TooManyOfMember => "member_limit_reached",
        Refusal::Quota { .. } => "rate_limited",
    });
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
        "currentLimits": tier(plan),
        "standardLimits": tier(standard(&plans).unwrap_or(plan)),
        "trialLimits": plans.iter().find(|plan| plan.key == TRIAL).map(tier),
        "startLimits": start_limits(plan),
        "starts": starts(plan, standing),
        "plan": plan.key,
        "planName": plan.name,
        "accountPlan": wallet.account.plan,
        "unlimited": !has_quota(plan),
        "serviceAccount": false,
    });
    merge(&mut body, money(wallet, &plans, usage::paid_for(tx, &wallet.key, now)?));
    if let Some(organisation) = &wallet.organisation {
        body["teamId"] = organisation.id.clone().into();
        body["teamRole"] = wallet.role().into();
    }
    Ok(body)
}

/// The part about money. The local server sells nothing: a wallet is open or blocked as its world says, plans cost what the
/// world says, and there are no credits, packs, gifts and subscriptions.
fn money(wallet: &Wallet, plans: &[Plan], used: PaidFor) -> Value {
    let plan = &wallet.plan;
    let is_trial = plan.key == TRIAL;
    json!({
        "billingStatus": if wallet.blocked { "blocked" } else { "active" },
        "checkoutRequired": wallet.blocked,
        "upgradeEffects": null,
        "contactMessage": null,
        "last24hUsageSeconds": used.last_day,
        "liveUsageSeconds": used.live,
        "creditSecondsPerDollar": SECONDS_PER_DOLLAR,
        "creditBalanceSeconds": 0,
        "creditBalanceHours": 0.0,
        "creditPurchasedSeconds": 0,
        "creditUsedSeconds": 0,
        "packBalanceSeconds": 0,
        "packBalanceHours": 0.0,
        "packBalanceDollars": 0.0,
        "hasPaymentHistory": plan.dollars.is_some(),
        "package": null,
        "sandboxPlanKey": plan.key,
        "sandboxPlanDollars": plan.dollars,
        "sandboxPlanTiers": plans.iter().map(plan_tier).collect::<Vec<_>>(),
        "hasSeatPlan": false,
        "trialComputeCapSeconds": null,
        "trialLine": is_trial.then(|| format!("Trial: {} sandboxes at once", plan.max_active)),
        "giftLimit": null,
        "hasSubscription": false,
        "subscriptionStatus": null,
        "subscriptionCancelAtPeriodEnd": false,
        "subscriptionQuotaSeconds": null,
        "subscriptionRemainingSeconds": null,
        "subscriptionTrialEndsAt": null,
        "subscriptionCurrentPeriodEnd": null,
    })
}

fn merge(body: &mut Value, more: Value) {
    if let (Value::Object(body), Value::Object(more)) = (body, more) {
        body.extend(more);
    }
}

/// The plan of those who pay: the cheapest that costs something, or the one that nobody has to choose.
fn standard(plans: &[Plan]) -> Option<&Plan> {
    let paid = plans.iter().filter(|plan| plan.dollars.is_some_and(|dollars| dollars > 0.0));
    paid.min_by(|a, b| a.dollars.unwrap_or(0.0).total_cmp(&b.dollars.unwrap_or(0.0)))
        .or_else(|| plans.iter().find(|plan| plan.key == DEFAULT_PLAN))
}

fn tier(plan: &Plan) -> Value {
    json!({
        "activeSandboxes": plan.max_active,
        "creationRatePerMinute": plan.starts_per_minute,
        "creationRequestsPerHour": plan.starts_per_hour,
        "creationRequestsPerDay": plan.starts_per_day,
    })
}

fn plan_tier(plan: &Plan) -> Value {
    json!({
        "key": plan.key,
        "dollars": plan.dollars,
        "displayPrice": plan.dollars.map(|dollars| format!("${dollars:.2}")),
        "maxActiveSandboxes": plan.max_active,
        "startsPerMinute": plan.starts_per_minute,
        "startsPerHour": plan.starts_per_hour,
        "startsPerDay": plan.starts_per_day,
        "includedSeconds": null,
        "purchasable": false,
    })
}

fn has_quota(plan: &Plan) -> bool {
    Window::ALL.into_iter().any(|window| window.limit(plan).is_some())
}

/// The start quotas by window; null when there are none.
fn start_limits(plan: &Plan) -> Value {
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
fn starts(plan: &Plan, standing: &Standing) -> Value {
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
