//! The client.

use super::Api;
use crate::{call::CallOptions, config::Builder, error::Result, transport::Shared};
use std::sync::Arc;

/// A client of the Sandboxer service; cheap to clone, all clones share one pool of connections.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let (url, key) = (server.url(), server.api_key());
/// use sandboxer::{AsyncSandboxer, Create};
///
/// let client = AsyncSandboxer::builder().api_key(key).base_url(url).build()?; // or `from_env`
/// let sandbox = client.create(Create::new()).await?;
/// println!("{}", sandbox.exec("uname -a").await?.check()?.stdout_text());
/// sandbox.delete().await?;
/// let limits = client.api().limits(Default::default()).await?; // one method an operation
/// let saved = client.named_snapshots(); // and more handles of this kind
/// # let _ = (limits, saved);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct AsyncSandboxer {
    api: Api,
}

impl AsyncSandboxer {
    /// A client with everything from the environment; see [`Builder`] for the variables. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Config`](crate::ErrorKind::Config): no key, a bad base URL, no trusted certificates.
    ///
    /// ```no_run
    /// use sandboxer::AsyncSandboxer;
    ///
    /// let client = AsyncSandboxer::from_env()?; // SANDBOXER_API_KEY and friends
    /// # Ok::<(), sandboxer::Error>(())
    /// ```
    pub fn from_env() -> Result<Self> {
        Self::builder().build()
    }

    /// Starts a client with settings of its own.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn from_parts(shared: Arc<Shared>, options: CallOptions) -> Self {
        Self { api: Api::new(shared, options) }
    }

    /// A view whose calls follow `options`, with the same connections. See [`CallOptions`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::CallOptions;
    /// use std::time::Duration;
    ///
    /// let quick = client.with(CallOptions::new().total(Duration::from_secs(5)).retries(0));
    /// quick.me().await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with(&self, options: CallOptions) -> Self {
        Self { api: self.api.with(options) }
    }

    /// The low-level client: one method an operation, and [`request`](Api::request) for everything else.
    pub fn api(&self) -> &Api {
        &self.api
    }
}
