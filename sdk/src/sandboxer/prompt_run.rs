//! What becomes of a prompt.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::{
    allowance::Allowance,
    answer,
    events::{EventOptions, EventStream, Finish},
    sandbox::AsyncSandbox,
    wait::{self, Look, Pace},
};
use crate::{
    call::CallOptions,
    error::{Delivery, Error, ErrorKind, Result},
    models::{PromptResponse, PromptRun, PromptRunStatus, SandboxActionResponse, SteerResponse},
};

/// The run of a prompt: what an agent makes of it. Comes from [`AsyncSandbox::prompt`] or [`AsyncSandbox::prompt_run`].
///
/// Dropping the handle leaves the run alone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # use sandboxer_mock_server::MockServer;
/// # let server = MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// let run = sandbox.prompt("run it:\n```sh\necho hello\n```").await?;
/// let answer = run.queued().unwrap(); // of a run that was prompted through this handle
/// assert_eq!(run.conversation_id(), answer.conversation_id.as_deref());
/// assert!(run.text().await?.contains("hello"));
/// let same = run.sandbox().prompt_run(run.prompt_id()); // another handle to it
/// # drop(same);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AsyncPromptRun {
    sandbox: AsyncSandbox,
    prompt_id: Arc<str>,
    conversation_id: Arc<OnceLock<String>>,
    queued: Option<Arc<PromptResponse>>,
}

impl AsyncPromptRun {
    pub(crate) fn new(
        sandbox: AsyncSandbox,
        prompt_id: String,
        conversation: Option<String>,
        queued: Option<PromptResponse>,
    ) -> Self {
        let run = Self {
            sandbox,
            prompt_id: prompt_id.into(),
            conversation_id: Arc::default(),
            queued: queued.map(Arc::new),
        };
        run.learn(conversation.as_deref());
        run
    }

    /// The id of the prompt; its events name it as their task.
    pub fn prompt_id(&self) -> &str {
        &self.prompt_id
    }

    /// The conversation it belongs to, if known so far: from prompting, or from an earlier look at the run.
    pub fn conversation_id(&self) -> Option<&str> {
        self.conversation_id.get().map(String::as_str)
    }

    /// What the service answered when it was prompted through this handle.
    pub fn queued(&self) -> Option<&PromptResponse> {
        self.queued.as_deref()
    }

    /// The sandbox it runs in.
    pub fn sandbox(&self) -> &AsyncSandbox {
        &self.sandbox
    }

