//! Finding sandboxes, and what the key may do.

use sandboxer::{
    ListOptions, Result,
    models::{LimitsResponse, User},
};

use crate::{Pager, Sandbox, Sandboxer};

impl Sandboxer {
    /// Lists sandboxes over all pages, lazily: a page of up to 100 is asked for when the one before is used up.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::ListOptions;
    ///
    /// for sandbox in client.list(ListOptions::new().state("ready").state("running").limit(10)) {
    ///     println!("{}", sandbox?.id());
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn list(&self, options: ListOptions) -> Pager<Sandbox> {
        let driver = self.driver().clone();
        let pages = self.inner.list(options);
        Pager::new(self.driver().clone(), pages, move |sandbox| Sandbox::new(driver.clone(), sandbox))
    }

    /// Reads one sandbox.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is none of that id that the key may see; and the failures of
    /// any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::ErrorKind;
    ///
    /// assert_eq!(client.get("bx_unknown").unwrap_err().kind(), ErrorKind::NotFound);
    /// ```
    pub fn get(&self, id: &str) -> Result<Sandbox> {
        let id = id.to_owned();
        let sandbox = self.call(|client| async move { client.get(&id).await })?;
        Ok(self.handle(sandbox))
    }

    /// A handle to a sandbox by its id. Nothing is asked: an unknown or malformed id is an error of the first call
    /// through the handle.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let same = client.sandbox(sandbox.id());
    /// assert_eq!(same.exec("echo hi")?.stdout_text(), "hi\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn sandbox(&self, id: &str) -> Sandbox {
        self.handle(self.inner.sandbox(id))
    }

    /// Who the key belongs to.
    ///
    /// # Errors
    ///
    /// [`Authentication`](crate::ErrorKind::Authentication) when the key is not known; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// println!("{:?}", client.me()?);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn me(&self) -> Result<User> {
        self.call(|client| async move { client.me().await })
    }

    /// How many sandboxes may run and be started, and what is used.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// println!("{:?}", client.limits()?);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn limits(&self) -> Result<LimitsResponse> {
        self.call(|client| async move { client.limits().await })
    }
}
