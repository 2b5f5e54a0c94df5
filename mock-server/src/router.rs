//! From an HTTP request to a handler and back: the path, the key, the scope, the organisation, the query, the body.

use std::{panic::AssertUnwindSafe, sync::Arc};

use axum::body::Body;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request};
use http_body_util::BodyExt as _;
use percent_encoding::percent_decode_str;
use sandboxer::Operation;

use crate::{
    app::App,
    auth::{self, Caller},
    dialects,
    generated::router::{BodyRule, ROUTES, Route, Segment},
    handlers::{self, Call},
    reply::{ApiError, Outcome},
    validate,
    world::actions,
};

/// Where the API lies on the server.
pub(crate) const PREFIX: &str = "/api/v1";

/// The key action that no key grants.
const SESSION: &str = "session";

/// The query parameter that carries the key where a client cannot set headers.
const TOKEN_QUERY: &str = "access_token";

/// The most bytes of a body that is only read to be thrown away, so that its sender gets to read the answer.
const DRAIN: usize = 64 << 20;

/// The most bytes of a body that are kept before its sender is known.
const UNKNOWN: usize = 1 << 20;

/// The names of an operation's path parameters, with their values.
type PathIds = Vec<(&'static str, String)>;

/// Finds the operation of a path and a method.
pub(crate) fn find(method: &Method, path: &str) -> Result<(&'static Route, PathIds), ApiError> {
    let unknown = || ApiError::new(404, "not_found", "there is nothing at this path");
    let below = path.strip_prefix(PREFIX).and_then(|below| below.strip_prefix('/')).ok_or_else(unknown)?;
    let parts = below
        .split('/')
        .map(|part| percent_decode_str(part).decode_utf8().map(|part| part.into_owned()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| unknown())?;
    let mut allowed: Vec<&str> = Vec::new();
    // A literal that fits hides the parameter in its place, so only routes of the first shape count.
    let mut shape: Option<&[Segment]> = None;
    let own = ROUTES.iter().map(|route| (route.segments, route));
    let others = dialects::routes().iter().map(|(segments, route)| (segments.as_slice(), *route));
    for (segments, route) in own.chain(others) {
        let Some(ids) = fits(segments, &parts) else { continue };
        if **shape.get_or_insert(segments) != *segments {
            continue;
        }
        if route.method == method.as_str() {
            return Ok((route, ids));
        }
        allowed.push(route.method);
    }
    if allowed.is_empty() {
        return Err(unknown());
    }
    let allowed = allowed.join(", ");
    Err(ApiError::new(405, "method_not_allowed", format!("this path takes {allowed}")).allow(&allowed))
}

fn fits(segments: &[Segment], parts: &[String]) -> Option<PathIds> {
    if segments.len() != parts.len() {
        return None;
    }
    let mut ids = Vec::new();
    for (segment, part) in segments.iter().zip(parts) {
        match segment {
            Segment::Literal(text) if text == part => {}
            Segment::Parameter(name) if !part.is_empty() && part != "." && part != ".." => {
                ids.push((*name, part.clone()));
            }
            _ => return None,
        }
    }
    Some(ids)
}

/// The operation that a request asks for, for those that want to know before it is carried out.
pub(crate) fn operation(method: &Method, path: &str) -> Option<Operation> {
    find(method, path).ok().map(|(route, _)| route.operation)
}

/// The most bytes of a body that an operation takes.
pub(crate) fn body_limit(operation: Option<Operation>) -> usize {
    match operation {
        // 5 MiB of content, each byte of which JSON may write in six.
        Some(Operation::WriteFile) => 32 << 20,
        // Two texts of 1 MiB, as JSON may write them, and the paths.
        Some(Operation::ReplaceInFiles) => 32 << 20,
        Some(Operation::Command | Operation::CommandStream) => 8 << 20,
        _ => UNKNOWN,
    }
}

/// Whether the key of a request is good for its operation; that it is asked does not count as a use.
pub(crate) fn is_known(app: &App, head: &request::Parts) -> bool {
    let Ok((route, _)) = find(&head.method, head.uri.path()) else { return false };
    let found = app.read(|tx| auth::authenticate(tx, &head.headers, None, app.now()));
    found.is_ok_and(|(_, key)| key.grants(route.action))
}

/// A body that was read, or why it was not.
pub(crate) enum ReadBody {
    Whole(Bytes),
    /// Longer than the limit; the first part of it.
    TooLarge(Bytes),
    /// The sender went away.
    Broken,
    /// It is read by whoever answers.
    Unread(Body),
}

impl ReadBody {
    /// What there is of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            ReadBody::Whole(bytes) | ReadBody::TooLarge(bytes) => bytes,
            ReadBody::Broken | ReadBody::Unread(_) => &[],
        }
    }
}

