//! The default client: built from the environment when it is first needed, for programs of a line or two.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sandboxer::{Create, ListOptions, Result};

use crate::{Pager, Sandbox, Sandboxer};

static CLIENT: Mutex<Option<Sandboxer>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Sandboxer>> {
    CLIENT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sandboxer {
    /// The default client, built from the environment when it is first asked for; see [`Builder`](crate::Builder) for the
    /// variables. Nothing is sent.
    ///
    /// The whole process has one, with one thread. One that was [closed](Self::close) is replaced, and so is any after
    /// [`reset_shared`](Self::reset_shared).
    ///
    /// # Errors
    ///
    /// Those of [`from_env`](Self::from_env); the next call tries again.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # sandboxer_blocking::Sandboxer::set_shared(client.clone()); // instead of SANDBOXER_API_KEY and friends
    /// use sandboxer_blocking::{Create, Sandbox, Sandboxer};
    ///
    /// let sandbox = Sandbox::create(Create::new())?; // through the default client
    /// println!("{}", sandbox.exec("uname -a")?.check()?.stdout_text());
    /// sandbox.delete()?;
    /// assert!(Sandboxer::shared()?.limits()?.can_start);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn shared() -> Result<Self> {
        let mut shared = lock();
        if let Some(client) = shared.as_ref().filter(|client| !client.inner.is_closed()) {
            return Ok(client.clone());
        }
        let client = Self::from_env()?;
        let replaced = shared.replace(client.clone());
        drop(shared);
        drop(replaced);
        Ok(client)
    }

    /// Makes `client` the default client: one with settings of its own, or one of a local server in a test.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// use sandboxer_blocking::{Create, Sandbox, Sandboxer};
    ///
    /// Sandboxer::set_shared(Sandboxer::from_async(server.client())); // a `MockServer`
    /// Sandbox::create(Create::new())?;
    /// assert_eq!(server.requests_to(sandboxer_blocking::Operation::Create).len(), 1);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn set_shared(client: Self) {
        let replaced = lock().replace(client);
        drop(replaced);
    }

    /// Forgets the default client: the next use of it reads the environment again. Clients and handles that were given
    /// out go on as they are.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// use sandboxer_blocking::Sandboxer;
    ///
    /// Sandboxer::set_shared(Sandboxer::from_async(server.client()));
    /// let client = Sandboxer::shared()?;
    /// Sandboxer::reset_shared();
    /// client.me()?; // it goes on, but it is the default client no more
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn reset_shared() {
        let forgotten = lock().take();
        drop(forgotten);
    }
}

impl Sandbox {
    /// Makes a sandbox through the [default client](Sandboxer::shared) and waits until it is ready unless told not to.
    ///
    /// # Errors
    ///
    /// [`Config`](crate::ErrorKind::Config) when the default client cannot be built, for want of a key for example; those
    /// of [`Sandboxer::create`].
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # sandboxer_blocking::Sandboxer::set_shared(client.clone()); // instead of SANDBOXER_API_KEY and friends
    /// use sandboxer_blocking::{Create, Sandbox};
    ///
    /// let sandbox = Sandbox::create(Create::new())?; // SANDBOXER_API_KEY and friends
    /// assert_eq!(sandbox.exec("echo hi")?.stdout_text(), "hi\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn create(options: Create) -> Result<Self> {
        Sandboxer::shared()?.create(options)
    }

    /// Reads one sandbox through the [default client](Sandboxer::shared).
    ///
    /// # Errors
    ///
    /// [`Config`](crate::ErrorKind::Config) when the default client cannot be built; those of [`Sandboxer::get`].
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # sandboxer_blocking::Sandboxer::set_shared(client.clone()); // instead of SANDBOXER_API_KEY and friends
    /// # let id = client.create(sandboxer_blocking::Create::new())?.id().to_owned();
    /// let sandbox = sandboxer_blocking::Sandbox::get(&id)?;
    /// assert!(sandbox.info().is_some());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn get(id: &str) -> Result<Self> {
        Sandboxer::shared()?.get(id)
    }

    /// A handle to a sandbox by its id, through the [default client](Sandboxer::shared). Nothing is asked: an unknown or
    /// malformed id is an error of the first call through the handle.
    ///
    /// # Errors
    ///
    /// [`Config`](crate::ErrorKind::Config) when the default client cannot be built.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # sandboxer_blocking::Sandboxer::set_shared(client.clone()); // instead of SANDBOXER_API_KEY and friends
    /// # let id = client.create(sandboxer_blocking::Create::new())?.id().to_owned();
    /// let sandbox = sandboxer_blocking::Sandbox::connect(&id)?;
    /// assert_eq!(sandbox.exec("echo hi")?.stdout_text(), "hi\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn connect(id: &str) -> Result<Self> {
        Ok(Sandboxer::shared()?.sandbox(id))
    }

    /// Lists sandboxes over all pages, lazily, through the [default client](Sandboxer::shared); where that cannot be
    /// built, the list's first item is the error.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # sandboxer_blocking::Sandboxer::set_shared(client.clone()); // instead of SANDBOXER_API_KEY and friends
    /// use sandboxer_blocking::{ListOptions, Sandbox};
    ///
    /// for sandbox in Sandbox::list(ListOptions::new().state("ready")) {
    ///     println!("{}", sandbox?.id());
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn list(options: ListOptions) -> Pager<Self> {
        match Sandboxer::shared() {
            Ok(client) => client.list(options),
            Err(error) => Pager::failing(error),
        }
    }
}
