//! What happens to sandboxes, as webhooks, telemetry and the page tell it. Written with the change it tells of.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    deliveries::Delivery,
    endpoints, ids,
    sandboxes::{Sandbox, State},
    telemetry::Export,
    time::{self, Millis},
};
use crate::store::{
    StoreError, Table, Writer,
    typed::{self, Derived, Record},
};

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    #[serde(rename = "sandbox.ready")]
    Ready,
    #[serde(rename = "sandbox.error")]
    Error,
    #[serde(rename = "sandbox.archived")]
    Archived,
    #[serde(rename = "sandbox.hydrated")]
    Hydrated,
    #[serde(rename = "sandbox.degraded")]
    Degraded,
    #[serde(rename = "sandbox.recovered")]
    Recovered,
}

impl Kind {
    /// Every kind.
    pub(crate) const ALL: [Kind; 6] =
        [Kind::Ready, Kind::Error, Kind::Archived, Kind::Hydrated, Kind::Degraded, Kind::Recovered];

    /// The kind that the service writes so.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The kind as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Kind::Ready => "sandbox.ready",
            Kind::Error => "sandbox.error",
            Kind::Archived => "sandbox.archived",
            Kind::Hydrated => "sandbox.hydrated",
            Kind::Degraded => "sandbox.degraded",
            Kind::Recovered => "sandbox.recovered",
        }
    }

    /// What a change of state is told as, if it is told at all.
    fn of_change(before: State, after: State) -> Option<Self> {
        match after {
            _ if before == after => None,
            State::Ready if before.is_starting() => Some(Kind::Ready),
            State::Error => Some(Kind::Error),
            State::Archived => Some(Kind::Archived),
            _ => None,
        }
    }
}

/// One thing that happened to a sandbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Happening {
    /// `evt_` and digits that sort by the time.
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) at: Millis,
    /// The account that created the sandbox.
    pub(crate) account: String,
    pub(crate) sandbox: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) previous_state: Option<State>,
    #[serde(default)]
    pub(crate) state: Option<State>,
    #[serde(default)]
    pub(crate) reason: Option<String>,
}

/// Rows of the index that lead to all happenings, the oldest first.
pub(crate) const BY_TIME: &str = "happening/";

impl Record for Happening {
    const TABLE: Table = Table::Happenings;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        format!("{}/{}", self.account, self.id)
    }

    fn derive(&self, derived: &mut Derived) {
        derived.row(format!("{BY_TIME}{:016}/{}", self.at.max(0), self.id), self.key());
    }
}

impl Happening {
    /// What webhook endpoints are told.
    pub(crate) fn body(&self) -> Value {
        let mut data = json!({"sandbox": {"id": self.sandbox, "name": self.name}});
        if let Some(state) = self.previous_state {
            data["previousState"] = state.as_str().into();
        }
        if let Some(state) = self.state {
            data["state"] = state.as_str().into();
        }
        if matches!(self.kind, Kind::Degraded | Kind::Recovered) {
            data["reason"] = self.reason.clone().into();
        }
        json!({
            "id": self.id,
            "type": self.kind.as_str(),
            "createdAt": time::iso(self.at),
            "data": data,
        })
    }
}

/// Tells of a change of state, if it is one that is told.
pub(crate) fn state_changed(
    tx: &mut dyn Writer,
    sandbox: &Sandbox,
    before: State,
    now: Millis,
) -> Result<(), StoreError> {
    match Kind::of_change(before, sandbox.state) {
        Some(kind) => tell(tx, happening(sandbox, kind, Some(before), Some(sandbox.state), None, now)),
        None => Ok(()),
    }
}

/// A happening of a sandbox.
pub(crate) fn happening(
    sandbox: &Sandbox,
    kind: Kind,
    previous_state: Option<State>,
    state: Option<State>,
    reason: Option<&str>,
    now: Millis,
) -> Happening {
    Happening {
        id: ids::happening(now),
        kind,
        at: now,
        account: sandbox.account.clone(),
        sandbox: sandbox.id.clone(),
        name: sandbox.name.clone(),
        previous_state,
        // The two that are about a sandbox that goes on say what it is doing.
        state: state.or_else(|| matches!(kind, Kind::Degraded | Kind::Recovered).then_some(sandbox.state)),
        reason: reason.map(str::to_owned),
    }
}

/// Writes a happening down, for everybody who wants to hear of it: what webhook endpoints and the telemetry of the account
/// are to be told is queued with it.
pub(crate) fn tell(tx: &mut dyn Writer, happening: Happening) -> Result<(), StoreError> {
    for endpoint in endpoints::of_account(&*tx, &happening.account)? {
        if endpoint.wants(happening.kind) {
            typed::put(tx, &Delivery::new(&happening, &endpoint.id))?;
        }
    }
    Export::queue(tx, &happening)?;
    typed::put(tx, &happening)
}
