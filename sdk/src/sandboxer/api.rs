//! The low-level client. Its methods, one an operation, are generated.

use crate::{
    call::{CallOptions, fit_command_limit},
    clock::SharedClock,
    error::Result,
    generated::{dialects::Dialect, operations::Operation},
    transport::{Call, Shared, Tries, explicit_total},
};
use std::{fmt, sync::Arc, time::Duration};

/// The service's API, one method an operation: ids in the path are arguments, everything else is one request value.
///
/// Arguments are checked before anything is sent, failed tries are repeated by the operation's repeat class, and time limits
/// follow the client's or the view's [`CallOptions`]. Cheap to clone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// use sandboxer::{Dialect, models::UsageParams};
///
/// let api = client.api();
/// assert_eq!((api.base_url(), api.dialect()), (server.url().as_str(), Dialect::Sandboxer));
/// let usage = api.usage(sandbox.id(), UsageParams::new()).await?;
/// assert!(usage.running);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Api {
    shared: Arc<Shared>,
    options: Arc<CallOptions>,
    tries: Option<Tries>,
}

impl Api {
    pub(crate) fn new(shared: Arc<Shared>, options: CallOptions) -> Self {
        Self { shared, options: Arc::new(options), tries: None }
    }

    /// A view whose calls follow `options`, with the same connections. See [`CallOptions`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::CallOptions;
    ///
    /// let once = client.api().with(CallOptions::new().retries(0));
    /// assert!(once.me().await?.ok);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with(&self, options: CallOptions) -> Self {
        Self::new(self.shared.clone(), options.over(&self.options))
    }

    /// The base URL, without a trailing slash.
    pub fn base_url(&self) -> &str {
        self.shared.base().as_str()
    }

    /// Which service is spoken to.
    pub fn dialect(&self) -> Dialect {
        self.shared.dialect()
    }

    /// Begins the call of a generated method.
    pub(crate) fn begin(&self, operation: Operation, path_ids: &[(&'static str, &str)]) -> Result<Call> {
        let tries = self.tries.clone().unwrap_or_default();
        Call::begin(&self.shared, &self.options, tries, operation, path_ids)
    }

    /// The same for a single call, whose tries are noted in `tries`.
    pub(crate) fn noting(&self, tries: &Tries) -> Self {
        Self { tries: Some(tries.clone()), ..self.clone() }
    }

    /// What all views share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// What this view's calls follow.
    pub(crate) fn options(&self) -> &CallOptions {
        &self.options
    }

    pub(crate) fn options_shared(&self) -> Arc<CallOptions> {
        self.options.clone()
    }

    /// The client's clock.
    pub(crate) fn clock(&self) -> &SharedClock {
        self.shared.clock()
    }

    /// The command limit to send, in seconds, when the caller asked for `wanted`: rounded up to a whole second, lowered to
    /// what fits into this view's total limit, refused under 1 s and over 600 s.
    pub(crate) fn fit_command_limit(&self, wanted: Option<Duration>) -> Result<u32> {
        fit_command_limit(wanted, explicit_total(&self.options))
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("base_url", &self.base_url())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
