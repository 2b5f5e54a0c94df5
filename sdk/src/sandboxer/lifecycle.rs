//! Stopping, bringing back, copying, changing and deleting a sandbox.

use std::{sync::Arc, time::Duration};

use super::{
    allowance::Allowance,
    create::{Birth, Made},
    given,
    options::{Fork, Resume, Stop, Ttl, Update},
    reaper::Target,
    sandbox::AsyncSandbox,
    wait::{READY, RESUME_GRACE, STOP_LIMIT, Verdict},
};
use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    generated::operations::Operation,
    models::{
        DeleteSandboxParams, DeletionOperation, Sandbox, SandboxActionResponse, SandboxState,
        SandboxUsageResponse, StopStatus, UsageParams,
    },
};

impl AsyncSandbox {
    /// Stops it and waits until its disk is saved and it is archived, for at most 10 minutes or the view's total limit.
    /// One that is archived already is fine.
    ///
    /// # Errors
    ///
    /// As [`stop_with`](Self::stop_with).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Resume;
    ///
    /// sandbox.files().write("kept.txt", "still here").await?;
    /// sandbox.stop().await?;
    /// sandbox.resume(Resume::new()).await?;
    /// assert_eq!(sandbox.files().read("kept.txt").await?, "still here");
    /// # Ok(()) }
    /// ```
    pub async fn stop(&self) -> Result<()> {
        self.stop_with(Stop::new()).await
    }

    /// Stops it as `options` say. One that is archived already is fine.
    ///
    /// # Errors
    ///
    /// [`SandboxState`](ErrorKind::SandboxState) with the code `stop_failing` when the disk cannot be saved, with the
    /// reason: the service goes on trying and the sandbox stays up, `force` gives up on saving. The same kind with
    /// `stop_superseded` when it is resumed meanwhile, or `sandbox_error` when it fails.
    /// [`WaitTimeout`](ErrorKind::WaitTimeout) at the limit; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::{Stop, models::SandboxState};
    /// use std::time::Duration;
    ///
    /// sandbox.stop_with(Stop::new().wait_limit(Duration::from_secs(60))).await?;
    /// assert_eq!(sandbox.info().unwrap().state, SandboxState::Archived);
    /// # Ok(()) }
    /// ```
    pub async fn stop_with(&self, options: Stop) -> Result<()> {
        given::wait_limit(options.waiting.limit)?;
        let allowance = Allowance::of(self.api());
        let answer = match self.api().stop(self.id(), options.request).await {
            Ok(answer) => answer,
            Err(error) if error.code() == "stop_failed" => {
                // The service refuses to stop what is stopped; anything else is a failure indeed.
                return match self.within(&allowance).refresh().await?.state {
                    SandboxState::Archived => Ok(()),
                    _ => Err(error),
                };
            }
            Err(error) => return Err(error),
        };
        let stop_id = self.heard(answer).and_then(|info| info.stop.as_ref().map(|stop| stop.id.clone()));
        if !options.waiting.wait {
            return Ok(());
        }
        let keeps_nothing = self.info().is_some_and(|info| info.snapshots == Some(false));
        let rest = self.within(&allowance);
        let limit = rest.wait_limit(options.waiting.limit, STOP_LIMIT);
        let stopped =
            rest.watch(limit, "stopped", |info, _| self.stop_verdict(info, stop_id.as_deref())).await;
        match stopped {
            // A sandbox that keeps no disk may be gone once it has stopped.
            Err(error) if error.kind() == ErrorKind::NotFound && keeps_nothing => Ok(()),
            other => other,
        }
    }

