//! Waiting for what a sandbox is busy with: an agent's turn, its setup script, a stop, a deletion.

use std::time::Duration;

use sandboxer::{Result, models::DeletionOperation};

use crate::{Sandbox, Sandboxer};

impl Sandbox {
    /// Waits until no agent is at work in it: its state is `ready` or `idle`.
    ///
    /// # Errors
    ///
    /// As [`wait_for_state`](Self::wait_for_state), for at most `limit`: the view's total limit if one is set, else 10
    /// minutes, if `None`.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use std::time::Duration;
    ///
    /// sandbox.wait_until_idle(Some(Duration::from_secs(60)))?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn wait_until_idle(&self, limit: Option<Duration>) -> Result<()> {
        self.call(|sandbox| async move { sandbox.wait_until_idle(limit).await })
    }

    /// Waits until its setup script has ended well; without a script there is nothing to wait for. It is looked at every
    /// 2 s, for at most `limit`: the view's total limit if one is set, else 10 minutes, if `None`.
    ///
    /// # Errors
    ///
    /// [`SandboxState`](crate::ErrorKind::SandboxState) with the code `setup_failed` when the script failed, with its exit code
    /// and the end of what it wrote, or with `sandbox_<state>` when the sandbox failed, was cancelled or was stopped
    /// before the script had ended; [`WaitTimeout`](crate::ErrorKind::WaitTimeout) at the limit; whatever reading the sandbox
    /// failed with.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::Create;
    ///
    /// let sandbox = client.create(Create::new().setup_script("echo ready > done"))?;
    /// sandbox.wait_for_setup(None)?;
    /// assert_eq!(sandbox.files().read("done")?, "ready\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn wait_for_setup(&self, limit: Option<Duration>) -> Result<()> {
        self.call(|sandbox| async move { sandbox.wait_for_setup(limit).await })
    }

    /// Waits until a stop of it has saved the disk. `stop_id` is the `id` of the stop in
    /// [`info`](Self::info)`.stop`, as a stop that was told not to wait leaves it there; what other stops do does not
    /// count. It is looked at every 2 s, for at most `limit`: the view's total limit if one is set, else 10 minutes, if
    /// `None`.
    ///
    /// # Errors
    ///
    /// [`SandboxState`](crate::ErrorKind::SandboxState) with the code `stop_failing` when the disk cannot be saved, with the
    /// reason, or `stop_superseded` when the sandbox was resumed meanwhile; [`NotFound`](crate::ErrorKind::NotFound) when it has
    /// no such stop; [`WaitTimeout`](crate::ErrorKind::WaitTimeout) at the limit; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Stop;
    ///
    /// sandbox.stop_with(Stop::new().wait(false))?;
    /// let stop = sandbox.info().and_then(|info| info.stop.clone()).expect("it was told of");
    /// sandbox.wait_for_stop(&stop.id, None)?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn wait_for_stop(&self, stop_id: &str, limit: Option<Duration>) -> Result<()> {
        let stop_id = stop_id.to_owned();
        self.call(|sandbox| async move { sandbox.wait_for_stop(&stop_id, limit).await })
    }
}

impl Sandboxer {
    /// Waits until a deletion is done: the operation has completed, or what it deletes is a sandbox and cannot be found
    /// any more. It is looked at every 2 s, for at most `limit`: the view's total limit if one is set, else 10 minutes,
    /// if `None`.
    ///
    /// Answers with the operation as last read: its `status` tells whether the purge is over at the service too.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is no such operation of this account;
    /// [`WaitTimeout`](crate::ErrorKind::WaitTimeout) at the limit; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let operation = sandbox.delete()?.expect("it was there");
    /// let done = client.wait_for_deletion(&operation.id, None)?;
    /// assert_eq!(done.target_id, sandbox.id());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn wait_for_deletion(
        &self,
        operation_id: &str,
        limit: Option<Duration>,
    ) -> Result<DeletionOperation> {
        let operation_id = operation_id.to_owned();
        self.call(|client| async move { client.wait_for_deletion(&operation_id, limit).await })
    }
}
