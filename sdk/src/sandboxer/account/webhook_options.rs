//! What a webhook endpoint is made with, and what of it can be changed.

use crate::{
    error::{Error, Result},
    models::{WebhookCreateRequest, WebhookEventType, WebhookUpdateRequest},
};

use super::checks;

/// The one port that deliveries go to.
const PORTS: &[u16] = &[443];

/// A webhook endpoint to create.
///
/// ```
/// use sandboxer::{NewWebhook, webhooks::WebhookEventType};
///
/// let webhook = NewWebhook::new("https://hooks.example/in")
///     .name("alerts")
///     .event(WebhookEventType::SandboxError)
///     .events([WebhookEventType::SandboxDegraded, WebhookEventType::SandboxRecovered]);
/// # drop(webhook);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct NewWebhook {
    request: WebhookCreateRequest,
}

impl NewWebhook {
    /// To this address: an `https` URL on port 443 with a public host, up to 2048 characters. Redirects are not followed
    /// when the service delivers. A local server may also take `http` and any port of this machine. At least one
    /// [`event`](Self::event) must follow.
    pub fn new(url: impl Into<String>) -> Self {
        Self { request: WebhookCreateRequest::new(url, []) }
    }

    /// The name shown to people, 1 to 100 characters.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.request = self.request.name(name);
        self
    }

    /// Sends events of this type; several calls add up.
    pub fn event(mut self, event: impl Into<WebhookEventType>) -> Self {
        self.request.events.push(event.into());
        self
    }

    /// Sends events of these types, as [`event`](Self::event) does for one.
    pub fn events<I>(self, events: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<WebhookEventType>,
    {
        events.into_iter().fold(self, Self::event)
    }

    pub(super) fn request(self) -> Result<WebhookCreateRequest> {
        checks::https("url", &self.request.url, PORTS)?;
        check_events(&self.request.events)?;
        Ok(self.request)
    }
}

/// What to change about a webhook endpoint; what is left out stays.
///
/// ```
/// use sandboxer::{WebhookUpdate, webhooks::WebhookEventType};
///
/// let change = WebhookUpdate::new().name("alerts").url("https://hooks.example/v2");
/// let fewer = WebhookUpdate::new().no_name().events([WebhookEventType::SandboxError]);
/// # drop((change, fewer));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct WebhookUpdate {
    request: WebhookUpdateRequest,
}

impl WebhookUpdate {
    /// Nothing to change yet; a verb refuses it so.
    pub fn new() -> Self {
        Self::default()
    }

    /// The name shown to people, 1 to 100 characters.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.request = self.request.name(name.into());
        self
    }

    /// Takes its name away.
    pub fn no_name(mut self) -> Self {
        self.request = self.request.name(None);
        self
    }

    /// Another address, as in [`NewWebhook::new`].
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.request = self.request.url(url);
        self
    }

    /// The types of events to send, at least one, in the place of those there are.
    pub fn events<I>(mut self, events: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<WebhookEventType>,
    {
        let events: Vec<WebhookEventType> = events.into_iter().map(Into::into).collect();
        self.request = self.request.events(events);
        self
    }

    pub(super) fn request(self) -> Result<WebhookUpdateRequest> {
        checks::some_change(self.request == WebhookUpdateRequest::new())?;
        if let Some(url) = &self.request.url {
            checks::https("url", url, PORTS)?;
        }
        if let Some(events) = &self.request.events {
            check_events(events)?;
        }
        Ok(self.request)
    }
}

fn check_events(events: &[WebhookEventType]) -> Result<()> {
    if events.is_empty() || events.iter().any(|event| event.as_str().is_empty()) {
        return Err(Error::invalid_input(
            "events",
            "must have at least one type of event, none of them empty",
        ));
    }
    Ok(())
}
