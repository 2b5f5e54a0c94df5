//! Webhook endpoints of the account.

use serde_json::{Value, json};

use super::Call;
use crate::{
    app::App,
    deliveries,
    outbound::{self, Allowed},
    reply::{Answer, ApiError, Outcome},
    store::{Reader, typed},
    world::{
        endpoints::{self, Endpoint, MOST_ENDPOINTS, Taken, endpoint_key},
        happenings::Kind,
        time,
    },
};

/// The endpoints.
pub(super) fn list(app: &App, call: &Call) -> Outcome {
    let all = app.read(|tx| endpoints::of_account(tx, &call.caller.account.id))?;
    Ok(Answer::ok("webhook.list", json!({"webhooks": all.iter().map(view).collect::<Vec<_>>()})))
}

/// A new endpoint, and its secret.
pub(super) fn create(app: &App, call: &Call) -> Outcome {
    let url = checked_url(app, call.text("url").unwrap_or_default())?;
    let events = events(call).unwrap_or_default();
    let account = &call.caller.account.id;
    let endpoint = Endpoint::new(account, call.text("name"), &url, events, app.now());
    app.write(|tx| {
        refuse_if_taken(&*tx, &endpoint)?;
        Ok::<_, ApiError>(typed::put(tx, &endpoint)?)
    })?;
    let body = json!({"webhook": view(&endpoint), "secret": endpoint.secret});
    Ok(Answer::new(201, "webhook.created", body))
}

/// One endpoint.
pub(super) fn get(app: &App, call: &Call) -> Outcome {
    let endpoint = app.read(|tx| own(tx, call))?;
    Ok(Answer::ok("webhook.info", json!({"webhook": view(&endpoint)})))
}

/// An endpoint with something changed; its secret stays.
pub(super) fn update(app: &App, call: &Call) -> Outcome {
    // That there is no such endpoint comes before what is wrong with the change.
    app.read(|tx| own(tx, call))?;
    let url = call.text("url").map(|url| checked_url(app, url)).transpose()?;
    let endpoint = app.write(|tx| {
        let mut endpoint = own(&*tx, call)?;
        let before = view(&endpoint);
        if let Some(name) = call.body.get("name") {
            endpoint.name = name.as_str().map(str::to_owned);
        }
        if let Some(url) = url {
            endpoint.url = url;
        }
        if let Some(events) = events(call) {
            endpoint.events = events;
        }
        if view(&endpoint) != before {
            refuse_if_taken(&*tx, &endpoint)?;
            endpoint.updated_at = app.now();
            typed::put(tx, &endpoint)?;
        }
        Ok::<_, ApiError>(endpoint)
    })?;
    Ok(Answer::ok("webhook.updated", json!({"webhook": view(&endpoint)})))
}

/// An endpoint less, with what waits for it.
pub(super) fn delete(app: &App, call: &Call) -> Outcome {
    let id = app.write(|tx| {
        let endpoint = own(&*tx, call)?;
        endpoints::remove(tx, &endpoint)?;
        Ok::<_, ApiError>(endpoint.id)
    })?;
    Ok(Answer::ok("webhook.deleted", json!({"id": id})))
}

/// Another secret; what is sent from now on is signed with it, the tries that are left of older deliveries too.
pub(super) fn rotate(app: &App, call: &Call) -> Outcome {
    let endpoint = app.write(|tx| {
        let mut endpoint = own(&*tx, call)?;
        endpoint.secret = endpoints::new_secret();
        endpoint.updated_at = app.now();
        typed::put(tx, &endpoint)?;
        Ok::<_, ApiError>(endpoint)
    })?;
    Ok(Answer::ok("webhook.rotated", json!({"webhook": view(&endpoint), "secret": endpoint.secret})))
}

/// The endpoint of the path, if it is the caller's.
fn own(tx: &dyn Reader, call: &Call) -> Result<Endpoint, ApiError> {
    let key = endpoint_key(&call.caller.account.id, call.id("webhookId"));
    typed::get(tx, &key)?.ok_or_else(|| ApiError::not_found("webhook endpoint"))
}

fn checked_url(app: &App, url: &str) -> Result<String, ApiError> {
    let allowed = Allowed { ports: deliveries::PORTS, loopback: app.outbound.loopback() };
    match outbound::check(url, allowed) {
        Ok(_) => Ok(url.to_owned()),
        Err(problem) => Err(ApiError::invalid("invalid_webhook_url", "url", problem)),
    }
}

/// The events of the body, each once; nothing if left out. What is none was refused before.
fn events(call: &Call) -> Option<Vec<Kind>> {
    let named = call.body.get("events").and_then(Value::as_array)?;
    let mut events = Vec::new();
    for kind in named.iter().filter_map(Value::as_str).filter_map(Kind::of_name) {
        if !events.contains(&kind) {
            events.push(kind);
        }
    }
    Some(events)
}

fn refuse_if_taken(tx: &dyn Reader, endpoint: &Endpoint) -> Result<(), ApiError> {
    let refuse = |code, why: String| Err(ApiError::new(409, code, why).retryable(false));
    match endpoints::room_for(tx, endpoint)? {
        Ok(()) => Ok(()),
        Err(Taken::Exists) => refuse("webhook_exists", "the account has an endpoint with that URL".into()),
        Err(Taken::Full) => {
            refuse("webhook_limit", format!("the account has {MOST_ENDPOINTS} endpoints, the most it may"))
        }
    }
}

fn view(endpoint: &Endpoint) -> Value {
    json!({
        "id": endpoint.id,
        "name": endpoint.name,
        "url": endpoint.url,
        "events": endpoint.events,
        "createdAt": time::iso(endpoint.created_at),
        "updatedAt": time::iso(endpoint.updated_at),
    })
}
