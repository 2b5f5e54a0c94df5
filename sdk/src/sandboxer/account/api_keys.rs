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
    /// let keys = client.api_keys().list().await?;
    /// println!("{:?}, for up to {}", keys.catalog.actions, keys.catalog.max_ttl);
    /// assert_eq!((keys.api_keys.len(), keys.api_keys[0].key_last_four.len()), (1, 4));
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
    /// let keys = client.api_keys().list().await?;
    /// println!("{:?}, for up to {}", keys.catalog.actions, keys.catalog.max_ttl);
    /// assert_eq!((keys.api_keys.len(), keys.api_keys[0].key_last_four.len()), (1, 4));
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
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::ScopedKey;
    /// use std::time::Duration;
    ///
    /// let key = ScopedKey::new().name("ci").action("exec").sandbox(sandbox.id()).ttl(Duration::from_secs(86_400));
    /// let made = client.api_keys().create_scoped(key).await?;
    /// assert_eq!(made.secret.to_string(), "[redacted]");
    /// assert!(made.secret.expose().starts_with("sbx_live_"));
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
    /// # let server = sandboxer_mock_server::MockServer::builder().session("somebody").start().expect("a server");
    /// # let client = server.client_builder().api_key("somebody").build()?;
    /// # let made = client.api_keys().create_scoped(sandboxer::ScopedKey::new().name("ci")).await?;
    /// let left = client.api_keys().revoke(&made.api_key.id).await?;
    /// assert!(left.iter().all(|key| key.id != made.api_key.id));
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
    /// # let server = sandboxer_mock_server::MockServer::builder().session("somebody").start().expect("a server");
    /// # let client = server.client_builder().api_key("somebody").build()?;
    /// # let made = client.api_keys().create_scoped(sandboxer::ScopedKey::new().name("ci")).await?;
    /// let rotated = client.api_keys().rotate(&made.api_key.id).await?;
    /// assert_eq!(rotated.api_key.id, made.api_key.id);
    /// assert_ne!(rotated.secret.expose(), made.secret.expose());
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
    /// # let made = client.api_keys().create_scoped(sandboxer::ScopedKey::new().name("ci")).await?;
    /// let usage = client.api_keys().usage(&made.api_key.id).await?;
    /// assert_eq!((usage.usage.requests, usage.usage.window_days), (0, 30));
    /// # Ok(()) }
    /// ```
    pub async fn usage(&self, id: &str) -> Result<ApiKeyUsageResponse> {
        self.api.api_key_usage(id).await
    }
}
