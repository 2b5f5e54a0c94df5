//! API keys of the account.

use sandboxer::{
    Result, ScopedKey,
    models::{ApiKey, ApiKeySecretResponse, ApiKeyUsageResponse, ApiKeysResponse},
};

use crate::Sandboxer;

/// The API keys of the account; comes from [`Sandboxer::api_keys`](crate::Sandboxer::api_keys).
///
/// The secret of a key is told once, by the call that makes it, and never printed:
/// [`Secret::expose`](crate::wire::Secret::expose) reads it.
#[derive(Clone, Debug)]
pub struct ApiKeys {
    client: Sandboxer,
}

impl Sandboxer {
    /// The API keys of the account.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "api_key.list", "apiKeys": [{"id": "sak_1",
    /// #     "name": "ci", "keyPrefix": "sbx_live", "keyLastFour": "c0de"}]});
    /// # server.on(sandboxer_blocking::Operation::ApiKeys).reply(sandboxer_mock_server::Reply::json(answer));
    /// let keys = client.api_keys().list()?;
    /// println!("{:?}, for up to {}", keys.catalog.actions, keys.catalog.max_ttl);
    /// assert_eq!(keys.api_keys[0].key_last_four, "c0de");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn api_keys(&self) -> ApiKeys {
        ApiKeys { client: self.clone() }
    }
}

impl ApiKeys {
    /// Lists the keys without their secrets, and what a new one may be granted.
    ///
    /// A key without `account.admin` gets an empty list.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "api_key.list", "apiKeys": [{"id": "sak_1",
    /// #     "name": "ci", "keyPrefix": "sbx_live", "keyLastFour": "c0de"}]});
    /// # server.on(sandboxer_blocking::Operation::ApiKeys).reply(sandboxer_mock_server::Reply::json(answer));
    /// let keys = client.api_keys().list()?;
    /// println!("{:?}, for up to {}", keys.catalog.actions, keys.catalog.max_ttl);
    /// assert_eq!(keys.api_keys[0].key_last_four, "c0de");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn list(&self) -> Result<ApiKeysResponse> {
        self.client.call(|client| async move { client.api_keys().list().await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "api_key.created", "apiKey": {"id": "sak_1",
    /// #     "name": "ci", "keyPrefix": "sbx_live", "keyLastFour": "c0de"}, "secret": "sbx_live_1",
    /// #     "apiKeys": []});
    /// # server.on(sandboxer_blocking::Operation::CreateScopedApiKey).reply(sandboxer_mock_server::Reply::json(answer).with_status(201));
    /// use sandboxer_blocking::ScopedKey;
    /// use std::time::Duration;
    ///
    /// let key = ScopedKey::new().name("ci").action("exec").sandbox("bx_22222222").ttl(Duration::from_secs(86_400));
    /// let made = client.api_keys().create_scoped(key)?;
    /// assert_eq!(made.secret.to_string(), "[redacted]");
    /// assert_eq!(made.secret.expose(), "sbx_live_1");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn create_scoped(&self, key: ScopedKey) -> Result<ApiKeySecretResponse> {
        self.client.call(|client| async move { client.api_keys().create_scoped(key).await })
    }

    /// Revokes a key, at once, and answers the keys that are left.
    ///
    /// # Errors
    ///
    /// `session_required` when the caller is itself a key that may not; `not_found`; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "api_key.revoked", "apiKeys": []});
    /// # server.on(sandboxer_blocking::Operation::RevokeApiKey).reply(sandboxer_mock_server::Reply::json(answer));
    /// assert!(client.api_keys().revoke("sak_1")?.is_empty());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn revoke(&self, id: &str) -> Result<Vec<ApiKey>> {
        let id = id.to_owned();
        self.client.call(|client| async move { client.api_keys().revoke(&id).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "api_key.rotated", "apiKey": {"id": "sak_1",
    /// #     "name": "ci", "keyPrefix": "sbx_live", "keyLastFour": "c0de"}, "secret": "sbx_live_2",
    /// #     "apiKeys": []});
    /// # server.on(sandboxer_blocking::Operation::RotateApiKey).reply(sandboxer_mock_server::Reply::json(answer));
    /// let rotated = client.api_keys().rotate("sak_1")?;
    /// assert_eq!((rotated.api_key.id.as_str(), rotated.secret.expose()), ("sak_1", "sbx_live_2"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn rotate(&self, id: &str) -> Result<ApiKeySecretResponse> {
        let id = id.to_owned();
        self.client.call(|client| async move { client.api_keys().rotate(&id).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "api_key.usage", "id": "sak_1", "usage":
    /// #     {"requests": 12, "windowDays": 30}, "createdResources": []});
    /// # server.on(sandboxer_blocking::Operation::ApiKeyUsage).reply(sandboxer_mock_server::Reply::json(answer));
    /// let usage = client.api_keys().usage("sak_1")?;
    /// assert_eq!((usage.usage.requests, usage.usage.window_days), (12, 30));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn usage(&self, id: &str) -> Result<ApiKeyUsageResponse> {
        let id = id.to_owned();
        self.client.call(|client| async move { client.api_keys().usage(&id).await })
    }
}
