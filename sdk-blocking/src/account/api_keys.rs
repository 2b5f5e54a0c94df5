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
    /// let keys = client.api_keys().list()?;
    /// println!("{:?}, for up to {}", keys.catalog.actions, keys.catalog.max_ttl);
    /// assert_eq!((keys.api_keys.len(), keys.api_keys[0].key_last_four.len()), (1, 4));
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
    /// let keys = client.api_keys().list()?;
    /// println!("{:?}, for up to {}", keys.catalog.actions, keys.catalog.max_ttl);
    /// assert_eq!((keys.api_keys.len(), keys.api_keys[0].key_last_four.len()), (1, 4));
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
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::ScopedKey;
    /// use std::time::Duration;
    ///
    /// let key = ScopedKey::new().name("ci").action("exec").sandbox(sandbox.id()).ttl(Duration::from_secs(86_400));
    /// let made = client.api_keys().create_scoped(key)?;
    /// assert_eq!(made.secret.to_string(), "[redacted]");
    /// assert!(made.secret.expose().starts_with("sbx_live_"));
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
    /// # let server = sandboxer_mock_server::MockServer::builder().session("somebody").start().expect("a server");
    /// # let client = server.client_builder().api_key("somebody").build().expect("a client");
    /// # let client = sandboxer_blocking::Sandboxer::from_async(client);
    /// # let made = client.api_keys().create_scoped(sandboxer_blocking::ScopedKey::new().name("ci"))?;
    /// let left = client.api_keys().revoke(&made.api_key.id)?;
    /// assert!(left.iter().all(|key| key.id != made.api_key.id));
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
    /// # let server = sandboxer_mock_server::MockServer::builder().session("somebody").start().expect("a server");
    /// # let client = server.client_builder().api_key("somebody").build().expect("a client");
    /// # let client = sandboxer_blocking::Sandboxer::from_async(client);
    /// # let made = client.api_keys().create_scoped(sandboxer_blocking::ScopedKey::new().name("ci"))?;
    /// let rotated = client.api_keys().rotate(&made.api_key.id)?;
    /// assert_eq!(rotated.api_key.id, made.api_key.id);
    /// assert_ne!(rotated.secret.expose(), made.secret.expose());
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
    /// # let made = client.api_keys().create_scoped(sandboxer_blocking::ScopedKey::new().name("ci"))?;
    /// let usage = client.api_keys().usage(&made.api_key.id)?;
    /// assert_eq!((usage.usage.requests, usage.usage.window_days), (0, 30));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn usage(&self, id: &str) -> Result<ApiKeyUsageResponse> {
        let id = id.to_owned();
        self.client.call(|client| async move { client.api_keys().usage(&id).await })
    }
}
