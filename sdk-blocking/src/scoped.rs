//! A sandbox for as long as a piece of work takes.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::mpsc,
};

use sandboxer::{Create, Delivery, Error, ErrorKind, Result};
use tokio::sync::oneshot;

use crate::{Sandbox, Sandboxer};

impl Sandboxer {
    /// Makes a sandbox, does `body` with it and deletes it, whatever happens: `body` succeeds, fails or panics.
    ///
    /// `body` runs on the calling thread. The sandbox is deleted before this returns or the panic goes on. Where deleting
    /// fails for the moment, the client does it in the background; [`close`](Self::close) waits for that, and it is lost
    /// when the client and everything it gave out are dropped first.
    ///
    /// # Errors
    ///
    /// Those of [`create`](Self::create), and then nothing was left behind either. Those of `body`; an error of the
    /// clean-up never hides them. After a success, that of deleting. A body with an error type of its own can return it
    /// inside its value, as `Ok(Err(error))`.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::Create;
    ///
    /// let output = client.scoped(Create::new(), |sandbox| sandbox.exec("echo hi")?.check())?;
    /// assert_eq!(output.stdout_text(), "hi\n");
    /// assert!(client.list(Default::default()).next().is_none());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn scoped<T, F>(&self, options: Create, body: F) -> Result<T>
    where
        F: FnOnce(&Sandbox) -> Result<T>,
    {
        let client = self.inner.clone();
        let (lend, lent) = mpsc::sync_channel(1);
        let (give_back, given_back) = oneshot::channel::<()>();
        let scope = self.driver().start(async move {
            let body = |sandbox| async move {
                let _ = lend.send(sandbox);
                let _ = given_back.await;
                Ok(())
            };
            client.scoped(options, body).await
        })?;
        // Nothing is lent where the sandbox could not be made; the scope says why.
        let done = lent.recv().ok().map(|sandbox| {
            let sandbox = self.handle(sandbox);
            catch_unwind(AssertUnwindSafe(|| body(&sandbox)))
        });
        drop(give_back);
        let ended = scope.wait().and_then(|ended| ended);
        match done {
            Some(Ok(Ok(value))) => ended.map(|()| value),
            Some(Ok(Err(error))) => Err(error),
            Some(Err(panic)) => resume_unwind(panic),
            None => Err(ended.err().unwrap_or_else(never_lent)),
        }
    }

    /// Finishes the clean-ups that run in the background, then refuses further calls of this client, its clones and
    /// views. Sandboxes that are not owed to a clean-up live on.
    ///
    /// Clean-ups come from [`scoped`](Self::scoped). Each takes as long as its calls, a few minutes at the most.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::ErrorKind;
    ///
    /// client.close();
    /// assert_eq!(client.me().unwrap_err().kind(), ErrorKind::Closed);
    /// ```
    pub fn close(&self) {
        let client = self.inner.clone();
        // Where the thread cannot be started nothing was ever sent, so nothing is owed.
        let _ = self.driver().wait(async move { client.close().await });
    }

    /// Whether it was [closed](Self::close), by this client, a clone or a view.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// client.close();
    /// assert!(client.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }
}

/// The scope ended well without having had a sandbox: only if its runtime was taken from under it.
fn never_lent() -> Error {
    let message = "the client's own thread has ended";
    Error::local(ErrorKind::Closed, Delivery::Unknown, "runtime_stopped", message, None)
}
