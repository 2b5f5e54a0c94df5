//! Repositories that sandboxes can work on.

use crate::{
    AsyncSandboxer,
    error::Result,
    models::{RepoSelectionResponse, Repository, SelectRepositoryRequest},
    sandboxer::Api,
    stream::{Page, PageRequest, Pager},
};

use super::ListRepositories;

/// The GitHub repositories of the account, and which of them sandboxes start with; comes from
/// [`AsyncSandboxer::repositories`](crate::AsyncSandboxer::repositories).
#[derive(Clone, Debug)]
pub struct AsyncRepositories {
    api: Api,
}

impl AsyncSandboxer {
    /// The GitHub repositories of the account, and which of them sandboxes start with.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let answer = serde_json::json!({"ok": true, "type": "repos.list", "installations": [{"type":
    /// #     "org", "repositories": [{"databaseId": "7", "fullName": "acme/app"}]}], "environmentId": "v_1",
    /// #     "selectedRepositories": [], "pageInfo": {"nextCursor": null, "hasMore": false, "limit": 100}});
    /// # server.on(sandboxer::Operation::Repos).reply(sandboxer_mock_server::Reply::json(answer));
    /// use sandboxer::ListRepositories;
    ///
    /// let mut list = client.repositories().list(ListRepositories::new().search("app").limit(10));
    /// assert_eq!(list.next().await.unwrap()?.full_name.as_deref(), Some("acme/app"));
    /// # Ok(()) }
    /// ```
    pub fn repositories(&self) -> AsyncRepositories {
        AsyncRepositories { api: self.api().clone() }
    }
}

impl AsyncRepositories {
    /// Lists repositories over all pages, lazily: a page of up to 100 is asked for when the one before is used up.
    ///
    /// A search of more than 200 characters is an error of the first page, and nothing is sent.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let answer = serde_json::json!({"ok": true, "type": "repos.list", "installations": [{"type":
    /// #     "org", "repositories": [{"databaseId": "7", "fullName": "acme/app"}]}], "environmentId": "v_1",
    /// #     "selectedRepositories": [], "pageInfo": {"nextCursor": null, "hasMore": false, "limit": 100}});
    /// # server.on(sandboxer::Operation::Repos).reply(sandboxer_mock_server::Reply::json(answer));
    /// use sandboxer::ListRepositories;
    ///
    /// let mut list = client.repositories().list(ListRepositories::new().search("app").limit(10));
    /// assert_eq!(list.next().await.unwrap()?.full_name.as_deref(), Some("acme/app"));
    /// # Ok(()) }
    /// ```
    pub fn list(&self, options: ListRepositories) -> Pager<Repository> {
        let api = self.api.clone();
        let ListRepositories { mut request, limit } = options;
        let (start, mut sync) = (request.cursor.take(), request.sync.take());
        Pager::new(limit, start, move |page: PageRequest| {
            let api = api.clone();
            let mut request = request.clone().limit(page.size);
            request.cursor = page.cursor;
            // Asking GitHub anew between two pages could shift the pages.
            request.sync = sync.take();
            async move {
                let answer = api.repos(request).await?;
                let repositories = answer.installations.into_iter().flat_map(|group| group.repositories);
                let (next_cursor, has_more) =
                    answer.page_info.map_or((None, false), |info| (info.next_cursor, info.has_more));
                Ok(Page { items: repositories.flatten().collect(), next_cursor, has_more })
            }
        })
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let answer = serde_json::json!({"ok": true, "type": "repos.updated", "success": true,
    /// #     "environmentId": "v_2", "selectedRepositories": [{"databaseId": "7", "baseBranch": "main"}]});
    /// # server.on(sandboxer::Operation::SelectRepo).reply(sandboxer_mock_server::Reply::json(answer));
    /// use sandboxer::models::SelectRepositoryRequest;
    ///
    /// let now = client.repositories().select(SelectRepositoryRequest::new("7")).await?;
    /// assert_eq!(now.selected_repositories[0].base_branch.as_deref(), Some("main"));
    /// # Ok(()) }
    /// ```
    pub async fn select(&self, repository: SelectRepositoryRequest) -> Result<RepoSelectionResponse> {
        self.api.select_repo(repository).await
    }
}
