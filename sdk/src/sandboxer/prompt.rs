//! Asking an agent to do something.

use super::{prompt_run::AsyncPromptRun, sandbox::AsyncSandbox};
use crate::{
    error::{Error, Result},
    models::{PromptProvider, PromptRequest},
};

/// What to ask of which agent, and in which conversation.
///
/// ```
/// use sandboxer::Prompt;
///
/// let prompt = Prompt::new("fix the failing test")
///     .provider("codex")
///     .model("gpt-5")
///     .reasoning_effort("high")
///     .fast(true)
///     .new_conversation();
/// let more = Prompt::new("and the other one").conversation("conv_1");
/// # let _ = (prompt, more);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Prompt {
    request: PromptRequest,
}

impl Prompt {
    /// A task in the agent's own words, 1 to 1,048,576 characters without NUL, for the conversation that was prompted
    /// last.
    pub fn new(text: impl Into<String>) -> Self {
        Self { request: PromptRequest::new(text) }
    }

    /// The agent, for example `claude-code` or `codex`: that of the conversation, else the account's, unless set.
    pub fn provider(mut self, provider: impl Into<PromptProvider>) -> Self {
        self.request.provider = Some(provider.into());
        self
    }

    /// The model, by its id; one that is not known is passed on. See
    /// [`provider_models`](crate::AsyncSandboxer::provider_models).
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.request.model = Some(model.into());
        self
    }

    /// How hard to think, in the model's own words.
    pub fn reasoning_effort(mut self, effort: impl Into<String>) -> Self {
        self.request.reasoning_effort = Some(effort.into());
        self
    }

    /// Whether to use the model's fast mode, where it has one.
    pub fn fast(mut self, fast: bool) -> Self {
        self.request.fast = Some(fast);
        self
    }

    /// Begins a conversation. Not together with [`conversation`](Self::conversation).
    pub fn new_conversation(mut self) -> Self {
        self.request.new_ = Some(true);
        self
    }

    /// Goes on with this conversation, by its id. Not together with [`new_conversation`](Self::new_conversation).
    pub fn conversation(mut self, id: impl Into<String>) -> Self {
        self.request.conversation_id = Some(id.into());
        self
    }

    /// What is sent.
    fn checked(self) -> Result<PromptRequest> {
        let request = self.request;
        if request.new_.is_some() && request.conversation_id.is_some() {
            return Err(Error::invalid_input(
                "conversation",
                "a prompt begins a conversation or goes on with one, not both",
            ));
        }
        let provider = request.provider.as_ref().map(PromptProvider::as_str);
        for (field, value) in [
            ("provider", provider),
            ("model", request.model.as_deref()),
            ("reasoning_effort", request.reasoning_effort.as_deref()),
            ("conversation", request.conversation_id.as_deref()),
        ] {
            if value.is_some_and(|value| value.trim().is_empty()) {
                return Err(Error::invalid_input(field, "must not be empty"));
            }
        }
        Ok(request)
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&String> for Prompt {
    fn from(text: &String) -> Self {
        Self::new(text)
    }
}

impl AsyncSandbox {
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Prompt;
    ///
    /// let run = sandbox.prompt(Prompt::new("write a haiku").provider("claude-code").new_conversation()).await?;
    /// assert_eq!(run.queued().unwrap().provider, "claude-code");
    /// # Ok(()) }
    /// ```
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<AsyncPromptRun> {
        let request = prompt.into().checked()?;
        let answer = self.api().prompt(self.id(), request).await?;
        let conversation = answer.conversation_id.clone().or(answer.prompt_run.conversation_id.clone());
        Ok(AsyncPromptRun::new(self.clone(), answer.prompt_id.clone(), conversation, Some(answer)))
    }

    /// A handle to the run of a prompt, by the id that [`prompt`](Self::prompt) was answered with. Nothing is asked: an
    /// unknown prompt is an error of the first call through the handle.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # let id = sandbox.prompt("write a haiku").await?.prompt_id().to_owned();
    /// let run = sandbox.prompt_run(id);
    /// assert!(run.wait().await?.done);
    /// # Ok(()) }
    /// ```
    pub fn prompt_run(&self, prompt_id: impl Into<String>) -> AsyncPromptRun {
        AsyncPromptRun::new(self.clone(), prompt_id.into(), None, None)
    }
}

/// Refuses a conversation id that says nothing: a call without one means every conversation.
pub(crate) fn check_conversation(id: &str) -> Result<()> {
    if id.trim().is_empty() {
        return Err(Error::invalid_input("conversation", "must not be empty"));
    }
    Ok(())
}
