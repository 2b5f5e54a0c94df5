//! A page for people who look at the server: what there is, what runs, what was asked. It only shows, and changes
//! nothing; it works without its script, which keeps it up to date.
//!
//! Why it is guarded as it is stands in `docs/adr/0009-page.md`.

mod access;
mod data;
mod frame;
mod mask;
mod requests;
mod sandbox;

use std::fmt;

use axum::body::Body;
use http::{HeaderValue, Method, Response, StatusCode, header, request};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use self::access::Shown;
use crate::{app::App, record::Recorder};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Only what this server itself serves, and no form, frame or inline anything.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What the page needs to know beyond the service.
#[derive(Clone)]
pub(crate) struct Page {
    token: String,
    /// The names that may stand for this server besides those of the machine itself.
    hosts: Vec<String>,
    /// The digest of the first key: its account is shown unless another is chosen.
    first_key: String,
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// What somebody wants to see.
#[derive(Clone, Debug, Default)]
struct Wanted {
    account: Option<String>,
    sandbox: Option<String>,
    command: Option<String>,
    path: Option<String>,
}

impl Wanted {
    fn of(head: &request::Parts) -> Self {
        let mut wanted = Self::default();
        for (name, value) in access::parameters(head) {
            let slot = match name.as_str() {
                "account" => &mut wanted.account,
                "sandbox" => &mut wanted.sandbox,
                "command" => &mut wanted.command,
                "path" => &mut wanted.path,
                _ => continue,
            };
            *slot = Some(value).filter(|value| !value.is_empty());
        }
        wanted
    }

    /// The address that shows this.
    fn address(&self) -> String {
        let named = [
            ("account", &self.account),
            ("sandbox", &self.sandbox),
            ("command", &self.command),
            ("path", &self.path),
        ];
        let pairs: Vec<String> = named
            .into_iter()
            .filter_map(|(name, value)| {
                let value = utf8_percent_encode(value.as_deref()?, NON_ALPHANUMERIC);
                Some(format!("{name}={value}"))
            })
            .collect();
        if pairs.is_empty() { "/".to_owned() } else { format!("/?{}", pairs.join("&")) }
    }
}

impl Page {
    /// A page with a new token.
    pub(crate) fn new(hosts: Vec<String>, first_key: String) -> Self {
        let token = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()].map(|id| id.simple().to_string()).concat();
        Self { token, hosts, first_key }
    }

    /// The address that lets a browser in.
    pub(crate) fn url(&self, origin: &str) -> String {
        format!("{origin}/?{}={}", access::TOKEN_QUERY, self.token)
    }

    /// Whether a path belongs to the page.
    pub(crate) fn is_at(path: &str) -> bool {
        matches!(path, "/" | "/page.css" | "/page.js")
    }

    /// Answers a request for the page or its parts.
    pub(crate) async fn answer(
        &self,
        app: &App,
        recorder: &Recorder,
        head: &request::Parts,
    ) -> Response<Body> {
        let mut response = self.respond(app, recorder, head).await;
        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::CACHE_CONTROL, "no-store"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    async fn respond(&self, app: &App, recorder: &Recorder, head: &request::Parts) -> Response<Body> {
        if !access::is_meant(head, &self.hosts) {
            let text = "This server does not go by that name. Use the address that it printed.";
            return html(StatusCode::MISDIRECTED_REQUEST, frame::message("Wrong address", text));
        }
        if head.method != Method::GET && head.method != Method::HEAD {
            let text = "This page can only be looked at.";
            let mut response =
                html(StatusCode::METHOD_NOT_ALLOWED, frame::message("Nothing to do here", text));
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match head.uri.path() {
            "/page.css" => return file("text/css; charset=utf-8", STYLE),
            "/page.js" => return file("text/javascript; charset=utf-8", SCRIPT),
            _ => {}
        }
        let port = app.address.get().map_or(0, |address| address.port());
        let wanted = Wanted::of(head);
        match access::shown(head, &self.token, port) {
            Some(Shown::Cookie) => {}
            // The address in the browser's history must not let anybody in.
            Some(Shown::Query) => return self.enter(&wanted, port),
            None => {
                let text = "Open the address that the server printed when it was started: it ends in ?token= and a \
                            token of this run.";
                return html(StatusCode::UNAUTHORIZED, frame::message("A token is needed", text));
            }
        }
        let shown = match data::gather(app, recorder, &wanted, &self.first_key).await {
            Ok(shown) => shown,
            Err(error) => {
                tracing::error!(code = error.code(), "the page cannot be shown");
                return failed();
            }
        };
        let status = if shown.is_missing() { StatusCode::NOT_FOUND } else { StatusCode::OK };
        // Looking for secrets takes a while, in which calls go on.
        match tokio::task::spawn_blocking(move || frame::page(&shown)).await {
            Ok(markup) => html(status, markup),
            Err(error) => {
                tracing::error!(%error, "the page cannot be shown");
                failed()
            }
        }
    }

    fn enter(&self, wanted: &Wanted, port: u16) -> Response<Body> {
        let mut response = html(StatusCode::SEE_OTHER, frame::message("Come in", "The page is at /."));
        let headers = response.headers_mut();
        if let Ok(cookie) = HeaderValue::try_from(access::cookie(&self.token, port)) {
            headers.insert(header::SET_COOKIE, cookie);
        }
        if let Ok(address) = HeaderValue::try_from(wanted.address()) {
            headers.insert(header::LOCATION, address);
        }
        response
    }
}

fn failed() -> Response<Body> {
    let text = "The server could not read what is to be shown here; its log says why.";
    html(StatusCode::INTERNAL_SERVER_ERROR, frame::message("Something went wrong", text))
}

fn html(status: StatusCode, markup: maud::Markup) -> Response<Body> {
    let mut response = Response::new(Body::from(markup.into_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

fn file(kind: &'static str, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
