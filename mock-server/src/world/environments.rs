//! Environments: what sandboxes are started with, in versions that never change.

use std::{collections::BTreeMap, ops::ControlFlow};

use serde::{Deserialize, Serialize};

use super::{
    dotenv, ids,
    repositories::Selected,
    sandboxes::{State, listed},
    time::Millis,
};
use crate::store::{
    Order, Reader, StoreError, Table, Writer,
    typed::{self, Derived, Record},
};

/// The environment that every account and organisation begins with.
pub(crate) const BASE: &str = "base";

/// How many versions of an environment are kept; of older ones, those that a sandbox uses.
const VERSIONS_KEPT: usize = 100;

/// An environment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Environment {
    pub(crate) id: String,
    /// Whose it is: `account/ID` or `organisation/ID`.
    pub(crate) owner: String,
    pub(crate) name: String,
    pub(crate) is_default: bool,
    pub(crate) created_at: Millis,
    /// The number of its latest version.
    pub(crate) latest: u64,
    /// When it was last said whether it is safe for third parties.
    #[serde(default)]
    pub(crate) safety_answered_at: Option<Millis>,
    #[serde(default)]
    pub(crate) deleted_at: Option<Millis>,
}

/// A version of an environment: written once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Version {
    pub(crate) id: String,
    /// The id of the environment.
    pub(crate) environment: String,
    /// Whose it is, as in [`Environment::owner`].
    pub(crate) owner: String,
    pub(crate) number: u64,
    pub(crate) created_at: Millis,
    #[serde(flatten)]
    pub(crate) contents: Contents,
}

/// What a version holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contents {
    /// Nothing at all is passed on, whatever the other flags say.
    pub(crate) safe_for_third_parties: bool,
    pub(crate) pass_github: bool,
    pub(crate) pass_secrets: bool,
    pub(crate) pass_sandbox_credentials: bool,
    pub(crate) pass_agents_credentials: bool,
    /// The variables, as `.env` text that can be read.
    pub(crate) env: String,
    pub(crate) secret_files: Vec<SecretFile>,
    pub(crate) repositories: Vec<Selected>,
}

/// A file that is written into the work folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SecretFile {
    pub(crate) path: String,
    pub(crate) contents: String,
}

impl Default for Contents {
    fn default() -> Self {
        Self {
            safe_for_third_parties: false,
            pass_github: true,
            pass_secrets: true,
            pass_sandbox_credentials: true,
            pass_agents_credentials: true,
            env: String::new(),
            secret_files: Vec::new(),
            repositories: Vec::new(),
        }
    }
}

impl Contents {
    /// Whether sandboxes get the variables and files.
    pub(crate) fn passes_secrets(&self) -> bool {
        self.pass_secrets && !self.safe_for_third_parties
    }

    /// Whether sandboxes get a key of this service.
    pub(crate) fn passes_key(&self) -> bool {
        self.pass_sandbox_credentials && !self.safe_for_third_parties
    }

    /// The variables that sandboxes get.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        match self.passes_secrets() {
            // Checked when it was written.
            true => dotenv::parse(&self.env).unwrap_or_default(),
            false => BTreeMap::new(),
        }
    }

    /// The files that sandboxes get.
    pub(crate) fn files(&self) -> &[SecretFile] {
        if self.passes_secrets() { &self.secret_files } else { &[] }
    }

    /// The repositories that sandboxes get: without the sign-in at GitHub, only those that anybody can read.
    pub(crate) fn checkouts(&self) -> impl Iterator<Item = &Selected> {
        self.repositories.iter().filter(|selected| {
            !self.safe_for_third_parties && (self.pass_github || !selected.repository.is_private)
        })
    }
}

fn list(owner: &str) -> String {
    format!("environments/{owner}/all/")
}

fn name_row(owner: &str, name: &str) -> String {
    format!("environments/{owner}/name/{name}")
}

fn default_row(owner: &str) -> String {
    format!("environments/{owner}/default")
}

/// Rows of the index that lead to the sandboxes of a version of an environment; also the name of the sum of them.
pub(crate) fn pinned(environment: &str, number: u64) -> String {
    format!("pinned/{environment}/{number:016}")
}

/// Before every such row of an environment.
fn pinned_to_any(environment: &str) -> String {
    format!("pinned/{environment}/")
}

impl Record for Environment {
    const TABLE: Table = Table::Environments;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        self.id.clone()
    }

    fn derive(&self, derived: &mut Derived) {
        if self.deleted_at.is_some() {
            return;
        }
        derived.row(format!("{}{:016}/{}", list(&self.owner), self.created_at.max(0), self.name), &self.id);
        derived.row(name_row(&self.owner, &self.name), &self.id);
        if self.is_default {
            derived.row(default_row(&self.owner), &self.id);
        }
    }
}

fn version_key(environment: &str, number: u64) -> String {
    format!("{environment}/{number:016}")
}

/// Rows of the index that tell the id and the time of an environment's versions, without their contents.
fn summaries(environment: &str) -> String {
    format!("versions/{environment}/")
}