/// Reads a body; what is over the limit is read on and thrown away. Before more than [`UNKNOWN`] bytes are kept, `is_known`
/// is asked whether the sender may have that.
pub(crate) async fn read_body<B>(body: B, mut limit: usize, is_known: impl FnOnce() -> bool) -> ReadBody
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
{
    let mut body = body;
    let mut kept = Vec::new();
    let mut seen = 0;
    let mut is_known = Some(is_known);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return ReadBody::Broken };
        let Ok(data) = frame.into_data() else { continue };
        seen += data.len();
        if seen > UNKNOWN
            && limit > UNKNOWN
            && let Some(is_known) = is_known.take()
            && !is_known()
        {
            limit = UNKNOWN;
        }
        if seen <= limit {
            kept.extend_from_slice(&data);
        } else if seen > DRAIN {
            break;
        }
    }
    match seen <= limit {
        true => ReadBody::Whole(kept.into()),
        false => ReadBody::TooLarge(kept.into()),
    }
}

/// Carries a request out.
pub(crate) async fn answer(
    app: &Arc<App>,
    head: &request::Parts,
    body: ReadBody,
    request_id: &str,
) -> Response<Body> {
    let work = async {
        match body {
            ReadBody::Unread(body) => handlers::file_urls::transfer(app, head, body).await,
            _ if head.uri.path().starts_with(handlers::manifest::STORAGE) => {
                handlers::manifest::download(app, head).await
            }
            body => carry_out(app, head, body).await,
        }
    };
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|_| Err(ApiError::internal("a handler panicked")));
    let mut response = match outcome {
        Ok(answer) => answer.into_response(),
        Err(error) => error.into_response(request_id),
    };
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert("x-request-id", id);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn carry_out(app: &Arc<App>, head: &request::Parts, body: ReadBody) -> Outcome {
    let (route, path) = find(&head.method, head.uri.path())?;
    let query = validate::parse_query(head.uri.query().unwrap_or_default());
    let headers = dialects::headers(&head.headers);
    let (caller, query) = identify(app, &headers, route, query)?;
    check_breadth(&caller, route)?;
    check_reach(&caller, &path)?;
    validate::check_query(route.query, &query)?;
    let body = match (body, &route.body) {
        (ReadBody::Whole(bytes), _) => bytes,
        (_, BodyRule::None) => Bytes::new(),
        (ReadBody::TooLarge(_), _) => {
            let limit = body_limit(Some(route.operation));
            return Err(ApiError::new(
                413,
                "body_too_large",
                format!("the body is longer than {limit} bytes"),
            )
            .detail("limit", limit));
        }
        (ReadBody::Broken | ReadBody::Unread(_), _) => {
            return Err(ApiError::new(400, "invalid_json", "the body ended early"));
        }
    };
    let body = validate::check_body(&route.body, &body)?;
    if route.keyed {
        check_idempotency_key(head)?;
    }
    let call = Call { operation: route.operation, path, query, headers, body, caller };
    let outcome = handlers::handle(app, call).await;
    if let Ok(answer) = &outcome {
        let status = answer.status();
        let is_part = status == StatusCode::PARTIAL_CONTENT;
        debug_assert!(is_part || status.as_u16() == route.success, "{:?} answered {status}", route.operation);
    }
    outcome
}

/// A query, decoded.
type Query = Vec<(String, String)>;

/// Who calls, and whether the key and the organisation let them; hands back the query, which is judged after the key.
fn identify(
    app: &App,
    headers: &HeaderMap,
    route: &Route,
    query: Result<Query, ApiError>,
) -> Result<(Caller, Query), ApiError> {
    app.read(|tx| {
        // A query that cannot be read carries no key.
        let token = match (&query, route.operation) {
            (Ok(query), Operation::ExecWebSocket | Operation::SshWebSocket) => value_of(query, TOKEN_QUERY),
            _ => None,
        };
        let (account, key) = auth::authenticate(tx, headers, token, app.now())?;
        app.key_used(&key);
        if route.action == Some(SESSION) && !key.is_session() {
            let why = "a person has to be signed in for this; no API key will do";
            return Err(ApiError::new(403, "session_required", why));
        }
        if !key.grants(route.action) {
            let action = route.action.unwrap_or_default();
            return Err(ApiError::new(403, "forbidden", format!("the API key does not grant {action}"))
                .detail("action", action));
        }
        let query = query?;
        let in_query = value_of(&query, "org");
        // What is no text names nobody, and must not pass for a call that names no organisation.
        let in_header = headers.get(auth::ORG_HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let in_header = in_header.as_deref();
        // Nor must a name that somebody forgot to fill in.
        if in_header == Some("") {
            return Err(ApiError::invalid("invalid_request", "X-Sandboxer-Org", "must not be empty"));
        }
        let named = in_query.or(in_header).filter(|named| !named.is_empty());
        let organisation = match named {
            Some(named) => auth::organisation(tx, &account, named)?,
            None => None,
        };
        let has_named_wallet = named.is_some();
        Ok((Caller { account, key, organisation, has_named_wallet }, query))
    })
}

/// The value that a query gives for a name.
fn value_of<'a>(query: &'a Query, name: &str) -> Option<&'a str> {
    query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Hides what the key is not good for, whatever would be done with it.
