//! Webhook endpoints that a world starts with.

use std::fmt;

use serde::Deserialize;

use super::{
    endpoints::{self, Endpoint, MOST_ENDPOINTS},
    happenings::Kind,
    seed::{WorldError, WorldSeed},
    seed_accounts::DEFAULT_LOGIN,
    time::Millis,
};
use crate::{
    deliveries,
    outbound::{self, Allowed},
    store::{StoreError, Writer, typed},
};

/// A webhook endpoint.
///
/// In a world file:
///
/// ```
/// # let text = r#"
/// [[webhooks]]
/// url = "http://127.0.0.1:8080/in"   # needs --allow-loopback-targets; or a public https URL
/// secret = "whsec_local"             # what the receiver verifies with
/// account = "alice"                  # leave out for the default account
/// events = ["sandbox.ready"]         # leave out for all
/// # [[accounts]]
/// # login = "alice"
/// # "#;
/// # sandboxer_mock_server::WorldSeed::from_toml(text).unwrap();
/// ```
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookSeed {
    /// Where events are sent. Of an endpoint that the account has already, the rest is replaced.
    pub url: String,
    /// What deliveries are signed with, as the receiver knows it.
    pub secret: String,
    /// The login of the account it belongs to; the default account if `None`.
    #[serde(default)]
    pub account: Option<String>,
    /// A name for it.
    #[serde(default)]
    pub name: Option<String>,
    /// The events that are sent; all if `None`.
    #[serde(default)]
    pub events: Option<Vec<String>>,
}

impl fmt::Debug for WebhookSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSeed")
            .field("name", &self.name)
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

impl WebhookSeed {
    fn login(&self) -> &str {
        self.account.as_deref().unwrap_or(DEFAULT_LOGIN)
    }

    fn kinds(&self) -> Option<Vec<Kind>> {
        match &self.events {
            None => Some(Kind::ALL.to_vec()),
            Some(events) => events.iter().map(|event| Kind::of_name(event)).collect(),
        }
    }
}

impl WorldSeed {
    /// Refuses endpoints that nothing could be sent to.
    pub(super) fn check_webhooks(&self) -> Result<(), WorldError> {
        for (index, webhook) in self.webhooks.iter().enumerate() {
            let refuse = |what: &str| Err(WorldError(format!("webhooks[{index}]: {what}")));
            let login = webhook.login();
            if login != DEFAULT_LOGIN && !self.accounts.iter().any(|account| account.login == login) {
                return refuse("account: no account has that login");
            }
            // Whether this machine may be reached is the server's to say, when it delivers.
            if let Err(problem) =
                outbound::check(&webhook.url, Allowed { ports: deliveries::PORTS, loopback: true })
            {
                return refuse(&format!("url: {problem}"));
            }
            if webhook.secret.is_empty() {
                return refuse("secret: must not be empty");
            }
            if webhook.kinds().is_none_or(|kinds| kinds.is_empty()) {
                return refuse("events: must be one or more of the events there are");
            }
            if self.webhooks.iter().filter(|other| other.login() == login).count() > MOST_ENDPOINTS {
                return refuse(&format!("an account has at most {MOST_ENDPOINTS}"));
            }
        }
        Ok(())
    }

    /// Writes the endpoints into the store.
    pub(super) fn plant_webhooks(&self, tx: &mut dyn Writer, now: Millis) -> Result<(), StoreError> {
        for seed in &self.webhooks {
            let account = self.account_id(seed.login());
            let mut endpoint = Endpoint::new(&account, seed.name.as_deref(), &seed.url, Vec::new(), now);
            let known = endpoints::of_account(&*tx, &account)?;
            if let Some(known) = known.into_iter().find(|known| known.has_url_of(&endpoint)) {
                (endpoint.id, endpoint.created_at) = (known.id, known.created_at);
            }
            endpoint.events = seed.kinds().unwrap_or_default();
            endpoint.secret.clone_from(&seed.secret);
            typed::put(tx, &endpoint)?;
        }
        Ok(())
    }
}