impl Record for Version {
    const TABLE: Table = Table::EnvironmentVersions;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        version_key(&self.environment, self.number)
    }

    fn derive(&self, derived: &mut Derived) {
        let row = format!("{}{:016}", summaries(&self.environment), self.number);
        derived.row(row, format!("{} {}", self.id, self.created_at));
    }
}

/// The id and the time of a version.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) id: String,
    pub(crate) number: u64,
    pub(crate) created_at: Millis,
    /// How many sandboxes use it.
    pub(crate) sandboxes: u64,
}

/// The versions of an environment, the newest first.
pub(crate) fn versions(tx: &dyn Reader, environment: &str) -> Result<Vec<Summary>, StoreError> {
    let prefix = summaries(environment);
    let mut found = Vec::new();
    typed::rows(tx, &prefix, typed::after_prefix(&prefix).as_deref(), Order::Descending, |key, value| {
        let (id, at) = value.split_once(' ').unwrap_or((value, "0"));
        found.push(Summary {
            id: id.to_owned(),
            number: key[prefix.len()..].parse().unwrap_or(0),
            created_at: at.parse().unwrap_or(0),
            sandboxes: 0,
        });
        ControlFlow::Continue(())
    })?;
    for summary in &mut found {
        summary.sandboxes = typed::sum(tx, &pinned(environment, summary.number))?;
    }
    Ok(found)
}

/// A version of an environment.
pub(crate) fn version(
    tx: &(impl Reader + ?Sized),
    environment: &str,
    number: u64,
) -> Result<Option<Version>, StoreError> {
    typed::get(tx, &version_key(environment, number))
}

/// The latest version of an environment.
pub(crate) fn latest(tx: &(impl Reader + ?Sized), environment: &Environment) -> Result<Version, StoreError> {
    version(tx, &environment.id, environment.latest)?.ok_or_else(|| StoreError::Corrupt {
        table: Table::EnvironmentVersions.name(),
        key: version_key(&environment.id, environment.latest),
        problem: "it is missing".into(),
    })
}

