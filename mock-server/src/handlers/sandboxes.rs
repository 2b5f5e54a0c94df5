//! Looking at sandboxes and changing what may be changed in place.

use std::{ops::ControlFlow, sync::Arc};

use serde_json::json;

use super::{
    Call,
    paging::{read_cursor, write_cursor},
    starts::{self, Ttl},
};
use crate::{
    agent,
    app::App,
    auth::Access,
    reply::{Answer, ApiError, Outcome},
    store::{Order, Reader, StoreError, typed},
    view,
    world::{
        health,
        sandboxes::{Sandbox, State, listed, machine_class, place, subdomain_row},
        scenarios::Scenario,
        time::{self, Millis, iso},
        usage::{self, SECONDS_PER_DOLLAR},
    },
};

/// How many sandboxes a page has unless the call says otherwise.
const PAGE: u64 = 100;

/// Names are cut to this many characters.
const NAME_LIMIT: usize = 120;

pub(super) fn list(app: &App, call: &Call) -> Outcome {
    let limit = call.number("limit").unwrap_or(PAGE);
    let order = if call.query("sort") == Some("asc") { Order::Ascending } else { Order::Descending };
    let states = call.query("state").map(states);
    let after = call.query("cursor").and_then(read_cursor).map(|(at, id)| place(at, &id));
    let most = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
    app.read(|tx| {
        // The personal list has what the caller created; an organisation's has all that it pays for.
        let owner = match &call.caller.organisation {
            None => format!("account/{}", call.caller.account.id),
            Some(pays) => format!("organisation/{}", pays.id),
        };
        let mut found = match &call.caller.key.sandboxes {
            Some(reach) => within(tx, reach, &owner, states.as_deref())?,
            None => ranges(tx, &owner, states.as_deref(), after.as_deref(), order, most)?,
        };
        found.sort_unstable();
        found.dedup();
        if order == Order::Descending {
            found.reverse();
        }
        if let Some(after) = &after {
            found.retain(|(place, _)| match order {
                Order::Ascending => place > after,
                Order::Descending => place < after,
            });
        }
        let has_more = found.len() >= most;
        found.truncate(most - 1);
        let mut shown = Vec::new();
        let mut last = None;
        let mut viewer = view::Viewer::new(tx).with_ways_in(&call.caller.key, app.now());
        for (_, id) in found {
            let Some(sandbox) = typed::get::<Sandbox>(tx, &id)? else { continue };
            let Some(access) = call.caller.access(tx, &sandbox)? else { continue };
            shown.push(viewer.sandbox(&sandbox, access)?);
            last = Some(sandbox);
        }
        let next = last.filter(|_| has_more).map(|last| write_cursor(last.created_at, &last.id));
        let page = json!({"nextCursor": next, "hasMore": has_more, "limit": limit});
        Ok(Answer::ok("sandbox.list", json!({"pageInfo": page})).with("sandboxes", shown))
    })
}

/// The states of a list; those that are none, and the one that is never listed, are left out.
fn states(list: &str) -> Vec<State> {
    let names: Vec<&str> = list.split(',').map(str::trim).collect();
    let listed = |state: &State| *state != State::Cancelled && names.contains(&state.as_str());
    State::ALL.into_iter().filter(listed).collect()
}

