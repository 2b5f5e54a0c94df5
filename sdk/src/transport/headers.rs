//! The headers of a call, the same on all its tries but for their number.

use super::Context;
use crate::{
    config::headers as checks,
    error::Result,
    generated::{dialects::Dialect, operations::Media},
};
use http::{HeaderMap, HeaderName, HeaderValue, header};

pub(super) const ORG: HeaderName = HeaderName::from_static("x-sandboxer-org");
pub(super) const ATTEMPT: HeaderName = HeaderName::from_static("x-sandboxer-attempt");
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The header that names the organisation.
pub(super) fn org_of(dialect: Dialect) -> HeaderName {
    let own = dialect.info().headers.iter().find(|(ours, _)| *ours == ORG.as_str());
    own.map_or(ORG, |(_, own)| HeaderName::from_static(own))
}

/// Fills in what the operation has not set itself. Later ones win: built-ins, the client's defaults, the organisation, the
/// idempotency key, the caller's headers; the key comes last, so that nothing replaces it.
pub(crate) fn fill(context: &Context, headers: &mut HeaderMap) -> Result<()> {
    let (shared, plan) = (&context.shared, &context.plan);
    plan.options.timeouts.check()?;
    // The engine's document version; the service knows no such header.
    headers.remove("api-version");
    headers.insert(header::USER_AGENT, shared.user_agent());
    if !headers.contains_key(header::ACCEPT) {
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static(match plan.operation.map(|o| o.info().media) {
                Some(Media::Ndjson) => "application/x-ndjson, application/json;q=0.5",
                Some(Media::Sse) => "text/event-stream, application/json;q=0.5",
                Some(Media::Bytes | Media::WebSocket) => "*/*",
                Some(Media::Json) | None => "application/json",
            }),
        );
    }
    for (name, value) in shared.default_headers() {
        headers.insert(name, value.clone());
    }
    if let Some(org) = &plan.options.org {
        headers.insert(ORG, checks::org(org)?);
    }
    if plan.operation.is_some_and(|operation| operation.info().idempotency_key) {
        let key = match &plan.options.idempotency_key {
            Some(key) => checks::idempotency_key(key)?,
            None => checks::idempotency_key(&uuid::Uuid::new_v4().to_string())?,
        };
        headers.insert(IDEMPOTENCY_KEY, key);
    }
    for (name, value) in &plan.options.headers {
        let (name, value) = checks::checked(name, value)?;
        headers.insert(name, value);
    }
    for (ours, own) in shared.dialect().info().headers {
        if let Some(value) = headers.remove(*ours) {
            headers.insert(HeaderName::from_static(own), value);
        }
    }
    headers.insert(header::AUTHORIZATION, shared.bearer());
    Ok(())
}
