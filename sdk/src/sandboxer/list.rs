//! Finding sandboxes, and what the account may do.

use super::{AsyncSandboxer, given, sandbox::AsyncSandbox};
use crate::{
    error::Result,
    models::{LimitsParams, LimitsResponse, SandboxState, SandboxesParams, SortOrder, User},
    stream::{Page, PageRequest, Pager},
};

/// Which sandboxes to list, and how.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// use sandboxer::{Create, ListOptions, models::SandboxState};
///
/// client.create(Create::new()).await?;
/// let options = ListOptions::new().state(SandboxState::Ready).state(SandboxState::Running).limit(50).sort("desc");
/// let mine = client.list(options).collect().await?;
/// assert_eq!(mine.len(), 1);
///
/// let theirs = ListOptions::new().org("acme").cursor("c_1"); // from where an earlier list ended
/// # let _ = theirs;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct ListOptions {
    states: Vec<SandboxState>,
    limit: Option<u64>,
    sort: Option<SortOrder>,
    org: Option<String>,
    cursor: Option<String>,
}

impl ListOptions {
    /// All sandboxes, newest first.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those in this state; several calls add up.
    pub fn state(mut self, state: impl Into<SandboxState>) -> Self {
        self.states.push(state.into());
        self
    }

    /// At most this many, over all pages.
    pub fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// By time of creation: newest first (the default) or oldest first.
    pub fn sort(mut self, order: impl Into<SortOrder>) -> Self {
        self.sort = Some(order.into());
        self
    }

    /// Those of this organisation: its id, its name, or `personal`.
    pub fn org(mut self, org: impl Into<String>) -> Self {
        self.org = Some(org.into());
        self
    }

    /// From this cursor on, as an earlier answer of the service gave it.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    fn check(&self) -> Result<()> {
        given::listed("state", self.states.iter().map(SandboxState::as_str))?;
        given::filled("sort", self.sort.as_ref().map(SortOrder::as_str))?;
        given::filled("cursor", self.cursor.as_deref())
    }
}

impl AsyncSandboxer {
    /// Lists sandboxes over all pages, lazily: a page of up to 100 is asked for when the one before is used up.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let _sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::ListOptions;
    ///
    /// let mut list = client.list(ListOptions::new().state("ready").state("running").limit(10));
    /// while let Some(sandbox) = list.next().await {
    ///     println!("{}", sandbox?.id());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn list(&self, options: ListOptions) -> Pager<AsyncSandbox> {
        if let Err(error) = options.check() {
            return Pager::failing(error);
        }
        let api = self.api().clone();
        let states: Vec<&str> = options.states.iter().map(SandboxState::as_str).collect();
        let mut request = SandboxesParams::new();
        if !states.is_empty() {
            request = request.state(states.join(","));
        }
        request.sort = options.sort;
        request.org = options.org;
        Pager::new(options.limit, options.cursor, move |page: PageRequest| {
            let api = api.clone();
            let mut request = request.clone().limit(page.size);
            request.cursor = page.cursor;
            async move {
                let answer = api.sandboxes(request).await?;
                Ok(Page {
                    items: answer.sandboxes.into_iter().map(|info| from_info(&api, info)).collect(),
                    next_cursor: answer.page_info.next_cursor,
                    has_more: answer.page_info.has_more,
                })
            }
        })
    }

    /// Reads one sandbox.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is none of that id that the key may see; and the failures of
    /// any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::{Create, ErrorKind};
    ///
    /// let id = client.create(Create::new()).await?.id().to_owned();
    /// assert_eq!(client.get(&id).await?.id(), id);
    /// assert_eq!(client.get("bx_22222222").await.unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok(()) }
    /// ```
    pub async fn get(&self, id: &str) -> Result<AsyncSandbox> {
        let answer = self.api().get(id).await?;
        Ok(from_info(self.api(), answer.sandbox))
    }

    /// A handle to a sandbox by its id. Nothing is asked: an unknown or malformed id is an error of the first call
    /// through the handle.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let same = client.sandbox(sandbox.id());
    /// assert!(same.info().is_none());
    /// assert_eq!(same.exec("echo here").await?.stdout_text(), "here\n");
    /// # Ok(()) }
    /// ```
    pub fn sandbox(&self, id: &str) -> AsyncSandbox {
        AsyncSandbox::new(self.api(), id, None)
    }

    /// Who the key belongs to.
    ///
    /// # Errors
    ///
    /// [`Authentication`](crate::ErrorKind::Authentication) when the key is not known; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// println!("the key belongs to {}", client.me().await?.login.unwrap_or_default());
    /// # Ok(()) }
    /// ```
    pub async fn me(&self) -> Result<User> {
        Ok(self.api().me().await?.user)
    }

    /// How many sandboxes may run and be started, and what is used.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// assert!(client.limits().await?.can_start);
    /// # Ok(()) }
    /// ```
    pub async fn limits(&self) -> Result<LimitsResponse> {
        self.api().limits(LimitsParams::new()).await
    }
}

fn from_info(api: &super::Api, info: crate::models::Sandbox) -> AsyncSandbox {
    let id = info.id.clone();
    AsyncSandbox::new(api, &id, Some(info))
}
