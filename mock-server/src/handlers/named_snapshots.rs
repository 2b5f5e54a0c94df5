//! Disks that a wallet keeps under a name.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Call,
    create::{check_forkable, no_snapshot},
    limits::check_paid,
};
use crate::{
    app::App,
    reply::{Answer, ApiError, Outcome},
    snapshots,
    store::{Reader, typed},
    world::{
        accounts::Organisation,
        limits::Wallet,
        named_snapshots::{FREE, MONTHLY_DOLLARS, NamedSnapshot, RESERVED, Status, named_key, of_wallet},
        shares::Share,
        snapshots::Snapshot,
        time::iso,
    },
};

/// The wallet that a call is about.
fn wallet(tx: &dyn Reader, call: &Call) -> Result<Wallet, ApiError> {
    call.caller.wallet(tx, call.caller.payer(tx)?)
}

/// The key of the named snapshot of the path.
fn key(tx: &dyn Reader, call: &Call) -> Result<String, ApiError> {
    Ok(named_key(&wallet(tx, call)?.key, call.id("name")))
}

/// The named snapshot of the path.
pub(super) fn find(tx: &dyn Reader, call: &Call) -> Result<NamedSnapshot, ApiError> {
    let found: Option<NamedSnapshot> = typed::get(tx, &key(tx, call)?)?;
    found
        .filter(|named| call.caller.key.covers(&named.source))
        .ok_or_else(|| ApiError::new(404, "not_found", "there is no named snapshot of that name"))
}

/// Whether the wallet of a named snapshot's key is the caller's own or that of an organisation the caller is in.
pub(super) fn is_kept_by(tx: &dyn Reader, call: &Call, named: &str) -> Result<bool, ApiError> {
    let account = &call.caller.account.id;
    let mut parts = named.split('/');
    match (parts.next(), parts.next()) {
        (Some("account"), Some(id)) => Ok(id == account),
        (Some("organisation"), Some(id)) => {
            let keeps: Option<Organisation> = typed::get(tx, id)?;
            Ok(keeps.is_some_and(|keeps| keeps.member(account).is_some()))
        }
        _ => Ok(false),
    }
}

pub(super) fn list(app: &App, call: &Call) -> Outcome {
    app.read(|tx| {
        let wallet = wallet(tx, call)?;
        let all = of_wallet(tx, &wallet.key)?;
        let used = all.len() as u64;
        let extra = used.saturating_sub(FREE);
        #[expect(clippy::cast_precision_loss, reason = "dollars for people")]
        let dollars = extra as f64 * MONTHLY_DOLLARS;
        let seen = all.iter().filter(|named| call.caller.key.covers(&named.source));
        let (org, org_name) = match &wallet.organisation {
            Some(pays) => (pays.id.as_str(), pays.name.as_str()),
            None => ("personal", "Personal"),
        };
        let allowance = json!({
            "org": org,
            "orgName": org_name,
            "free": FREE,
            "used": used,
            "extra": extra,
            "extraMonthlyDollars": dollars,
            "pricePerExtraMonthlyDollars": MONTHLY_DOLLARS,
        });
        let body = json!({"snapshots": seen.map(show).collect::<Vec<_>>(), "allowance": allowance});
        Ok(Answer::ok("snapshot.named.list", body))
    })
}

fn show(named: &NamedSnapshot) -> Value {
    let mut view = json!({
        "name": named.name,
        "status": named.status.as_str(),
        "sourceSandboxId": named.source,
        "snapshotId": named.snapshot,
        "type": named.kind,
        "sizeBytes": named.bytes,
        "createdAt": iso(named.created_at),
    });
    if let Some(error) = &named.error {
        view["error"] = error.as_str().into();
    }
    view
}

pub(super) fn get(app: &App, call: &Call) -> Outcome {
    let named = app.read(|tx| find(tx, call))?;
    Ok(Answer::ok("snapshot.named.info", json!({"snapshot": show(&named)})))
}

pub(super) fn save(app: &Arc<App>, call: &Call) -> Outcome {
    let name = call.text("name").unwrap_or_default();
    if RESERVED.contains(&name) {
        return Err(ApiError::invalid("invalid_name", "name", "is a reserved word"));
    }
    let now = app.now();
    let named = app.write(|tx| {
        let sandbox = call.caller.own(&*tx, call.text("sandboxId").unwrap_or_default())?;
        if !sandbox.snapshots {
            return Err(no_snapshot());
        }
        check_forkable(&sandbox)?;
        let wallet = wallet(&*tx, call)?;
        check_paid(&wallet)?;
        let before: Option<NamedSnapshot> = typed::get(&*tx, &named_key(&wallet.key, name))?;
        if before.as_ref().is_some_and(|before| before.status == Status::Saving) {
            return Err(in_progress());
        }
        // Not to be replaced by a key that cannot see it.
        if before.as_ref().is_some_and(|before| !call.caller.key.covers(&before.source)) {
            let why = "the API key may not replace what is kept under this name";
            return Err(ApiError::new(403, "forbidden", why));
        }
        let limit = wallet.plan.named_snapshots.filter(|_| before.is_none());
        if let Some(limit) = limit
            && of_wallet(&*tx, &wallet.key)?.len() as u64 >= limit
        {
            let why = format!("the plan {} includes {limit} named snapshots", wallet.plan.key);
            return Err(ApiError::new(409, "named_snapshot_limit", why)
                .retryable(false)
                .detail("limit", limit));
        }
        let named = NamedSnapshot {
            wallet: wallet.key,
            name: name.to_owned(),
            account: call.caller.account.id.clone(),
            status: Status::Saving,
            error: None,
            source: sandbox.id,
            kind: sandbox.kind,
            created_at: now,
            snapshot: before.as_ref().and_then(|before| before.snapshot.clone()),
            bytes: before.and_then(|before| before.bytes),
        };
        typed::put(tx, &named)?;
        Ok(named)
    })?;
    snapshots::begin_save(app, named_key(&named.wallet, &named.name));
    let body = json!({"status": "saving", "snapshot": show(&named)});
    Ok(Answer::new(202, "snapshot.named.saving", body))
}

fn in_progress() -> ApiError {
    ApiError::new(409, "save_in_progress", "a save under this name is under way")
        .retryable(true)
        .retry_after(2)
}

pub(super) fn delete(app: &Arc<App>, call: &Call) -> Outcome {
    let now = app.now();
    let name = app.write(|tx| {
        let named = find(&*tx, call)?;
        if named.status == Status::Saving {
            return Err(in_progress());
        }
        let key = named_key(&named.wallet, &named.name);
        typed::remove_all::<Share>(tx, &format!("{key}/"))?;
        typed::remove::<NamedSnapshot>(tx, &key)?;
        if let Some(id) = &named.snapshot
            && let Some(mut snapshot) = typed::get::<Snapshot>(&*tx, id)?
        {
            snapshot.deleted_at = Some(now);
            typed::put(tx, &snapshot)?;
        }
        Ok(named.name)
    })?;
    snapshots::clear_away_later(app);
    Ok(Answer::ok("snapshot.named.deleted", json!({"name": name, "status": "deleted"})))
}
