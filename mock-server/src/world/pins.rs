//! Which version of which environment a sandbox uses.

use super::{
    environments::{self, Contents, Environment, Version},
    sandboxes::Sandbox,
};
use crate::store::{Reader, StoreError};

/// A version of an environment, for a sandbox to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    name: String,
    environment: String,
    number: u64,
    passes_key: bool,
}

impl Pin {
    /// A version of an environment.
    pub(crate) fn new(environment: &Environment, version: &Version) -> Self {
        Self {
            name: environment.name.clone(),
            environment: environment.id.clone(),
            number: version.number,
            passes_key: version.contents.passes_key(),
        }
    }

    /// The latest version of an environment.
    pub(crate) fn latest(tx: &(impl Reader + ?Sized), environment: &Environment) -> Result<Self, StoreError> {
        Ok(Self::new(environment, &environments::latest(tx, environment)?))
    }

    /// What a sandbox uses; none if it has no environment, or one that was begun before they had versions.
    pub(crate) fn of(sandbox: &Sandbox) -> Option<Self> {
        Some(Self {
            name: sandbox.environment.clone()?,
            environment: sandbox.environment_id.clone()?,
            number: sandbox.environment_version?,
            passes_key: !sandbox.withholds_key,
        })
    }

    /// The id of the environment.
    pub(crate) fn environment(&self) -> &str {
        &self.environment
    }

    /// Lets a sandbox use it.
    pub(crate) fn give(self, sandbox: &mut Sandbox) {
        sandbox.environment = Some(self.name);
        sandbox.environment_id = Some(self.environment);
        sandbox.environment_version = Some(self.number);
        sandbox.withholds_key = !self.passes_key;
    }
}

/// Takes a sandbox's environment away.
pub(crate) fn take(sandbox: &mut Sandbox) {
    sandbox.environment = None;
    sandbox.environment_id = None;
    sandbox.environment_version = None;
}

/// What a sandbox gets of its environment. Where other members of the organisation may work in it, nothing of its
/// creator's own is passed on any more; what the organisation shares still is.
pub(crate) fn contents(
    tx: &(impl Reader + ?Sized),
    sandbox: &Sandbox,
) -> Result<Option<Contents>, StoreError> {
    let Some(Pin { environment, number, .. }) = Pin::of(sandbox) else { return Ok(None) };
    let version = environments::version(tx, &environment, number)?;
    let is_of_account = |version: &Version| version.owner == format!("account/{}", sandbox.account);
    let version = version.filter(|version| !(sandbox.is_open_to_members() && is_of_account(version)));
    Ok(version.map(|version| version.contents))
}
