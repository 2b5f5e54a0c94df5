//! API keys of the account.

use crate::{
    AsyncSandboxer,
    error::Result,
    models::{ApiKey, ApiKeySecretResponse, ApiKeyUsageResponse, ApiKeysResponse},
    sandboxer::Api,
};

use super::ScopedKey;

/// The API keys of the account; comes from [`AsyncSandboxer::api_keys`](crate::AsyncSandboxer::api_keys).
///
/// The secret of a key is told once, by the call that makes it, and never printed:
/// [`Secret::expose`](crate::wire::Secret::expose) reads it.
#[derive(Clone, Debug)]
pub struct AsyncApiKeys {
    api: Api,
}

impl AsyncSandboxer {
    /// The API keys of the account.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let answer = serde_json::json!({"ok": true, "type": "api_key.list", "apiKeys": [{"id": "sak_1",
    /// #     "name": "ci", "keyPrefix": "sbx_live", "keyLastFour": "c0de"}]});
    /// # server.on(sandboxer::Operation::ApiKeys).reply(sandboxer_mock_server::Reply::json(answer));
    /// let keys = client.api_keys().list().await?;
    /// println!("{:?}, for up to {}", keys.catalog.actions, keys.catalog.max_ttl);
    /// assert_eq!(keys.api_keys[0].key_last_four, "c0de");
    /// # Ok(()) }
    /// ```
    pub fn api_keys(&self) -> AsyncApiKeys {
        AsyncApiKeys { api: self.api().clone() }
    }
}

impl AsyncApiKeys {
    /// Lists the keys without their secrets, and what a new one may be granted.
    ///
    /// A key without `account.admin` gets an empty list.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let answer = serde_json::json!({"ok": true, "type": "api_key.list", "apiKeys": [{"id": "sak_1",
    /// #     "name": "ci", "keyPrefix": "sbx_live", "keyLastFour": "c0de"}]});
    /// # server.on(sandboxer::Operation::ApiKeys).reply(sandboxer_mock_server::Reply::json(answer));
    /// let keys = client.api_keys().list().await?;
    /// println!("{:?}, for up to {}", keys.catalog.actions, keys.catalog.max_ttl);
    /// assert_eq!(keys.api_keys[0].key_last_four, "c0de");
    /// # Ok(()) }
    /// ```
    pub async fn list(&self) -> Result<ApiKeysResponse> {
        self.api.api_keys().await
    }

    /// Creates a key that may do only what is granted, and tells its secret, this once.
    ///
    /// It needs the action `account.admin`. A call that is cut off is not repeated, since it may have made a key:
    /// look with [`list`](Self::list).
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for a bad option; and the failures
    /// of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let answer = serde_json::json!({"ok": true, "type": "api_key.created", "apiKey": {"id": "sak_1",
    /// #     "name": "ci", "keyPrefix": "sbx_live", "keyLastFour": "c0de"}, "secret": "sbx_live_1",
    /// #     "apiKeys": []});
    /// # server.on(sandboxer::Operation::CreateScopedApiKey).reply(sandboxer_mock_server::Reply::json(answer).with_status(201));
    /// use sandboxer::ScopedKey;
    /// use std::time::Duration;
    ///
    /// let key = ScopedKey::new().name("ci").action("exec").sandbox("bx_22222222").ttl(Duration::from_secs(86_400));
    /// let made = client.api_keys().create_scoped(key).await?;
    /// assert_eq!(made.secret.to_string(), "[redacted]");
    /// assert_eq!(made.secret.expose(), "sbx_live_1");
    /// # Ok(()) }
    /// ```
    pub async fn create_scoped(&self, key: ScopedKey) -> Result<ApiKeySecretResponse> {
        let request = key.request(self.api.dialect())?;
        self.api.create_scoped_api_key(request).await
    }

    /// Revokes a key, at once, and answers the keys that are left.
    ///
    /// # Errors
    ///
    /// `session_required` when the caller is itself a key that may not; `not_found`; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let answer = serde_json::json!({"ok": true, "type": "api_key.revoked", "apiKeys": []});
    /// # server.on(sandboxer::Operation::RevokeApiKey).reply(sandboxer_mock_server::Reply::json(answer));
    /// assert!(client.api_keys().revoke("sak_1").await?.is_empty());
    /// # Ok(()) }
    /// ```
    pub async fn revoke(&self, id: &str) -> Result<Vec<ApiKey>> {
        Ok(self.api.revoke_api_key(id).await?.api_keys)
    }

    /// Gives a key a new secret with the same scope and end, and tells it, this once.
    ///
    /// The old secret stops working. A call that is cut off is not repeated: the secret it may have made is lost,
    /// so rotate again.
    ///
    /// # Errors
    ///
    /// `session_required`, `not_found` and `api_key_expired` of the service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let answer = serde_json::json!({"ok": true, "type": "api_key.rotated", "apiKey": {"id": "sak_1",
    /// #     "name": "ci", "keyPrefix": "sbx_live", "keyLastFour": "c0de"}, "secret": "sbx_live_2",
    /// #     "apiKeys": []});
    /// # server.on(sandboxer::Operation::RotateApiKey).reply(sandboxer_mock_server::Reply::json(answer));
    /// let rotated = client.api_keys().rotate("sak_1").await?;
    /// assert_eq!((rotated.api_key.id.as_str(), rotated.secret.expose()), ("sak_1", "sbx_live_2"));
    /// # Ok(()) }
    /// ```
    pub async fn rotate(&self, id: &str) -> Result<ApiKeySecretResponse> {
        self.api.rotate_api_key(id).await
    }

    /// Tells how many requests a key made in the last 30 days (UTC), and what it made that still exists.
    ///
    /// It works for revoked keys, too.
    ///
    /// # Errors
    ///
    /// `not_found` of the service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let answer = serde_json::json!({"ok": true, "type": "api_key.usage", "id": "sak_1", "usage":
    /// #     {"requests": 12, "windowDays": 30}, "createdResources": []});
    /// # server.on(sandboxer::Operation::ApiKeyUsage).reply(sandboxer_mock_server::Reply::json(answer));
    /// let usage = client.api_keys().usage("sak_1").await?;
    /// assert_eq!((usage.usage.requests, usage.usage.window_days), (12, 30));
    /// # Ok(()) }
    /// ```
    pub async fn usage(&self, id: &str) -> Result<ApiKeyUsageResponse> {
        self.api.api_key_usage(id).await
    }
}
