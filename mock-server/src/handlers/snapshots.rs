//! The snapshots of sandboxes: lists of them, and their end.

use std::{ops::ControlFlow, sync::Arc};

use serde_json::{Value, json};

use super::{
    Call, named_snapshots,
    paging::{read_cursor, write_cursor},
};
use crate::{
    app::App,
    reply::{Answer, ApiError, Outcome},
    snapshots as files,
    store::{Order, Reader, StoreError, typed},
    view,
    world::{
        sandboxes::{Sandbox, place},
        scenarios::Scenario,
        snapshots::{self, Snapshot},
        time::iso,
    },
};

/// How many snapshots a page has unless the call says otherwise.
const PAGE: u64 = 100;

/// How many snapshots of a sandbox are deleted by one call; more are left for the next.
const AT_ONCE: usize = 1000;

/// The header that names what is to be deleted once more.
const CONFIRM: &str = "x-sandboxer-confirm-delete";

pub(super) fn list(app: &App, call: &Call) -> Outcome {
    let account = &call.caller.account.id;
    let pays = call.caller.organisation.as_ref().map(|pays| &pays.id);
    let owners = match &call.caller.key.sandboxes {
        None => match pays {
            None => vec![format!("account/{account}")],
            Some(pays) => vec![format!("organisation/{pays}/{account}")],
        },
        // A key that is limited to some sandboxes sees theirs, of those that it would see without the limit.
        Some(reach) => app.read(|tx| {
            let mut owners = Vec::new();
            for id in reach {
                let sandbox: Option<Sandbox> = typed::get(tx, id)?;
                let is_seen = |it: &Sandbox| {
                    it.account == *account && (pays.is_none() || it.organisation.as_ref() == pays)
                };
                owners.extend(sandbox.filter(is_seen).map(|it| format!("sandbox/{}", it.id)));
            }
            Ok::<_, ApiError>(owners)
        })?,
    };
    page(app, call, &owners)
}

pub(super) fn list_of_sandbox(app: &App, call: &Call) -> Outcome {
    let sandbox = call.own_sandbox(app)?;
    page(app, call, &[format!("sandbox/{}", sandbox.id)])
}

fn page(app: &App, call: &Call, owners: &[String]) -> Outcome {
    let limit = call.number("limit").unwrap_or(PAGE);
    let order = if call.query("sort") == Some("asc") { Order::Ascending } else { Order::Descending };
    let most = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
    let after = call.query("cursor").and_then(read_cursor).map(|(at, id)| place(at, &id));
    let scenarios = app.scenarios();
    app.read(|tx| {
        let mut found = Vec::new();
        for owner in owners {
            found.extend(range(tx, owner, after.as_deref(), order, most)?);
        }
        found.sort_unstable_by(|(a, _), (b, _)| match order {
            Order::Ascending => a.cmp(b),
            Order::Descending => b.cmp(a),
        });
        let has_more = found.len() >= most;
        found.truncate(most - 1);
        let last = found.last().filter(|_| has_more);
        let next = last.map(|(_, (last, _))| write_cursor(last.created_at, &last.id));
        let view = |(snapshot, sandbox): &(Snapshot, Sandbox)| {
            show(snapshot, scenarios.is_on(Scenario::LegacySnapshots, sandbox))
        };
        let shown: Vec<Value> = found.iter().map(|(_, it)| view(it)).collect();
        let page = json!({"nextCursor": next, "hasMore": has_more, "limit": limit});
        Ok(Answer::ok("snapshot.list", json!({"snapshots": shown, "pageInfo": page})))
    })
}

/// The place of a snapshot in its list, the snapshot, and its sandbox.
type Placed = (String, (Snapshot, Sandbox));

