//! Snapshots of a sandbox's disk: lists of them, and what is in one.

use std::{fmt, future::Future};

use sandboxer::{
    AsyncSnapshot, Result, SnapshotFile, SnapshotListOptions,
    models::{DeletionOperation, SnapshotDownloadResponse, SnapshotSummary, SnapshotTreeResponse},
};

use crate::{ByteIter, Pager, Sandbox, Sandboxer, driver::Driver};

/// A snapshot, as a handle; comes from [`Sandboxer::snapshot`].
///
/// ```
/// # use sandboxer_mock_server::MockServer;
/// # let server = MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// # sandbox.files().write("hello.txt", "hello")?;
/// # let id = server.world().capture(sandbox.id()).unwrap();
/// let snapshot = client.snapshot(&id);
/// println!("{}", snapshot.id());
/// for entry in snapshot.tree()?.entries {
///     println!("{}", entry.path);
/// }
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) driver: Driver,
    inner: AsyncSnapshot,
}

impl Snapshot {
    pub(crate) fn call<T, F, Fut>(&self, verb: F) -> Result<T>
    where
        F: FnOnce(AsyncSnapshot) -> Fut,
        Fut: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        self.driver.run(verb(self.inner.clone()))
    }

    /// Its id.
    pub fn id(&self) -> &str {
        self.inner.id()
    }

    /// Reads the list of its files, folders and links; what comes with every machine is left out. Without a list
    /// `tree_available` is false and `reason` says why; `truncated` says whether the list is not whole.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is no such snapshot; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("hello.txt", "hello")?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// # server.world().set_scenario(sandboxer_mock_server::Scenario::LegacySnapshots, true).unwrap();
    /// let tree = client.snapshot(&id).tree()?;
    /// assert_eq!(tree.reason.as_deref(), Some("legacy_snapshot"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn tree(&self) -> Result<SnapshotTreeResponse> {
        self.call(|snapshot| async move { snapshot.tree().await })
    }

    /// Downloads a file of it, or a part of one, or a folder as a tar archive, as a stream of bytes.
    ///
    /// A part is answered with the status 206 and a `Content-Range` header; `X-Snapshot-Entry-Kind` tells what it is.
    /// The `range` of [`SnapshotFile`] is asked for, not enforced: a service that does not know it sends the whole file.
    /// [`download_with`](Self::download_with) enforces it, and goes on after a cut.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an empty range or a path over 4096 characters, before anything
    /// is sent; `path_not_found`, and `legacy_snapshot`, `snapshot_not_indexed`, `base_image_file` or `is_symlink` of the
    /// service for what it cannot give out; and the failures of any call. The stream has errors of its own: one that
    /// breaks is not the file's end.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("hello.txt", "hello")?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// use sandboxer_blocking::SnapshotFile;
    ///
    /// let snapshot = client.snapshot(&id);
    /// let part = snapshot.download(SnapshotFile::new("home/user/hello.txt").bytes(1..4))?;
    /// assert_eq!(part.status().as_u16(), 206);
    /// assert_eq!(&part.read_all(1024)?[..], b"ell");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn download(&self, file: SnapshotFile) -> Result<ByteIter> {
        let body = self.call(|snapshot| async move { snapshot.download(file).await })?;
        Ok(ByteIter::new(self.driver.clone(), body))
    }

    /// Reads where its pieces, and those of the snapshots it builds on, can be downloaded for a while, and how to put them
    /// together. The URLs let in whoever has them, and are not printed.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is no such snapshot; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("hello.txt", "hello")?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// let manifest = client.snapshot(&id).manifest()?;
    /// println!("{} pieces for {} s", manifest.chunks.len(), manifest.expires_in_seconds);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn manifest(&self) -> Result<SnapshotDownloadResponse> {
        self.call(|snapshot| async move { snapshot.manifest().await })
    }

    /// Deletes it for good. It is gone from all lists at once; the purge goes on at the service as the operation answered
    /// with ([`Sandboxer::wait_for_deletion`] follows it).
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is no such snapshot, which an earlier try of the same call may
    /// have deleted where [`Error::delivery`](crate::Error::delivery) is `Unknown`; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("hello.txt", "hello")?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// let operation = client.snapshot(&id).delete()?;
    /// println!("{}", operation.status);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn delete(&self) -> Result<DeletionOperation> {
        self.call(|snapshot| async move { snapshot.delete().await })
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Snapshot").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl Sandboxer {
    /// Lists the snapshots of all sandboxes over all pages, lazily.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # server.world().capture(sandbox.id()).unwrap();
    /// use sandboxer_blocking::SnapshotListOptions;
    ///
    /// let list = client.snapshots(SnapshotListOptions::new().limit(5));
    /// for snapshot in list {
    ///     println!("{}", snapshot?.id);
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn snapshots(&self, options: SnapshotListOptions) -> Pager<SnapshotSummary> {
        Pager::new(self.driver().clone(), self.inner.snapshots(options), |snapshot| snapshot)
    }

    /// A handle to a snapshot by its id. Nothing is asked: an unknown or malformed id is an error of the first call
    /// through the handle.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// let snapshot = client.snapshot("0b9c8f3e-6a53-4d53-8f0c-0a0b7a0c5d1e");
    /// assert_eq!(snapshot.id(), "0b9c8f3e-6a53-4d53-8f0c-0a0b7a0c5d1e");
    /// ```
    pub fn snapshot(&self, id: &str) -> Snapshot {
        Snapshot { driver: self.driver().clone(), inner: self.inner.snapshot(id) }
    }
}

impl Sandbox {
    /// Lists its completed snapshots over all pages, lazily.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # server.world().capture(sandbox.id()).unwrap();
    /// use sandboxer_blocking::SnapshotListOptions;
    ///
    /// let all = sandbox.snapshots(SnapshotListOptions::new().sort("asc")).collect::<sandboxer_blocking::Result<Vec<_>>>()?;
    /// println!("{} snapshots", all.len());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn snapshots(&self, options: SnapshotListOptions) -> Pager<SnapshotSummary> {
        Pager::new(self.driver().clone(), self.inner.snapshots(options), |snapshot| snapshot)
    }

    /// Its newest completed snapshot, if it has one.
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
    /// assert!(sandbox.latest_snapshot()?.is_none());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn latest_snapshot(&self) -> Result<Option<SnapshotSummary>> {
        self.call(|sandbox| async move { sandbox.latest_snapshot().await })
    }

    /// Deletes all its snapshots for good; it stays, and so do the named snapshots made from it. They are gone from all
    /// lists at once; the purge goes on at the service as the operations answered with
    /// ([`Sandboxer::wait_for_deletion`] follows one).
    ///
    /// # Errors
    ///
    /// [`PermissionDenied`](crate::ErrorKind::PermissionDenied) when the key may not; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # server.world().capture(sandbox.id()).unwrap();
    /// let operations = sandbox.delete_snapshots()?;
    /// println!("{} are being deleted", operations.len());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn delete_snapshots(&self) -> Result<Vec<DeletionOperation>> {
        self.call(|sandbox| async move { sandbox.delete_snapshots().await })
    }
}