    fn stop_verdict(&self, info: &Sandbox, stop_id: Option<&str>) -> Verdict {
        let failed = |code: &'static str, message: String| {
            Verdict::Failed(
                Error::new(ErrorKind::SandboxState, code, message)
                    .with_details(serde_json::json!({ "state": info.state.as_str() }))
                    .with_delivery(Delivery::Answered)
                    .with_sandbox_id(Some(self.id().to_owned())),
            )
        };
        match info.state {
            SandboxState::Archived => return Verdict::Reached,
            SandboxState::Error | SandboxState::Cancelled => return Verdict::Failed(self.state_error(info)),
            _ => {}
        }
        // Only the stop asked for here counts; without an id the last one is it.
        let Some(stop) = info.stop.as_ref().filter(|stop| stop_id.is_none_or(|id| stop.id == id)) else {
            return Verdict::NotYet;
        };
        let reason = stop.error.as_deref().unwrap_or("no reason was given");
        match stop.status {
            StopStatus::Failing => failed("stop_failing", format!("the disk cannot be saved yet: {reason}")),
            StopStatus::Superseded => {
                failed("stop_superseded", "the sandbox was resumed while it was stopping".to_owned())
            }
            _ => Verdict::NotYet,
        }
    }

    /// Brings it back on a fresh machine with the disk it was stopped with, and waits until it is ready unless told not
    /// to. Background commands do not come back.
    ///
    /// If the connection breaks after the call was sent, the sandbox's state may tell that it had arrived, and then the
    /// wait goes on: it is starting and was last [seen](Self::info) otherwise, or it is up and was last seen stopped. One
    /// that was not seen before, as through a handle by id alone, may have been starting or up all along: then the error of
    /// the call is the answer. It is never sent twice.
    ///
    /// # Errors
    ///
    /// [`Conflict`](ErrorKind::Conflict) with `sandbox_not_ready` when it is up already, `no_snapshot` when its disk is
    /// gone, `type_too_small`; the start's own refusals; [`SandboxState`](ErrorKind::SandboxState) or
    /// [`WaitTimeout`](ErrorKind::WaitTimeout) while waiting; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Resume;
    /// use std::time::Duration;
    ///
    /// sandbox.stop().await?;
    /// sandbox.resume(Resume::new().ttl(Duration::from_secs(600))).await?;
    /// assert!(sandbox.exec("true").await?.success());
    /// # Ok(()) }
    /// ```
    pub async fn resume(&self, options: Resume) -> Result<()> {
        options.check()?;
        let allowance = Allowance::of(self.api());
        let before = self.info();
        match self.api().resume(self.id(), options.request).await {
            Ok(answer) => {
                self.heard(answer);
            }
            Err(error) if error.delivery() == Delivery::Unknown => {
                match self.within(&allowance).refresh().await {
                    Ok(info) if was_resumed(before.as_deref().map(|info| &info.state), &info.state) => {}
                    _ => return Err(error),
                }
            }
            Err(error) => return Err(error),
        }
        if !options.waiting.wait {
            return Ok(());
        }
        self.within(&allowance).wait_started(options.waiting.limit, RESUME_GRACE).await
    }

    /// Makes a new sandbox from a copy of this one's disk and waits until it is ready unless told not to. This one is not
    /// touched.
    ///
    /// What [`create`](crate::AsyncSandboxer::create) says of keys, names and of being dropped half-way holds here too.
    ///
    /// # Errors
    ///
    /// As [`create`](crate::AsyncSandboxer::create), [`NotFound`](ErrorKind::NotFound), and
    /// [`Conflict`](ErrorKind::Conflict) when this one keeps no disk that could be copied.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Fork;
    ///
    /// sandbox.files().write("data.txt", "one").await?;
    /// let copy = sandbox.fork(Fork::new().name("copy")).await?;
    /// copy.files().write("data.txt", "two").await?;
    /// assert_eq!(sandbox.files().read("data.txt").await?, "one");
    /// # Ok(()) }
    /// ```
    pub async fn fork(&self, options: Fork) -> Result<AsyncSandbox> {
        options.check()?;
        let Fork { request, waiting, name } = options;
        let (source, sent) = (self.id().to_owned(), request.clone());
        let birth = Birth {
            api: self.api(),
            name,
            waiting,
            target: Target::Fork { source, request: Box::new(request) },
        };
        birth
            .run(async |api| {
                let answer = api.fork(self.id(), sent.clone()).await?;
                Ok(Made { id: answer.id, info: answer.sandbox })
            })
            .await
    }

    /// Sets when it stops by itself, counted from now: a duration of 1 second to 30 days, or [`Ttl::Never`].
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Ttl;
    /// use std::time::Duration;
    ///
    /// sandbox.extend(Duration::from_secs(7200)).await?;
    /// sandbox.extend(Ttl::Never).await?;
    /// assert!(sandbox.info().unwrap().archive_after.is_none());
    /// # Ok(()) }
    /// ```
    pub async fn extend(&self, ttl: impl Into<Ttl>) -> Result<Arc<Sandbox>> {
        self.update(Update::new().ttl(ttl)).await
    }

    /// Changes its name, the time it stops by itself or its subdomain, and answers with what it is now.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a value out of its limits; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Update;
    ///
    /// let info = sandbox.update(Update::new().name("build").subdomain("my-build")).await?;
    /// assert_eq!(info.name.as_deref(), Some("build"));
    /// # Ok(()) }
    /// ```
    pub async fn update(&self, options: Update) -> Result<Arc<Sandbox>> {
        let label = |error: Error| {
            error.with_operation(Operation::Update).with_sandbox_id(Some(self.id().to_owned()))
        };
        let request = options.checked().map_err(label)?;
        let answer = self.api().update(self.id(), request).await?;
        Ok(self.remember(answer.sandbox))
    }

    /// What it used in a span of time; by default since it was created.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::models::UsageParams;
    ///
    /// let usage = sandbox.usage(UsageParams::new()).await?;
    /// assert!(usage.running);
    /// # Ok(()) }
    /// ```
    pub async fn usage(&self, span: UsageParams) -> Result<SandboxUsageResponse> {
        self.api().usage(self.id(), span).await
    }

    /// Deletes it for good, whatever state it is in. It is gone at once; the purge of its data goes on at the service as
    /// the operation answered with ([`Api::get_deletion_operation`](crate::Api::get_deletion_operation) follows it).
    /// `None` when it was gone already.
    ///
    /// # Errors
    ///
    /// [`PermissionDenied`](ErrorKind::PermissionDenied) when the key may not; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// assert!(sandbox.delete().await?.is_some());
    /// assert!(sandbox.delete().await?.is_none(), "it was gone already");
    /// # Ok(()) }
    /// ```
    pub async fn delete(&self) -> Result<Option<DeletionOperation>> {
        match self.api().delete_sandbox(self.id(), DeleteSandboxParams::new()).await {
            Ok(answer) => Ok(Some(answer.operation)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes note of the answer to an action on this sandbox.
    fn heard(&self, answer: SandboxActionResponse) -> Option<Arc<Sandbox>> {
        let SandboxActionResponse { sandbox, stop, .. } = answer;
        let mut info = sandbox.or_else(|| self.info().map(|info| (*info).clone()))?;
        if stop.is_some() {
            info.stop = stop;
        }
        Some(self.remember(info))
    }
}

/// Whether a sandbox that was last seen as `before` and is now in this state shows that a resume has arrived. One that is
/// up or starting proves nothing if it was before: the service refuses to resume such a one. Nor if it was being stopped:
/// where its disk cannot be saved it stays up. Nor if it was not seen.
fn was_resumed(before: Option<&SandboxState>, now: &SandboxState) -> bool {
    use SandboxState::{Archived, Cloning, Error, Init, Provisioned, Provisioning};
    let starts = |state: &SandboxState| matches!(state, Init | Provisioning | Provisioned | Cloning);
    let stopped = |state: &SandboxState| matches!(state, Archived | Error);
    before.is_some_and(
        |before| if starts(now) { !starts(before) } else { stopped(before) && READY.contains(now) },
    )
}

/// No archived state is tolerated after a create or fork.
pub(crate) const NO_GRACE: Duration = Duration::ZERO;
