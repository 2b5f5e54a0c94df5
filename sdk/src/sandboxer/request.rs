//! The escape hatch: any request below the base URL.

use super::Api;
use crate::{
    config::headers,
    error::{Error, ErrorKind, Result},
    generated::operations::Repeat,
    transport::{Context, Plan, denied_success, fill_headers, run},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// What goes with a request of [`Api::request`]: query, JSON body, headers.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// use sandboxer::RequestOptions;
///
/// let name = RequestOptions::new().json(serde_json::json!({"name": "demo"})).header("X-Trace", "7");
/// let made = client.api().request(http::Method::POST, "/sandboxes", name).await?;
/// assert_eq!(made["type"], "sandbox.created");
/// let first = RequestOptions::new().query("limit", 1);
/// let list = client.api().request(http::Method::GET, "/sandboxes", first).await?;
/// assert_eq!(list["sandboxes"][0]["id"], made["sandbox"]["id"]);
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct RequestOptions {
    query: Vec<(String, String)>,
    json: Option<Result<Bytes, String>>,
    headers: Vec<(String, String)>,
}

impl RequestOptions {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a query parameter; it is percent-encoded.
    #[must_use]
    pub fn query(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.query.push((name.into(), value.to_string()));
        self
    }

    /// Sets the JSON body. A value that cannot be written as JSON is refused when the request is made.
    #[must_use]
    pub fn json(mut self, body: impl Serialize) -> Self {
        self.json = Some(serde_json::to_vec(&body).map(Bytes::from).map_err(|error| error.to_string()));
        self
    }

    /// Sets a header. `Accept`, `Idempotency-Key`, `Last-Event-ID` and the header that confirms a deletion may be set
    /// here; the others that the client fills in are refused.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn header_map(&self) -> Result<HeaderMap> {
        let mut map = HeaderMap::new();
        if self.json.is_some() {
            map.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in &self.headers {
            let own = [
                "accept",
                "idempotency-key",
                "x-sandboxer-confirm-delete",
                "x-ascii-confirm-delete",
                "last-event-id",
            ];
            let own = own.into_iter().find(|own| name.eq_ignore_ascii_case(own));
            let (name, value) = match own {
                Some("idempotency-key") => {
                    (HeaderName::from_static("idempotency-key"), headers::idempotency_key(value)?)
                }
                Some(own) => (HeaderName::from_static(own), headers::value_of(own, value)?),
                None => headers::checked(name, value)?,
            };
            map.insert(name, value);
        }
        Ok(map)
    }
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be secrets; names are not.
        fn names(pairs: &[(String, String)]) -> Vec<&str> {
            pairs.iter().map(|(name, _)| name.as_str()).collect()
        }
        f.debug_struct("RequestOptions")
            .field("query", &names(&self.query))
            .field("headers", &names(&self.headers))
            .field("json", &self.json.is_some())
            .finish()
    }
}

impl Api {
    /// Sends a request that has no method of its own and answers its JSON, `Null` for an empty answer.
    ///
    /// `path` is relative to the base URL (`/me`, `sandboxes?limit=5`), or an absolute URL of the same scheme, host and port;
    /// the key is sent nowhere else. A `GET` or `HEAD` is repeated as reads are, anything else only when it was not sent or
    /// the service says that the same request may be sent again.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::RequestOptions;
    ///
    /// let page = client.api().request(http::Method::GET, "/sandboxes", RequestOptions::new().query("limit", 5)).await?;
    /// assert_eq!(page["type"], "sandbox.list");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](ErrorKind::InvalidInput) before anything is sent: another origin, dot segments, a header that the
    /// client fills in. Else those of any call; an answer that is not JSON, or says `ok: false`, is
    /// [`Unexpected`](ErrorKind::Unexpected).
    pub async fn request(&self, method: Method, path: &str, options: RequestOptions) -> Result<Value> {
        let shared = self.shared();
        shared.check_open()?;
        let mut url = shared.base().join(path)?;
        if !options.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&options.query);
        }
        let mut headers = options.header_map()?;
        let repeat = if matches!(method, Method::GET | Method::HEAD) { Repeat::Safe } else { Repeat::Write };
        let plan = Plan::plain(repeat, self.options_shared(), self.clock().elapsed());
        let context = Context::new(shared.clone(), plan);
        fill_headers(&context, &mut headers)?;
        let mut request = reqwest::Request::new(method, url);
        *request.headers_mut() = headers;
        match options.json {
            Some(Ok(body)) => *request.body_mut() = Some(body.into()),
            Some(Err(problem)) => return Err(Error::invalid_input("json", problem)),
            None => {}
        }
        let response = run(&context, request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let delivery = context.tries().unusable(repeat);
        let unexpected = |error: Error| {
            error
                .with_status(status.as_u16())
                .with_request_id(crate::error::envelope::request_id(&headers))
                .with_delivery(delivery)
                .with_attempts(context.attempts())
        };
        // Read whole by `run`, so this neither waits nor fails.
        let body = response.bytes().await.map_err(|error| {
            let message = "the answer cannot be read";
            unexpected(
                Error::new(ErrorKind::Unexpected, "unexpected_response", message)
                    .with_source(error.without_url()),
            )
        })?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        let value: Value = serde_json::from_slice(&body).map_err(|error| {
            let message = "the answer is not JSON";
            unexpected(Error::new(ErrorKind::Unexpected, "unexpected_response", message).with_source(error))
        })?;
        if value.get("ok").and_then(Value::as_bool) == Some(false) {
            let error = denied_success(status, &headers, &shared.key().redact(body));
            return Err(error.with_delivery(delivery).with_attempts(context.attempts()));
        }
        Ok(value)
    }
}
