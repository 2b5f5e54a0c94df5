//! Where the account's telemetry is exported to.

use std::{collections::BTreeMap, sync::Arc};

use http::{HeaderName, HeaderValue, header};
use serde_json::{Value, json};

use super::Call;
use crate::{
    app::App,
    outbound::{self, Allowed},
    reply::{Answer, ApiError, Outcome},
    store::{StoreError, typed},
    telemetry,
    world::{
        telemetry::{GAUGES_EVERY, Telemetry, drop_queue},
        time::{self, Millis},
    },
};

/// What a collector's URL may end in and is cut off.
const SIGNALS: [&str; 2] = ["/v1/metrics", "/v1/logs"];

/// The most headers that are sent along.
const MOST_HEADERS: usize = 32;

/// The most bytes of a header's value.
const MOST_VALUE_BYTES: usize = 8192;

/// Headers that say how a request is framed, where it goes and what it holds.
const OWN_HEADERS: [HeaderName; 9] = [
    header::HOST,
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
];

/// The collector, if there is one.
pub(super) fn get(app: &App, call: &Call) -> Outcome {
    let collector = app.read(|tx| typed::get::<Telemetry>(tx, &call.caller.account.id))?;
    Ok(Answer::ok("telemetry.info", json!({"telemetry": collector.as_ref().map(view)})))
}

/// Sets the collector and tries it.
pub(super) async fn set(app: &Arc<App>, call: &Call) -> Outcome {
    let endpoint = checked_endpoint(app, call.text("endpoint").unwrap_or_default())?;
    let headers = checked_headers(call.body.get("headers"))?;
    let (now, account) = (app.now(), call.caller.account.id.clone());
    let every = Millis::try_from(GAUGES_EVERY.as_millis()).unwrap_or(Millis::MAX);
    let collector = Telemetry {
        account: account.clone(),
        endpoint,
        headers,
        setting: uuid::Uuid::new_v4().to_string(),
        created_at: now,
        gauges_at: now.saturating_add(every),
        last_export_at: None,
        last_error: None,
        failures: 0,
        resume_at: None,
    };
    app.write::<_, StoreError>(|tx| typed::put(tx, &collector))?;
    app.telemetry_changed.notify_one();
    // The trial is noted down even if the caller goes away.
    let trying = app.clone();
    let trial = app.tasks.spawn(async move { telemetry::trial(&trying, &collector).await });
    let trial = trial.await.map_err(ApiError::internal)??;
    let trial = trial.ok_or_else(|| ApiError::internal("the server closed during the trial"))?;
    let collector = app.read(|tx| typed::get::<Telemetry>(tx, &account))?;
    let test = json!({"ok": trial.ok, "status": trial.status, "message": trial.message});
    Ok(Answer::ok("telemetry.updated", json!({"test": test, "telemetry": collector.as_ref().map(view)})))
}

/// No collector any more, and nothing that waits for one.
pub(super) fn delete(app: &App, call: &Call) -> Outcome {
    let account = &call.caller.account.id;
    app.write(|tx| {
        if typed::get::<Telemetry>(tx, account)?.is_none() {
            return Err(ApiError::new(404, "not_found", "the account exports no telemetry"));
        }
        drop_queue(tx, account)?;
        Ok(typed::remove::<Telemetry>(tx, account)?)
    })?;
    app.telemetry_changed.notify_one();
    Ok(Answer::ok("telemetry.deleted", json!({"telemetry": null})))
}

/// The collector's URL without the path of a signal.
fn checked_endpoint(app: &App, text: &str) -> Result<String, ApiError> {
    let refuse = |problem: &str| Err(ApiError::invalid("invalid_endpoint", "endpoint", problem));
    let allowed = Allowed { ports: telemetry::PORTS, loopback: app.outbound.loopback() };
    match outbound::check(text, allowed) {
        Ok(url) if url.query().is_some() || url.fragment().is_some() => {
            refuse("must not have a query or a fragment")
        }
        Ok(_) => {
            let trimmed = text.trim_end_matches('/');
            let base = SIGNALS.iter().find_map(|signal| trimmed.strip_suffix(signal)).unwrap_or(trimmed);
            Ok(base.trim_end_matches('/').to_owned())
        }
        Err(problem) => refuse(&problem),
    }
}

/// Messages name headers and never hold their values.
fn checked_headers(given: Option<&Value>) -> Result<BTreeMap<String, String>, ApiError> {
    let refuse = |field: &str, allowed: &str| Err(ApiError::invalid("invalid_request", field, allowed));
    let Some(given) = given.and_then(Value::as_object) else { return Ok(BTreeMap::new()) };
    if given.len() > MOST_HEADERS {
        return refuse("headers", &format!("must not be more than {MOST_HEADERS}"));
    }
    let mut names = Vec::new();
    let mut headers = BTreeMap::new();
    for (name, value) in given {
        let (field, value) = (format!("headers.{name}"), value.as_str().unwrap_or_default());
        let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
            return refuse(&field, "is not a name that a header can have");
        };
        if OWN_HEADERS.contains(&parsed) {
            return refuse(&field, "is set by the service");
        }
        if names.contains(&parsed) {
            return refuse(&field, "is given twice, small and capital letters being the same");
        }
        if value.len() > MOST_VALUE_BYTES || HeaderValue::from_str(value).is_err() {
            let allowed = format!("must have at most {MOST_VALUE_BYTES} bytes, and no control characters");
            return refuse(&field, &allowed);
        }
        names.push(parsed);
        headers.insert(name.clone(), value.to_owned());
    }
    Ok(headers)
}

fn view(collector: &Telemetry) -> Value {
    let error = collector
        .last_error
        .as_ref()
        .map(|error| json!({"message": error.message, "status": error.status, "at": time::iso(error.at)}));
    json!({
        "endpoint": collector.endpoint,
        "headers": collector.headers.keys().collect::<Vec<_>>(),
        "lastExportAt": collector.last_export_at.map(time::iso),
        "lastError": error,
        "createdAt": time::iso(collector.created_at),
    })
}
