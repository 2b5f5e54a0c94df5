//! The low-level client. Its methods, one an operation, are generated.

use std::future::Future;

use http::Method;
use sandboxer::{ByteBody, CallOptions, Dialect, RequestOptions, Result};
use serde_json::Value;

use crate::{ByteIter, driver::Driver};

/// The service's API, one method an operation: ids in the path are arguments, everything else is one request value.
///
/// Arguments are checked before anything is sent, failed tries are repeated by the operation's repeat class, and time limits
/// follow the client's or the view's [`CallOptions`]. Cheap to clone.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// use sandboxer_blocking::{Dialect, models::UsageParams};
///
/// let api = client.api();
/// assert_eq!((api.base_url(), api.dialect()), (server.url().as_str(), Dialect::Sandboxer));
/// let usage = api.usage(sandbox.id(), UsageParams::new())?;
/// assert!(usage.running);
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Api {
    pub(crate) inner: sandboxer::Api,
    pub(crate) driver: Driver,
}

impl Api {
    /// A view whose calls follow `options`, with the same connections. See [`CallOptions`].
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::CallOptions;
    ///
    /// let once = client.api().with(CallOptions::new().retries(0));
    /// assert!(once.me()?.ok);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    #[must_use]
    pub fn with(&self, options: CallOptions) -> Self {
        Self { inner: self.inner.with(options), driver: self.driver.clone() }
    }

    /// The base URL, without a trailing slash.
    pub fn base_url(&self) -> &str {
        self.inner.base_url()
    }

    /// Which service is spoken to.
    pub fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    /// Sends a request that has no method of its own and answers its JSON, `Null` for an empty answer.
    ///
    /// `path` is relative to the base URL (`/me`, `sandboxes?limit=5`), or an absolute URL of the same scheme, host and port;
    /// the key is sent nowhere else. A `GET` or `HEAD` is repeated as reads are, anything else only when it was not sent or
    /// the service says that the same request may be sent again.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::{RequestOptions, http::Method};
    ///
    /// let page = client.api().request(Method::GET, "/sandboxes", RequestOptions::new().query("limit", 5))?;
    /// assert_eq!(page["sandboxes"], serde_json::json!([]));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent: another origin, dot segments, a header that
    /// the client fills in. Else those of any call; an answer that is not JSON, or says `ok: false`, is
    /// [`Unexpected`](crate::ErrorKind::Unexpected).
    pub fn request(&self, method: Method, path: &str, options: RequestOptions) -> Result<Value> {
        let (api, path) = (self.inner.clone(), path.to_owned());
        self.call(async move { api.request(method, &path, options).await })
    }

    /// Waits for a call.
    pub(crate) fn call<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.driver.run(work)
    }

    /// Waits for the beginning of a streamed answer.
    pub(crate) fn stream<F>(&self, work: F) -> Result<ByteIter>
    where
        F: Future<Output = Result<ByteBody>> + Send + 'static,
    {
        Ok(ByteIter::new(self.driver.clone(), self.driver.run(work)?))
    }
}
