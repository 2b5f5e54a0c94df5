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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer::Operation;
    /// # let server = MockServer::start(); let client = server.client();
    /// # server.on(Operation::Conversations).reply(Reply::json(serde_json::json!({"ok": true, "type": "conversation.list",
    /// #     "id": "x", "conversations": [{"id": "c1", "current": true, "running": false, "prompts": 2}]})));
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let conversations = sandbox.conversations().await?;
    /// assert_eq!((conversations[0].id.as_str(), conversations[0].current), ("c1", true));
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer::Operation;
    /// # let server = MockServer::start(); let client = server.client();
    /// # server.on(Operation::Steer).reply(Reply::json(serde_json::json!({"ok": true, "type": "prompt.steered", "id": "x",
    /// #     "conversationId": "c1", "promptId": "s1", "native": true, "mode": "native", "status": "steered"})));
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let steered = sandbox.steer("skip the slow tests", Some("c1")).await?;
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer::Operation;
    /// # let server = MockServer::start(); let client = server.client();
    /// # server.on(Operation::Interrupt).reply(Reply::json(serde_json::json!({"ok": true, "type": "sandbox.interrupted",
    /// #     "id": "x", "status": "interrupted", "conversationId": "c1"})));
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let stopped = sandbox.interrupt("c1").await?;
    /// assert_eq!(stopped.conversation_id.as_deref(), Some("c1"));
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer::Operation;
    /// # let server = MockServer::start(); let client = server.client();
    /// # server.on(Operation::Interrupt).reply(Reply::json(serde_json::json!({"ok": true, "type": "sandbox.interrupted",
    /// #     "id": "x", "status": "interrupted"})));
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer::Operation;
    /// # let server = MockServer::start(); let client = server.client();
    /// # server.on(Operation::ProviderModels).reply(Reply::json(serde_json::json!({"ok": true, "type": "provider.models",
    /// #     "providers": [{"provider": "codex", "defaultModel": "m", "models": []}]})));
    /// let catalog = client.provider_models().await?;
    /// assert_eq!(catalog.providers[0].default_model.as_deref(), Some("m"));
    /// # Ok(()) }
    /// ```
    pub async fn provider_models(&self) -> Result<ProviderModelsResponse> {
        self.api().provider_models().await
    }
}
