//! What of a stored environment can be changed, and which sandboxes follow it.

use crate::{
    error::Result,
    models::{
        EnvironmentRepositoryRequest, SecretFileRequest, UpdateSandboxEnvironmentRequest,
        UpgradeSandboxEnvironmentRequest,
    },
    wire::Secret,
};

use super::{checks, replace_secrets::check_files};

/// What to change about a stored environment; what is left out stays.
///
/// Variables, files and repositories are replaced as a whole; one at a time is changed with the verbs for that.
///
/// ```
/// use sandboxer::{EnvironmentUpdate, models::{EnvironmentRepositoryRequest, SecretFileRequest}};
///
/// let change = EnvironmentUpdate::new()
///     .name("ci")
///     .make_default()
///     .safe_for_third_parties(false)
///     .pass_github(true)
///     .pass_secrets(false)
///     .pass_sandbox_credentials(false)
///     .pass_agents_credentials(true)
///     .env_contents("CI=1\n")
///     .secret_files([SecretFileRequest::new(".npmrc", "registry=https://npm.example\n")])
///     .repositories([EnvironmentRepositoryRequest::new("7").base_branch("main")]);
/// # drop(change);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct EnvironmentUpdate {
    request: UpdateSandboxEnvironmentRequest,
}

impl EnvironmentUpdate {
    /// Nothing to change yet; a verb refuses it so.
    pub fn new() -> Self {
        Self::default()
    }

    /// Its name: 1 to 64 letters, digits, dots, dashes and underscores, unlike that of any other.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.request = self.request.name(name);
        self
    }

    /// Makes it the default, which the one before is no longer.
    pub fn make_default(mut self) -> Self {
        self.request = self.request.is_default(true);
        self
    }

    /// Whether sandboxes with it are safe in the hands of others: nothing at all is passed on to them then, whatever the
    /// other flags say.
    pub fn safe_for_third_parties(mut self, safe: bool) -> Self {
        self.request = self.request.safe_for_third_parties(safe);
        self
    }

    /// Whether sandboxes get the sign-in to GitHub.
    pub fn pass_github(mut self, pass: bool) -> Self {
        self.request = self.request.pass_github(pass);
        self
    }

    /// Whether sandboxes get the variables and secret files.
    pub fn pass_secrets(mut self, pass: bool) -> Self {
        self.request = self.request.pass_secrets(pass);
        self
    }

    /// Whether sandboxes get a key to the service.
    pub fn pass_sandbox_credentials(mut self, pass: bool) -> Self {
        self.request = self.request.pass_sandbox_credentials(pass);
        self
    }

    /// Whether sandboxes get the sign-ins of agents.
    pub fn pass_agents_credentials(mut self, pass: bool) -> Self {
        self.request = self.request.pass_agents_credentials(pass);
        self
    }

    /// **All** its variables, as the text of a `.env` file, up to 64 KiB.
    pub fn env_contents(mut self, text: impl Into<Secret>) -> Self {
        self.request = self.request.env_contents(text);
        self
    }

    /// **All** its secret files, in the place of those there are; paths are relative to the work folder and inside it.
    pub fn secret_files(mut self, files: impl IntoIterator<Item = SecretFileRequest>) -> Self {
        self.request = self.request.secret_files(files.into_iter().collect::<Vec<_>>());
        self
    }

    /// **All** its repositories, in the place of those there are.
    pub fn repositories(
        mut self,
        repositories: impl IntoIterator<Item = EnvironmentRepositoryRequest>,
    ) -> Self {
        self.request = self.request.repositories(repositories.into_iter().collect::<Vec<_>>());
        self
    }

    pub(super) fn request(self) -> Result<UpdateSandboxEnvironmentRequest> {
        checks::some_change(self.request == UpdateSandboxEnvironmentRequest::new())?;
        check_files(self.request.secret_files.as_deref().unwrap_or_default())?;
        Ok(self.request)
    }
}

/// Which sandboxes to move to the latest version of their environment.
///
/// ```
/// use sandboxer::EnvironmentUpgrade;
///
/// let two = EnvironmentUpgrade::only(["bx_22222222", "bx_33333333"]);
/// assert_ne!(two, EnvironmentUpgrade::all());
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct EnvironmentUpgrade {
    pub(super) request: UpgradeSandboxEnvironmentRequest,
}

impl EnvironmentUpgrade {
    /// Every sandbox of the caller's that has an older version.
    pub fn all() -> Self {
        Self { request: UpgradeSandboxEnvironmentRequest::new() }
    }

    /// Only these, by their ids; of an empty list none.
    pub fn only<I>(ids: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let ids: Vec<String> = ids.into_iter().map(Into::into).collect();
        Self { request: UpgradeSandboxEnvironmentRequest::new().agent_ids(ids) }
    }
}