/// The environments of an owner, the oldest first.
pub(crate) fn of_owner(tx: &(impl Reader + ?Sized), owner: &str) -> Result<Vec<Environment>, StoreError> {
    let ids = typed::rows_with_prefix(tx, &list(owner), usize::MAX)?;
    let found = ids.iter().map(|id| typed::get(tx, id)).collect::<Result<Vec<_>, _>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// An environment of an owner, by its name.
pub(crate) fn by_name(
    tx: &(impl Reader + ?Sized),
    owner: &str,
    name: &str,
) -> Result<Option<Environment>, StoreError> {
    match typed::row(tx, &name_row(owner, name))? {
        Some(id) => typed::get(tx, &id),
        None => Ok(None),
    }
}

/// An environment of an owner, by its id; one that was removed is not found.
pub(crate) fn by_id(
    tx: &(impl Reader + ?Sized),
    owner: &str,
    id: &str,
) -> Result<Option<Environment>, StoreError> {
    let found: Option<Environment> = typed::get(tx, id)?;
    Ok(found.filter(|it| it.owner == owner && it.deleted_at.is_none()))
}

/// The default environment of an owner; `None` before it was asked for the first time.
pub(crate) fn default_of(
    tx: &(impl Reader + ?Sized),
    owner: &str,
) -> Result<Option<Environment>, StoreError> {
    match typed::row(tx, &default_row(owner))? {
        Some(id) => typed::get(tx, &id),
        None => Ok(None),
    }
}

/// The default environment of an owner, made the first time it is asked for.
pub(crate) fn ensure_default(
    tx: &mut dyn Writer,
    owner: &str,
    now: Millis,
) -> Result<Environment, StoreError> {
    match default_of(&*tx, owner)? {
        Some(found) => Ok(found),
        None => {
            let id = ids::base_environment(owner);
            make(
                tx,
                Environment { is_default: true, ..blank(id, owner, BASE, now) },
                Contents::default(),
                now,
            )
        }
    }
}

/// The id of an environment that a world names, told from its owner and its name.
pub(crate) fn seeded_id(owner: &str, name: &str) -> String {
    match name == BASE {
        true => ids::base_environment(owner),
        false => ids::told_uuid(&format!("environment {name} of {owner}")),
    }
}

/// An environment that has no version yet.
pub(crate) fn blank(id: String, owner: &str, name: &str, now: Millis) -> Environment {
    Environment {
        id,
        owner: owner.to_owned(),
        name: name.to_owned(),
        is_default: false,
        created_at: now,
        latest: 0,
        safety_answered_at: None,
        deleted_at: None,
    }
}

/// Stores an environment with its first version.
pub(crate) fn make(
    tx: &mut dyn Writer,
    mut environment: Environment,
    contents: Contents,
    now: Millis,
) -> Result<Environment, StoreError> {
    add_version(tx, &mut environment, contents, now)?;
    Ok(environment)
}

/// Adds a version to an environment. Transactions come one after the other, and the number is taken in this one: no two
/// versions have the same.
pub(crate) fn add_version(
    tx: &mut dyn Writer,
    environment: &mut Environment,
    contents: Contents,
    now: Millis,
) -> Result<Version, StoreError> {
    environment.latest += 1;
    let version = Version {
        id: ids::new_uuid(),
        environment: environment.id.clone(),
        owner: environment.owner.clone(),
        number: environment.latest,
        created_at: now,
        contents,
    };
    typed::put(tx, &version)?;
    typed::put(tx, environment)?;
    let kept = versions(&*tx, &environment.id)?;
    for old in kept.iter().skip(VERSIONS_KEPT).filter(|old| old.sandboxes == 0) {
        typed::remove::<Version>(tx, &version_key(&environment.id, old.number))?;
    }
    Ok(version)
}

/// Makes an environment the default one of its owner in the place of the one that was.
pub(crate) fn make_default(tx: &mut dyn Writer, environment: &mut Environment) -> Result<(), StoreError> {
    if let Some(mut before) = default_of(&*tx, &environment.owner)?
        && before.id != environment.id
    {
        before.is_default = false;
        typed::put(tx, &before)?;
    }
    environment.is_default = true;
    typed::put(tx, environment)
}

/// Whether a path names something inside the work folder, relative to it.
pub(crate) fn is_secret_path(path: &str) -> bool {
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && name.len() <= 255;
    !path.contains('\0') && path.len() < 4096 && path.split('/').all(is_name)
}

/// The sandboxes that use older versions of an environment than the latest.
pub(crate) fn outdated(
    tx: &(impl Reader + ?Sized),
    environment: &Environment,
) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    let (from, to) = (pinned_to_any(&environment.id), pinned(&environment.id, environment.latest));
    typed::rows(tx, &from, Some(&to), Order::Ascending, |_, id| {
        found.push(id.to_owned());
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// The sandboxes of the owner of an environment that are up or on their way.
pub(crate) fn active_in(
    tx: &(impl Reader + ?Sized),
    environment: &Environment,
) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    for state in State::ALL.into_iter().filter(|state| state.is_up() || state.is_starting()) {
        found.extend(typed::rows_with_prefix(tx, &listed(&environment.owner, Some(state)), usize::MAX)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, RedbStore};

    #[test]
    fn versions_count_up_and_the_default_flag_moves() {
        let store = RedbStore::in_memory().unwrap();
        typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
            let mut base = ensure_default(tx, "account/a", 1)?;
            assert_eq!((base.name.as_str(), base.latest), (BASE, 1));
            assert_eq!(ensure_default(tx, "account/a", 9)?.created_at, 1);
            let contents = Contents { env: "A=1".into(), ..Contents::default() };
            assert_eq!(add_version(tx, &mut base, contents, 2)?.number, 2);
            assert_eq!(latest(&*tx, &base)?.contents.variables()["A"], "1");
            assert!(version(&*tx, &base.id, 1)?.unwrap().contents.env.is_empty());
            let numbers: Vec<u64> = versions(&*tx, &base.id)?.iter().map(|it| it.number).collect();
            assert_eq!(numbers, [2, 1]);

            let other = blank(ids::new_uuid(), "account/a", "ci", 3);
            let mut other = make(tx, other, Contents::default(), 3)?;
            make_default(tx, &mut other)?;
            assert_eq!(default_of(&*tx, "account/a")?.unwrap().id, other.id);
            assert!(!by_id(&*tx, "account/a", &base.id)?.unwrap().is_default);
            assert!(by_id(&*tx, "account/b", &base.id)?.is_none());
            assert_eq!(of_owner(&*tx, "account/a")?.len(), 2);
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn old_versions_go_unless_a_sandbox_uses_them() {
        use crate::world::{pins::Pin, sandboxes::Sandbox};

        let store = RedbStore::in_memory().unwrap();
        typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
            let mut base = ensure_default(tx, "account/a", 1)?;
            for number in 2..=3 {
                add_version(tx, &mut base, Contents::default(), number)?;
            }
            let mut sandbox = Sandbox::new("bx_a", "a", 3);
            Pin::new(&base, &version(&*tx, &base.id, 2)?.unwrap()).give(&mut sandbox);
            typed::put(tx, &sandbox)?;
            for number in 4..=105 {
                add_version(tx, &mut base, Contents::default(), number)?;
            }
            let numbers: Vec<u64> = versions(&*tx, &base.id)?.iter().map(|it| it.number).collect();
            assert_eq!(numbers, (6..=105).rev().chain([2]).collect::<Vec<_>>());
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn safe_for_third_parties_passes_nothing_on() {
        let mut contents = Contents { env: "A=1".into(), ..Contents::default() };
        contents.secret_files.push(SecretFile { path: "key".into(), contents: "hush".into() });
        assert_eq!((contents.variables().len(), contents.files().len(), contents.passes_key()), (1, 1, true));
        contents.safe_for_third_parties = true;
        assert_eq!(
            (contents.variables().len(), contents.files().len(), contents.passes_key()),
            (0, 0, false)
        );
        contents.safe_for_third_parties = false;
        contents.pass_secrets = false;
        assert_eq!((contents.variables().len(), contents.files().len(), contents.passes_key()), (0, 0, true));
    }
}
