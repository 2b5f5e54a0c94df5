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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::Conversations).reply(Reply::json(serde_json::json!({"ok": true, "type": "conversation.list",
    /// #     "id": "x", "conversations": [{"id": "c1", "current": true, "running": false, "prompts": 2}]})));
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let conversations = sandbox.conversations()?;
    /// assert_eq!((conversations[0].id.as_str(), conversations[0].current), ("c1", true));
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::Steer).reply(Reply::json(serde_json::json!({"ok": true, "type": "prompt.steered", "id": "x",
    /// #     "conversationId": "c1", "promptId": "s1", "native": true, "mode": "native", "status": "steered"})));
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let steered = sandbox.steer("skip the slow tests", Some("c1"))?;
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::Interrupt).reply(Reply::json(serde_json::json!({"ok": true, "type": "sandbox.interrupted",
    /// #     "id": "x", "status": "interrupted", "conversationId": "c1"})));
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let stopped = sandbox.interrupt("c1")?;
    /// assert_eq!(stopped.conversation_id.as_deref(), Some("c1"));
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::Interrupt).reply(Reply::json(serde_json::json!({"ok": true, "type": "sandbox.interrupted",
    /// #     "id": "x", "status": "interrupted"})));
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
    /// # use sandboxer_mock_server::{MockServer, Reply}; use sandboxer_blocking::Operation;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # server.on(Operation::ProviderModels).reply(Reply::json(serde_json::json!({"ok": true, "type": "provider.models",
    /// #     "providers": [{"provider": "codex", "defaultModel": "m", "models": []}]})));
    /// let catalog = client.provider_models()?;
    /// assert_eq!(catalog.providers[0].default_model.as_deref(), Some("m"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn provider_models(&self) -> Result<ProviderModelsResponse> {
        self.call(|client| async move { client.provider_models().await })
    }
}
