//! Environments and repositories that a world starts with.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    dotenv,
    environments::{self, Contents, Environment, SecretFile},
    ids,
    planted::{self, Look},
    repositories::{DEFAULT_BRANCH, Repository, Selected},
    seed::{WorldError, WorldSeed},
    seed_accounts::DEFAULT_LOGIN,
    time::Millis,
};
use crate::{
    store::{StoreError, Writer, typed},
    validate,
};

/// A repository at GitHub. An account with at least one is connected to GitHub, one with none is not.
///
/// In a world file:
///
/// ```
/// # let text = r#"
/// [[repositories]]
/// full_name = "acme/web"
/// path = "/srv/web"        # sandboxes that bring it along get a checkout of this; leave out for none
/// private = true
/// account = "alice"        # who can reach it; leave out for the default account
/// # [[accounts]]
/// # login = "alice"
/// # "#;
/// # sandboxer_mock_server::WorldSeed::from_toml(text).unwrap();
/// ```
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepositorySeed {
    /// Its owner and name, as in `acme/web`.
    pub full_name: String,
    /// Its number at GitHub, which `repositoryId` means everywhere; told from the name if `None`.
    #[serde(default)]
    pub id: Option<u64>,
    /// The login of the account that can reach it; the default account if `None`.
    #[serde(default)]
    pub account: Option<String>,
    /// What it says about itself.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether it is private.
    #[serde(default)]
    pub private: bool,
    /// What the account may do with it; `write` if `None`.
    #[serde(default)]
    pub permissions: Option<String>,
    /// A folder on this machine: a git repository, of which the selected branch is cloned, or any other folder, which is
    /// copied. Without it the repository is listed and never checked out.
    #[serde(default)]
    pub path: Option<String>,
}

/// An environment.
///
/// In a world file:
///
/// ```
/// # let text = r#"
/// [[environments]]
/// name = "ci"              # "base" is there anyway; naming it gives it contents
/// default = true
/// env = "CI=1\nTOKEN='a b'"
/// secret_files = [{ path = "config/key.pem", contents = "hush" }]
/// repositories = [{ full_name = "acme/web", branch = "dev", setup_script = "make" }]
/// account = "alice"        # or organisation = "Acme", which shares it; leave out for the default account
/// # [[repositories]]
/// # full_name = "acme/web"
/// # [[accounts]]
/// # login = "alice"
/// # "#;
/// # sandboxer_mock_server::WorldSeed::from_toml(text).unwrap();
/// ```
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentSeed {
    /// Its name. Of one that is there already, a version with these contents is added; once, and again when the world
    /// says something else here. What calls make of it meanwhile, its removal too, outlives a restart with the same world,
    /// and with one that has changed elsewhere.
    pub name: String,
    /// The login of the account whose it is; the default account if `None`.
    #[serde(default)]
    pub account: Option<String>,
    /// The name of the organisation that shares it, in the place of an account.
    #[serde(default)]
    pub organisation: Option<String>,
    /// Whether it is the default one; by itself, this changes nothing about what the environment holds.
    #[serde(default)]
    pub default: bool,
    /// The variables, as `.env` text.
    #[serde(default)]
    pub env: String,
    /// The secret files.
    #[serde(default)]
    pub secret_files: Vec<SecretFileSeed>,
    /// The repositories it brings along.
    #[serde(default)]
    pub repositories: Vec<SelectedRepositorySeed>,
    /// Whether nothing at all is passed on.
    #[serde(default)]
    pub safe_for_third_parties: bool,
    /// Whether variables and files are passed on.
    #[serde(default = "yes")]
    pub pass_secrets: bool,
    /// Whether a key of this service is passed on.
    #[serde(default = "yes")]
    pub pass_sandbox_credentials: bool,
    /// Whether the sign-in at GitHub is passed on: without it, private repositories are not checked out.
    #[serde(default = "yes")]
    pub pass_github: bool,
    /// Whether the sign-ins of agents are passed on.
    #[serde(default = "yes")]
    pub pass_agents_credentials: bool,
}

/// A file that is written into the work folder.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretFileSeed {
    /// Its path, relative to the work folder.
    pub path: String,
    /// Its content.
    pub contents: String,
}

