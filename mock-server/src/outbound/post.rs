//! One POST, bounded in time and in what is read of the answer.

use std::{
    fmt, io,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::HeaderMap;
use reqwest::{
    Client,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect,
};
use sandboxer::clock::SharedClock;
use url::Url;

use super::addresses;

/// How much of an answer is read.
const ANSWER_BYTES: usize = 4096;

/// What came of a POST that was answered.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The beginning of the body, if it was asked for.
    pub(crate) text: String,
}

/// Sends requests to addresses that were checked, and judges names once more by what they resolve to.
pub(crate) struct Sender {
    clock: SharedClock,
    loopback: bool,
    client: OnceLock<Result<Client, String>>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("loopback", &self.loopback).finish_non_exhaustive()
    }
}

impl Sender {
    /// One that sends to addresses of this machine only if that is allowed.
    pub(crate) fn new(clock: SharedClock, loopback: bool) -> Self {
        Self { clock, loopback, client: OnceLock::new() }
    }

    /// Whether addresses of this machine will do.
    pub(crate) fn loopback(&self) -> bool {
        self.loopback
    }

    /// Sends a body and waits for the answer, whatever it is. Says in one line why there was none; the line never holds
    /// the address, which may be a secret.
    pub(crate) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
        limit: Duration,
        with_text: bool,
    ) -> Result<Posted, String> {
        let client = self.client.get_or_init(|| client(self.loopback)).as_ref().map_err(Clone::clone)?;
        let exchange = async {
            let sent = client.post(url.clone()).headers(headers).body(body).send().await;
            let mut response = sent.map_err(|error| why(&error))?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let mut text = Vec::new();
            while with_text && text.len() < ANSWER_BYTES {
                // Half an answer is as good as a whole one: it is only shown.
                let Ok(Some(more)) = response.chunk().await else { break };
                text.extend_from_slice(&more);
            }
            text.truncate(ANSWER_BYTES);
            Ok(Posted { status, headers, text: String::from_utf8_lossy(&text).into_owned() })
        };
        tokio::select! {
            answered = exchange => answered,
            () = self.clock.sleep(limit) => Err(format!("no answer within {} s", limit.as_secs())),
        }
    }
}

fn client(loopback: bool) -> Result<Client, String> {
    let builder = || {
        Client::builder()
            .user_agent(concat!("sandboxer-mock-server/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .pool_max_idle_per_host(0)
            .dns_resolver(Arc::new(CheckedNames { loopback }))
    };
    // Without any certificates on this machine only plain addresses of its own can be reached, and those must.
    builder().build().or_else(|_| builder().tls_certs_only([]).build()).map_err(|error| why(&error))
}

/// Resolves names to those of their addresses that may be sent to.
struct CheckedNames {
    loopback: bool,
}

impl Resolve for CheckedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let loopback = self.loopback;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let any = !found.is_empty();
            let fit: Vec<SocketAddr> = found
                .into_iter()
                .filter(|address| addresses::may_resolve_to(name.as_str(), address.ip(), loopback))
                .collect();
            if any && fit.is_empty() {
                return Err(io::Error::other("the name resolves to addresses that are not public").into());
            }
            Ok(Box::new(fit.into_iter()) as Addrs)
        })
    }
}

/// The innermost cause: what went wrong, without the URL.
fn why(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = match std::ptr::addr_eq(cause, error) {
        true => "the request could not be sent".to_owned(),
        false => cause.to_string(),
    };
    text.lines().next().unwrap_or_default().to_owned()
}
