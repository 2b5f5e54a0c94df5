//! Webhook endpoints: where an account wants to hear of what happens to its sandboxes.

use serde::{Deserialize, Serialize};
use url::Url;

use super::{happenings::Kind, ids, time::Millis};
use crate::store::{
    Reader, StoreError, Table, Writer,
    typed::{self, Record},
};

/// How many endpoints an account may have.
pub(crate) const MOST_ENDPOINTS: usize = 10;

/// A webhook endpoint of an account.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    pub(crate) id: String,
    pub(crate) account: String,
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// As it was given; two that mean the same count as one.
    pub(crate) url: String,
    pub(crate) events: Vec<Kind>,
    /// What deliveries are signed with.
    pub(crate) secret: String,
    pub(crate) created_at: Millis,
    pub(crate) updated_at: Millis,
}

impl Record for Endpoint {
    const TABLE: Table = Table::Endpoints;
    fn key(&self) -> String {
        endpoint_key(&self.account, &self.id)
    }
}

/// The key of an endpoint.
pub(crate) fn endpoint_key(account: &str, id: &str) -> String {
    format!("{account}/{id}")
}

/// A new signing secret: `whsec_` and 64 hexadecimal digits.
pub(crate) fn new_secret() -> String {
    let half = || uuid::Uuid::new_v4().simple().to_string();
    format!("whsec_{}{}", half(), half())
}

/// Why an endpoint cannot have a URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Another endpoint of the account has it.
    Exists,
    /// The account has as many endpoints as it may.
    Full,
}

impl Endpoint {
    /// An endpoint that is new.
    pub(crate) fn new(account: &str, name: Option<&str>, url: &str, events: Vec<Kind>, now: Millis) -> Self {
        Self {
            id: ids::endpoint(now),
            account: account.to_owned(),
            name: name.map(str::to_owned),
            url: url.to_owned(),
            events,
            secret: new_secret(),
            created_at: now,
            updated_at: now,
        }
    }

    /// Whether its URL stands for the same as another's, whichever way they are written.
    pub(crate) fn has_url_of(&self, other: &Endpoint) -> bool {
        meaning(&self.url) == meaning(&other.url)
    }

    /// Whether it is as another, whatever they are called by their ids.
    pub(super) fn says_the_same(&self, other: &Endpoint) -> bool {
        (&self.url, &self.secret, &self.name) == (&other.url, &other.secret, &other.name)
            && self.events == other.events
    }

    /// Whether it is told of such things.
    pub(crate) fn wants(&self, kind: Kind) -> bool {
        self.events.contains(&kind)
    }
}

/// The endpoints of an account, the oldest first.
pub(crate) fn of_account(tx: &dyn Reader, account: &str) -> Result<Vec<Endpoint>, StoreError> {
    let mut all: Vec<Endpoint> = typed::with_prefix(tx, &format!("{account}/"))?;
    all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    Ok(all)
}

/// Whether an endpoint of this id, which may be new, can have the URL it has.
pub(crate) fn room_for(tx: &dyn Reader, endpoint: &Endpoint) -> Result<Result<(), Taken>, StoreError> {
    let others: Vec<Endpoint> =
        of_account(tx, &endpoint.account)?.into_iter().filter(|other| other.id != endpoint.id).collect();
    if others.iter().any(|other| other.has_url_of(endpoint)) {
        return Ok(Err(Taken::Exists));
    }
    Ok(if others.len() < MOST_ENDPOINTS { Ok(()) } else { Err(Taken::Full) })
}

/// Takes an endpoint away with everything that waits for it.
pub(crate) fn remove(tx: &mut dyn Writer, endpoint: &Endpoint) -> Result<(), StoreError> {
    super::deliveries::drop_all(tx, &endpoint.id)?;
    typed::remove::<Endpoint>(tx, &endpoint.key())
}

/// What a URL stands for, whichever way it is written; what follows `#` is never sent.
pub(super) fn meaning(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut parsed) => {
            parsed.set_fragment(None);
            parsed.into()
        }
        Err(_) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_mean_the_same_are_the_same() {
        for same in
            ["https://Hooks.Example:443/in", "HTTPS://hooks.example/x/../in", "https://hooks.example/in#part"]
        {
            assert_eq!(meaning(same), meaning("https://hooks.example/in"), "{same}");
        }
        for other in ["https://hooks.example/in/", "https://hooks.example/In", "https://hooks.example/in?x"] {
            assert_ne!(meaning(other), meaning("https://hooks.example/in"), "{other}");
        }
    }

    #[test]
    fn secrets_have_the_service_shape_and_differ() {
        let (one, two) = (new_secret(), new_secret());
        assert_eq!(one.len(), "whsec_".len() + 64);
        assert!(one["whsec_".len()..].bytes().all(|digit| digit.is_ascii_hexdigit()), "{one}");
        assert_ne!(one, two);
    }
}