/// A repository that an environment brings along.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelectedRepositorySeed {
    /// The full name of one of the world's repositories.
    pub full_name: String,
    /// The branch that is checked out; `main` if `None`.
    #[serde(default)]
    pub branch: Option<String>,
    /// What is run once it is checked out.
    #[serde(default)]
    pub setup_script: Option<String>,
    /// Whether the sandbox waits for that.
    #[serde(default)]
    pub setup_blocking: bool,
}

fn yes() -> bool {
    true
}

impl fmt::Debug for EnvironmentSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvironmentSeed")
            .field("name", &self.name)
            .field("account", &self.account)
            .field("organisation", &self.organisation)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SecretFileSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretFileSeed").field("path", &self.path).finish_non_exhaustive()
    }
}

impl EnvironmentSeed {
    fn login(&self) -> &str {
        self.account.as_deref().unwrap_or(DEFAULT_LOGIN)
    }
}

/// What the entry of an environment itself says: what the world says about its repositories elsewhere is no part of it.
fn said_of(contents: &Contents) -> impl Serialize {
    let selected: Vec<_> = contents
        .repositories
        .iter()
        .map(|it| {
            let name = it.repository.full_name.clone();
            (name, it.branch.clone(), it.setup_script.clone(), it.setup_blocking)
        })
        .collect();
    (Contents { repositories: Vec::new(), ..contents.clone() }, selected)
}

/// Whether a part of the name of a repository is one.
fn is_part(part: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !matches!(part, "" | "." | "..") && part.len() <= 100 && part.bytes().all(is_allowed)
}

impl RepositorySeed {
    fn login(&self) -> &str {
        self.account.as_deref().unwrap_or(DEFAULT_LOGIN)
    }

    fn number(&self) -> u64 {
        // As long as numbers at GitHub are, and never too long for anybody's.
        let told = || u64::from_str_radix(&ids::digest(&self.full_name)[..8], 16).unwrap_or(1);
        self.id.unwrap_or_else(told)
    }

    fn record(&self, account: &str) -> Repository {
        let installation = self.full_name.split('/').next().unwrap_or_default();
        let is_own = installation == self.login();
        Repository {
            account: account.to_owned(),
            number: self.number(),
            full_name: self.full_name.clone(),
            description: self.description.clone(),
            installation: installation.to_owned(),
            installation_kind: if is_own { "User" } else { "Organization" }.to_owned(),
            is_private: self.private,
            permissions: self.permissions.clone().unwrap_or_else(|| "write".to_owned()),
            pushed_at: None,
            path: self.path.clone(),
        }
    }
}

impl WorldSeed {
    /// Refuses environments that could not be made by a call, and names that nothing stands for.
    pub(super) fn check_environments(&self) -> Result<(), WorldError> {
        let login_known =
            |login: &str| login == DEFAULT_LOGIN || self.accounts.iter().any(|it| it.login == login);
        for (index, repository) in self.repositories.iter().enumerate() {
            let refuse = |what: &str| Err(WorldError(format!("repositories[{index}]: {what}")));
            if !repository
                .full_name
                .split_once('/')
                .is_some_and(|(owner, name)| is_part(owner) && is_part(name))
            {
                return refuse("full_name: must be an owner and a name with a slash between them");
            }
            if !login_known(repository.login()) {
                return refuse("account: no account has that login");
            }
        }
        for (index, environment) in self.environments.iter().enumerate() {
            let refuse = |what: String| Err(WorldError(format!("environments[{index}]: {what}")));
            let is_named = !environment.name.is_empty() && environment.name.len() <= 64;
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if !is_named || !environment.name.bytes().all(is_allowed) {
                return refuse("name: must be 1 to 64 letters, digits, dots, dashes and underscores".into());
            }
            if environment.account.as_deref().is_some_and(|login| !login_known(login)) {
                return refuse("account: no account has that login".into());
            }
            let is_another = |other: &EnvironmentSeed| {
                other.name == environment.name
                    && other.organisation == environment.organisation
                    && other.login() == environment.login()
            };
            if self.environments.iter().take(index).any(is_another) {
                return refuse("name: another environment of the same owner has it".into());
            }
            if let Some(name) = &environment.organisation
                && (environment.account.is_some() || !self.organisations.iter().any(|it| it.name == *name))
            {
                return refuse(
                    "organisation: no organisation has that name, or there is an account too".into(),
                );
            }
            match dotenv::parse(&environment.env) {
                Err(bad) => return refuse(format!("env: {bad}")),
                Ok(variables) if !variables.keys().all(|name| validate::is_free_name(name)) => {
                    return refuse("env: has a name that is too long or reserved".into());
                }
                Ok(_) => {}
            }
            if environment.secret_files.iter().any(|file| !environments::is_secret_path(&file.path)) {
                return refuse("secret_files: a path must lie inside the work folder".into());
            }
            for selected in &environment.repositories {
                if !self.repositories.iter().any(|it| it.full_name == selected.full_name) {
                    return refuse("repositories: no repository has that full_name".into());
                }
            }
        }
        Ok(())
    }

