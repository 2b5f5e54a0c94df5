//! The client.

use std::future::Future;

use sandboxer::{AsyncSandbox, AsyncSandboxer, CallOptions, Result};

use crate::{Api, Builder, Sandbox, driver::Driver};

/// A client of the Sandboxer service; cheap to clone, all clones share one pool of connections.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let (url, key) = (server.url(), server.api_key());
/// use sandboxer_blocking::{Create, Sandboxer};
///
/// let client = Sandboxer::builder().api_key(key).base_url(url).build()?; // or `from_env`
/// let sandbox = client.create(Create::new())?;
/// println!("{}", sandbox.exec("uname -a")?.check()?.stdout_text());
/// sandbox.delete()?;
/// let limits = client.api().limits(Default::default())?; // one method an operation
/// let saved = client.named_snapshots(); // and more handles of this kind
/// # let _ = (limits, saved);
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
///
/// It has one thread of its own, started with the first call and shared by its clones, views and everything it gives out;
/// the thread ends when the last of them is dropped. Any thread may call; each call blocks its own thread alone.
#[derive(Clone, Debug)]
pub struct Sandboxer {
    pub(crate) inner: AsyncSandboxer,
    api: Api,
}

impl Sandboxer {
    /// A client with everything from the environment; see [`Builder`] for the variables. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Config`](crate::ErrorKind::Config): no key, a bad base URL, no trusted certificates.
    ///
    /// ```no_run
    /// use sandboxer_blocking::Sandboxer;
    ///
    /// let client = Sandboxer::from_env()?; // SANDBOXER_API_KEY and friends
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn from_env() -> Result<Self> {
        Self::builder().build()
    }

    /// Starts a client with settings of its own.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The blocking face of an async client, with a thread of its own.
    ///
    /// Both share settings, budget of retries and connections. A connection lives on the runtime it was made on, so where
    /// both faces are in use, let the async one's runtime outlive this one.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let client = sandboxer_blocking::Sandboxer::from_async(server.client()); // from the async client
    /// assert!(client.api().me()?.ok);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn from_async(client: AsyncSandboxer) -> Self {
        Self::on(Driver::default(), client)
    }

    fn on(driver: Driver, inner: AsyncSandboxer) -> Self {
        Self { api: Api { inner: inner.api().clone(), driver }, inner }
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.api.driver
    }

    /// Waits for a verb of the async client.
    pub(crate) fn call<T, F, Fut>(&self, verb: F) -> Result<T>
    where
        F: FnOnce(AsyncSandboxer) -> Fut,
        Fut: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        self.driver().run(verb(self.inner.clone()))
    }

    /// The blocking face of a handle, on this client's thread.
    pub(crate) fn handle(&self, sandbox: AsyncSandbox) -> Sandbox {
        Sandbox::new(self.driver().clone(), sandbox)
    }

    /// A view whose calls follow `options`, with the same connections. See [`CallOptions`].
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::CallOptions;
    /// use std::time::Duration;
    ///
    /// let quick = client.with(CallOptions::new().total(Duration::from_secs(5)).retries(0));
    /// quick.me()?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    #[must_use]
    pub fn with(&self, options: CallOptions) -> Self {
        Self::on(self.driver().clone(), self.inner.with(options))
    }

    /// The low-level client: one method an operation, and [`request`](Api::request) for everything else.
    pub fn api(&self) -> &Api {
        &self.api
    }
}
