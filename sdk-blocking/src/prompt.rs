//! Prompts, and what becomes of them.

use std::{fmt, future::Future, time::Duration};

use sandboxer::{
    AsyncPromptRun, CallOptions, EventOptions, Prompt, Result,
    models::{PromptResponse, SandboxActionResponse, SteerResponse},
};

use crate::{EventStream, Sandbox};

/// The run of a prompt: what an agent makes of it. Comes from [`Sandbox::prompt`] or [`Sandbox::prompt_run`].
///
/// Dropping the handle leaves the run alone.
///
/// ```
/// # use sandboxer_mock_server::MockServer;
/// # let server = MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// let run = sandbox.prompt("run it:\n```sh\necho hello\n```")?;
/// let answer = run.queued().unwrap(); // of a run that was prompted through this handle
/// assert_eq!(run.conversation_id(), answer.conversation_id.as_deref());
/// assert!(run.text()?.contains("hello"));
/// let same = run.sandbox().prompt_run(run.prompt_id()); // another handle to it
/// # drop(same);
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[derive(Clone)]
pub struct PromptRun {
    inner: AsyncPromptRun,
    sandbox: Sandbox,
}

impl PromptRun {
    pub(crate) fn new(sandbox: Sandbox, inner: AsyncPromptRun) -> Self {
        Self { inner, sandbox }
    }

    fn call<T, F, Fut>(&self, verb: F) -> Result<T>
    where
        F: FnOnce(AsyncPromptRun) -> Fut,
        Fut: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        self.sandbox.driver().run(verb(self.inner.clone()))
    }

    /// The id of the prompt; its events name it as their task.
    pub fn prompt_id(&self) -> &str {
        self.inner.prompt_id()
    }

    /// The conversation it belongs to, if known so far: from prompting, or from an earlier look at the run.
    pub fn conversation_id(&self) -> Option<&str> {
        self.inner.conversation_id()
    }

    /// What the service answered when it was prompted through this handle.
    pub fn queued(&self) -> Option<&PromptResponse> {
        self.inner.queued()
    }

    /// The sandbox it runs in.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The same run through a view whose calls follow `options`.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::CallOptions;
    /// use std::time::Duration;
    ///
    /// let run = sandbox.prompt("write a haiku")?;
    /// let quick = run.with(CallOptions::new().total(Duration::from_secs(5)));
    /// assert!(quick.wait()?.done);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    #[must_use]
    pub fn with(&self, options: CallOptions) -> Self {
        Self { inner: self.inner.with(options.clone()), sandbox: self.sandbox.with(options) }
    }

    /// Reads how far it is.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) for an unknown prompt, and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::models::PromptRunStatus;
    ///
    /// # let id = sandbox.prompt("write a haiku")?.prompt_id().to_owned();
    /// let run = sandbox.prompt_run(id);
    /// assert_ne!(run.status()?.status, PromptRunStatus::Failed);
    /// assert!(run.conversation_id().is_some());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn status(&self) -> Result<sandboxer::models::PromptRun> {
        self.call(|run| async move { run.status().await })
    }

    /// Waits until it has ended, for as long as that takes or the view's total limit allows.
    ///
    /// The answer's `status` is `finished`, `failed` or `interrupted`, none of which is an error here.
    ///
    /// # Errors
    ///
    /// [`WaitTimeout`](crate::ErrorKind::WaitTimeout) at the view's total limit, and those of [`status`](Self::status).
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::models::PromptRunStatus;
    ///
    /// let ended = sandbox.prompt("write a haiku")?.wait()?;
    /// assert_eq!(ended.status, PromptRunStatus::Finished);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn wait(&self) -> Result<sandboxer::models::PromptRun> {
        self.call(|run| async move { run.wait().await })
    }

    /// Waits until it has ended, for at most `limit`, as [`wait`](Self::wait) does without one.
    ///
    /// # Errors
    ///
    /// [`WaitTimeout`](crate::ErrorKind::WaitTimeout) at the limit, a look in flight included, and those of
    /// [`status`](Self::status).
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::ErrorKind;
    /// use std::time::Duration;
    ///
    /// let run = sandbox.prompt("wait:\n```sh\nsleep 600\n```")?;
    /// let late = run.wait_for(Duration::from_millis(50)).unwrap_err();
    /// assert_eq!(late.kind(), ErrorKind::WaitTimeout);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn wait_for(&self, limit: Duration) -> Result<sandboxer::models::PromptRun> {
        self.call(move |run| async move { run.wait_for(limit).await })
    }

    /// Follows what the agent does for this prompt; it ends once the run has ended and its last event was given out.
    ///
    /// # Errors
    ///
    /// As [`events_with`](Self::events_with).
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let run = sandbox.prompt("write a haiku")?;
    /// let events = run.events()?;
    /// for event in events {
    ///     assert_eq!(event?.task_id(), Some(run.prompt_id()));
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn events(&self) -> Result<EventStream> {
        Ok(EventStream::new(self.sandbox.driver().clone(), self.inner.events()?))
    }

    /// Follows what the agent does for this prompt, as `options` say; it ends once the run has ended and its last event
    /// was given out. Conversations they name are asked for instead of the run's own.
    ///
    /// A response that is still growing when the run has ended is looked at again for two seconds. If the run finished and
    /// its last response is not complete even then, the stream ends with an error of kind
    /// [`StreamCut`](crate::ErrorKind::StreamCut), code `answer_incomplete`.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput): the options ask for what the service cannot take.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::{EventMode, EventOptions};
    ///
    /// let options = EventOptions::new().mode(EventMode::Poll).kind("response");
    /// for event in sandbox.prompt("write a haiku")?.events_with(options)? {
    ///     assert!(event?.as_response().is_some());
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn events_with(&self, options: EventOptions) -> Result<EventStream> {
        Ok(EventStream::new(self.sandbox.driver().clone(), self.inner.events_with(options)?))
    }

    /// Waits until it has ended and answers with its final answer: the text of its last response that is not about tools
    /// and was not taken back; empty if there is none.
    ///
    /// The newest events are read first and no more of them than needed. A last response that is still growing is looked
    /// at again for two seconds.
    ///
    /// # Errors
    ///
    /// [`CommandFailed`](crate::ErrorKind::CommandFailed) with the code `prompt_<status>` when it did not finish:
    /// `prompt_failed` and the reason, `prompt_interrupted`, or one that is not known yet. What it said until then is
    /// in its [`events`](Self::events). [`StreamCut`](crate::ErrorKind::StreamCut) with the code `answer_incomplete`
    /// when it finished, but its last response is not complete: what there is of it and the text of the one before are
    /// `partial` and `before` in the details. And those of [`wait`](Self::wait).
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # server.set_agent(|turn| async move { turn.say("All tests pass.").await; Ok(()) });
    /// assert_eq!(sandbox.prompt("run the tests")?.text()?, "All tests pass.");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn text(&self) -> Result<String> {
        self.call(|run| async move { run.text().await })
    }

    /// Says something into the turn its conversation is at. See [`Sandbox::steer`].
    ///
    /// # Errors
    ///
    /// As [`Sandbox::steer`]; and [`InvalidInput`](crate::ErrorKind::InvalidInput) with the code `conversation_unknown`,
    /// nothing said, when the service does not tell which conversation it is.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # server.set_agent(|turn| async move { turn.next_steer().await; Ok(()) });
    /// let run = sandbox.prompt("write a web server")?;
    /// # while run.status()?.status != sandboxer_blocking::models::PromptRunStatus::Running {}
    /// run.steer("use axum")?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn steer(&self, message: impl Into<String>) -> Result<SteerResponse> {
        let message = message.into();
        self.call(|run| async move { run.steer(message).await })
    }

    /// Stops what an agent is at in its conversation, and in no other.
    ///
    /// When the run has ended, that may be a later prompt of the same conversation. A handle made by prompt id alone asks
    /// for the conversation first.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::interrupt`]; and [`InvalidInput`](crate::ErrorKind::InvalidInput) with the code
    /// `conversation_unknown`, nothing stopped, when the service does not tell which conversation it is:
    /// [`interrupt_all`](Sandbox::interrupt_all) stops every one.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let run = sandbox.prompt("count to a million")?;
    /// assert_eq!(run.interrupt()?.conversation_id.as_deref(), run.conversation_id());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn interrupt(&self) -> Result<SandboxActionResponse> {
        self.call(|run| async move { run.interrupt().await })
    }
}

