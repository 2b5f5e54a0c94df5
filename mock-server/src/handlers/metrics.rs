//! The load of sandboxes over time.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::{Call, history::monitored};
use crate::{
    app::App,
    metering::measure,
    reply::{Answer, ApiError, Outcome},
    store::{Order, Reader, StoreError, typed},
    world::{
        metrics::{self, Load, Window},
        sandboxes::{Sandbox, State, listed},
        time::{Millis, iso},
    },
};

/// How many sandboxes a summary is about.
const SUMMARY: usize = 100;

fn point(at: Millis, load: Load) -> Value {
    json!({"t": iso(at), "cpu": load.cpu, "mem": load.mem, "disk": load.disk, "io": load.io})
}

fn points(tx: &dyn Reader, sandbox: &str, window: Window, now: Millis) -> Result<Vec<Value>, StoreError> {
    let found = metrics::read(tx, sandbox, window, now)?;
    Ok(found.into_iter().map(|(at, load)| point(at, load)).collect())
}

fn window(call: &Call) -> &str {
    call.query("window").unwrap_or("1h")
}

pub(super) async fn metrics(app: &App, call: &Call) -> Outcome {
    let (sandbox, _) = app.read(|tx| call.caller.see(tx, call.id("sandboxId")))?;
    monitored(&sandbox)?;
    let name = window(call);
    let now = app.now();
    let live = match sandbox.state.is_up() && !app.scenarios().cut_off(&sandbox) {
        true => Some(measure(app, &sandbox).await.map_err(ApiError::internal)?.load),
        false => None,
    };
    let body = app.read(|tx| {
        let current = match live {
            Some(load) => Some((now, load)),
            None => metrics::newest(tx, &sandbox.id)?,
        };
        Ok::<_, ApiError>(json!({
            "sandboxId": sandbox.id,
            "window": name,
            "points": points(tx, &sandbox.id, Window::named(name, false), now)?,
            "current": current.map(|(at, load)| point(at, load)),
        }))
    })?;
    Ok(Answer::ok("sandbox.metrics", body))
}

pub(super) fn summary(app: &App, call: &Call) -> Outcome {
    let name = window(call);
    let (window, now) = (Window::named(name, true), app.now());
    app.read(|tx| {
        let ids = match call.query("ids").filter(|ids| !ids.is_empty()) {
            Some(ids) => named(ids),
            None => newest(tx, call)?,
        };
        let mut shown = Vec::new();
        for id in ids {
            let Some(sandbox) = typed::get::<Sandbox>(tx, &id)? else { continue };
            let is_seen = call.caller.access(tx, &sandbox)?.is_some() && sandbox.state != State::Cancelled;
            if !is_seen || !sandbox.monitoring {
                continue;
            }
            let points = points(tx, &id, window, now)?;
            if !points.is_empty() {
                shown.push(json!({"sandboxId": id, "points": points}));
            }
        }
        Ok(Answer::ok("sandbox.metrics_summary", json!({"window": name, "sandboxes": shown})))
    })
}

/// The ids that a call names, each once.
fn named(ids: &str) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for id in ids.split(',').map(str::trim).filter(|id| !id.is_empty()) {
        if named.len() < SUMMARY && !named.iter().any(|known| known == id) {
            named.push(id.to_owned());
        }
    }
    named
}

/// The newest sandboxes of the list that the caller sees.
fn newest(tx: &dyn Reader, call: &Call) -> Result<Vec<String>, StoreError> {
    if let Some(reach) = &call.caller.key.sandboxes {
        return Ok(reach.iter().take(SUMMARY).cloned().collect());
    }
    let prefix = match &call.caller.organisation {
        None => listed(&format!("account/{}", call.caller.account.id), None),
        Some(pays) => listed(&format!("organisation/{}", pays.id), None),
    };
    let mut found = Vec::new();
    let end = typed::after_prefix(&prefix);
    typed::rows(tx, &prefix, end.as_deref(), Order::Descending, |_, id| {
        found.push(id.to_owned());
        if found.len() < SUMMARY { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}
