//! A sandbox for as long as a piece of work takes.

use std::{future::Future, panic::AssertUnwindSafe};

use futures_util::FutureExt as _;

use super::{AsyncSandboxer, options::Create, reaper, sandbox::AsyncSandbox};
use crate::error::Result;

impl AsyncSandboxer {
    /// Makes a sandbox, does `body` with it and deletes it, whatever happens: `body` succeeds, fails or panics, or the
    /// returned future is dropped at any moment.
    ///
    /// After success, an error or a panic it is deleted before this returns (or the panic goes on). When the future is
    /// dropped, or deleting fails for the moment, the client does it in the background; [`close`](Self::close) waits for
    /// that. Work in the background is lost when the Tokio runtime shuts down first.
    ///
    /// # Errors
    ///
    /// Those of [`create`](Self::create), and then nothing was left behind either. Those of `body`; an error of the
    /// clean-up never hides them. After a success, that of deleting. A body with an error type of its own can return it
    /// inside its value, as `Ok(Err(error))`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::Create;
    ///
    /// let output = client.scoped(Create::new(), |sandbox| async move { sandbox.exec("echo hi").await?.check() }).await?;
    /// assert_eq!(output.stdout_text(), "hi\n");
    /// assert!(client.list(Default::default()).collect().await?.is_empty());
    /// # Ok(()) }
    /// ```
    pub async fn scoped<T, F, Fut>(&self, options: Create, body: F) -> Result<T>
    where
        F: FnOnce(AsyncSandbox) -> Fut,
        Fut: Future<Output = Result<T>>,
    {
        let (sandbox, mut guard) = self.create_guarded(options).await?;
        let inside = sandbox.clone();
        let done = AssertUnwindSafe(async { body(inside).await }).catch_unwind().await;
        let deleted = sandbox.delete().await;
        if deleted.is_ok() {
            guard.disarm();
        }
        // Still armed, the guard hands the sandbox to the background, which tries again.
        drop(guard);
        match done {
            Ok(Ok(value)) => deleted.map(|_| value),
            Ok(Err(error)) => Err(error),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Finishes the clean-ups that run in the background, then refuses further calls of this client, its clones and
    /// views. Sandboxes that are not owed to a clean-up live on.
    ///
    /// Clean-ups come from [`scoped`](Self::scoped), and from a [`create`](Self::create) or
    /// [`fork`](AsyncSandbox::fork) that was dropped half-way. With a service that does not
    /// answer each takes up to ten minutes; race this against a timer of your own to give up earlier.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::ErrorKind;
    ///
    /// client.close().await;
    /// assert_eq!(client.me().await.unwrap_err().kind(), ErrorKind::Closed);
    /// # Ok(()) }
    /// ```
    pub async fn close(&self) {
        reaper::drain(self.api().shared()).await;
        self.api().shared().close();
    }

    /// Whether it was [closed](Self::close), by this client, a clone or a view.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// assert!(!client.is_closed());
    /// client.close().await;
    /// assert!(client.is_closed());
    /// # Ok(()) }
    /// ```
    pub fn is_closed(&self) -> bool {
        self.api().shared().check_open().is_err()
    }
}
