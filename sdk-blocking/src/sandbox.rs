//! A sandbox, as a handle: an id, a way to call the service, and what was last heard of it.

use std::{fmt, future::Future, sync::Arc};

use sandboxer::{AsyncSandbox, CallOptions, Result, models};

use crate::{Api, CommandHandle, Files, driver::Driver};

/// A sandbox.
///
/// A handle costs nothing to clone and nothing to drop: the sandbox lives on until it is stopped, deleted or its time is
/// up. Clones and views share one snapshot of what was last heard of it ([`info`](Self::info)).
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// use sandboxer_blocking::Create;
///
/// let sandbox = client.create(Create::new().name("demo"))?;
/// let output = sandbox.exec("echo hello")?.check()?;
/// assert_eq!(output.stdout_text(), "hello\n");
///
/// sandbox.files().write("note", "kept")?;
/// assert_eq!(sandbox.info().unwrap().id, sandbox.id());
/// sandbox.api().stop(sandbox.id(), Default::default())?; // what the verb `stop` calls
/// sandbox.delete()?;
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[derive(Clone)]
pub struct Sandbox {
    pub(crate) inner: AsyncSandbox,
    api: Api,
}

impl Sandbox {
    pub(crate) fn new(driver: Driver, inner: AsyncSandbox) -> Self {
        Self { api: Api { inner: inner.api().clone(), driver }, inner }
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.api.driver
    }

    /// Waits for a verb of the async handle.
    pub(crate) fn call<T, F, Fut>(&self, verb: F) -> Result<T>
    where
        F: FnOnce(AsyncSandbox) -> Fut,
        Fut: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        self.driver().run(verb(self.inner.clone()))
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.inner.id()
    }

    /// What was last heard of it, without asking: from the call that made or found this handle, or the last
    /// [`refresh`](Self::refresh), wait or change through it. `None` if it was never read.
    pub fn info(&self) -> Option<Arc<models::Sandbox>> {
        self.inner.info()
    }

    /// Reads it anew.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when it is gone. One that never got a machine is told of once as
    /// `cancelled` and not found afterwards; this handle remembers, and answers with
    /// [`SandboxState`](crate::ErrorKind::SandboxState) and the code `sandbox_cancelled` from then on.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// assert_eq!(sandbox.refresh()?.id, sandbox.id());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn refresh(&self) -> Result<Arc<models::Sandbox>> {
        self.call(|sandbox| async move { sandbox.refresh().await })
    }

    /// The same sandbox through a view whose calls follow `options`.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::CallOptions;
    /// use std::time::Duration;
    ///
    /// let quick = sandbox.with(CallOptions::new().total(Duration::from_secs(5)).retries(0));
    /// quick.exec("true")?.check()?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    #[must_use]
    pub fn with(&self, options: CallOptions) -> Self {
        Self::new(self.driver().clone(), self.inner.with(options))
    }

    /// Its files.
    pub fn files(&self) -> Files {
        Files::new(self.driver().clone(), self.inner.files())
    }

    /// A handle to a background command of it, by the process id that [`start`](Self::start) was answered with. Nothing
    /// is asked: an unknown process is an error of the first call through the handle.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let command = sandbox.start("echo hi")?;
    /// let same = sandbox.command(command.process_id());
    /// assert_eq!(same.wait()?.stdout_text(), "hi\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn command(&self, process_id: i64) -> CommandHandle {
        CommandHandle::new(self.clone(), self.inner.command(process_id))
    }

    /// The low-level client its calls go through.
    pub fn api(&self) -> &Api {
        &self.api
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.info().map(|info| info.state.to_string());
        formatter
            .debug_struct("Sandbox")
            .field("id", &self.id())
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
