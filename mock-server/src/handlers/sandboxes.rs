//! Looking at sandboxes and changing what may be changed in place.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose};
use serde_json::json;

use super::{
    Call,
    starts::{self, Ttl},
};
use crate::{
    app::App,
    auth::Access,
    reply::{Answer, ApiError, Outcome},
    store::typed,
    view,
    world::{
        sandboxes::{Sandbox, State, machine_class},
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
    let ascending = call.query("sort") == Some("asc");
    let states: Option<Vec<&str>> = call
        .query("state")
        .map(|list| list.split(',').map(str::trim).filter(|state| !state.is_empty()).collect());
    let after = call.query("cursor").and_then(read_cursor);
    app.read(|tx| {
        let mut found: Vec<(Sandbox, Access)> = Vec::new();
        for sandbox in typed::with_prefix::<Sandbox>(tx, "")? {
            if sandbox.state == State::Cancelled {
                continue;
            }
            if states.as_ref().is_some_and(|states| !states.contains(&sandbox.state.as_str())) {
                continue;
            }
            // The personal list has what the caller created; an organisation's has all that it pays for.
            let is_listed = match &call.caller.organisation {
                None => sandbox.account == call.caller.account.id,
                Some(pays) => sandbox.organisation.as_ref() == Some(&pays.id),
            };
            if is_listed && let Some(access) = call.caller.access(tx, &sandbox)? {
                found.push((sandbox, access));
            }
        }
        let place = |sandbox: &Sandbox| (sandbox.created_at, sandbox.id.clone());
        found.sort_by_key(|(sandbox, _)| place(sandbox));
        if !ascending {
            found.reverse();
        }
        if let Some(after) = after {
            found.retain(
                |(sandbox, _)| if ascending { place(sandbox) > after } else { place(sandbox) < after },
            );
        }
        let has_more = found.len() as u64 > limit;
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let next = found.last().filter(|_| has_more).map(|(sandbox, _)| write_cursor(sandbox));
        let shown: Result<Vec<_>, ApiError> =
            found.iter().map(|(sandbox, access)| view::sandbox(tx, sandbox, *access)).collect();
        let page = json!({"nextCursor": next, "hasMore": has_more, "limit": limit});
        Ok(Answer::ok("sandbox.list", json!({"sandboxes": shown?, "pageInfo": page})))
    })
}

fn write_cursor(sandbox: &Sandbox) -> String {
    general_purpose::STANDARD.encode(format!("{}:{}", iso(sandbox.created_at), sandbox.id))
}

/// Reads a cursor in either alphabet, padded or not; `None` if it is none.
fn read_cursor(cursor: &str) -> Option<(Millis, String)> {
    let bare = cursor.trim_end_matches('=');
    let bytes = general_purpose::STANDARD_NO_PAD
        .decode(bare)
        .or_else(|_| general_purpose::URL_SAFE_NO_PAD.decode(bare))
        .ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (at, id) = text.rsplit_once(':')?;
    // A bare number is milliseconds here, as in the cursors of events.
    let at = at.parse().ok().or_else(|| time::parse(at))?;
    (!id.is_empty()).then(|| (at, id.to_owned()))
}

pub(super) fn get(app: &App, call: &Call) -> Outcome {
    let id = call.id("sandboxId");
    let (sandbox, access) = app.read(|tx| call.caller.see(tx, id))?;
    if sandbox.state == State::Cancelled {
        // Shown once, then gone.
        app.write(|tx| typed::remove::<Sandbox>(tx, id))?;
        app.forget(id);
    }
    let shown = app.read(|tx| view::sandbox(tx, &sandbox, access))?;
    Ok(Answer::ok("sandbox.info", json!({"sandbox": shown})))
}

pub(super) fn update(app: &Arc<App>, call: &Call) -> Outcome {
    let now = app.now();
    let id = call.id("sandboxId");
    let subdomain = call.text("subdomain").map(check_subdomain).transpose()?;
    let shown = app.write(|tx| {
        let mut sandbox = call.caller.own(tx, id)?;
        if let Some(name) = call.text("name") {
            let name = name.trim();
            if name.is_empty() {
                return Err(ApiError::invalid("invalid_name", "name", "must not be empty"));
            }
            sandbox.name = name.chars().take(NAME_LIMIT).collect();
        }
        if let Some(wanted) = subdomain {
            let taken = typed::with_prefix::<Sandbox>(tx, "")?;
            if taken.iter().any(|other| other.id != id && other.subdomain == wanted) {
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
        typed::put(tx, &sandbox)?;
        view::sandbox(&*tx, &sandbox, Access::Owner)
    })?;
    app.deadlines_changed.notify_one();
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
    fn both_cursor_forms_are_read_and_nonsense_is_not() {
        let place = Some((1_767_225_600_042, "bx_2345abcd".to_owned()));
        let text = "2026-01-01T00:00:00.042Z:bx_2345abcd";
        assert_eq!(read_cursor(&general_purpose::STANDARD.encode(text)), place);
        assert_eq!(read_cursor(&general_purpose::URL_SAFE_NO_PAD.encode(text)), place);
        let millis = general_purpose::URL_SAFE_NO_PAD.encode("1767225600042:bx_2345abcd");
        assert_eq!(read_cursor(&millis), place);
        for nonsense in ["", "x", "%%%", &general_purpose::STANDARD.encode("yesterday:bx_2"), "////"] {
            assert_eq!(read_cursor(nonsense), None, "{nonsense}");
        }
    }

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