    /// Writes the repositories and environments into the store.
    pub(super) fn plant_environments(&self, tx: &mut dyn Writer, now: Millis) -> Result<(), StoreError> {
        for seed in &self.repositories {
            typed::put(tx, &seed.record(&self.account_id(seed.login())))?;
        }
        for seed in &self.environments {
            let owner = match &seed.organisation {
                Some(name) => format!("organisation/{}", self.organisation_id_of(name)),
                None => format!("account/{}", self.account_id(seed.login())),
            };
            let contents = self.contents(seed);
            let entry = planted::environment(&owner, &seed.name);
            let of_contents = planted::take(tx, &entry, &said_of(&contents))?;
            let default_entry = planted::default_environment(&owner, &seed.name);
            let of_default = planted::take(tx, &default_entry, &seed.default)?;
            let known = environments::by_name(&*tx, &owner, &seed.name)?;
            if of_contents == Look::Adopted {
                let latest = known.as_ref().map(|known| environments::latest(&*tx, known)).transpose()?;
                if latest.is_none_or(|latest| latest.contents != contents) {
                    planted::pass_over(&entry);
                }
            }
            if of_default == Look::Adopted && seed.default && known.is_none_or(|known| !known.is_default) {
                planted::pass_over(&default_entry);
            }
            let becomes_default = seed.default && of_default == Look::New;
            if of_contents != Look::New && !becomes_default {
                continue;
            }
            environments::ensure_default(tx, &owner, now)?;
            let known = environments::by_name(&*tx, &owner, &seed.name)?;
            // One that has to be made (again) gets its contents, whatever is new about it.
            let gets_contents = of_contents == Look::New || known.is_none();
            let mut environment = match known {
                Some(known) => known,
                None => {
                    let id = environments::seeded_id(&owner, &seed.name);
                    // One that was removed or has another name since: its versions stay what they are.
                    let known: Option<Environment> = typed::get(&*tx, &id)?;
                    let known = known.unwrap_or_else(|| environments::blank(id, &owner, &seed.name, now));
                    Environment { name: seed.name.clone(), deleted_at: None, ..known }
                }
            };
            let latest = environments::version(&*tx, &environment.id, environment.latest)?;
            if gets_contents && latest.is_none_or(|latest| latest.contents != contents) {
                environments::add_version(tx, &mut environment, contents, now)?;
            }
            typed::put(tx, &environment)?;
            if becomes_default {
                environments::make_default(tx, &mut environment)?;
            }
        }
        Ok(())
    }

    fn contents(&self, seed: &EnvironmentSeed) -> Contents {
        let files = seed
            .secret_files
            .iter()
            .map(|file| SecretFile { path: file.path.clone(), contents: file.contents.clone() });
        let repositories = seed.repositories.iter().filter_map(|selected| {
            let found = self.repositories.iter().find(|it| it.full_name == selected.full_name)?;
            Some(Selected {
                repository: found.record(&self.account_id(found.login())),
                branch: selected.branch.clone().unwrap_or_else(|| DEFAULT_BRANCH.to_owned()),
                setup_script: selected.setup_script.clone(),
                setup_blocking: selected.setup_blocking,
            })
        });
        Contents {
            safe_for_third_parties: seed.safe_for_third_parties,
            pass_github: seed.pass_github,
            pass_secrets: seed.pass_secrets,
            pass_sandbox_credentials: seed.pass_sandbox_credentials,
            pass_agents_credentials: seed.pass_agents_credentials,
            env: seed.env.clone(),
            secret_files: files.collect(),
            repositories: repositories.collect(),
        }
    }
}