impl Sandbox {
    /// Asks an agent to do something, and answers with a handle to its run as soon as it is queued.
    ///
    /// `prompt` is a text or a [`Prompt`] with agent, model and conversation. Conversations run side by side; within one,
    /// prompts wait for each other.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a value out of its limits, nothing was sent;
    /// [`Conflict`](crate::ErrorKind::Conflict) with the code `provider_not_configured` and a `setupUrl` in the details when
    /// the agent has no login; [`BadRequest`](crate::ErrorKind::BadRequest) with the code `fast_mode_not_supported`; and the
    /// failures of any call. It is not sent again unless it was not sent or the service says it may be.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Prompt;
    ///
    /// let run = sandbox.prompt(Prompt::new("write a haiku").provider("claude-code").new_conversation())?;
    /// assert_eq!(run.queued().unwrap().provider, "claude-code");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn prompt(&self, prompt: impl Into<Prompt>) -> Result<PromptRun> {
        let prompt = prompt.into();
        let run = self.call(|sandbox| async move { sandbox.prompt(prompt).await })?;
        Ok(PromptRun::new(self.clone(), run))
    }

    /// A handle to the run of a prompt, by the id that [`prompt`](Self::prompt) was answered with. Nothing is asked: an
    /// unknown prompt is an error of the first call through the handle.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # let id = sandbox.prompt("write a haiku")?.prompt_id().to_owned();
    /// let run = sandbox.prompt_run(id);
    /// assert!(run.wait()?.done);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn prompt_run(&self, prompt_id: impl Into<String>) -> PromptRun {
        PromptRun::new(self.clone(), self.inner.prompt_run(prompt_id))
    }
}

impl fmt::Debug for PromptRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PromptRun")
            .field("sandbox", &self.sandbox.id())
            .field("prompt_id", &self.prompt_id())
            .field("conversation_id", &self.conversation_id())
            .finish_non_exhaustive()
    }
}
