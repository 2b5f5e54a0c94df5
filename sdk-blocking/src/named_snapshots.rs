//! Disks saved under a name, and the codes that let others start from them.

use std::{fmt, future::Future, time::Duration};

use sandboxer::{
    AsyncNamedSnapshots, Result,
    models::{
        NamedSnapshot, NamedSnapshotListResponse, NamedSnapshotShare, NamedSnapshotShareCreatedResponse,
    },
};

use crate::{Sandbox, Sandboxer, driver::Driver};

/// The named snapshots of a wallet; comes from [`Sandboxer::named_snapshots`].
///
/// A named snapshot does not depend on the sandbox it was saved from and does not expire. [`Create::from`](crate::Create::from)
/// takes its name.
///
/// ```
/// # use sandboxer_mock_server::MockServer;
/// # let server = MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// # client.named_snapshots().save(sandbox.id(), "base")?;
/// let list = client.named_snapshots().list()?;
/// for snapshot in &list.snapshots {
///     println!("{}: {}", snapshot.name, snapshot.status);
/// }
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[derive(Clone)]
pub struct NamedSnapshots {
    driver: Driver,
    inner: AsyncNamedSnapshots,
}

impl NamedSnapshots {
    fn call<T, F, Fut>(&self, verb: F) -> Result<T>
    where
        F: FnOnce(AsyncNamedSnapshots) -> Fut,
        Fut: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        self.driver.run(verb(self.inner.clone()))
    }

    /// Reads all of them, newest first, and how many more there may be.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # client.named_snapshots().save(sandbox.id(), "base")?;
    /// assert_eq!(client.named_snapshots().list()?.allowance.and_then(|allowance| allowance.free), Some(10));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn list(&self) -> Result<NamedSnapshotListResponse> {
        self.call(|group| async move { group.list().await })
    }

    /// Reads one.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is none of that name; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.snapshot("base")?;
    /// use sandboxer_blocking::models::NamedSnapshotStatus;
    ///
    /// assert_eq!(client.named_snapshots().get("base")?.status, NamedSnapshotStatus::Ready);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn get(&self, name: &str) -> Result<NamedSnapshot> {
        let name = name.to_owned();
        self.call(|group| async move { group.get(&name).await })
    }

    /// Begins to save a sandbox's disk under a name, and does not wait: [`wait`](Self::wait) does, and
    /// [`Sandbox::snapshot`] does both.
    ///
    /// A name has up to 63 small letters, digits and dashes and begins with a letter or digit; `latest`, `tree`, `pull`,
    /// `rm`, `save`, `current`, `self` and `new` are reserved. Under a name in use, the old snapshot is replaced once the
    /// new one is ready.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a name out of its limits, before anything is sent;
    /// `save_in_progress` and `named_snapshot_limit` of the service; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let snapshot = client.named_snapshots().save(sandbox.id(), "base")?;
    /// assert_eq!(snapshot.status.as_str(), "saving");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn save(&self, sandbox_id: &str, name: &str) -> Result<NamedSnapshot> {
        let sandbox_id = sandbox_id.to_owned();
        let name = name.to_owned();
        self.call(|group| async move { group.save(&sandbox_id, &name).await })
    }

    /// Waits until a save is ready. It is looked at every 2 s, for at most `limit`: the view's total limit if one is set,
    /// else 30 minutes, if `None`.
    ///
    /// # Errors
    ///
    /// [`SandboxState`](crate::ErrorKind::SandboxState) with the code `snapshot_failed` when the save failed, with the reason;
    /// [`WaitTimeout`](crate::ErrorKind::WaitTimeout) at the limit; [`NotFound`](crate::ErrorKind::NotFound) when there is none of that
    /// name; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.snapshot("base")?;
    /// let ready = client.named_snapshots().wait("base", None)?;
    /// assert!(ready.snapshot_id.is_some());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn wait(&self, name: &str, limit: Option<Duration>) -> Result<NamedSnapshot> {
        let name = name.to_owned();
        self.call(|group| async move { group.wait(&name, limit).await })
    }

    /// Removes one, and its share codes with it; sandboxes made from it stay.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is none of that name, unless an earlier try of the same call may
    /// have removed it; `save_in_progress` of the service; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.snapshot("base")?;
    /// client.named_snapshots().delete("base")?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn delete(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.call(|group| async move { group.delete(&name).await })
    }

    /// Reads the share codes of one, the revoked ones too; of each code only its first characters are known.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is none of that name; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # client.named_snapshots().save(sandbox.id(), "base")?;
    /// for share in client.named_snapshots().shares("base")? {
    ///     println!("{}… was used {} times", share.code_prefix, share.use_count);
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn shares(&self, name: &str) -> Result<Vec<NamedSnapshotShare>> {
        let name = name.to_owned();
        self.call(|group| async move { group.shares(&name).await })
    }

    /// Makes a code with which anyone can create sandboxes from one, on a wallet of their own. The code is told only now,
    /// and is not printed: `share_code.expose()` tells it.
    ///
    /// Saving under the same name again changes what the code gives.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is none of that name; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # client.named_snapshots().save(sandbox.id(), "base")?;
    /// use sandboxer_blocking::Create;
    ///
    /// let shared = client.named_snapshots().create_share("base")?;
    /// assert!(!format!("{shared:?}").contains(shared.share_code.expose()));
    /// let options = Create::new().from(shared.share_code.expose());
    /// # let _ = options;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn create_share(&self, name: &str) -> Result<NamedSnapshotShareCreatedResponse> {
        let name = name.to_owned();
        self.call(|group| async move { group.create_share(&name).await })
    }

    /// Revokes a share code by the id of its share; sandboxes made with it keep their copy.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is no such share; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # client.named_snapshots().save(sandbox.id(), "base")?;
    /// # let id = client.named_snapshots().create_share("base")?.share.id;
    /// let share = client.named_snapshots().revoke_share("base", &id)?;
    /// assert_eq!(share.status.as_str(), "revoked");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn revoke_share(&self, name: &str, share_id: &str) -> Result<NamedSnapshotShare> {
        let name = name.to_owned();
        let share_id = share_id.to_owned();
        self.call(|group| async move { group.revoke_share(&name, &share_id).await })
    }
}

impl fmt::Debug for NamedSnapshots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NamedSnapshots").field("inner", &self.inner).finish()
    }
}

impl Sandboxer {
    /// The named snapshots of the wallet.
    pub fn named_snapshots(&self) -> NamedSnapshots {
        NamedSnapshots { driver: self.driver().clone(), inner: self.inner.named_snapshots() }
    }
}

impl Sandbox {
    /// Saves its disk under a name and waits until that is ready, for at most 30 minutes or the view's total limit.
    ///
    /// Names are as [`NamedSnapshots::save`] says; a snapshot of the same name is replaced once the new one is ready.
    ///
    /// # Errors
    ///
    /// Those of [`NamedSnapshots::save`] and [`NamedSnapshots::wait`]. When the wait fails the save goes on at
    /// the service.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let snapshot = sandbox.snapshot("base")?;
    /// assert_eq!(snapshot.name, "base"); // `Create::new().from("base")` starts from it
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn snapshot(&self, name: &str) -> Result<NamedSnapshot> {
        let name = name.to_owned();
        self.call(|sandbox| async move { sandbox.snapshot(&name).await })
    }
}
