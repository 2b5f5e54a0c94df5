//! One try of one delivery: signed, sent, and noted down.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use sandboxer::webhooks::Verifier;

use crate::{
    app::App,
    outbound::{self, Allowed},
    store::{StoreError, typed},
    world::{
        deliveries::{Attempt, Delivery},
        endpoints::{Endpoint, endpoint_key},
    },
};

/// The ports of endpoints that are not on this machine.
pub(crate) const PORTS: &[u16] = &[443];

/// How long an endpoint has to acknowledge.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(5);

/// Tries a delivery and notes what came of it; false if the server closed meanwhile, and then it was not tried.
pub(super) async fn attempt(app: &Arc<App>, delivery: Delivery) -> Result<bool, StoreError> {
    let key = endpoint_key(&delivery.account, &delivery.endpoint);
    let Some(endpoint) = app.read(|tx| typed::get::<Endpoint>(tx, &key))? else {
        app.write(|tx| typed::remove::<Delivery>(tx, &typed::Record::key(&delivery)))?;
        return Ok(true);
    };
    let at = app.now();
    let answered = tokio::select! {
        answered = send(app, &endpoint, &delivery) => answered,
        () = app.closing.cancelled() => return Ok(false),
    };
    let (status, problem) = match answered {
        Ok(status) => (Some(status), None),
        Err(problem) => (None, Some(problem)),
    };
    let attempt = Attempt { at, status, problem };
    app.write(|tx| {
        // The endpoint may be gone by now, and its deliveries with it.
        if let Some(mut delivery) = typed::get::<Delivery>(tx, &typed::Record::key(&delivery))? {
            delivery.attempted(attempt, app.now());
            typed::put(tx, &delivery)?;
        }
        Ok::<_, StoreError>(())
    })?;
    Ok(true)
}

/// Sends it: the status, or why there is none.
async fn send(app: &App, endpoint: &Endpoint, delivery: &Delivery) -> Result<u16, String> {
    // Once more, for a server that was started with less allowed than the one that took the address.
    let url = outbound::check(&endpoint.url, Allowed { ports: PORTS, loopback: app.outbound.loopback() })
        .map_err(|problem| format!("the URL {problem}"))?;
    let headers = headers(app, &endpoint.secret, delivery)?;
    let body = Bytes::from(delivery.body.clone());
    Ok(app.outbound.post(&url, headers, body, ACKNOWLEDGED_WITHIN, false).await?.status)
}

/// The headers of a try; it is signed in both schemes.
fn headers(app: &App, secret: &str, delivery: &Delivery) -> Result<HeaderMap, String> {
    let (now, body) = (app.clock.now(), delivery.body.as_bytes());
    let signer = Verifier::new(secret).map_err(|error| error.to_string())?;
    let mut headers = signer.sign(now, body).map_err(|error| error.to_string())?;
    headers.extend(signer.sign_delivery(&delivery.event, now, body).map_err(|error| error.to_string())?);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("x-sandboxer-event", HeaderValue::from_static(delivery.kind.as_str()));
    headers.insert("x-sandboxer-attempt", HeaderValue::from(delivery.attempts.len() + 1));
    Ok(headers)
}
