//! Stored environments: what sandboxes start with.

use crate::{
    AsyncSandboxer,
    error::{Delivery, Error, ErrorKind, Result},
    generated::operations::Operation,
    models::{
        CreateSandboxEnvironmentRequest, DeleteEnvironmentSecretFileParams, EnvironmentItemChangeResponse,
        SandboxEnvironment, SandboxEnvironmentResponse, SecretFileRequest, SelectRepositoryRequest,
        SetEnvironmentVarRequest, UpgradeSandboxEnvironmentRequest, UpgradeSandboxEnvironmentResponse,
    },
    sandboxer::{Api, repeated::removed},
    wire::Secret,
};

use super::{EnvironmentUpdate, EnvironmentUpgrade, checks};

/// Stored environments: variables, secret files and repositories that sandboxes start with; comes from
/// [`AsyncSandboxer::environments`](crate::AsyncSandboxer::environments).
///
/// Every change makes a new version, and a sandbox keeps the version it started with until
/// [`upgrade`](Self::upgrade). `id` is the environment's id, not a version's.
#[derive(Clone, Debug)]
pub struct AsyncEnvironments {
    api: Api,
}

impl AsyncSandboxer {
    /// Stored environments: variables, secret files and repositories that sandboxes start with.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// let all = client.environments().list().await?;
    /// assert!(all.iter().any(|environment| environment.is_default));
    /// # Ok(()) }
    /// ```
    pub fn environments(&self) -> AsyncEnvironments {
        AsyncEnvironments { api: self.api().clone() }
    }
}

impl AsyncEnvironments {
    /// Lists the environments with what is in their latest versions; `base` is there from the first look.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// let all = client.environments().list().await?;
    /// assert!(all.iter().any(|environment| environment.is_default));
    /// # Ok(()) }
    /// ```
    pub async fn list(&self) -> Result<Vec<SandboxEnvironment>> {
        Ok(self.api.environments().await?.environments)
    }

    /// Creates an environment, empty and passing everything on.
    ///
    /// A call that is cut off is not repeated, since it may have created it: look with [`list`](Self::list).
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, when `name` is not 1 to 64
    /// letters, digits, dots, dashes and underscores; `create_failed` of the service, when the name is taken; and
    /// the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// assert_eq!(client.environments().create("ci").await?.name, "ci");
    /// # Ok(()) }
    /// ```
    pub async fn create(&self, name: &str) -> Result<SandboxEnvironment> {
        let answer = self.api.create_environment(CreateSandboxEnvironmentRequest::new(name)).await?;
        // The service answers with the whole list.
        answer.environments.into_iter().find(|environment| environment.name == name).ok_or_else(|| {
            let message = "the list of environments lacks the one that was created";
            Error::new(ErrorKind::Unexpected, "unexpected_response", message)
                .with_delivery(Delivery::Answered)
                .with_operation(Operation::CreateEnvironment)
        })
    }

    /// Changes an environment; what is not given stays.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for a bad option; `not_found`,
    /// `invalid_env`, `invalid_secret_path` and `repository_not_found` of the service; and the failures of any
    /// call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::EnvironmentUpdate;
    ///
    /// let base = client.environments().list().await?.remove(0);
    /// let change = EnvironmentUpdate::new().make_default().pass_github(false);
    /// let changed = client.environments().update(&base.id, change).await?;
    /// assert!(changed.success);
    /// # Ok(()) }
    /// ```
    pub async fn update(&self, id: &str, change: EnvironmentUpdate) -> Result<SandboxEnvironmentResponse> {
        self.api.update_environment(id, change.request()?).await
    }

    /// Deletes an environment; sandboxes that started with it keep what they have.
    ///
    /// # Errors
    ///
    /// `update_failed` of the service for the default environment, which cannot go; `not_found`, unless an
    /// earlier try of the same call may have removed it; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// let ci = client.environments().create("ci").await?;
    /// client.environments().delete(&ci.id).await?;
    /// # Ok(()) }
    /// ```
    pub async fn delete(&self, id: &str) -> Result<()> {
        removed(self.api.delete_environment(id).await)
    }

    /// Moves sandboxes that started with an older version of an environment to its latest.
    ///
    /// Secrets that the new version lacks are wiped from them. The answer counts those that were moved and those
    /// that could not be.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for a bad id; `not_found` of the
    /// service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::EnvironmentUpgrade;
    ///
    /// let base = client.environments().list().await?.remove(0);
    /// let moved = client.environments().upgrade(&base.id, EnvironmentUpgrade::all()).await?;
    /// assert_eq!(moved.failed, 0);
    /// # Ok(()) }
    /// ```
    pub async fn upgrade(
        &self,
        id: &str,
        which: EnvironmentUpgrade,
    ) -> Result<UpgradeSandboxEnvironmentResponse> {
        let request: UpgradeSandboxEnvironmentRequest = which.request;
        self.api.upgrade_environment(id, request).await
    }

