//! Where the service sends its events.

use crate::{
    AsyncSandboxer,
    error::Result,
    models::{Webhook, WebhookSecretResponse},
    sandboxer::{Api, repeated::removed},
};

use super::{NewWebhook, WebhookUpdate};

/// The webhook endpoints of the account; comes from
/// [`AsyncSandboxer::webhook_endpoints`](crate::AsyncSandboxer::webhook_endpoints).
///
/// An account has at most 10, each URL once. What arrives there is checked with [`webhooks`](crate::webhooks).
#[derive(Clone, Debug)]
pub struct AsyncWebhookEndpoints {
    api: Api,
}

impl AsyncSandboxer {
    /// The webhook endpoints of the account.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let webhook = sandboxer::NewWebhook::new("https://hooks.example/in").name("alerts").event("sandbox.ready");
    /// # client.webhook_endpoints().create(webhook).await?;
    /// for endpoint in client.webhook_endpoints().list().await? {
    ///     println!("{} gets {:?}", endpoint.url, endpoint.events);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn webhook_endpoints(&self) -> AsyncWebhookEndpoints {
        AsyncWebhookEndpoints { api: self.api().clone() }
    }
}

impl AsyncWebhookEndpoints {
    /// Lists the endpoints, without their secrets.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let webhook = sandboxer::NewWebhook::new("https://hooks.example/in").name("alerts").event("sandbox.ready");
    /// # client.webhook_endpoints().create(webhook).await?;
    /// for endpoint in client.webhook_endpoints().list().await? {
    ///     println!("{} gets {:?}", endpoint.url, endpoint.events);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn list(&self) -> Result<Vec<Webhook>> {
        Ok(self.api.list_webhooks().await?.webhooks)
    }

    /// Creates an endpoint, and tells the secret that its deliveries are signed with, this once.
    ///
    /// A call that is cut off is not repeated, since it may have created it: look with [`list`](Self::list).
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for a bad option;
    /// `webhook_exists`, `webhook_limit` and `invalid_webhook_url` of the service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::{NewWebhook, models::WebhookEventType};
    ///
    /// let webhook = NewWebhook::new("https://hooks.example/in").event(WebhookEventType::SandboxReady);
    /// let made = client.webhook_endpoints().create(webhook).await?;
    /// assert!(made.secret.expose().starts_with("whsec_")); // keep it for `webhooks::Verifier`
    /// # Ok(()) }
    /// ```
    pub async fn create(&self, webhook: NewWebhook) -> Result<WebhookSecretResponse> {
        self.api.create_webhook(webhook.request()?).await
    }

    /// Reads one endpoint.
    ///
    /// # Errors
    ///
    /// `not_found` of the service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let webhook = sandboxer::NewWebhook::new("https://hooks.example/in").name("alerts").event("sandbox.ready");
    /// # let id = client.webhook_endpoints().create(webhook).await?.webhook.unwrap().id;
    /// assert_eq!(client.webhook_endpoints().get(&id).await?.url, "https://hooks.example/in");
    /// # Ok(()) }
    /// ```
    pub async fn get(&self, id: &str) -> Result<Webhook> {
        Ok(self.api.get_webhook(id).await?.webhook)
    }

    /// Changes an endpoint; its secret stays.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for a bad option or none;
    /// `not_found`, `webhook_exists` and `invalid_webhook_url` of the service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let webhook = sandboxer::NewWebhook::new("https://hooks.example/in").name("alerts").event("sandbox.ready");
    /// # let id = client.webhook_endpoints().create(webhook).await?.webhook.unwrap().id;
    /// use sandboxer::{WebhookUpdate, models::WebhookEventType};
    ///
    /// let change = WebhookUpdate::new().no_name().events([WebhookEventType::SandboxReady]);
    /// assert_eq!(client.webhook_endpoints().update(&id, change).await?.name, None);
    /// # Ok(()) }
    /// ```
    pub async fn update(&self, id: &str, change: WebhookUpdate) -> Result<Webhook> {
        self.api.update_webhook(id, change.request()?).await.map(|answer| answer.webhook)
    }

    /// Deletes an endpoint with the deliveries that wait for it; one on its way may still arrive.
    ///
    /// # Errors
    ///
    /// `not_found` of the service, unless an earlier try of the same call may have removed it; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let webhook = sandboxer::NewWebhook::new("https://hooks.example/in").name("alerts").event("sandbox.ready");
    /// # let id = client.webhook_endpoints().create(webhook).await?.webhook.unwrap().id;
    /// client.webhook_endpoints().delete(&id).await?;
    /// # Ok(()) }
    /// ```
    pub async fn delete(&self, id: &str) -> Result<()> {
        removed(self.api.delete_webhook(id).await)
    }

    /// Gives an endpoint a new secret, and tells it, this once.
    ///
    /// Let the receiver accept the old one, too, until what was signed with it has arrived. A call that is cut off
    /// is not repeated: the secret it may have made is lost, so rotate again.
    ///
    /// # Errors
    ///
    /// `not_found` of the service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let webhook = sandboxer::NewWebhook::new("https://hooks.example/in").name("alerts").event("sandbox.ready");
    /// # let id = client.webhook_endpoints().create(webhook).await?.webhook.unwrap().id;
    /// let rotated = client.webhook_endpoints().rotate_secret(&id).await?;
    /// assert!(rotated.secret.expose().starts_with("whsec_")); // for the receiver
    /// # Ok(()) }
    /// ```
    pub async fn rotate_secret(&self, id: &str) -> Result<WebhookSecretResponse> {
        self.api.rotate_webhook_signing_secret(id).await
    }
}
