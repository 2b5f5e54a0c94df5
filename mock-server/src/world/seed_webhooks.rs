//! Webhook endpoints that a world starts with.

use std::fmt;

use serde::Deserialize;

use super::{
    endpoints::{self, Endpoint, MOST_ENDPOINTS},
    happenings::Kind,
    ids,
    planted::{self, Look},
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
    /// Where events are sent. Of an endpoint that the account has already, the rest is replaced; once, and again when the
    /// world says something else. What calls make of it meanwhile, its removal too, outlives a restart with the same world.
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
            let is_another = |other: &WebhookSeed| {
                other.login() == login && endpoints::meaning(&other.url) == endpoints::meaning(&webhook.url)
            };
            if self.webhooks.iter().take(index).any(is_another) {
                return refuse("url: another endpoint of the account has it");
            }
            if self.webhooks.iter().filter(|other| other.login() == login).count() > MOST_ENDPOINTS {
                return refuse(&format!("an account has at most {MOST_ENDPOINTS}"));
            }
        }
        Ok(())
    }

    /// Writes the endpoints into the store; one for which the account has no room is left out.
    pub(super) fn plant_webhooks(&self, tx: &mut dyn Writer, now: Millis) -> Result<(), StoreError> {
        for seed in &self.webhooks {
            let account = self.account_id(seed.login());
            let entry = planted::endpoint(&account, &seed.url);
            let events = seed.kinds().unwrap_or_default();
            let look = planted::take(tx, &entry, &(&seed.url, &seed.secret, &seed.name, &events))?;
            if look == Look::Known {
                continue;
            }
            let mut endpoint = Endpoint::new(&account, seed.name.as_deref(), &seed.url, events, now);
            endpoint.secret.clone_from(&seed.secret);
            endpoint.id = ids::told_endpoint(&entry);
            let known = endpoints::of_account(&*tx, &account)?;
            // Found by its id, it has another URL since.
            let known = known
                .iter()
                .find(|known| known.has_url_of(&endpoint))
                .or_else(|| known.iter().find(|known| known.id == endpoint.id));
            if look == Look::Adopted {
                if known.is_none_or(|known| !known.says_the_same(&endpoint)) {
                    planted::pass_over(&entry);
                }
                continue;
            }
            if let Some(known) = known {
                (endpoint.id, endpoint.created_at) = (known.id.clone(), known.created_at);
            }
            match endpoints::room_for(&*tx, &endpoint)? {
                Ok(()) => typed::put(tx, &endpoint)?,
                Err(_) => {
                    tracing::warn!(%account, url = %seed.url, "there is no room for an endpoint of the world");
                    planted::forget(tx, &entry)?;
                }
            }
        }
        Ok(())
    }
}
