//! The one recipe for connections: trusted roots, proxies, resolver, limits. Every client of the suite is built from it.

use crate::{
    call::Limit,
    clock::SharedClock,
    config::base_url::BaseUrl,
    error::{Error, Result},
};
use futures_util::future::{Either, select};
use reqwest::Certificate;
use std::{
    error::Error as StdError,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tower_layer::Layer;
use tower_service::Service;

/// How long making a connection may take unless something else is asked for.
pub(crate) const CONNECT_DEFAULT: Duration = Duration::from_secs(10);

/// How long an unused connection is kept: less than the 60 s after which common servers and balancers close theirs.
const POOL_IDLE: Duration = Duration::from_secs(50);

/// What all clients of one `AsyncSandboxer` have in common.
pub(crate) struct Recipe {
    roots: Vec<Certificate>,
    proxies: bool,
    limit: ConnectLimit,
}

impl Recipe {
    /// Reads the system's roots and those given as PEM texts. Plain http on this machine needs none, so a machine without
    /// any can still talk to a local server.
    pub(crate) fn new(
        base: &BaseUrl,
        connect: Limit,
        proxies: bool,
        clock: SharedClock,
        extra_roots: &[Vec<u8>],
    ) -> Result<Self> {
        let mut roots = Vec::new();
        for pem in extra_roots {
            let read = Certificate::from_pem_bundle(pem).map_err(|error| {
                Error::config("add_root_certificate", "not a PEM text of certificates").with_source(error)
            })?;
            if read.is_empty() {
                return Err(Error::config("add_root_certificate", "the PEM text holds no certificate"));
            }
            roots.extend(read);
        }
        if !base.is_loopback_http() {
            roots.extend(system_roots(roots.is_empty())?);
        }
        // A proxy elsewhere would get to see the key of a request that never needed to leave this machine.
        let proxies = proxies && !base.is_loopback_http();
        Ok(Self { roots, proxies, limit: ConnectLimit { limit: connect.resolve(CONNECT_DEFAULT), clock } })
    }

    /// The client for requests and their streams: HTTP/2 where the server offers it.
    pub(crate) fn rest(&self) -> Result<reqwest::Client> {
        self.finish(reqwest::Client::builder())
    }

    fn finish(&self, mut builder: reqwest::ClientBuilder) -> Result<reqwest::Client> {
        if !self.proxies {
            builder = builder.no_proxy();
        }
        builder
            .tls_certs_only(self.roots.iter().cloned())
            // A redirect would carry the key to wherever the answer points.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            // Repeats are decided in one place, and counted.
            .retry(reqwest::retry::never())
            .connector_layer(self.limit.clone())
            .tcp_nodelay(true)
            .pool_idle_timeout(POOL_IDLE)
            .build()
            .map_err(|error| {
                Error::config("http client", "it could not be built").with_source(error.without_url())
            })
    }
}

/// The roots that the system trusts, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
fn system_roots(needed: bool) -> Result<Vec<Certificate>> {
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<_> = found.certs.iter().filter_map(|der| Certificate::from_der(der).ok()).collect();
    if roots.is_empty() && needed {
        let error = Error::config(
            "trusted certificates",
            "none were found on this system; install its CA certificates, set SSL_CERT_FILE, or use `add_root_certificate`",
        );
        return Err(match found.errors.into_iter().next() {
            Some(cause) => error.with_source(cause),
            None => error,
        });
    }
    Ok(roots)
}

/// Limits the making of each connection, on the client's clock.
#[derive(Clone, Debug)]
struct ConnectLimit {
    limit: Option<Duration>,
    clock: SharedClock,
}

impl<S> Layer<S> for ConnectLimit {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited { inner, limit: self.clone() }
    }
}

/// A connector whose connections must be made within the limit.
#[derive(Clone)]
struct Limited<S> {
    inner: S,
    limit: ConnectLimit,
}

type BoxError = Box<dyn StdError + Send + Sync>;

impl<S, R> Service<R> for Limited<S>
where
    S: Service<R, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let connecting = self.inner.call(target);
        let Some(limit) = self.limit.limit else { return Box::pin(connecting) };
        let sleep = self.limit.clock.sleep(limit);
        Box::pin(async move {
            match select(Box::pin(connecting), sleep).await {
                Either::Left((made, _)) => made,
                Either::Right(((), _)) => Err(ConnectTimedOut(limit).into()),
            }
        })
    }
}

/// No connection within the limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectTimedOut(pub(crate) Duration);

impl fmt::Display for ConnectTimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no connection within {:?}", self.0)
    }
}

impl StdError for ConnectTimedOut {}
