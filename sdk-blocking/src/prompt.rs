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
/// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
/// # use serde_json::json;
/// # let server = MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # server.on(Operation::Prompt).reply(Reply::json(json!({"ok": true, "type": "prompt.queued", "id": "x",
/// #     "promptId": "p1", "conversationId": "c1", "status": "queued"})));
/// # server.on(Operation::PromptRunStatus).reply(Reply::json(json!({"ok": true, "type": "prompt.run", "id": "x",
/// #     "promptRun": {"id": "p1", "promptId": "p1", "status": "finished", "done": true, "conversationId": "c1"}}))).always();
/// # server.on(Operation::Events).reply(Reply::json(json!({"ok": true, "type": "events.list", "id": "x", "events": [
/// #     {"id": "r1", "type": "response", "timestamp": 1, "taskId": "p1", "data": {"content": "Done."}}]}))).always();
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// let run = sandbox.prompt("fix the failing test")?;
/// assert_eq!((run.prompt_id(), run.conversation_id()), ("p1", Some("c1")));
/// assert_eq!(run.text()?, "Done.");
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation; use serde_json::json;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::PromptRunStatus).reply(Reply::json(json!({"ok": true, "type": "prompt.run", "id": "x",
    /// #     "promptRun": {"id": "p1", "promptId": "p1", "status": "finished", "done": true}}))).always();
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::CallOptions;
    /// use std::time::Duration;
    ///
    /// let quick = sandbox.prompt_run("p1").with(CallOptions::new().total(Duration::from_secs(5)));
    /// assert!(quick.status()?.done);
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # use serde_json::json;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::PromptRunStatus).reply(Reply::json(json!({"ok": true, "type": "prompt.run", "id": "x",
    /// #     "promptRun": {"id": "p1", "promptId": "p1", "status": "running", "done": false, "conversationId": "c1"}})));
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::models::PromptRunStatus;
    ///
    /// let run = sandbox.prompt_run("p1");
    /// assert_eq!(run.status()?.status, PromptRunStatus::Running);
    /// assert_eq!(run.conversation_id(), Some("c1"));
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # use serde_json::json;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::PromptRunStatus).reply(Reply::json(json!({"ok": true, "type": "prompt.run", "id": "x",
    /// #     "promptRun": {"id": "p1", "promptId": "p1", "status": "failed", "done": true}})));
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::models::PromptRunStatus;
    ///
    /// let ended = sandbox.prompt_run("p1").wait()?;
    /// assert_eq!(ended.status, PromptRunStatus::Failed);
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # use serde_json::json;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::PromptRunStatus).reply(Reply::json(json!({"ok": true, "type": "prompt.run", "id": "x",
    /// #     "promptRun": {"id": "p1", "promptId": "p1", "status": "running", "done": false}}))).always();
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::ErrorKind;
    /// use std::time::Duration;
    ///
    /// let late = sandbox.prompt_run("p1").wait_for(Duration::from_millis(50)).unwrap_err();
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # use serde_json::json;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::PromptRunStatus).reply(Reply::json(json!({"ok": true, "type": "prompt.run", "id": "x",
    /// #     "promptRun": {"id": "p1", "promptId": "p1", "status": "finished", "done": true}}))).always();
    /// # let page = json!({"ok": true, "type": "events.list", "id": "x", "events": [
    /// #     {"id": "r1", "type": "response", "timestamp": 1, "taskId": "p1", "data": {"content": "Done."}},
    /// #     {"id": "r2", "type": "response", "timestamp": 2, "taskId": "p2", "data": {"content": "Another's."}}]});
    /// # server.on(Operation::Events).reply(Reply::json(page.clone())).always();
    /// # server.on(Operation::EventsStream).reply(Reply::json(page)).always();
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let events = sandbox.prompt_run("p1").events()?;
    /// for event in events {
    ///     assert_eq!(event?.task_id(), Some("p1"));
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn events(&self) -> Result<EventStream> {
        Ok(EventStream::new(self.sandbox.driver().clone(), self.inner.events()?))
    }

    /// Follows what the agent does for this prompt, as `options` say; it ends once the run has ended and its last event
    /// was given out. Conversations they name are asked for instead of the run's own.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput): the options ask for what the service cannot take.
    ///
    /// ```
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation; use serde_json::json;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::PromptRunStatus).reply(Reply::json(json!({"ok": true, "type": "prompt.run", "id": "x",
    /// #     "promptRun": {"id": "p1", "promptId": "p1", "status": "finished", "done": true}}))).always();
    /// # let page = json!({"ok": true, "type": "events.list", "id": "x", "events": [
    /// #     {"id": "r1", "type": "response", "timestamp": 1, "taskId": "p1", "data": {"content": "Done."}}]});
    /// # server.on(Operation::Events).reply(Reply::json(page)).always();
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::{EventMode, EventOptions};
    ///
    /// let options = EventOptions::new().mode(EventMode::Poll).kind("response");
    /// for event in sandbox.prompt_run("p1").events_with(options)? {
    ///     assert_eq!(event?.id(), Some("r1"));
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn events_with(&self, options: EventOptions) -> Result<EventStream> {
        Ok(EventStream::new(self.sandbox.driver().clone(), self.inner.events_with(options)?))
    }

    /// Waits until it has ended and answers with its final answer: the text of its last response that is complete, is not
    /// about tools and was not taken back; empty if there is none.
    ///
    /// The newest events are read first and no more of them than needed. A last response that is still growing is looked
    /// at again for two seconds.
    ///
    /// # Errors
    ///
    /// [`CommandFailed`](crate::ErrorKind::CommandFailed) with the code `prompt_failed` and the reason, or `prompt_interrupted`,
    /// when it did not finish: what it said until then is in its [`events`](Self::events). And those of
    /// [`wait`](Self::wait).
    ///
    /// ```
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # use serde_json::json;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::PromptRunStatus).reply(Reply::json(json!({"ok": true, "type": "prompt.run", "id": "x",
    /// #     "promptRun": {"id": "p1", "promptId": "p1", "status": "finished", "done": true}}))).always();
    /// # server.on(Operation::Events).reply(Reply::json(json!({"ok": true, "type": "events.list", "id": "x", "events": [
    /// #     {"id": "r2", "type": "response", "timestamp": 2, "taskId": "p1", "data": {"content": "All tests pass."}},
    /// #     {"id": "r1", "type": "response", "timestamp": 1, "taskId": "p1", "data": {"content": "Let me look."}}]}))).always();
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// assert_eq!(sandbox.prompt_run("p1").text()?, "All tests pass.");
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # use serde_json::json;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::Prompt).reply(Reply::json(json!({"ok": true, "type": "prompt.queued", "id": "x",
    /// #     "promptId": "p1", "conversationId": "c1", "status": "queued"})));
    /// # server.on(Operation::Steer).reply(Reply::json(json!({"ok": true, "type": "prompt.steered", "id": "x",
    /// #     "conversationId": "c1", "promptId": "s1", "native": true, "mode": "native", "status": "steered"})));
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let run = sandbox.prompt("write a web server")?;
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # use serde_json::json;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::Prompt).reply(Reply::json(json!({"ok": true, "type": "prompt.queued", "id": "x",
    /// #     "promptId": "p1", "conversationId": "c1", "status": "queued"})));
    /// # server.on(Operation::Interrupt).reply(Reply::json(json!({"ok": true, "type": "sandbox.interrupted",
    /// #     "id": "x", "status": "interrupted", "conversationId": "c1"})));
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let run = sandbox.prompt("count to a million")?;
    /// assert_eq!(run.interrupt()?.conversation_id.as_deref(), Some("c1"));
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::Prompt).reply(Reply::json(serde_json::json!({"ok": true, "type": "prompt.queued", "id": "x",
    /// #     "promptId": "p1", "conversationId": "c1", "status": "queued"})));
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Prompt;
    ///
    /// let run = sandbox.prompt(Prompt::new("write a haiku").provider("claude-code").new_conversation())?;
    /// assert_eq!((run.prompt_id(), run.conversation_id()), ("p1", Some("c1")));
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation; use serde_json::json;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::PromptRunStatus).reply(Reply::json(json!({"ok": true, "type": "prompt.run", "id": "x",
    /// #     "promptRun": {"id": "p1", "promptId": "p1", "status": "finished", "done": true}})));
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// assert!(sandbox.prompt_run("p1").status()?.done);
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
