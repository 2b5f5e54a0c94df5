//! Calls against a scripted server: what is sent, how often, and what becomes of the answer.

mod answers;
mod dialects;
mod http2;
mod limits;
mod peer;
mod privacy;
mod proxies;
mod repeats;
mod streams;

use crate::{AsyncSandboxer, Builder, Error, RequestOptions};
use http::Method;
use serde_json::Value;

const KEY: &str = "sbx_live_very_secret";

fn builder(base_url: &str) -> Builder {
    AsyncSandboxer::builder().ignore_env().no_proxy().api_key(KEY).base_url(base_url)
}

fn client(base_url: &str) -> AsyncSandboxer {
    builder(base_url).build().unwrap()
}

async fn get(client: &AsyncSandboxer) -> Result<Value, Error> {
    client.api().request(Method::GET, "/me", RequestOptions::new()).await
}

async fn post(client: &AsyncSandboxer) -> Result<Value, Error> {
    let body = RequestOptions::new().json(serde_json::json!({"a": 1}));
    client.api().request(Method::POST, "/things", body).await
}
