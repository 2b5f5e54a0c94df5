//! The conversations of a sandbox with agents.

use super::{AsyncSandboxer, prompt::check_conversation, sandbox::AsyncSandbox};
use crate::{
    error::Result,
    models::{
        Conversation, InterruptParams, ProviderModelsResponse, SandboxActionResponse, SteerRequest,
        SteerResponse,
    },
};

impl AsyncSandbox {
    /// Lists its conversations with agents, the one prompted last first.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let run = sandbox.prompt("fix the failing test").await?;
    /// let conversations = sandbox.conversations().await?;
    /// assert_eq!(Some(conversations[0].id.as_str()), run.conversation_id());
    /// assert!(conversations[0].current);
    /// # Ok(()) }
    /// ```
    pub async fn conversations(&self) -> Result<Vec<Conversation>> {
        Ok(self.api().conversations(self.id()).await?.conversations)
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # server.set_agent(|turn| async move { turn.next_steer().await; Ok(()) });
    /// # let run = sandbox.prompt("run the tests").await?;
    /// # while run.status().await?.status != sandboxer::models::PromptRunStatus::Running {}
    /// let steered = sandbox.steer("skip the slow tests", None).await?;
    /// assert!(steered.native);
    /// # Ok(()) }
    /// ```
    pub async fn steer(
        &self,
        message: impl Into<String>,
        conversation: Option<&str>,
    ) -> Result<SteerResponse> {
        let mut request = SteerRequest::new(message);
        if let Some(conversation) = conversation {
            check_conversation(conversation)?;
            request = request.conversation(conversation);
        }
        self.api().steer(self.id(), request).await
    }

    /// Stops what an agent is at in one conversation, and in no other.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an empty id, nothing was sent;
    /// [`Conflict`](crate::ErrorKind::Conflict) when the sandbox is stopped; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let run = sandbox.prompt("count to a million").await?;
    /// let conversation = run.conversation_id().unwrap();
    /// let stopped = sandbox.interrupt(conversation).await?;
    /// assert_eq!(stopped.conversation_id.as_deref(), Some(conversation));
    /// # Ok(()) }
    /// ```
    pub async fn interrupt(&self, conversation: &str) -> Result<SandboxActionResponse> {
        check_conversation(conversation)?;
        self.api().interrupt(self.id(), InterruptParams::new().conversation(conversation)).await
    }

    /// Stops what agents are at in every conversation of the sandbox.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict) when the sandbox is stopped; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// assert_eq!(sandbox.interrupt_all().await?.status, "interrupted");
    /// # Ok(()) }
    /// ```
    pub async fn interrupt_all(&self) -> Result<SandboxActionResponse> {
        self.api().interrupt(self.id(), InterruptParams::new()).await
    }
}

impl AsyncSandboxer {
    /// Reads which agents and models there are, which efforts each takes, and whether it has a fast mode.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// let catalog = client.provider_models().await?;
    /// assert!(catalog.providers.iter().any(|agent| agent.provider.as_str() == "codex"));
    /// # Ok(()) }
    /// ```
    pub async fn provider_models(&self) -> Result<ProviderModelsResponse> {
        self.api().provider_models().await
    }
}
