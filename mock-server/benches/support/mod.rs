//! What the benchmarks share: a client of a server, and what its calls took.

use std::time::Instant;

use sandboxer_mock_server::MockServer;

/// Asks a server with its own key.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    key: String,
}

impl Client {
    pub(crate) fn of(server: &MockServer) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { http, base: server.url(), key: server.api_key().to_owned() }
    }

    /// A request of the API; the path begins with a slash.
    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = method.parse().expect("a method");
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.key)
    }

    /// What a path answers with.
    pub(crate) async fn text(&self, path: &str) -> String {
        succeeded(self.request("GET", path)).await
    }
}

/// The body of an answer, which has to be a success.
pub(crate) async fn succeeded(request: reqwest::RequestBuilder) -> String {
    let response = request.send().await.expect("an answer");
    assert_eq!(response.status(), 200, "{}", response.url());
    response.text().await.expect("a body")
}

/// How many milliseconds something took.
pub(crate) async fn timed(work: impl Future) -> f64 {
    let begun = Instant::now();
    work.await;
    begun.elapsed().as_secs_f64() * 1000.0
}

/// Milliseconds at the 50th and the 95th percentile.
pub(crate) fn percentiles(mut took: Vec<f64>) -> (f64, f64) {
    took.sort_by(f64::total_cmp);
    let at = |share: usize| took.get(took.len() * share / 100).copied().unwrap_or_default();
    (at(50), at(95))
}
