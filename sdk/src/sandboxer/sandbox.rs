//! A sandbox, as a handle: an id, a way to call the service, and what was last heard of it.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::{Api, files::AsyncFiles, process::AsyncCommand};
use crate::{
    call::CallOptions,
    error::{ErrorKind, Result},
    models::{Sandbox, SandboxState},
};

/// A sandbox.
///
/// A handle costs nothing to clone and nothing to drop: the sandbox lives on until it is stopped, deleted or its time is
/// up. Clones and views share one snapshot of what was last heard of it ([`info`](Self::info)).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// use sandboxer::Create;
///
/// let sandbox = client.create(Create::new().name("demo")).await?;
/// let output = sandbox.exec("echo hello").await?.check()?;
/// assert_eq!(output.stdout_text(), "hello\n");
///
/// sandbox.files().write("note", "kept").await?;
/// let command = sandbox.start("sleep 60").await?;
/// sandbox.command(command.process_id()).kill().await?; // another handle to the same command
/// assert_eq!(sandbox.info().unwrap().id, sandbox.id());
/// sandbox.api().stop(sandbox.id(), Default::default()).await?; // what the verb `stop` calls
/// sandbox.delete().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AsyncSandbox {
    api: Api,
    id: Arc<str>,
    seen: Arc<Mutex<Option<Arc<Sandbox>>>>,
}

impl AsyncSandbox {
    /// A handle whose calls follow `api`, but for its idempotency key, which was another call's.
    pub(crate) fn new(api: &Api, id: &str, info: Option<Sandbox>) -> Self {
        let options = CallOptions { idempotency_key: None, ..api.options().clone() };
        Self {
            api: Api::new(api.shared().clone(), options),
            id: id.into(),
            seen: Arc::new(Mutex::new(info.map(Arc::new))),
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What was last heard of it, without asking: from the call that made or found this handle, or the last
    /// [`refresh`](Self::refresh), wait or change through it. `None` if it was never read.
    pub fn info(&self) -> Option<Arc<Sandbox>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads it anew.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) when it is gone. One that never got a machine is told of once as `cancelled`
    /// and not found afterwards; this handle remembers, and answers with [`SandboxState`](ErrorKind::SandboxState) and
    /// the code `sandbox_cancelled` from then on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::models::SandboxState;
    ///
    /// assert_eq!(sandbox.refresh().await?.state, SandboxState::Ready);
    /// # Ok(()) }
    /// ```
    pub async fn refresh(&self) -> Result<Arc<Sandbox>> {
        match self.api.get(&self.id).await {
            Ok(answer) => Ok(self.remember(answer.sandbox)),
            Err(error) if error.kind() == ErrorKind::NotFound => match self.info() {
                Some(info) if info.state == SandboxState::Cancelled => {
                    Err(self.state_error(&info).with_status(error.status()).with_source(error))
                }
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// The same sandbox through a view whose calls follow `options`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::CallOptions;
    /// use std::time::Duration;
    ///
    /// let quick = sandbox.with(CallOptions::new().total(Duration::from_secs(5)).retries(0));
    /// quick.exec("true").await?.check()?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with(&self, options: CallOptions) -> Self {
        Self { api: self.api.with(options), id: self.id.clone(), seen: self.seen.clone() }
    }

    /// Its files.
    pub fn files(&self) -> AsyncFiles {
        AsyncFiles::new(self.clone())
    }

    /// A handle to a background command of it, by the process id that [`start`](Self::start) was answered with. Nothing
    /// is asked: an unknown process is an error of the first call through the handle.
    pub fn command(&self, process_id: i64) -> AsyncCommand {
        AsyncCommand::new(self.clone(), process_id, None)
    }

    /// The low-level client its calls go through.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The total limit that was set for the client or view, if one was.
    pub(crate) fn explicit_total(&self) -> Option<Duration> {
        crate::transport::explicit_total(self.api.options())
    }

    /// Takes note of what the service said about it.
    pub(crate) fn remember(&self, info: Sandbox) -> Arc<Sandbox> {
        let info = Arc::new(info);
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(info.clone());
        info
    }
}

impl fmt::Debug for AsyncSandbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.info().map(|info| info.state.to_string());
        formatter
            .debug_struct("AsyncSandbox")
            .field("id", &self.id)
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