/// The places of an owner's snapshots from the cursor on, with what is there; those of a sandbox that is being deleted are
/// left out.
fn range(
    tx: &dyn Reader,
    owner: &str,
    after: Option<&str>,
    order: Order,
    most: usize,
) -> Result<Vec<Placed>, ApiError> {
    let prefix = snapshots::listed(owner);
    let (mut from, mut to) = (prefix.clone(), typed::after_prefix(&prefix));
    match (after, order) {
        (Some(after), Order::Ascending) => from = format!("{prefix}{after}\0"),
        (Some(after), Order::Descending) => to = Some(format!("{prefix}{after}")),
        (None, _) => {}
    }
    let (mut found, mut problem) = (Vec::new(), None);
    typed::rows(tx, &from, to.as_deref(), order, |key, id| {
        match with_sandbox(tx, id) {
            Ok(Some(it)) => found.push((key[prefix.len()..].to_owned(), it)),
            Ok(None) => {}
            Err(error) => problem = Some(error),
        }
        match found.len() < most && problem.is_none() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    problem.map_or(Ok(found), |problem| Err(problem.into()))
}

fn with_sandbox(tx: &dyn Reader, id: &str) -> Result<Option<(Snapshot, Sandbox)>, StoreError> {
    let Some(snapshot) = typed::get::<Snapshot>(tx, id)? else { return Ok(None) };
    let sandbox = typed::get(tx, &snapshot.sandbox)?;
    Ok(sandbox.map(|sandbox| (snapshot, sandbox)))
}

pub(super) fn latest(app: &App, call: &Call) -> Outcome {
    let sandbox = call.own_sandbox(app)?;
    let newest = app.read(|tx| snapshots::latest(tx, &sandbox.id))?;
    let is_legacy = app.scenarios().is_on(Scenario::LegacySnapshots, &sandbox);
    Ok(Answer::ok("snapshot.latest", json!({"snapshot": newest.map(|newest| show(&newest, is_legacy))})))
}

/// A snapshot as lists show it. Every machine's own files are left out of a snapshot, so all of its are the user's.
fn show(snapshot: &Snapshot, is_legacy: bool) -> Value {
    let of_the_user = |count: u64| if is_legacy { Value::Null } else { count.into() };
    json!({
        "id": snapshot.id,
        "sandboxId": snapshot.sandbox,
        "status": "completed",
        "kind": kind(snapshot, is_legacy),
        "generation": snapshot.generation,
        "chainId": snapshot.chain,
        "createdAt": iso(snapshot.created_at),
        "completedAt": iso(snapshot.completed_at),
        "sizeBytes": snapshot.added_bytes,
        "fileCount": snapshot.files,
        "contentSizeBytes": of_the_user(snapshot.bytes),
        "contentFileCount": of_the_user(snapshot.files),
    })
}

/// Whether it is whole, as the service writes it.
pub(super) fn kind(snapshot: &Snapshot, is_legacy: bool) -> &'static str {
    match snapshot.generation {
        _ if is_legacy => "legacy",
        0 => "base",
        _ => "incremental",
    }
}

/// A snapshot of the caller's, whether it is listed or behind a name.
pub(super) fn find(tx: &dyn Reader, call: &Call, id: &str) -> Result<Snapshot, ApiError> {
    let not_found = || ApiError::not_found("snapshot");
    let snapshot: Snapshot = typed::get(tx, id)?.ok_or_else(not_found)?;
    if snapshot.deleted_at.is_some() || !call.caller.key.covers(&snapshot.sandbox) {
        return Err(not_found());
    }
    let is_mine = match &snapshot.pinned {
        Some(named) => named_snapshots::is_kept_by(tx, call, named)?,
        // One whose sandbox is being deleted is on its way out with it.
        None => {
            let is_there = typed::get::<Sandbox>(tx, &snapshot.sandbox)?.is_some();
            snapshot.account == call.caller.account.id && is_there
        }
    };
    if is_mine { Ok(snapshot) } else { Err(not_found()) }
}

pub(super) fn delete(app: &Arc<App>, call: &Call) -> Outcome {
    let id = call.id("snapshotId");
    let snapshot = app.read(|tx| find(tx, call, id))?;
    // One behind a name goes with that.
    if !snapshot.is_listed() {
        return Err(ApiError::not_found("snapshot"));
    }
    confirm(call, id)?;
    let deletions = files::begin_delete(app, &snapshot.sandbox, &[id.to_owned()], &call.caller.account.id)?;
    let operation = deletions.first().map(view::deletion);
    Ok(Answer::new(202, "snapshot.deleting", json!({"operation": operation})))
}

pub(super) fn delete_of_sandbox(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.own_sandbox(app)?;
    confirm(call, &sandbox.id)?;
    let prefix = snapshots::listed(&format!("sandbox/{}", sandbox.id));
    let ids = app.read(|tx| typed::rows_with_prefix(tx, &prefix, AT_ONCE))?;
    let deletions = files::begin_delete(app, &sandbox.id, &ids, &call.caller.account.id)?;
    let operations: Vec<Value> = deletions.iter().map(view::deletion).collect();
    Ok(Answer::new(202, "snapshot.deleting", json!({"operations": operations})))
}

fn confirm(call: &Call, id: &str) -> Result<(), ApiError> {
    if call.header(CONFIRM) == Some(id) {
        return Ok(());
    }
    let why = "the header X-Sandboxer-Confirm-Delete must repeat the id of what is to be deleted";
    Err(ApiError::new(409, "delete_confirmation_required", why).detail("targetId", id).retryable(false))
}
