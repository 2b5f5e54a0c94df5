//! Who calls.

use serde_json::json;

use super::Call;
use crate::{
    app::App,
    reply::{Answer, Outcome},
    view::time_or_null,
    world::{accounts::AccountStanding, retention},
};

pub(super) fn me(app: &App, call: &Call) -> Outcome {
    let account = &call.caller.account;
    let zero_at = app.read(|tx| retention::of_account(tx, &account.id))?.zero_at;
    let (suspended_at, reason, closed_at) = match &account.standing {
        AccountStanding::Active => (None, None, None),
        AccountStanding::Suspended { at, reason } => (Some(*at), reason.clone(), None),
        AccountStanding::Closed { at } => (None, None, Some(*at)),
    };
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
            "accountStatus": account.standing.as_str(),
            "suspended": suspended_at.is_some(),
            "suspendedAt": time_or_null(suspended_at),
            "suspendedReason": reason,
            "closed": closed_at.is_some(),
            "closedAt": time_or_null(closed_at),
            "purgeAt": null,
            "purgedAt": null,
            "closureContactEmail": null,
            "zeroDataRetention": zero_at.is_some(),
            "zeroDataRetentionEnabledAt": time_or_null(zero_at),
        }}),
    ))
}
