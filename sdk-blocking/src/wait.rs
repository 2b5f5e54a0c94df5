//! Waiting for a sandbox to reach a state.

use std::time::Duration;

use sandboxer::{Result, models::SandboxState};

use crate::Sandbox;

impl Sandbox {
    /// Waits until commands can be run: its state is `ready`, `idle` or `running`.
    ///
    /// # Errors
    ///
    /// As [`wait_for_state`](Self::wait_for_state), with a limit of 5 minutes or the view's total limit.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::Create;
    ///
    /// let sandbox = client.create(Create::new().wait(false))?;
    /// sandbox.wait_until_ready()?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn wait_until_ready(&self) -> Result<()> {
        self.call(|sandbox| async move { sandbox.wait_until_ready().await })
    }

    /// Waits until its state is one of `states`, for at most `limit`: the view's total limit if one is set, else 5
    /// minutes, if `None`. A second look comes after 10 ms, the next after 100 ms; in the
    /// end they are 2 s apart.
    ///
    /// # Errors
    ///
    /// [`WaitTimeout`](crate::ErrorKind::WaitTimeout) at the limit, a look in flight included, with the state last
    /// read in its message and, as `state`, in its details;
    /// [`SandboxState`](crate::ErrorKind::SandboxState) with the code `sandbox_<state>` as soon as it has failed (`error`),
    /// was cancelled for want of a machine (`cancelled`) or is stopped (`archived`) and that is not what is waited for;
    /// whatever reading it failed with.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::{Create, models::SandboxState};
    ///
    /// let sandbox = client.create(Create::new().wait(false))?;
    /// sandbox.wait_for_state(&[SandboxState::Ready], None)?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn wait_for_state(&self, states: &[SandboxState], limit: Option<Duration>) -> Result<()> {
        let states = states.to_vec();
        self.call(|sandbox| async move { sandbox.wait_for_state(&states, limit).await })
    }
}
