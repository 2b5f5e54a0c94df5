//! A sandbox that ends with the value that holds it.

use std::{fmt, ops::Deref, time::Duration};

use sandboxer::{AsyncGuard, CallOptions, Create, OnExit, Result};

use crate::{Sandbox, Sandboxer};

/// How long the drop of a guard waits for the clean-up at most.
const PATIENCE: Duration = Duration::from_secs(30);

/// A sandbox that is stopped or deleted when this is dropped: at the end of its scope, with an early return or a panic.
/// It comes from [`Sandboxer::guard`] or [`Sandbox::on_exit`].
///
/// Dropping asks the service for it and waits for its answer, 30 s at most; where that fails, the client tries again in
/// the background: [`close`](Sandboxer::close) waits for that, and it is lost when the client and everything it gave out
/// are dropped first. [`finish`](Self::finish) tells how it went; [`keep`](Self::keep) calls it off.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// use sandboxer_blocking::{Create, ErrorKind};
///
/// let id = {
///     let guard = client.guard(Create::new())?;
///     guard.exec("echo hi")?.check()?; // it is used like its sandbox
///     guard.sandbox().id().to_owned()
/// };
/// assert_eq!(client.get(&id).unwrap_err().kind(), ErrorKind::NotFound);
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[must_use = "the sandbox ends when its guard is dropped"]
pub struct Guard {
    sandbox: Sandbox,
    /// Gone once it has been finished or called off.
    inner: Option<AsyncGuard>,
}

impl Guard {
    fn new(sandbox: Sandbox, inner: AsyncGuard) -> Self {
        Self { sandbox, inner: Some(inner) }
    }

    /// The sandbox. A clone of it does not hold off the end.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Sets what becomes of the sandbox.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::{Create, OnExit};
    ///
    /// let mut guard = client.guard(Create::new())?;
    /// guard.set_on_exit(OnExit::Stop); // it has something worth keeping now
    /// guard.finish()?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn set_on_exit(&mut self, on_exit: OnExit) {
        if let Some(inner) = &mut self.inner {
            inner.set_on_exit(on_exit);
        }
    }

    /// Calls the clean-up off and gives the sandbox back, which lives on.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::Create;
    ///
    /// let sandbox = client.guard(Create::new())?.keep();
    /// assert!(sandbox.exec("true")?.success());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn keep(mut self) -> Sandbox {
        if let Some(inner) = self.inner.take() {
            inner.keep();
        }
        self.sandbox.clone()
    }

    /// Stops or deletes the sandbox now. A stop is not waited for; one that is stopped or gone already is fine.
    ///
    /// # Errors
    ///
    /// The failures of any call; the client then tries again in the background.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::Create;
    ///
    /// let guard = client.guard(Create::new())?;
    /// guard.exec("true")?.check()?;
    /// guard.finish()?;
    /// assert!(client.list(Default::default()).next().is_none());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn finish(mut self) -> Result<()> {
        match self.inner.take() {
            Some(inner) => self.sandbox.driver().run(inner.finish()),
            None => Ok(()),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            let hurried = inner.hurried(CallOptions::new().total(PATIENCE));
            // A failure goes to the background and its log; on the client's own thread all of it does.
            let _ = self.sandbox.driver().run(hurried.finish());
        }
    }
}

impl Deref for Guard {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Guard").field("inner", &self.inner).finish()
    }
}

impl Sandboxer {
    /// Makes a sandbox that is deleted when the guard is dropped, and waits until it is ready unless told not to.
    ///
    /// It is owed to the clean-up from the first moment on: when this fails, nothing is left behind.
    ///
    /// # Errors
    ///
    /// Those of [`create`](Self::create).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::Create;
    ///
    /// let guard = client.guard(Create::new().name("demo"))?;
    /// assert_eq!(guard.exec("echo hi")?.stdout_text(), "hi\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn guard(&self, options: Create) -> Result<Guard> {
        let inner = self.call(|client| async move { client.guard(options).await })?;
        Ok(Guard::new(self.handle(inner.sandbox().clone()), inner))
    }
}

impl Sandbox {
    /// A guard that stops or deletes it when dropped. Several guards of one sandbox do not know of each other: the first
    /// one dropped ends it.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::OnExit;
    ///
    /// let guard = sandbox.on_exit(OnExit::Stop);
    /// guard.exec("true")?.check()?;
    /// guard.finish()?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn on_exit(&self, on_exit: OnExit) -> Guard {
        Guard::new(self.clone(), self.inner.on_exit(on_exit))
    }
}
