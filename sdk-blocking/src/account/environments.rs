//! Stored environments: what sandboxes start with.

use sandboxer::{
    EnvironmentUpdate, EnvironmentUpgrade, Result,
    models::{
        EnvironmentItemChangeResponse, SandboxEnvironment, SandboxEnvironmentResponse,
        SelectRepositoryRequest, UpgradeSandboxEnvironmentResponse,
    },
    wire::Secret,
};

use crate::Sandboxer;

/// Stored environments: variables, secret files and repositories that sandboxes start with; comes from
/// [`Sandboxer::environments`](crate::Sandboxer::environments).
///
/// Every change makes a new version, and a sandbox keeps the version it started with until
/// [`upgrade`](Self::upgrade). `id` is the environment's id, not a version's.
#[derive(Clone, Debug)]
pub struct Environments {
    client: Sandboxer,
}

impl Sandboxer {
    /// Stored environments: variables, secret files and repositories that sandboxes start with.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let all = client.environments().list()?;
    /// assert!(all.iter().any(|environment| environment.is_default));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn environments(&self) -> Environments {
        Environments { client: self.clone() }
    }
}

impl Environments {
    /// Lists the environments with what is in their latest versions; `base` is there from the first look.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let all = client.environments().list()?;
    /// assert!(all.iter().any(|environment| environment.is_default));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn list(&self) -> Result<Vec<SandboxEnvironment>> {
        self.client.call(|client| async move { client.environments().list().await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// assert_eq!(client.environments().create("ci")?.name, "ci");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn create(&self, name: &str) -> Result<SandboxEnvironment> {
        let name = name.to_owned();
        self.client.call(|client| async move { client.environments().create(&name).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::EnvironmentUpdate;
    ///
    /// let base = client.environments().list()?.remove(0);
    /// let change = EnvironmentUpdate::new().make_default().pass_github(false);
    /// let changed = client.environments().update(&base.id, change)?;
    /// assert!(changed.success);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn update(&self, id: &str, change: EnvironmentUpdate) -> Result<SandboxEnvironmentResponse> {
        let id = id.to_owned();
        self.client.call(|client| async move { client.environments().update(&id, change).await })
    }

    /// Deletes an environment; sandboxes that started with it keep what they have.
    ///
    /// # Errors
    ///
    /// `update_failed` of the service for the default environment, which cannot go; `not_found`, unless an
    /// earlier try of the same call may have removed it; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let ci = client.environments().create("ci")?;
    /// client.environments().delete(&ci.id)?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn delete(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.client.call(|client| async move { client.environments().delete(&id).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::EnvironmentUpgrade;
    ///
    /// let base = client.environments().list()?.remove(0);
    /// let moved = client.environments().upgrade(&base.id, EnvironmentUpgrade::all())?;
    /// assert_eq!(moved.failed, 0);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn upgrade(&self, id: &str, which: EnvironmentUpgrade) -> Result<UpgradeSandboxEnvironmentResponse> {
        let id = id.to_owned();
        self.client.call(|client| async move { client.environments().upgrade(&id, which).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let base = client.environments().list()?.remove(0);
    /// let changed = client.environments().set_var(&base.id, "DATABASE_URL", "postgres://db")?;
    /// assert_eq!(changed.version_number, Some(2));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn set_var(
        &self,
        id: &str,
        key: &str,
        value: impl Into<Secret>,
    ) -> Result<EnvironmentItemChangeResponse> {
        let id = id.to_owned();
        let key = key.to_owned();
        let value = value.into();
        self.client.call(|client| async move { client.environments().set_var(&id, &key, value).await })
    }

    /// Deletes one variable of an environment, which makes a new version.
    ///
    /// # Errors
    ///
    /// As [`set_var`](Self::set_var); `not_found` when it has no such variable, which an earlier try of the same call may
    /// have deleted where [`Error::delivery`](crate::Error::delivery) is `Unknown`.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let base = client.environments().list()?.remove(0);
    /// # client.environments().set_var(&base.id, "DATABASE_URL", "postgres://db")?;
    /// client.environments().delete_var(&base.id, "DATABASE_URL")?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn delete_var(&self, id: &str, key: &str) -> Result<EnvironmentItemChangeResponse> {
        let id = id.to_owned();
        let key = key.to_owned();
        self.client.call(|client| async move { client.environments().delete_var(&id, &key).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let base = client.environments().list()?.remove(0);
    /// client.environments().set_secret_file(&base.id, "config/key.pem", "hush")?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn set_secret_file(
        &self,
        id: &str,
        path: &str,
        contents: impl Into<Secret>,
    ) -> Result<EnvironmentItemChangeResponse> {
        let id = id.to_owned();
        let path = path.to_owned();
        let contents = contents.into();
        self.client
            .call(|client| async move { client.environments().set_secret_file(&id, &path, contents).await })
    }

    /// Deletes one secret file of an environment, which makes a new version.
    ///
    /// # Errors
    ///
    /// As [`set_secret_file`](Self::set_secret_file); `not_found` when it has no such file, which an earlier try of the
    /// same call may have deleted where [`Error::delivery`](crate::Error::delivery) is `Unknown`.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let base = client.environments().list()?.remove(0);
    /// # client.environments().set_secret_file(&base.id, "config/key.pem", "hush")?;
    /// client.environments().delete_secret_file(&base.id, "config/key.pem")?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn delete_secret_file(&self, id: &str, path: &str) -> Result<EnvironmentItemChangeResponse> {
        let id = id.to_owned();
        let path = path.to_owned();
        self.client.call(|client| async move { client.environments().delete_secret_file(&id, &path).await })
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
    /// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 123456";
    /// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
    /// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::models::SelectRepositoryRequest;
    ///
    /// let base = client.environments().list()?.remove(0);
    /// let repository = SelectRepositoryRequest::new("123456").base_branch("develop");
    /// client.environments().add_repo(&base.id, repository)?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn add_repo(
        &self,
        id: &str,
        repository: SelectRepositoryRequest,
    ) -> Result<EnvironmentItemChangeResponse> {
        let id = id.to_owned();
        self.client.call(|client| async move { client.environments().add_repo(&id, repository).await })
    }

    /// Removes a repository from an environment, which makes a new version.
    ///
    /// # Errors
    ///
    /// `not_found` of the service, of what an earlier try of the same call may have removed where
    /// [`Error::delivery`](crate::Error::delivery) is `Unknown`; and the failures of any call.
    ///
    /// ```
    /// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 123456";
    /// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
    /// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let base = client.environments().list()?.remove(0);
    /// # let repository = sandboxer_blocking::models::SelectRepositoryRequest::new("123456");
    /// # client.environments().add_repo(&base.id, repository)?;
    /// client.environments().delete_repo(&base.id, "123456")?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn delete_repo(&self, id: &str, repository_id: &str) -> Result<EnvironmentItemChangeResponse> {
        let id = id.to_owned();
        let repository_id = repository_id.to_owned();
        self.client.call(|client| async move { client.environments().delete_repo(&id, &repository_id).await })
    }
}