/// Places and ids of an owner's sandboxes: up to `most` of each state that is wanted, from the cursor on.
fn ranges(
    tx: &dyn Reader,
    owner: &str,
    states: Option<&[State]>,
    after: Option<&str>,
    order: Order,
    most: usize,
) -> Result<Vec<(String, String)>, StoreError> {
    let wanted = states.map_or_else(|| vec![None], |states| states.iter().copied().map(Some).collect());
    let mut found = Vec::new();
    for state in wanted {
        let prefix = listed(owner, state);
        let (mut from, mut to) = (prefix.clone(), typed::after_prefix(&prefix));
        match (after, order) {
            // A key that is just after the cursor's.
            (Some(after), Order::Ascending) => from = format!("{prefix}{after}\0"),
            (Some(after), Order::Descending) => to = Some(format!("{prefix}{after}")),
            (None, _) => {}
        }
        let mut left = most;
        typed::rows(tx, &from, to.as_deref(), order, |key, id| {
            found.push((key[prefix.len()..].to_owned(), id.to_owned()));
            left -= 1;
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    Ok(found)
}

/// The same for a key that is limited to some sandboxes.
fn within(
    tx: &dyn Reader,
    reach: &[String],
    owner: &str,
    states: Option<&[State]>,
) -> Result<Vec<(String, String)>, StoreError> {
    let mut found = Vec::new();
    for id in reach {
        let Some(sandbox) = typed::get::<Sandbox>(tx, id)? else { continue };
        let is_owned = owner == format!("account/{}", sandbox.account)
            || sandbox.organisation.as_ref().is_some_and(|id| owner == format!("organisation/{id}"));
        let is_wanted = states.is_none_or(|states| states.contains(&sandbox.state));
        if is_owned && is_wanted && sandbox.state != State::Cancelled {
            found.push((place(sandbox.created_at, id), sandbox.id));
        }
    }
    Ok(found)
}

pub(super) fn get(app: &App, call: &Call) -> Outcome {
    let id = call.id("sandboxId");
    let (shown, is_cancelled) = app.read(|tx| {
        let (sandbox, access) = call.caller.see(tx, id)?;
        let mut viewer = view::Viewer::new(tx).with_ways_in(&call.caller.key, app.now());
        Ok::<_, ApiError>((viewer.sandbox(&sandbox, access)?, sandbox.state == State::Cancelled))
    })?;
    if is_cancelled {
        // Shown once, then gone: of two that ask at once, one sees it.
        app.write(|tx| {
            typed::get::<Sandbox>(&*tx, id)?.ok_or_else(|| ApiError::not_found("sandbox"))?;
            Ok::<_, ApiError>(typed::remove::<Sandbox>(tx, id)?)
        })?;
        app.forget(id);
    }
    Ok(Answer::ok("sandbox.info", json!({})).with("sandbox", shown))
}

pub(super) fn update(app: &Arc<App>, call: &Call) -> Outcome {
    let now = app.now();
    let id = call.id("sandboxId");
    let subdomain = call.text("subdomain").map(check_subdomain).transpose()?;
    let (shown, is_routed) = app.write(|tx| {
        let mut sandbox = call.caller.own(tx, id)?;
        if let Some(name) = call.text("name") {
            let name = name.trim();
            if name.is_empty() {
                return Err(ApiError::invalid("invalid_name", "name", "must not be empty"));
            }
            sandbox.name = name.chars().take(NAME_LIMIT).collect();
        }
        if let Some(wanted) = subdomain {
            if typed::row(&*tx, &subdomain_row(wanted))?.is_some_and(|other| other != id) {
                return Err(ApiError::invalid("invalid_name", "subdomain", "is taken by another sandbox"));
            }
            sandbox.subdomain = wanted.to_owned();
        }
        let ttl = starts::ttl(&call.body);
        if ttl != Ttl::LeftOut {
            sandbox.ttl_seconds = ttl.or(None);
            let counts = sandbox.state.is_up() || sandbox.state.is_starting();
            sandbox.archive_after = if counts { starts::deadline(now, sandbox.ttl_seconds) } else { None };
        }
        sandbox.updated_at = now;
        // What is wrong may have been set for the new name.
        health::settle(tx, &mut sandbox, &app.scenarios(), now)?;
        typed::put(tx, &sandbox)?;
        let is_routed = !app.scenarios().is_on(Scenario::GatewayDown, &sandbox);
        let mut viewer = view::Viewer::new(&*tx).with_ways_in(&call.caller.key, now);
        Ok::<_, ApiError>((viewer.sandbox(&sandbox, Access::Owner)?, is_routed))
    })?;
    app.deadlines_changed.notify_one();
    if call.text("name").is_some() {
        // Nor may what was wrong be so under that one.
        app.reach_changed.send_replace(());
        app.tasks.spawn(agent::wake(app.clone(), id.to_owned()));
    }
    if subdomain.is_some() && !is_routed {
        let problem = "the new subdomain is saved, but its routes are not active yet; send it again";
        return Err(ApiError::new(502, "gateway_error", problem).retryable(true).retry_after(2));
    }
    Ok(Answer::ok("sandbox.updated", json!({"sandbox": shown})))
}

/// The rules that its pattern cannot say.
fn check_subdomain(subdomain: &str) -> Result<&str, ApiError> {
    let refuse = |allowed: &str| Err(ApiError::invalid("invalid_request", "subdomain", allowed));
    if subdomain.contains("--") {
        return refuse("must not have two dashes in a row");
    }
    let last = subdomain.rsplit('-').next().unwrap_or_default();
    if subdomain.contains('-') && (last == "desktop" || last.bytes().all(|byte| byte.is_ascii_digit())) {
        return refuse("must not end in -desktop or in a dash and a number");
    }
    Ok(subdomain)
}

pub(super) fn usage(app: &App, call: &Call) -> Outcome {
    let now = app.now();
    let at = |name: &str, otherwise: Millis| match call.query(name) {
        None => Ok(otherwise),
        Some(text) => time::parse(text).ok_or_else(|| {
            ApiError::invalid("invalid_request", name, "must be an ISO 8601 time or seconds since 1970")
        }),
    };
    app.read(|tx| {
        let (sandbox, _) = call.caller.see(tx, call.id("sandboxId"))?;
        let (since, until) = (at("since", sandbox.created_at)?, at("until", now)?);
        if since > until {
            return Err(ApiError::invalid("invalid_request", "since", "must not be after until"));
        }
        let used = usage::used(tx, &sandbox.id, since, until, now)?;
        let (over, under) = machine_class(&sandbox.kind).multiplier;
        let body = json!({
            "sandboxId": sandbox.id,
            "sandboxType": sandbox.kind,
            "billingMultiplier": f64::from(over) / f64::from(under),
            "since": iso(since),
            "until": iso(until),
            "seconds": used.seconds,
            "dollars": used.dollars,
            "secondsPerDollar": SECONDS_PER_DOLLAR,
            "running": used.running,
        });
        Ok(Answer::ok("sandbox.usage", body))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subdomains_that_would_read_as_ports_are_refused() {
        for bad in ["a--b", "app-3000", "my-desktop"] {
            assert!(check_subdomain(bad).is_err(), "{bad}");
        }
        for good in ["app3000", "desktop", "amber-fox-1a", "123"] {
            assert!(check_subdomain(good).is_ok(), "{good}");
        }
    }
}
