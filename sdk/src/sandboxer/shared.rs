//! The default client: built from the environment when it is first needed, for programs of a line or two.

use std::{
    collections::HashMap,
    future,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

use tokio::runtime::{Handle, Id};

use super::{AsyncSandboxer, list::ListOptions, options::Create, sandbox::AsyncSandbox};
use crate::{error::Result, stream::Pager};

/// The clients by runtime, `None` for outside of any: a connection is served by a task of the runtime it was made on, and
/// hangs when that one is not driven.
type Clients = HashMap<Option<Id>, Option<AsyncSandboxer>>;

static CLIENTS: LazyLock<Mutex<Clients>> = LazyLock::new(Mutex::default);

fn lock() -> MutexGuard<'static, Clients> {
    CLIENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AsyncSandboxer {
    /// The default client, built from the environment when it is first asked for; see [`Builder`](crate::Builder) for the
    /// variables. Nothing is sent.
    ///
    /// Every Tokio runtime of the process has one of its own, because connections belong to the runtime they were made on;
    /// it goes with the runtime. Outside of any runtime this is a new client each time, unless [one was set](Self::set_shared). One that was
    /// [closed](Self::close) is replaced, and so are all after [`reset_shared`](Self::reset_shared).
    ///
    /// # Errors
    ///
    /// Those of [`from_env`](Self::from_env); the next call tries again.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # sandboxer::AsyncSandboxer::set_shared(server.client()); // instead of SANDBOXER_API_KEY and friends
    /// use sandboxer::{AsyncSandbox, AsyncSandboxer, Create};
    ///
    /// let sandbox = AsyncSandbox::create(Create::new()).await?; // through the default client
    /// println!("{}", sandbox.exec("uname -a").await?.check()?.stdout_text());
    /// sandbox.delete().await?;
    /// assert!(AsyncSandboxer::shared()?.limits().await?.can_start);
    /// # Ok(()) }
    /// ```
    pub fn shared() -> Result<Self> {
        let runtime = Handle::try_current().ok();
        let id = runtime.as_ref().map(Handle::id);
        let (client, replaced, is_first) = {
            let mut clients = lock();
            let known = clients.get(&id);
            let usable = known.and_then(Option::as_ref).filter(|client| !client.is_closed());
            if let Some(client) = usable {
                return Ok(client.clone());
            }
            let (client, is_first) = (Self::from_env()?, known.is_none());
            let replaced = runtime.as_ref().and_then(|_| clients.insert(id, Some(client.clone())));
            (client, replaced, is_first)
        };
        drop(replaced);
        if let Some(runtime) = runtime.filter(|_| is_first) {
            give_up_with(&runtime);
        }
        Ok(client)
    }

    /// Makes `client` the default client: one with settings of its own, or one of a local server in a test. It is that of
    /// the Tokio runtime at hand alone, or, outside of any, of what is outside of any.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// use sandboxer::{AsyncSandbox, AsyncSandboxer, Create};
    ///
    /// AsyncSandboxer::set_shared(server.client()); // a `MockServer`
    /// AsyncSandbox::create(Create::new()).await?;
    /// assert_eq!(server.requests_to(sandboxer::Operation::Create).len(), 1);
    /// # Ok(()) }
    /// ```
    pub fn set_shared(client: Self) {
        let runtime = Handle::try_current().ok();
        let before = lock().insert(runtime.as_ref().map(Handle::id), Some(client));
        if let Some(runtime) = runtime.filter(|_| before.is_none()) {
            give_up_with(&runtime);
        }
    }

    /// Forgets the default clients of all runtimes: the next use of one reads the environment again. Clients and handles
    /// that were given out go on as they are.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// use sandboxer::AsyncSandboxer;
    ///
    /// AsyncSandboxer::set_shared(server.client());
    /// let client = AsyncSandboxer::shared()?;
    /// AsyncSandboxer::reset_shared();
    /// client.me().await?; // it goes on, but it is the default client no more
    /// # Ok(()) }
    /// ```
    pub fn reset_shared() {
        let forgotten: Vec<_> = lock().values_mut().map(Option::take).collect();
        drop(forgotten);
    }
}

/// Has the runtime's client forgotten when the runtime ends. Not to be called under the lock: a runtime that is shutting
/// down drops the task at once.
fn give_up_with(runtime: &Handle) {
    let place = Place(runtime.id());
    runtime.spawn(async move {
        let _place = place;
        future::pending::<()>().await;
    });
}

/// A runtime's place among the clients; its task, and so this, is dropped when the runtime ends.
struct Place(Id);

impl Drop for Place {
    fn drop(&mut self) {
        let left = lock().remove(&Some(self.0));
        drop(left);
    }
}

impl AsyncSandbox {
    /// Makes a sandbox through the [default client](AsyncSandboxer::shared) and waits until it is ready unless told not
    /// to.
    ///
    /// # Errors
    ///
    /// [`Config`](crate::ErrorKind::Config) when the default client cannot be built, for want of a key for example; those
    /// of [`AsyncSandboxer::create`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # sandboxer::AsyncSandboxer::set_shared(server.client()); // instead of SANDBOXER_API_KEY and friends
    /// use sandboxer::{AsyncSandbox, Create};
    ///
    /// let sandbox = AsyncSandbox::create(Create::new()).await?; // SANDBOXER_API_KEY and friends
    /// assert_eq!(sandbox.exec("echo hi").await?.stdout_text(), "hi\n");
    /// # Ok(()) }
    /// ```
    pub async fn create(options: Create) -> Result<Self> {
        AsyncSandboxer::shared()?.create(options).await
    }

    /// Reads one sandbox through the [default client](AsyncSandboxer::shared).
    ///
    /// # Errors
    ///
    /// [`Config`](crate::ErrorKind::Config) when the default client cannot be built; those of [`AsyncSandboxer::get`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # sandboxer::AsyncSandboxer::set_shared(server.client()); // instead of SANDBOXER_API_KEY and friends
    /// # let id = server.client().create(sandboxer::Create::new()).await?.id().to_owned();
    /// let sandbox = sandboxer::AsyncSandbox::get(&id).await?;
    /// assert!(sandbox.info().is_some());
    /// # Ok(()) }
    /// ```
    pub async fn get(id: &str) -> Result<Self> {
        AsyncSandboxer::shared()?.get(id).await
    }

    /// A handle to a sandbox by its id, through the [default client](AsyncSandboxer::shared). Nothing is asked: an unknown
    /// or malformed id is an error of the first call through the handle.
    ///
    /// # Errors
    ///
    /// [`Config`](crate::ErrorKind::Config) when the default client cannot be built.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # sandboxer::AsyncSandboxer::set_shared(server.client()); // instead of SANDBOXER_API_KEY and friends
    /// # let id = server.client().create(sandboxer::Create::new()).await?.id().to_owned();
    /// let sandbox = sandboxer::AsyncSandbox::connect(&id)?;
    /// assert_eq!(sandbox.exec("echo hi").await?.stdout_text(), "hi\n");
    /// # Ok(()) }
    /// ```
    pub fn connect(id: &str) -> Result<Self> {
        Ok(AsyncSandboxer::shared()?.sandbox(id))
    }

    /// Lists sandboxes over all pages, lazily, through the [default client](AsyncSandboxer::shared); where that cannot be
    /// built, the list's first item is the error.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # sandboxer::AsyncSandboxer::set_shared(server.client()); // instead of SANDBOXER_API_KEY and friends
    /// use sandboxer::{AsyncSandbox, ListOptions};
    ///
    /// let mut list = AsyncSandbox::list(ListOptions::new().state("ready"));
    /// while let Some(sandbox) = list.next().await {
    ///     println!("{}", sandbox?.id());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn list(options: ListOptions) -> Pager<Self> {
        match AsyncSandboxer::shared() {
            Ok(client) => client.list(options),
            Err(error) => Pager::failing(error),
        }
    }
}