    /// Sets one variable of an environment, which makes a new version.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, when `key` is not a letter or
    /// underscore and up to 127 letters, digits and underscores, or is one of the service's own, or `value` has
    /// more than 64 KiB; `not_found` of the service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// let base = client.environments().list().await?.remove(0);
    /// let changed = client.environments().set_var(&base.id, "DATABASE_URL", "postgres://db").await?;
    /// assert_eq!(changed.version_number, Some(2));
    /// # Ok(()) }
    /// ```
    pub async fn set_var(
        &self,
        id: &str,
        key: &str,
        value: impl Into<Secret>,
    ) -> Result<EnvironmentItemChangeResponse> {
        let request = SetEnvironmentVarRequest::new(value);
        checks::variable(key, self.api.dialect())?;
        self.api.set_environment_var(id, key, request).await
    }

    /// Deletes one variable of an environment, which makes a new version.
    ///
    /// # Errors
    ///
    /// As [`set_var`](Self::set_var); `not_found` when it has no such variable, which an earlier try of the same call may
    /// have deleted where [`Error::delivery`](crate::Error::delivery) is `Unknown`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// let base = client.environments().list().await?.remove(0);
    /// # client.environments().set_var(&base.id, "DATABASE_URL", "postgres://db").await?;
    /// client.environments().delete_var(&base.id, "DATABASE_URL").await?;
    /// # Ok(()) }
    /// ```
    pub async fn delete_var(&self, id: &str, key: &str) -> Result<EnvironmentItemChangeResponse> {
        checks::variable_name(key)?;
        self.api.delete_environment_var(id, key).await
    }

    /// Sets one secret file of an environment, which makes a new version.
    ///
    /// `path` is relative to the work folder and inside it.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for a path that is empty,
    /// absolute, has `..`, or is longer than 4096 characters; `invalid_secret_path` and `not_found` of the service;
    /// and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// let base = client.environments().list().await?.remove(0);
    /// client.environments().set_secret_file(&base.id, "config/key.pem", "hush").await?;
    /// # Ok(()) }
    /// ```
    pub async fn set_secret_file(
        &self,
        id: &str,
        path: &str,
        contents: impl Into<Secret>,
    ) -> Result<EnvironmentItemChangeResponse> {
        let request = SecretFileRequest::new(path, contents);
        checks::secret_path("path", path)?;
        self.api.set_environment_secret_file(id, request).await
    }

    /// Deletes one secret file of an environment, which makes a new version.
    ///
    /// # Errors
    ///
    /// As [`set_secret_file`](Self::set_secret_file); `not_found` when it has no such file, which an earlier try of the
    /// same call may have deleted where [`Error::delivery`](crate::Error::delivery) is `Unknown`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// let base = client.environments().list().await?.remove(0);
    /// # client.environments().set_secret_file(&base.id, "config/key.pem", "hush").await?;
    /// client.environments().delete_secret_file(&base.id, "config/key.pem").await?;
    /// # Ok(()) }
    /// ```
    pub async fn delete_secret_file(&self, id: &str, path: &str) -> Result<EnvironmentItemChangeResponse> {
        checks::secret_path("path", path)?;
        self.api.delete_environment_secret_file(id, DeleteEnvironmentSecretFileParams::new(path)).await
    }

    /// Adds a repository to an environment, or changes its branch, which makes a new version.
    ///
    /// Without a base branch it is `main`.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for an empty id or branch;
    /// `not_found` and `repository_not_found` of the service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 123456";
    /// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
    /// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap(); let client = server.client();
    /// use sandboxer::models::SelectRepositoryRequest;
    ///
    /// let base = client.environments().list().await?.remove(0);
    /// let repository = SelectRepositoryRequest::new("123456").base_branch("develop");
    /// client.environments().add_repo(&base.id, repository).await?;
    /// # Ok(()) }
    /// ```
    pub async fn add_repo(
        &self,
        id: &str,
        repository: SelectRepositoryRequest,
    ) -> Result<EnvironmentItemChangeResponse> {
        self.api.add_environment_repo(id, repository).await
    }

    /// Removes a repository from an environment, which makes a new version.
    ///
    /// # Errors
    ///
    /// `not_found` of the service, of what an earlier try of the same call may have removed where
    /// [`Error::delivery`](crate::Error::delivery) is `Unknown`; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 123456";
    /// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
    /// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap(); let client = server.client();
    /// let base = client.environments().list().await?.remove(0);
    /// # let repository = sandboxer::models::SelectRepositoryRequest::new("123456");
    /// # client.environments().add_repo(&base.id, repository).await?;
    /// client.environments().delete_repo(&base.id, "123456").await?;
    /// # Ok(()) }
    /// ```
    pub async fn delete_repo(&self, id: &str, repository_id: &str) -> Result<EnvironmentItemChangeResponse> {
        self.api.delete_environment_repo(id, repository_id).await
    }
}
