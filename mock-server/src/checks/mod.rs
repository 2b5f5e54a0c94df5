//! Holds what this server answers against the API document, for the suites of this repository: whatever differs makes the
//! server fail when it ends. Scripted replies are not looked at.
//!
//! Only where debug assertions are on, so that no measurement pays for it.

mod document;
mod frames;
mod headers;
mod overlay;
mod seen;
pub mod translate;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::body::Body;
use bytes::Bytes;
use http::{Response, header, request};
use http_body_util::BodyExt as _;
use sandboxer::Operation;
use serde_json::Value;

use self::document::{Document, Rules};
use crate::router;

/// How many differences are kept; after so many, more say nothing.
const KEPT: usize = 50;

/// What differed so far. Cloning gives another handle to the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Differences(Arc<Mutex<BTreeSet<String>>>);

impl Differences {
    /// An empty list; reads the document, so that no answer waits for that.
    pub(crate) fn new() -> Self {
        if cfg!(debug_assertions) {
            let _ = Document::shared();
        }
        Self::default()
    }

    /// Fails, unless that happens already, when anything differed.
    #[expect(clippy::panic, reason = "a suite with wrong answers has to fail, and only suites have this")]
    pub(crate) fn judge(&self) {
        let all = std::mem::take(&mut *self.lock());
        if !all.is_empty() && !std::thread::panicking() {
            panic!("answers that are not as documented: {all:#?}");
        }
    }

    pub(crate) fn add(&self, difference: String) {
        tracing::error!(%difference, "an answer is not as documented");
        let mut all = self.lock();
        if all.len() < KEPT {
            all.insert(difference);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks an answer and hands it on, whole; streams are checked as they go by.
    pub(crate) async fn watch(
        &self,
        operation: Option<Operation>,
        head: &request::Parts,
        response: Response<Body>,
    ) -> Response<Body> {
        if !cfg!(debug_assertions) || !head.uri.path().starts_with(router::PREFIX) {
            return response;
        }
        let document = Document::shared();
        let (mut parts, body) = response.into_parts();
        let status = parts.status.as_u16();
        let name = operation.map_or_else(|| "-".to_owned(), |operation| operation.id().to_owned());
        let call = format!("{name} ({} {}): {status}", head.method, head.uri.path());
        let rules = document.rules(operation.map(Operation::id), status);
        let Some(rules) = rules else {
            self.add(format!("{call} is not documented"));
            return Response::from_parts(parts, body);
        };
        for problem in headers::problems(&rules, &parts.headers) {
            self.add(format!("{call}: {problem}"));
        }
        let media = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let media = media.unwrap_or_default().to_owned();
        let Some(schema) = rules.media.get(&media).cloned() else {
            if !(rules.media.is_empty() && media.is_empty()) {
                self.add(format!("{call}: {media:?} is not documented"));
            }
            seen::note(&name, status, None);
            return Response::from_parts(parts, body);
        };
        let body = match media.as_str() {
            "application/json" => {
                let Ok(whole) = body.collect().await.map(|whole| whole.to_bytes()) else {
                    self.add(format!("{call}: the body broke"));
                    return Response::from_parts(parts, Body::empty());
                };
                let id = parts.headers.get("x-request-id").and_then(|id| id.to_str().ok());
                let code = self.json(&call, document, &rules, &schema, &whole, id);
                seen::note(&name, status, code.as_deref());
                // As long as it was, whatever the handler said of it.
                parts.headers.remove(header::CONTENT_LENGTH);
                Body::from(whole)
            }
            "application/x-ndjson" => {
                seen::note(&name, status, None);
                frames::watch(self.clone(), name, call, schema, frames::Kind::Lines, body)
            }
            "text/event-stream" => {
                seen::note(&name, status, None);
                frames::watch(self.clone(), name, call, schema, frames::Kind::Events, body)
            }
            _ => {
                seen::note(&name, status, None);
                body
            }
        };
        Response::from_parts(parts, body)
    }

    /// Checks a JSON body; hands back its code, if it tells of a failure.
    fn json(
        &self,
        call: &str,
        document: &Document,
        rules: &Rules,
        schema: &Value,
        body: &Bytes,
        request_id: Option<&str>,
    ) -> Option<String> {
        let value: Value = match serde_json::from_slice(body) {
            Ok(value) => value,
            Err(error) => {
                self.add(format!("{call}: no JSON: {error}"));
                return None;
            }
        };
        for problem in document.problems(schema, &value) {
            self.add(format!("{call}: {problem} in {}", shortened(&value)));
        }
        if rules.status < 400 {
            return None;
        }
        let is_bare = rules.may_be_bare && value["error"].is_string();
        let code = value[if is_bare { "error" } else { "code" }].as_str().unwrap_or_default().to_owned();
        if let Some(problem) = rules.code_problem(document, &code) {
            self.add(format!("{call}: {problem}"));
        }
        if request_id.is_none() || value["requestId"].as_str() != request_id {
            self.add(format!("{call}: requestId is not what X-Request-Id says"));
        }
        if !is_bare {
            let inner = &value["error"];
            let fields = [(&value["status"], &inner["status"]), (&value["code"], &inner["code"])];
            let agree = fields.iter().all(|(outer, inner)| outer == inner);
            let details = &inner["details"]["retryable"];
            if value["status"] != rules.status || !agree || value["retryable"] != *details {
                self.add(format!("{call}: what stands in the error twice differs: {}", shortened(&value)));
            }
        }
        Some(code)
    }
}

/// A value as text, but not the whole of a long one.
fn shortened(value: &Value) -> String {
    value.to_string().chars().take(600).collect()
}