fn check_reach(caller: &Caller, path: &PathIds) -> Result<(), ApiError> {
    for (name, id) in path {
        match *name {
            "sandboxId" if !caller.key.covers(id) => return Err(ApiError::not_found("sandbox")),
            "environmentId" if !caller.key.covers_environment(id) => {
                return Err(ApiError::not_found("environment"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses to a key that is limited to a part of the account what concerns all of it. What a key may pass on to others is
/// judged where keys are made.
fn check_breadth(caller: &Caller, route: &Route) -> Result<(), ApiError> {
    if route.action != Some(actions::ADMIN) || route.operation == Operation::CreateScopedApiKey {
        return Ok(());
    }
    let key = &caller.key;
    // Which environments a key may change is told by their ids.
    let concerns_environments = match route.segments.first() {
        Some(Segment::Literal(first)) => matches!(*first, "environments" | "secrets" | "repos"),
        _ => false,
    };
    match key.sandboxes.is_some() || (key.environments.is_some() && !concerns_environments) {
        true => Err(ApiError::new(403, "forbidden", "the API key is limited to a part of the account")),
        false => Ok(()),
    }
}

fn check_idempotency_key(head: &request::Parts) -> Result<(), ApiError> {
    let Some(key) = head.headers.get("idempotency-key") else { return Ok(()) };
    match key.to_str().is_ok_and(|key| !key.is_empty() && key.len() <= 255) {
        true => Ok(()),
        false => Err(ApiError::invalid(
            "invalid_request",
            "Idempotency-Key",
            "must be 1 to 255 characters of ASCII",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation_of(method: &str, path: &str) -> Result<Operation, (&'static str, String)> {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        find(&method, path)
            .map(|(route, _)| route.operation)
            .map_err(|error| (error.code(), error.message().to_owned()))
    }

    #[tokio::test]
    async fn much_is_kept_of_those_who_are_known_only() {
        let body = || {
            let pieces = [700_000, 300_000, 100_000]
                .map(|length| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; length])));
            Body::from_stream(futures_util::stream::iter(pieces))
        };
        let read = async |limit: usize, known: bool| {
            let mut asked = 0;
            let read = read_body(body(), limit, || {
                asked += 1;
                known
            });
            let read = read.await;
            (matches!(read, ReadBody::Whole(_)), read.bytes().len(), asked)
        };
        assert_eq!(read(8 << 20, true).await, (true, 1_100_000, 1));
        assert_eq!(read(8 << 20, false).await, (false, 1_000_000, 1));
        assert_eq!(read(1 << 20, true).await, (false, 1_000_000, 0));
        assert_eq!(read(0, true).await, (false, 0, 0));
    }

    #[test]
    fn paths_and_methods_lead_to_their_operation() {
        assert_eq!(operation_of("GET", "/api/v1/sandboxes"), Ok(Operation::Sandboxes));
        assert_eq!(operation_of("POST", "/api/v1/sandboxes/bx_1/commands"), Ok(Operation::Command));
        assert_eq!(operation_of("GET", "/api/v1/sandboxes/metrics"), Ok(Operation::MetricsSummary));
        assert_eq!(operation_of("GET", "/api/v1/sandboxes/bx_1/exec/ws"), Ok(Operation::ExecWebSocket));
        assert_eq!(operation_of("GET", "/api/v1/sandboxes/bx_1/files/list"), Ok(Operation::ListFiles));
        let (_, ids) = find(&Method::GET, "/api/v1/sandboxes/bx%2F1/commands/7/stream").unwrap();
        assert_eq!(ids, [("sandboxId", "bx/1".to_owned()), ("processId", "7".to_owned())]);
        for unknown in [
            "/",
            "/api/v1",
            "/api/v1/",
            "/api/v1/nothing",
            "/api/v1/sandboxes/",
            "/api/v1/sandboxes/..",
            "/me",
        ] {
            assert_eq!(operation_of("GET", unknown).unwrap_err().0, "not_found", "{unknown}");
        }
        let (code, message) = operation_of("PUT", "/api/v1/sandboxes").unwrap_err();
        assert_eq!(code, "method_not_allowed");
        assert!(message.contains("GET") && message.contains("POST"), "{message}");
    }
}