    /// The same run through a view whose calls follow `options`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::CallOptions;
    /// use std::time::Duration;
    ///
    /// let run = sandbox.prompt("write a haiku").await?;
    /// let quick = run.with(CallOptions::new().total(Duration::from_secs(5)));
    /// assert!(quick.wait().await?.done);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with(&self, options: CallOptions) -> Self {
        Self { sandbox: self.sandbox.with(options), ..self.clone() }
    }

    /// Reads how far it is.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) for an unknown prompt, and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::models::PromptRunStatus;
    ///
    /// # let id = sandbox.prompt("write a haiku").await?.prompt_id().to_owned();
    /// let run = sandbox.prompt_run(id);
    /// assert_ne!(run.status().await?.status, PromptRunStatus::Failed);
    /// assert!(run.conversation_id().is_some());
    /// # Ok(()) }
    /// ```
    pub async fn status(&self) -> Result<PromptRun> {
        let run = self.sandbox.api().prompt_run_status(self.sandbox.id(), &self.prompt_id).await?.prompt_run;
        self.learn(run.conversation_id.as_deref());
        Ok(run)
    }

    /// Waits until it has ended, for as long as that takes or the view's total limit allows.
    ///
    /// The answer's `status` is `finished`, `failed` or `interrupted`, none of which is an error here.
    ///
    /// # Errors
    ///
    /// [`WaitTimeout`](ErrorKind::WaitTimeout) at the view's total limit, and those of [`status`](Self::status).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::models::PromptRunStatus;
    ///
    /// let ended = sandbox.prompt("write a haiku").await?.wait().await?;
    /// assert_eq!(ended.status, PromptRunStatus::Finished);
    /// # Ok(()) }
    /// ```
    pub async fn wait(&self) -> Result<PromptRun> {
        self.wait_at_most(self.sandbox.explicit_total()).await
    }

    /// Waits until it has ended, for at most `limit`, as [`wait`](Self::wait) does without one.
    ///
    /// # Errors
    ///
    /// [`WaitTimeout`](ErrorKind::WaitTimeout) at the limit, a look in flight included, and those of
    /// [`status`](Self::status).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::ErrorKind;
    /// use std::time::Duration;
    ///
    /// let run = sandbox.prompt("wait:\n```sh\nsleep 600\n```").await?;
    /// let late = run.wait_for(Duration::from_millis(50)).await.unwrap_err();
    /// assert_eq!(late.kind(), ErrorKind::WaitTimeout);
    /// # Ok(()) }
    /// ```
    pub async fn wait_for(&self, limit: Duration) -> Result<PromptRun> {
        self.wait_at_most(Some(limit)).await
    }

    async fn wait_at_most(&self, limit: Option<Duration>) -> Result<PromptRun> {
        let look = async |_| {
            let run = self.status().await?;
            Ok(if is_over(&run) { Look::Found(run) } else { Look::NotYet(run.status.to_string()) })
        };
        let expired = |state| {
            wait::late("the prompt had not ended", limit, state)
                .with_sandbox_id(Some(self.sandbox.id().to_owned()))
        };
        wait::poll(&**self.sandbox.api().clock(), Pace::new(), limit, look, expired).await
    }

    /// Follows what the agent does for this prompt; it ends once the run has ended and its last event was given out.
    ///
    /// # Errors
    ///
    /// As [`events_with`](Self::events_with).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let run = sandbox.prompt("write a haiku").await?;
    /// let mut events = run.events()?;
    /// while let Some(event) = events.next().await {
    ///     assert_eq!(event?.task_id(), Some(run.prompt_id()));
    /// }
    /// # Ok(()) }
    /// ```
    pub fn events(&self) -> Result<EventStream> {
        self.events_with(EventOptions::new())
    }

    /// Follows what the agent does for this prompt, as `options` say; it ends once the run has ended and its last event
    /// was given out. Conversations they name are asked for instead of the run's own.
    ///
    /// A response that is still growing when the run has ended is looked at again for two seconds. If the run finished and
    /// its last response is not complete even then, the stream ends with an error of kind
    /// [`StreamCut`](ErrorKind::StreamCut), code `answer_incomplete`.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](ErrorKind::InvalidInput): the options ask for what the service cannot take.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::{EventMode, EventOptions};
    ///
    /// let options = EventOptions::new().mode(EventMode::Poll).kind("response");
    /// let mut events = sandbox.prompt("write a haiku").await?.events_with(options)?;
    /// while let Some(event) = events.next().await {
    ///     assert!(event?.as_response().is_some());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn events_with(&self, options: EventOptions) -> Result<EventStream> {
        let mut options = options.task(&*self.prompt_id);
        if options.conversations().is_empty()
            && let Some(id) = self.listed_conversation()
        {
            options = options.conversation(id);
        }
        let run = self.clone();
        Ok(self.sandbox.events(options)?.until_over(move || {
            let run = run.clone();
            async move {
                let run = run.status().await?;
                let finish = match run.status {
                    PromptRunStatus::Finished => Finish::Complete,
                    // What was cut off may stay as it is.
                    _ => Finish::Settled,
                };
                Ok(is_over(&run).then_some(finish))
            }
        }))
    }

    /// Waits until it has ended and answers with its final answer: the text of its last response that is not about tools
    /// and was not taken back; empty if there is none.
    ///
    /// The newest events are read first and no more of them than needed. A last response that is still growing is looked
    /// at again for two seconds.
    ///
    /// # Errors
    ///
    /// [`CommandFailed`](ErrorKind::CommandFailed) with the code `prompt_<status>` when it did not finish:
    /// `prompt_failed` and the reason, `prompt_interrupted`, or one that is not known yet. What it said until then is
    /// in its [`events`](Self::events). [`StreamCut`](ErrorKind::StreamCut) with the code `answer_incomplete` when it
    /// finished, but its last response is not complete: what there is of it and the text of the one before are
    /// `partial` and `before` in the details. And those of [`wait`](Self::wait).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # server.set_agent(|turn| async move { turn.say("All tests pass.").await; Ok(()) });
    /// assert_eq!(sandbox.prompt("run the tests").await?.text().await?, "All tests pass.");
    /// # Ok(()) }
    /// ```
    pub async fn text(&self) -> Result<String> {
        let allowance = Allowance::of(self.sandbox.api());
        let ended = self.wait().await?;
        let sandbox = self.sandbox.within(&allowance);
        let question = answer::Question::new(&sandbox, self.prompt_id(), self.listed_conversation(), &ended);
        match ended.status {
            PromptRunStatus::Finished => question.text().await,
            status => {
                let sandbox_id = sandbox.id().to_owned();
                let reason = question.failure().await.map(|reason| format!(": {reason}")).unwrap_or_default();
                let message = match status {
                    PromptRunStatus::Failed => format!("the prompt failed{reason}"),
                    PromptRunStatus::Interrupted => format!("the prompt was interrupted{reason}"),
                    _ => format!("the prompt ended as `{status}`, which is not `finished`{reason}"),
                };
                Err(Error::new(ErrorKind::CommandFailed, format!("prompt_{status}"), message)
                    .with_details(
                        serde_json::json!({ "status": status.as_str(), "promptId": self.prompt_id() }),
                    )
                    .with_delivery(Delivery::Answered)
                    .with_sandbox_id(Some(sandbox_id)))
            }
        }
    }

    /// Says something into the turn its conversation is at. See [`AsyncSandbox::steer`].
    ///
    /// # Errors
    ///
    /// As [`AsyncSandbox::steer`]; and [`InvalidInput`](ErrorKind::InvalidInput) with the code `conversation_unknown`,
    /// nothing said, when the service does not tell which conversation it is.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # server.set_agent(|turn| async move { turn.next_steer().await; Ok(()) });
    /// let run = sandbox.prompt("write a web server").await?;
    /// # while run.status().await?.status != sandboxer::models::PromptRunStatus::Running {}
    /// run.steer("use axum").await?;
    /// # Ok(()) }
    /// ```
    pub async fn steer(&self, message: impl Into<String>) -> Result<SteerResponse> {
        let message = message.into();
        let allowance = Allowance::of(self.sandbox.api());
        let conversation = self.own_conversation().await?;
        self.sandbox.within(&allowance).steer(message, Some(&conversation)).await
    }

    /// Stops what an agent is at in its conversation, and in no other.
    ///
    /// When the run has ended, that may be a later prompt of the same conversation. A handle made by prompt id alone asks
    /// for the conversation first.
    ///
    /// # Errors
    ///
    /// As [`AsyncSandbox::interrupt`]; and [`InvalidInput`](ErrorKind::InvalidInput) with the code
    /// `conversation_unknown`, nothing stopped, when the service does not tell which conversation it is:
    /// [`interrupt_all`](AsyncSandbox::interrupt_all) stops every one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let run = sandbox.prompt("count to a million").await?;
    /// assert_eq!(run.interrupt().await?.conversation_id.as_deref(), run.conversation_id());
    /// # Ok(()) }
    /// ```
    pub async fn interrupt(&self) -> Result<SandboxActionResponse> {
        let allowance = Allowance::of(self.sandbox.api());
        let conversation = self.own_conversation().await?;
        self.sandbox.within(&allowance).interrupt(&conversation).await
    }

    /// Its conversation, asked for when it is not known.
    async fn own_conversation(&self) -> Result<String> {
        if self.conversation_id.get().is_none() {
            self.status().await?;
        }
        self.conversation_id.get().cloned().ok_or_else(|| {
            let message = "the service does not tell which conversation the prompt belongs to, and without one every \
                           conversation would be meant";
            Error::new(ErrorKind::InvalidInput, "conversation_unknown", message)
                .with_delivery(Delivery::NotSent)
                .with_sandbox_id(Some(self.sandbox.id().to_owned()))
        })
    }

    /// Its conversation, if events can be asked for by it.
    fn listed_conversation(&self) -> Option<&str> {
        self.conversation_id().filter(|id| !id.contains(','))
    }

    fn learn(&self, conversation: Option<&str>) {
        if let Some(id) = conversation.filter(|id| !id.trim().is_empty()) {
            let _ = self.conversation_id.set(id.to_owned());
        }
    }
}

fn is_over(run: &PromptRun) -> bool {
    use PromptRunStatus::{Failed, Finished, Interrupted};
    run.done || matches!(run.status, Finished | Failed | Interrupted)
}

impl fmt::Debug for AsyncPromptRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AsyncPromptRun")
            .field("sandbox", &self.sandbox.id())
            .field("prompt_id", &self.prompt_id)
            .field("conversation_id", &self.conversation_id())
            .finish_non_exhaustive()
    }
}
