//! One request to a collector, and what it made of it.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde_json::Value;

use super::{gauges, otlp};
use crate::{
    app::App,
    outbound::{self, Allowed, Posted},
    store::StoreError,
    world::telemetry::{Export, ExportError, Telemetry, Verdict},
};

/// The ports of collectors that are not on this machine.
pub(crate) const PORTS: &[u16] = &[443, 4318];

/// How long a collector has to answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// How much of what a collector says is shown.
const SHOWN_CHARACTERS: usize = 500;

/// What a collector answered, and what that means.
pub(super) struct Answered {
    pub(super) verdict: Verdict,
    status: Option<u16>,
    message: Option<String>,
}

/// How the trial of a collector went.
pub(crate) struct Trial {
    pub(crate) ok: bool,
    pub(crate) status: Option<u16>,
    pub(crate) message: Option<String>,
}

/// Exports the gauges of now, and notes down how that went; nothing if the server closed meanwhile.
pub(crate) async fn trial(app: &App, collector: &Telemetry) -> Result<Option<Trial>, StoreError> {
    let Some(answered) = gauges(app, collector).await else { return Ok(None) };
    super::settle(app, collector, |collector, _, now| {
        collector.note(&answered.verdict, now);
        Ok(())
    })?;
    let ok = answered.verdict.error.is_none();
    Ok(Some(Trial { ok, status: answered.status, message: answered.message }))
}

/// Exports the gauges of now.
pub(super) async fn gauges(app: &App, collector: &Telemetry) -> Option<Answered> {
    let measured = gauges::measure(app, &collector.account).await;
    send(app, collector, "v1/metrics", otlp::metrics(&collector.account, &measured, app.now())).await
}

/// Exports what happened to sandboxes.
pub(super) async fn happenings(app: &App, collector: &Telemetry, batch: &[Export]) -> Option<Answered> {
    let happenings = batch.iter().map(|export| &export.happening);
    send(app, collector, "v1/logs", otlp::logs(&collector.account, happenings, app.now())).await
}

async fn send(app: &App, collector: &Telemetry, path: &str, body: Value) -> Option<Answered> {
    tokio::select! {
        posted = post(app, collector, path, body) => Some(judge(app, posted)),
        () = app.closing.cancelled() => None,
    }
}

async fn post(app: &App, collector: &Telemetry, path: &str, body: Value) -> Result<Posted, String> {
    let allowed = Allowed { ports: PORTS, loopback: app.outbound.loopback() };
    let mut url =
        outbound::check(&collector.endpoint, allowed).map_err(|problem| format!("the endpoint {problem}"))?;
    let base = url.path().trim_end_matches('/').to_owned();
    url.set_path(&format!("{base}/{path}"));
    let headers = headers(collector)?;
    app.outbound.post(&url, headers, Bytes::from(body.to_string()), ANSWERED_WITHIN, true).await
}

fn headers(collector: &Telemetry) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &collector.headers {
        let unfit = || format!("the header {name} cannot be sent");
        let mut value = HeaderValue::from_str(value).map_err(|_| unfit())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?, value);
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(headers)
}

fn judge(app: &App, posted: Result<Posted, String>) -> Answered {
    let (status, said, pause) = match posted {
        Ok(posted) => {
            let pause =
                posted.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            let said: String = posted.text.trim().chars().take(SHOWN_CHARACTERS).collect();
            (Some(posted.status), said, pause.map(Duration::from_secs))
        }
        Err(problem) => (None, problem, None),
    };
    let is_taken = status.is_some_and(|status| (200..300).contains(&status));
    let message = match status {
        Some(status) if said.is_empty() && !is_taken => Some(format!("the collector answered {status}")),
        _ => Some(said).filter(|said| !said.is_empty()),
    };
    let error = (!is_taken).then(|| ExportError {
        message: message.clone().unwrap_or_default(),
        status,
        at: app.now(),
    });
    // OTLP names the statuses after which the same data may be sent again.
    let is_temporary = matches!(status, None | Some(429 | 502 | 503 | 504));
    Answered { verdict: Verdict { error, is_temporary, pause }, status, message }
}
