//! Repositories that sandboxes can work on.

use sandboxer::{
    ListRepositories, ListedRepository, Result,
    models::{RepoSelectionResponse, SelectRepositoryRequest, SelectedRepository},
};

use crate::{Pager, Sandboxer};

/// The GitHub repositories of the account, and which of them sandboxes start with; comes from
/// [`Sandboxer::repositories`](crate::Sandboxer::repositories).
#[derive(Clone, Debug)]
pub struct Repositories {
    client: Sandboxer,
}

impl Sandboxer {
    /// The GitHub repositories of the account, and which of them sandboxes start with.
    ///
    /// ```
    /// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 7";
    /// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
    /// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::ListRepositories;
    ///
    /// let mut list = client.repositories().list(ListRepositories::new().search("app").limit(10));
    /// assert_eq!(list.next().unwrap()?.full_name.as_deref(), Some("acme/app"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn repositories(&self) -> Repositories {
        Repositories { client: self.clone() }
    }
}

impl Repositories {
    /// Lists repositories over all pages, lazily: a page of up to 100 is asked for when the one before is used up.
    ///
    /// Each comes with the account at GitHub it belongs to, and with its branch if sandboxes start with it. A search of
    /// more than 200 characters is an error of the first page, and nothing is sent.
    ///
    /// ```
    /// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 7";
    /// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
    /// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let select = sandboxer_blocking::models::SelectRepositoryRequest::new("7");
    /// # client.repositories().select(select)?;
    /// use sandboxer_blocking::ListRepositories;
    ///
    /// let mut list = client.repositories().list(ListRepositories::new().search("app").limit(10));
    /// let app = list.next().unwrap()?;
    /// assert_eq!((app.full_name.as_deref(), app.installation().account_login.as_deref()), (Some("acme/app"), Some("acme")));
    /// assert_eq!(app.selected().and_then(|selected| selected.base_branch.as_deref()), Some("main"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn list(&self, options: ListRepositories) -> Pager<ListedRepository> {
        let driver = self.client.driver().clone();
        Pager::new(driver, self.client.inner.repositories().list(options), |item| item)
    }

    /// Reads which repositories sandboxes start with, also those that the account's connection to GitHub no longer sees.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 7";
    /// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
    /// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let select = sandboxer_blocking::models::SelectRepositoryRequest::new("7");
    /// # client.repositories().select(select)?;
    /// for repository in client.repositories().selected()? {
    ///     println!("{:?} at {:?}", repository.full_name, repository.base_branch);
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn selected(&self) -> Result<Vec<SelectedRepository>> {
        self.client.call(|client| async move { client.repositories().selected().await })
    }

    /// Adds a repository to those that sandboxes start with, or changes its branch.
    ///
    /// It is named by its `database_id`; without a base branch it is `main`. This changes the default environment,
    /// which gets a new version.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for an empty id or branch;
    /// `repository_not_found` of the service; and the failures of any call.
    ///
    /// ```
    /// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 7";
    /// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
    /// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::models::SelectRepositoryRequest;
    ///
    /// let now = client.repositories().select(SelectRepositoryRequest::new("7"))?;
    /// assert_eq!(now.selected_repositories[0].base_branch.as_deref(), Some("main"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn select(&self, repository: SelectRepositoryRequest) -> Result<RepoSelectionResponse> {
        self.client.call(|client| async move { client.repositories().select(repository).await })
    }
}
