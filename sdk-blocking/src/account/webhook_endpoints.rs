//! Where the service sends its events.

use sandboxer::{
    NewWebhook, Result, WebhookUpdate,
    models::{Webhook, WebhookSecretResponse},
};

use crate::Sandboxer;

/// The webhook endpoints of the account; comes from
/// [`Sandboxer::webhook_endpoints`](crate::Sandboxer::webhook_endpoints).
///
/// An account has at most 10, each URL once. What arrives there is checked with [`webhooks`](crate::webhooks).
#[derive(Clone, Debug)]
pub struct WebhookEndpoints {
    client: Sandboxer,
}

impl Sandboxer {
    /// The webhook endpoints of the account.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let webhook = sandboxer_blocking::NewWebhook::new("https://hooks.example/in").name("alerts").event("sandbox.ready");
    /// # client.webhook_endpoints().create(webhook)?;
    /// for endpoint in client.webhook_endpoints().list()? {
    ///     println!("{} gets {:?}", endpoint.url, endpoint.events);
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn webhook_endpoints(&self) -> WebhookEndpoints {
        WebhookEndpoints { client: self.clone() }
    }
}

impl WebhookEndpoints {
    /// Lists the endpoints, without their secrets.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let webhook = sandboxer_blocking::NewWebhook::new("https://hooks.example/in").name("alerts").event("sandbox.ready");
    /// # client.webhook_endpoints().create(webhook)?;
    /// for endpoint in client.webhook_endpoints().list()? {
    ///     println!("{} gets {:?}", endpoint.url, endpoint.events);
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn list(&self) -> Result<Vec<Webhook>> {
        self.client.call(|client| async move { client.webhook_endpoints().list().await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::{NewWebhook, models::WebhookEventType};
    ///
    /// let webhook = NewWebhook::new("https://hooks.example/in").event(WebhookEventType::SandboxReady);
    /// let made = client.webhook_endpoints().create(webhook)?;
    /// assert!(made.secret.expose().starts_with("whsec_")); // keep it for `webhooks::Verifier`
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn create(&self, webhook: NewWebhook) -> Result<WebhookSecretResponse> {
        self.client.call(|client| async move { client.webhook_endpoints().create(webhook).await })
    }

    /// Reads one endpoint.
    ///
    /// # Errors
    ///
    /// `not_found` of the service; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let webhook = sandboxer_blocking::NewWebhook::new("https://hooks.example/in").name("alerts").event("sandbox.ready");
    /// # let id = client.webhook_endpoints().create(webhook)?.webhook.unwrap().id;
    /// assert_eq!(client.webhook_endpoints().get(&id)?.url, "https://hooks.example/in");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn get(&self, id: &str) -> Result<Webhook> {
        let id = id.to_owned();
        self.client.call(|client| async move { client.webhook_endpoints().get(&id).await })
    }

    /// Changes an endpoint; its secret stays.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for a bad option or none;
    /// `not_found`, `webhook_exists` and `invalid_webhook_url` of the service; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let webhook = sandboxer_blocking::NewWebhook::new("https://hooks.example/in").name("alerts").event("sandbox.ready");
    /// # let id = client.webhook_endpoints().create(webhook)?.webhook.unwrap().id;
    /// use sandboxer_blocking::{WebhookUpdate, models::WebhookEventType};
    ///
    /// let change = WebhookUpdate::new().no_name().events([WebhookEventType::SandboxReady]);
    /// assert_eq!(client.webhook_endpoints().update(&id, change)?.name, None);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn update(&self, id: &str, change: WebhookUpdate) -> Result<Webhook> {
        let id = id.to_owned();
        self.client.call(|client| async move { client.webhook_endpoints().update(&id, change).await })
    }

    /// Deletes an endpoint with the deliveries that wait for it; one on its way may still arrive.
    ///
    /// # Errors
    ///
    /// `not_found` of the service, unless an earlier try of the same call may have removed it; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let webhook = sandboxer_blocking::NewWebhook::new("https://hooks.example/in").name("alerts").event("sandbox.ready");
    /// # let id = client.webhook_endpoints().create(webhook)?.webhook.unwrap().id;
    /// client.webhook_endpoints().delete(&id)?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn delete(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.client.call(|client| async move { client.webhook_endpoints().delete(&id).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let webhook = sandboxer_blocking::NewWebhook::new("https://hooks.example/in").name("alerts").event("sandbox.ready");
    /// # let id = client.webhook_endpoints().create(webhook)?.webhook.unwrap().id;
    /// let rotated = client.webhook_endpoints().rotate_secret(&id)?;
    /// assert!(rotated.secret.expose().starts_with("whsec_")); // for the receiver
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn rotate_secret(&self, id: &str) -> Result<WebhookSecretResponse> {
        let id = id.to_owned();
        self.client.call(|client| async move { client.webhook_endpoints().rotate_secret(&id).await })
    }
}
