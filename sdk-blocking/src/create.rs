//! Making sandboxes.

use sandboxer::{Create, Result};

use crate::{Sandbox, Sandboxer};

impl Sandboxer {
    /// Makes a sandbox and waits until it is ready unless told not to.
    ///
    /// All tries carry one `Idempotency-Key`, so a lost answer never makes a second sandbox. If the name cannot be set or
    /// the wait fails, the error carries the [id](crate::Error::sandbox_id) of the sandbox, which stays.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an option out of its limits, before anything is sent;
    /// [`RateLimited`](crate::ErrorKind::RateLimited), [`PaymentRequired`](crate::ErrorKind::PaymentRequired) and the
    /// other refusals of the service; [`SandboxState`](crate::ErrorKind::SandboxState) when it failed or got no machine;
    /// [`WaitTimeout`](crate::ErrorKind::WaitTimeout) after 5 minutes or the option's own limit, or when a total limit of
    /// the client or view is used up, which covers the call and the waits together. Where the setup script was to be
    /// waited for ([`wait_for_setup`](Create::wait_for_setup)) and failed, [`SandboxState`](crate::ErrorKind::SandboxState)
    /// with the code `setup_failed`; the message and `setupError` in the details hold its exit code and the end of what it
    /// wrote.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::Create;
    /// use std::time::Duration;
    ///
    /// let sandbox = client.create(Create::new().kind("small").ttl(Duration::from_secs(1800)).env("CI", "1"))?;
    /// assert_eq!(sandbox.exec("echo $CI")?.stdout_text(), "1\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn create(&self, options: Create) -> Result<Sandbox> {
        let sandbox = self.call(|client| async move { client.create(options).await })?;
        Ok(self.handle(sandbox))
    }
}
