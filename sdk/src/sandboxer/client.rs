//! The client.

use super::Api;
use crate::{call::CallOptions, config::Builder, error::Result, transport::Shared};
use std::sync::Arc;

/// A client of the Sandboxer service; cheap to clone, all clones share one pool of connections.
///
/// ```no_run
/// use sandboxer::AsyncSandboxer;
///
/// # async fn run() -> sandboxer::Result<()> {
/// let client = AsyncSandboxer::from_env()?; // SANDBOXER_API_KEY and friends
/// let me = client.api().request(http::Method::GET, "/me", Default::default()).await?;
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
    #[must_use]
    pub fn with(&self, options: CallOptions) -> Self {
        Self { api: self.api.with(options) }
    }

    /// The low-level client: one method an operation, and [`request`](Api::request) for everything else.
    pub fn api(&self) -> &Api {
        &self.api
    }
}
