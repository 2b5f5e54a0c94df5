//! Waiting for what a sandbox is busy with: an agent's turn, its setup script, a stop, a deletion.

use std::time::Duration;

use super::{
    Api, AsyncSandboxer,
    sandbox::AsyncSandbox,
    wait::{Look, Pace, Verdict, late, poll},
};
use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    models::{DeletionKind, DeletionOperation, DeletionStatus, SandboxState, SetupStatus, StopStatus},
    transport::explicit_total,
};

/// How long these waits take at most unless something else is said.
const LIMIT: Duration = Duration::from_secs(600);

/// The pause between two looks at what takes long.
const PAUSE: Duration = Duration::from_secs(2);

impl AsyncSandbox {
    /// Waits until no agent is at work in it: its state is `ready` or `idle`.
    ///
    /// # Errors
    ///
    /// As [`wait_for_state`](Self::wait_for_state), for at most `limit`: the view's total limit if one is set, else 10
    /// minutes, if `None`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use std::time::Duration;
    ///
    /// sandbox.wait_until_idle(Some(Duration::from_secs(60))).await?;
    /// # Ok(()) }
    /// ```
    pub async fn wait_until_idle(&self, limit: Option<Duration>) -> Result<()> {
        let limit = self.wait_limit(limit, LIMIT);
        self.wait_for_state(&[SandboxState::Ready, SandboxState::Idle], limit).await
    }

    /// Waits until its setup script has ended well; without a script there is nothing to wait for. It is looked at every
    /// 2 s, for at most `limit`: the view's total limit if one is set, else 10 minutes, if `None`.
    ///
    /// # Errors
    ///
    /// [`SandboxState`](ErrorKind::SandboxState) with the code `setup_failed` when the script failed, with its exit code
    /// and the end of what it wrote, or with `sandbox_<state>` when the sandbox failed, was cancelled or was stopped
    /// before the script had ended; [`WaitTimeout`](ErrorKind::WaitTimeout) at the limit; whatever reading the sandbox
    /// failed with.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::Create;
    ///
    /// let sandbox = client.create(Create::new().setup_script("echo ready > done")).await?;
    /// sandbox.wait_for_setup(None).await?;
    /// assert_eq!(sandbox.files().read("done").await?, "ready\n");
    /// # Ok(()) }
    /// ```
    pub async fn wait_for_setup(&self, limit: Option<Duration>) -> Result<()> {
        let limit = self.wait_limit(limit, LIMIT);
        self.watch_at(Pace::steady(PAUSE), limit, "set up", |info, _| {
            match (&info.setup_status, &info.state) {
                (None | Some(SetupStatus::Done), SandboxState::Error | SandboxState::Cancelled) => {
                    Verdict::Failed(self.state_error(info))
                }
                (None | Some(SetupStatus::Done), _) => Verdict::Reached,
                (Some(SetupStatus::Failed), _) => {
                    let reason = info.setup_error.as_deref().unwrap_or("no reason was given");
                    let message = format!("the setup script failed: {reason}");
                    Verdict::Failed(self.refused("setup_failed", message))
                }
                (_, SandboxState::Error | SandboxState::Cancelled | SandboxState::Archived) => {
                    Verdict::Failed(self.state_error(info))
                }
                _ => Verdict::NotYet,
            }
        })
        .await
    }

    /// Waits until a stop of it has saved the disk. `stop_id` is the `id` of the stop in
    /// [`info`](Self::info)`.stop`, as a stop that was told not to wait leaves it there; what other stops do does not
    /// count. It is looked at every 2 s, for at most `limit`: the view's total limit if one is set, else 10 minutes, if
    /// `None`.
    ///
    /// # Errors
    ///
    /// [`SandboxState`](ErrorKind::SandboxState) with the code `stop_failing` when the disk cannot be saved, with the
    /// reason, or `stop_superseded` when the sandbox was resumed meanwhile; [`NotFound`](ErrorKind::NotFound) when it has
    /// no such stop; [`WaitTimeout`](ErrorKind::WaitTimeout) at the limit; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Stop;
    ///
    /// sandbox.stop_with(Stop::new().wait(false)).await?;
    /// let stop = sandbox.info().and_then(|info| info.stop.clone()).expect("it was told of");
    /// sandbox.wait_for_stop(&stop.id, None).await?;
    /// # Ok(()) }
    /// ```
    pub async fn wait_for_stop(&self, stop_id: &str, limit: Option<Duration>) -> Result<()> {
        let limit = self.wait_limit(limit, LIMIT);
        let look = async |_| {
            let stop = self.api().get_stop(self.id(), stop_id).await?.stop;
            let reason = stop.error.as_deref().unwrap_or("no reason was given");
            match stop.status {
                StopStatus::Completed => Ok(Look::Found(())),
                StopStatus::Failing => {
                    Err(self.refused("stop_failing", format!("the disk cannot be saved yet: {reason}")))
                }
                StopStatus::Superseded => {
                    let message = "the sandbox was resumed while it was stopping".to_owned();
                    Err(self.refused("stop_superseded", message))
                }
                status => Ok(Look::NotYet(status.to_string())),
            }
        };
        let expired =
            |state| late("the stop had not ended", limit, state).with_sandbox_id(Some(self.id().to_owned()));
        poll(&**self.api().clock(), Pace::steady(PAUSE), limit, look, expired).await
    }

    /// The error of a thing that cannot happen any more.
    fn refused(&self, code: &'static str, message: String) -> Error {
        let state = self.info().map(|info| serde_json::json!({ "state": info.state.as_str() }));
        Error::new(ErrorKind::SandboxState, code, message)
            .with_details(state)
            .with_delivery(Delivery::Answered)
            .with_sandbox_id(Some(self.id().to_owned()))
    }
}

impl AsyncSandboxer {
    /// Waits until a deletion is done: the operation has completed, or what it deletes is a sandbox and cannot be found
    /// any more. It is looked at every 2 s, for at most `limit`: the view's total limit if one is set, else 10 minutes,
    /// if `None`.
    ///
    /// Answers with the operation as last read: its `status` tells whether the purge is over at the service too.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) when there is no such operation of this account;
    /// [`WaitTimeout`](ErrorKind::WaitTimeout) at the limit; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let operation = sandbox.delete().await?.expect("it was there");
    /// let done = client.wait_for_deletion(&operation.id, None).await?;
    /// assert_eq!(done.target_id, sandbox.id());
    /// # Ok(()) }
    /// ```
    pub async fn wait_for_deletion(
        &self,
        operation_id: &str,
        limit: Option<Duration>,
    ) -> Result<DeletionOperation> {
        let api = self.api();
        let limit = limit_of(api, limit, LIMIT);
        let look = async |_| {
            let operation = api.get_deletion_operation(operation_id).await?.operation;
            let gone = operation.status == DeletionStatus::Completed
                || operation.kind == DeletionKind::Sandbox && is_gone(api, &operation.target_id).await?;
            Ok(if gone { Look::Found(operation) } else { Look::NotYet(operation.status.to_string()) })
        };
        let expired = |state| late("the deletion was not done", limit, state);
        poll(&**api.clock(), Pace::steady(PAUSE), limit, look, expired).await
    }
}

async fn is_gone(api: &Api, sandbox_id: &str) -> Result<bool> {
    match api.get(sandbox_id).await {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// The limit of a wait: what was asked for, else the view's total limit if it is set, else `default`.
pub(super) fn limit_of(api: &Api, asked: Option<Duration>, default: Duration) -> Option<Duration> {
    asked.or_else(|| explicit_total(api.options())).or(Some(default))
}
