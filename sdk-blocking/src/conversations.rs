//! The conversations of a sandbox with agents.

use sandboxer::{
    Result,
    models::{Conversation, ProviderModelsResponse, SandboxActionResponse, SteerResponse},
};

use crate::{Sandbox, Sandboxer};

impl Sandbox {
    /// Lists its conversations with agents, the one prompted last first.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let run = sandbox.prompt("fix the failing test")?;
    /// let conversations = sandbox.conversations()?;
    /// assert_eq!(Some(conversations[0].id.as_str()), run.conversation_id());
    /// assert!(conversations[0].current);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn conversations(&self) -> Result<Vec<Conversation>> {
        self.call(|sandbox| async move { sandbox.conversations().await })
    }

    /// Says something into the turn that an agent is at: that of `conversation`, or the one that is running if `None`.
    ///
    /// It is not a run of its own: there is nothing to wait for. How it was delivered is in the answer.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict) with the code `no_running_turn`, whose details carry the `reason`;
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a message that is empty or longer than 1,048,576 characters;
    /// and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # server.set_agent(|turn| async move { turn.next_steer().await; Ok(()) });
    /// # let run = sandbox.prompt("run the tests")?;
    /// # while run.status()?.status != sandboxer_blocking::models::PromptRunStatus::Running {}
    /// let steered = sandbox.steer("skip the slow tests", None)?;
    /// assert!(steered.native);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn steer(&self, message: impl Into<String>, conversation: Option<&str>) -> Result<SteerResponse> {
        let (message, conversation) = (message.into(), conversation.map(str::to_owned));
        self.call(|sandbox| async move { sandbox.steer(message, conversation.as_deref()).await })
    }

    /// Stops what an agent is at in one conversation, and in no other.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an empty id, nothing was sent;
    /// [`Conflict`](crate::ErrorKind::Conflict) when the sandbox is stopped; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let run = sandbox.prompt("count to a million")?;
    /// let conversation = run.conversation_id().unwrap();
    /// let stopped = sandbox.interrupt(conversation)?;
    /// assert_eq!(stopped.conversation_id.as_deref(), Some(conversation));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn interrupt(&self, conversation: &str) -> Result<SandboxActionResponse> {
        let conversation = conversation.to_owned();
        self.call(|sandbox| async move { sandbox.interrupt(&conversation).await })
    }

    /// Stops what agents are at in every conversation of the sandbox.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict) when the sandbox is stopped; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// assert_eq!(sandbox.interrupt_all()?.status, "interrupted");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn interrupt_all(&self) -> Result<SandboxActionResponse> {
        self.call(|sandbox| async move { sandbox.interrupt_all().await })
    }
}

impl Sandboxer {
    /// Reads which agents and models there are, which efforts each takes, and whether it has a fast mode.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let catalog = client.provider_models()?;
    /// assert!(catalog.providers.iter().any(|agent| agent.provider.as_str() == "codex"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn provider_models(&self) -> Result<ProviderModelsResponse> {
        self.call(|client| async move { client.provider_models().await })
    }
}
