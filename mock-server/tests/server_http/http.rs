//! A bare client: requests as they are written, answers as they come.

use std::{future::Future, time::Duration};

use reqwest::{Method, RequestBuilder, StatusCode, header::HeaderMap};
use sandboxer::clock::{Clock as _, SystemClock};
use sandboxer_mock_server::MockServer;
use serde_json::Value;

/// No call here takes longer unless something hangs.
const GUARD: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct Api {
    http: reqwest::Client,
    base: String,
    key: String,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// Checks the envelope and hands the details back.
    #[track_caller]
    pub(crate) fn fails(&self, status: u16, code: &str) -> &Value {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.body);
        let body = &self.body;
        assert_eq!(body["ok"], false);
        assert_eq!(body["type"], "sandbox.error");
        assert_eq!(body["status"], status);
        assert_eq!(body["error"]["code"], code);
        assert_eq!(body["error"]["status"], status);
        assert_eq!(body["error"]["message"], body["message"]);
        let id = body["requestId"].as_str().unwrap();
        assert!(id.starts_with("req_") && id.len() == 36, "{id}");
        assert_eq!(self.headers["x-request-id"], id);
        assert_eq!(body.get("retryable"), body["error"]["details"].get("retryable"));
        &self.body["error"]["details"]
    }

    #[track_caller]
    pub(crate) fn succeeds(self, status: u16, kind: &str) -> Value {
        assert_eq!((self.status, self.body["type"].as_str()), (status, Some(kind)), "{}", self.body);
        assert_eq!(self.body["ok"], true);
        self.body
    }
}

impl Api {
    pub(crate) fn of(server: &MockServer) -> Self {
        Self::with_key(&server.url(), server.api_key())
    }

    pub(crate) fn with_key(base: &str, key: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, base: base.to_owned(), key: key.to_owned() }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.key)
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Answer {
        guarded(async {
            let response = request.send().await.unwrap();
            let (status, headers) = (response.status(), response.headers().clone());
            let bytes = response.bytes().await.unwrap();
            let body = match status {
                StatusCode::NO_CONTENT => Value::Null,
                _ => serde_json::from_slice(&bytes).unwrap_or_else(|_| panic!("no JSON: {bytes:?}")),
            };
            Answer { status: status.as_u16(), headers, body }
        })
        .await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request("GET", path)).await
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Answer {
        self.send(self.request(method, path).json(&body)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, body).await
    }

    /// Creates a sandbox and waits until it is ready.
    pub(crate) async fn sandbox(&self, body: Value) -> String {
        let created = self.post("/sandboxes", body).await.succeeds(202, "sandbox.created");
        let id = created["sandbox"]["id"].as_str().unwrap().to_owned();
        self.wait_for(&id, "ready").await;
        id
    }

    pub(crate) async fn state(&self, id: &str) -> String {
        let answer = self.get(&format!("/sandboxes/{id}")).await;
        answer.body["sandbox"]["state"].as_str().unwrap_or("gone").to_owned()
    }

    pub(crate) async fn wait_for(&self, id: &str, state: &str) {
        until(async || self.state(id).await == state).await;
    }

    pub(crate) async fn exec(&self, id: &str, command: &str) -> Value {
        let body = serde_json::json!({"command": command});
        self.post(&format!("/sandboxes/{id}/commands"), body).await.succeeds(200, "command.finished")
    }

    /// Starts a command in the background.
    pub(crate) async fn start(&self, id: &str, command: &str) -> Value {
        let body = serde_json::json!({"command": command, "detached": true});
        self.post(&format!("/sandboxes/{id}/commands"), body).await.succeeds(200, "command.started")
    }

    pub(crate) async fn delete(&self, id: &str) -> Answer {
        let request = self.request("DELETE", &format!("/sandboxes/{id}"));
        self.send(request.header("X-Sandboxer-Confirm-Delete", id)).await
    }
}

/// Runs into a panic instead of hanging.
pub(crate) async fn guarded<T>(work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        () = SystemClock::new().sleep(GUARD) => panic!("hangs"),
    }
}

/// Asks again until the answer is yes.
pub(crate) async fn until(reached: impl AsyncFn() -> bool) {
    guarded(async {
        while !reached().await {
            SystemClock::new().sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
