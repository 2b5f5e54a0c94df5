//! The codes of failures: where each comes from, and that each is listed where it belongs.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use serde::Deserialize;

use crate::{
    Error, Result,
    load::{Operation, RepeatRule},
};

/// A code, as `x-error-codes` describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorCode {
    pub status: u16,
    /// The operations that answer with it under another status.
    #[serde(rename = "statusAt", default)]
    pub status_at: IndexMap<String, u16>,
    pub produced: Produced,
    #[serde(default)]
    pub scenarios: Vec<String>,
    pub retryable: Option<bool>,
    pub meaning: String,
}

/// How the local server is brought to answer with a code.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Produced {
    /// What was called before leads to it.
    Ruled,
    /// One of its scenarios has to be set first.
    Scenario,
    /// Not at all: an operation that the document does not have answers with it.
    Elsewhere,
}

impl ErrorCode {
    /// The status that it comes under at an operation.
    pub(crate) fn status_of(&self, operation: &str) -> u16 {
        self.status_at.get(operation).copied().unwrap_or(self.status)
    }

    /// What leads to it, for people.
    pub(crate) fn way(&self) -> String {
        match self.produced {
            Produced::Ruled => "ruled".to_owned(),
            Produced::Scenario => format!("scenario {}", self.scenarios.join(" or ")),
            Produced::Elsewhere => "elsewhere".to_owned(),
        }
    }
}

/// Refuses codes that nothing describes, and marks that do not fit where a code is listed.
pub(crate) fn verify(
    codes: &IndexMap<String, ErrorCode>,
    common: &[String],
    operations: &[Operation],
    rules: &[RepeatRule],
) -> Result<()> {
    let lists = operations.iter().map(|operation| (operation.id.as_str(), &operation.errors));
    let rows = rules.iter().map(|rule| (rule.name.as_str(), &rule.when.codes));
    for (place, list) in lists.clone().chain(rows) {
        if let Some(code) = list.iter().find(|code| !codes.contains_key(*code)) {
            return Err(Error::new(format!("{place}: the code `{code}` is not described")));
        }
    }
    let listed: BTreeSet<&String> = lists.flat_map(|(_, list)| list).chain(common).collect();
    for (name, code) in codes {
        let odd = |what: &str| Err(Error::new(format!("the code `{name}` {what}")));
        if (code.produced == Produced::Scenario) == code.scenarios.is_empty() {
            return odd("needs `scenarios` when it is produced by one, and only then");
        }
        match (code.produced == Produced::Elsewhere, listed.contains(name)) {
            (true, true) => return odd("is produced elsewhere, and an operation lists it"),
            (false, false) => return odd("is listed by no operation"),
            _ => {}
        }
        for (id, status) in &code.status_at {
            let lists = |operation: &Operation| operation.id == *id && operation.own_errors.contains(name);
            if !operations.iter().any(lists) {
                return odd(&format!("has a status at `{id}`, which does not list it"));
            }
            if *status == code.status {
                return odd(&format!("has its own status at `{id}` once more"));
            }
        }
    }
    Ok(())
}
