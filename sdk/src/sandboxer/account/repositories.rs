//! Repositories that sandboxes can work on.

use crate::{
    AsyncSandboxer,
    error::Result,
    models::{
        RepoSelectionResponse, ReposParams, ReposResponse, SelectRepositoryRequest, SelectedRepository,
    },
    sandboxer::Api,
    stream::{Page, PageRequest, Pager},
};

use super::{ListRepositories, ListedRepository, listed_repository::listed};

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
    /// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 7";
    /// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
    /// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap(); let client = server.client();
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
    /// Each comes with the account at GitHub it belongs to, and with its branch if sandboxes start with it. A search of
    /// more than 200 characters is an error of the first page, and nothing is sent.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 7";
    /// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
    /// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap(); let client = server.client();
    /// # let select = sandboxer::models::SelectRepositoryRequest::new("7");
    /// # client.repositories().select(select).await?;
    /// use sandboxer::ListRepositories;
    ///
    /// let mut list = client.repositories().list(ListRepositories::new().search("app").limit(10));
    /// let app = list.next().await.unwrap()?;
    /// assert_eq!((app.full_name.as_deref(), app.installation().account_login.as_deref()), (Some("acme/app"), Some("acme")));
    /// assert_eq!(app.selected().and_then(|selected| selected.base_branch.as_deref()), Some("main"));
    /// # Ok(()) }
    /// ```
    pub fn list(&self, options: ListRepositories) -> Pager<ListedRepository> {
        let api = self.api.clone();
        if let Err(error) = options.check() {
            return Pager::failing(error);
        }
        let ListRepositories { mut request, limit } = options;
        let (start, mut sync) = (request.cursor.take(), request.sync.take());
        Pager::new(limit, start, move |page: PageRequest| {
            let api = api.clone();
            let mut request = request.clone().limit(page.size);
            request.cursor = page.cursor;
            // Asking GitHub anew between two pages could shift the pages.
            request.sync = sync.take();
            async move {
                let ReposResponse { installations, selected_repositories, page_info, .. } =
                    api.repos(request).await?;
                let (next_cursor, has_more) =
                    page_info.map_or((None, false), |info| (info.next_cursor, info.has_more));
                Ok(Page { items: listed(installations, &selected_repositories), next_cursor, has_more })
            }
        })
    }

    /// Reads which repositories sandboxes start with, also those that the account's connection to GitHub no longer sees.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 7";
    /// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
    /// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap(); let client = server.client();
    /// # let select = sandboxer::models::SelectRepositoryRequest::new("7");
    /// # client.repositories().select(select).await?;
    /// for repository in client.repositories().selected().await? {
    ///     println!("{:?} at {:?}", repository.full_name, repository.base_branch);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn selected(&self) -> Result<Vec<SelectedRepository>> {
        Ok(self.api.repos(ReposParams::new().limit(1)).await?.selected_repositories)
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
    /// # let repository = "[[repositories]]\nfull_name = 'acme/app'\nid = 7";
    /// # let world = sandboxer_mock_server::WorldSeed::from_toml(repository).unwrap();
    /// # let server = sandboxer_mock_server::MockServer::builder().world(world).start().unwrap(); let client = server.client();
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
