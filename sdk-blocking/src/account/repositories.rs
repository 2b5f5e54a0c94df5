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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "repos.list", "installations": [{"type":
    /// #     "org", "repositories": [{"databaseId": "7", "fullName": "acme/app"}]}], "environmentId": "v_1",
    /// #     "selectedRepositories": [], "pageInfo": {"nextCursor": null, "hasMore": false, "limit": 100}});
    /// # server.on(sandboxer_blocking::Operation::Repos).reply(sandboxer_mock_server::Reply::json(answer));
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "repos.list", "installations": [{"type": "org",
    /// #     "accountLogin": "acme", "repositories": [{"databaseId": "7", "fullName": "acme/app"}]}],
    /// #     "environmentId": "v_1", "selectedRepositories": [{"databaseId": "7", "baseBranch": "main"}],
    /// #     "pageInfo": {"nextCursor": null, "hasMore": false, "limit": 100}});
    /// # server.on(sandboxer_blocking::Operation::Repos).reply(sandboxer_mock_server::Reply::json(answer));
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "repos.list", "installations": [], "environmentId": "v_1",
    /// #     "selectedRepositories": [{"databaseId": "7", "fullName": "acme/app", "baseBranch": "main"}],
    /// #     "pageInfo": {"nextCursor": null, "hasMore": false, "limit": 1}});
    /// # server.on(sandboxer_blocking::Operation::Repos).reply(sandboxer_mock_server::Reply::json(answer));
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "repos.updated", "success": true,
    /// #     "environmentId": "v_2", "selectedRepositories": [{"databaseId": "7", "baseBranch": "main"}]});
    /// # server.on(sandboxer_blocking::Operation::SelectRepo).reply(sandboxer_mock_server::Reply::json(answer));
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
