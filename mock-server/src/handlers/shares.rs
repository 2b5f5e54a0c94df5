//! Codes with which any account can create sandboxes from a named snapshot.

use serde_json::{Value, json};

use super::{Call, named_snapshots::find};
use crate::{
    app::App,
    reply::{Answer, ApiError, Outcome},
    store::{typed, typed::Record as _},
    view::time_or_null,
    world::{
        shares::{Share, share_key},
        time::iso,
    },
};

fn show(share: &Share) -> Value {
    json!({
        "id": share.id,
        "codePrefix": share.prefix,
        "status": if share.revoked_at.is_some() { "revoked" } else { "active" },
        "useCount": share.uses,
        "lastUsedAt": time_or_null(share.used_at),
        "revokedAt": time_or_null(share.revoked_at),
        "createdAt": iso(share.created_at),
    })
}

pub(super) fn list(app: &App, call: &Call) -> Outcome {
    app.read(|tx| {
        let named = find(tx, call)?;
        let shares: Vec<Share> = typed::with_prefix(tx, &format!("{}/", named.key()))?;
        // Their ids sort by the time they were made at.
        let shown: Vec<Value> = shares.iter().rev().map(show).collect();
        Ok(Answer::ok("snapshot.share.list", json!({"name": named.name, "shares": shown})))
    })
}

pub(super) fn create(app: &App, call: &Call) -> Outcome {
    let now = app.now();
    app.write(|tx| {
        let named = find(&*tx, call)?;
        let (code, share) = Share::new(&named.key(), now);
        typed::put(tx, &share)?;
        let body = json!({"name": named.name, "shareCode": code, "share": show(&share)});
        Ok(Answer::new(201, "snapshot.share.created", body))
    })
}

pub(super) fn revoke(app: &App, call: &Call) -> Outcome {
    let now = app.now();
    app.write(|tx| {
        let named = find(&*tx, call)?;
        let mut share: Share = typed::get(&*tx, &share_key(&named.key(), call.id("shareId")))?
            .ok_or_else(|| ApiError::not_found("share code of this named snapshot"))?;
        share.revoked_at.get_or_insert(now);
        typed::put(tx, &share)?;
        let body = json!({"name": named.name, "share": show(&share)});
        Ok(Answer::ok("snapshot.share.revoked", body))
    })
}
