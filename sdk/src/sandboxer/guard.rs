//! A sandbox that ends with the value that holds it.

use std::{fmt, ops::Deref};

use super::{
    AsyncSandboxer,
    options::{Create, Stop},
    reaper::{Guard, Target},
    sandbox::AsyncSandbox,
};
use crate::{
    call::CallOptions,
    error::{ErrorKind, Result},
};

/// What becomes of a sandbox when its guard ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnExit {
    /// It is stopped and can be resumed; nobody waits until its disk is saved.
    Stop,
    /// It is deleted for good.
    #[default]
    Delete,
}

/// A sandbox that is stopped or deleted when this is dropped: at the end of its scope, with an early return, a panic, or
/// a future that is dropped half-way. It comes from [`AsyncSandboxer::guard`] or [`AsyncSandbox::on_exit`].
///
/// Dropping hands the clean-up to the client, which does it in the background; [`close`](AsyncSandboxer::close) waits for
/// that, and it is lost when the Tokio runtime shuts down first. [`finish`](Self::finish) does it at once and tells how it
/// went; [`keep`](Self::keep) calls it off.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// use sandboxer::{Create, ErrorKind};
///
/// let id = {
///     let guard = client.guard(Create::new()).await?;
///     guard.exec("echo hi").await?.check()?; // it is used like its sandbox
///     guard.sandbox().id().to_owned()
/// };
/// client.close().await; // waits for the clean-up
/// # let client = server.client();
/// assert_eq!(client.get(&id).await.unwrap_err().kind(), ErrorKind::NotFound);
/// # Ok(()) }
/// ```
#[must_use = "the sandbox ends when its guard is dropped"]
pub struct AsyncGuard {
    sandbox: AsyncSandbox,
    on_exit: OnExit,
    owed: Guard,
}

impl AsyncGuard {
    fn new(sandbox: AsyncSandbox, on_exit: OnExit, owed: Guard) -> Self {
        let mut guard = Self { sandbox, on_exit, owed };
        guard.set_on_exit(on_exit);
        guard
    }

    /// The sandbox. A clone of it does not hold off the end.
    pub fn sandbox(&self) -> &AsyncSandbox {
        &self.sandbox
    }

    /// Sets what becomes of the sandbox.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::{Create, OnExit};
    ///
    /// let mut guard = client.guard(Create::new()).await?;
    /// guard.set_on_exit(OnExit::Stop); // it has something worth keeping now
    /// guard.finish().await?;
    /// # Ok(()) }
    /// ```
    pub fn set_on_exit(&mut self, on_exit: OnExit) {
        self.on_exit = on_exit;
        let id = self.sandbox.id().to_owned();
        self.owed.arm(match on_exit {
            OnExit::Stop => Target::Stop(id),
            OnExit::Delete => Target::Sandbox(id),
        });
    }

    /// Calls the clean-up off and gives the sandbox back, which lives on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::Create;
    ///
    /// let guard = client.guard(Create::new()).await?;
    /// let sandbox = guard.keep();
    /// assert!(sandbox.exec("true").await?.success());
    /// # Ok(()) }
    /// ```
    pub fn keep(mut self) -> AsyncSandbox {
        self.owed.disarm();
        self.sandbox.clone()
    }

    /// Stops or deletes the sandbox now. A stop is not waited for; one that is stopped or gone already is fine.
    ///
    /// # Errors
    ///
    /// The failures of any call; the client then tries again in the background, as if this had been dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::Create;
    ///
    /// let guard = client.guard(Create::new()).await?;
    /// guard.exec("true").await?.check()?;
    /// guard.finish().await?;
    /// assert!(client.list(Default::default()).collect().await?.is_empty());
    /// # Ok(()) }
    /// ```
    pub async fn finish(mut self) -> Result<()> {
        match self.on_exit {
            OnExit::Stop => self.sandbox.stop_now().await?,
            OnExit::Delete => drop(self.sandbox.delete().await?),
        }
        self.owed.disarm();
        Ok(())
    }

    /// The same guard, whose own clean-up follows `options`. For the blocking client.
    #[doc(hidden)]
    pub fn hurried(mut self, options: CallOptions) -> Self {
        self.sandbox = self.sandbox.with(options);
        self
    }
}

impl Deref for AsyncGuard {
    type Target = AsyncSandbox;

    fn deref(&self) -> &AsyncSandbox {
        &self.sandbox
    }
}

impl fmt::Debug for AsyncGuard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AsyncGuard")
            .field("sandbox", &self.sandbox)
            .field("on_exit", &self.on_exit)
            .finish_non_exhaustive()
    }
}

impl AsyncSandboxer {
    /// Makes a sandbox that is deleted when the guard is dropped, and waits until it is ready unless told not to.
    ///
    /// It is owed to the clean-up from the first moment on: when this fails, or its future is dropped, nothing is left
    /// behind.
    ///
    /// # Errors
    ///
    /// Those of [`create`](Self::create).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::Create;
    ///
    /// let guard = client.guard(Create::new().name("demo")).await?;
    /// assert_eq!(guard.exec("echo hi").await?.stdout_text(), "hi\n");
    /// # Ok(()) }
    /// ```
    pub async fn guard(&self, options: Create) -> Result<AsyncGuard> {
        let (sandbox, owed) = self.create_guarded(options).await?;
        Ok(AsyncGuard::new(sandbox, OnExit::Delete, owed))
    }
}

impl AsyncSandbox {
    /// A guard that stops or deletes it when dropped. Several guards of one sandbox do not know of each other: the first
    /// one dropped ends it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::OnExit;
    ///
    /// let guard = sandbox.on_exit(OnExit::Stop);
    /// guard.exec("true").await?.check()?;
    /// guard.finish().await?;
    /// # Ok(()) }
    /// ```
    pub fn on_exit(&self, on_exit: OnExit) -> AsyncGuard {
        AsyncGuard::new(self.clone(), on_exit, Guard::new(self.api()))
    }

    /// Has it stopped without waiting for it; one that is stopped or gone is fine.
    pub(super) async fn stop_now(&self) -> Result<()> {
        match self.stop_with(Stop::new().wait(false)).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}
