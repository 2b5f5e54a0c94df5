//! Snapshots of a sandbox's disk: lists of them, and what is in one.

use std::{fmt, ops::Range, sync::Arc};

use super::{Api, AsyncSandboxer, given, sandbox::AsyncSandbox, transfer::Wanted};
use crate::{
    error::{Error, Result},
    models::{
        DeleteSandboxSnapshotsParams, DeleteSnapshotParams, DeletionOperation, GetSnapshotFileParams,
        ListSandboxSnapshotsParams, ListSnapshotsParams, SnapshotDownloadResponse, SnapshotListResponse,
        SnapshotSummary, SnapshotTreeResponse, SortOrder,
    },
    stream::{ByteBody, Page, PageRequest, Pager},
};

/// Which snapshots to list, and how.
///
/// ```
/// use sandboxer::SnapshotListOptions;
///
/// let options = SnapshotListOptions::new().sort("asc").limit(10).cursor("c_1");
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct SnapshotListOptions {
    limit: Option<u64>,
    sort: Option<SortOrder>,
    cursor: Option<String>,
}

impl SnapshotListOptions {
    /// All of them, newest first.
    pub fn new() -> Self {
        Self::default()
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

    /// From this cursor on, as an earlier answer of the service gave it.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    fn check(&self) -> Result<()> {
        given::filled("sort", self.sort.as_ref().map(SortOrder::as_str))?;
        given::filled("cursor", self.cursor.as_deref())
    }
}

/// Which file or folder of a snapshot to download, and which of its bytes.
///
/// ```
/// use sandboxer::SnapshotFile;
///
/// let head = SnapshotFile::new("app/log.txt").bytes(0..1024);
/// let rest = SnapshotFile::new("app/log.txt").from_offset(1024);
/// let tail = SnapshotFile::new("app/log.txt").last(1024);
/// # let _ = (head, rest, tail);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct SnapshotFile {
    path: String,
    bytes: Bytes,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Bytes {
    #[default]
    All,
    Between(Range<u64>),
    From(u64),
    Last(u64),
}

impl SnapshotFile {
    /// All of what is at `path`, at most 4096 characters; empty or `/` is the whole snapshot. A folder comes as a tar
    /// archive.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), bytes: Bytes::All }
    }

    /// Only the bytes from the range's start up to, not including, its end. It has no effect on a folder.
    pub fn bytes(mut self, range: Range<u64>) -> Self {
        self.bytes = Bytes::Between(range);
        self
    }

    /// Only the bytes from `offset` on, so that a download that broke can go on.
    pub fn from_offset(mut self, offset: u64) -> Self {
        self.bytes = Bytes::From(offset);
        self
    }

    /// Only the last `count` bytes.
    pub fn last(mut self, count: u64) -> Self {
        self.bytes = Bytes::Last(count);
        self
    }

    /// The bytes that are asked for.
    pub(super) fn wanted(&self) -> Wanted {
        match &self.bytes {
            Bytes::All => Wanted::All,
            Bytes::Between(range) => Wanted::Between(range.start, range.end.checked_sub(1)),
            Bytes::From(offset) => Wanted::Between(*offset, None),
            Bytes::Last(count) => Wanted::Last(*count),
        }
    }

    pub(super) fn request(self) -> Result<GetSnapshotFileParams> {
        if self.path.contains('\0') {
            return Err(Error::invalid_input("path", "must not contain a NUL character"));
        }
        let request = GetSnapshotFileParams::new().path(self.path);
        match self.bytes {
            Bytes::All => Ok(request),
            Bytes::Between(range) if range.is_empty() => {
                Err(Error::invalid_input("bytes", "must hold at least one byte"))
            }
            Bytes::Between(range) => Ok(request.range(format!("bytes={}-{}", range.start, range.end - 1))),
            Bytes::From(offset) => Ok(request.range(format!("bytes={offset}-"))),
            Bytes::Last(0) => Err(Error::invalid_input("last", "must be at least 1")),
            Bytes::Last(count) => Ok(request.range(format!("bytes=-{count}"))),
        }
    }
}

/// A snapshot, as a handle; comes from [`AsyncSandboxer::snapshot`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # use sandboxer_mock_server::MockServer;
/// # let server = MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// # sandbox.files().write("hello.txt", "hello").await?;
/// # let id = server.world().capture(sandbox.id()).unwrap();
/// let snapshot = client.snapshot(&id);
/// println!("{}", snapshot.id());
/// for entry in snapshot.tree().await?.entries {
///     println!("{}", entry.path);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AsyncSnapshot {
    pub(super) api: Api,
    pub(super) id: Arc<str>,
}

impl AsyncSnapshot {
    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Reads the list of its files, folders and links; what comes with every machine is left out. Without a list
    /// `tree_available` is false and `reason` says why; `truncated` says whether the list is not whole.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is no such snapshot; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.files().write("hello.txt", "hello").await?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// # server.world().set_scenario(sandboxer_mock_server::Scenario::LegacySnapshots, true).unwrap();
    /// let tree = client.snapshot(&id).tree().await?;
    /// assert_eq!(tree.reason.as_deref(), Some("legacy_snapshot"));
    /// # Ok(()) }
    /// ```
    pub async fn tree(&self) -> Result<SnapshotTreeResponse> {
        self.api.get_snapshot_tree(&self.id).await
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.files().write("hello.txt", "hello").await?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// use sandboxer::SnapshotFile;
    ///
    /// let snapshot = client.snapshot(&id);
    /// let part = snapshot.download(SnapshotFile::new("home/user/hello.txt").bytes(1..4)).await?;
    /// assert_eq!(part.status().as_u16(), 206);
    /// assert_eq!(&part.collect(1024).await?[..], b"ell");
    /// # Ok(()) }
    /// ```
    pub async fn download(&self, file: SnapshotFile) -> Result<ByteBody> {
        self.api.get_snapshot_file(&self.id, file.request()?).await
    }

    /// Reads where its pieces, and those of the snapshots it builds on, can be downloaded for a while, and how to put them
    /// together. The URLs let in whoever has them, and are not printed.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is no such snapshot; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.files().write("hello.txt", "hello").await?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// let manifest = client.snapshot(&id).manifest().await?;
    /// println!("{} pieces for {} s", manifest.chunks.len(), manifest.expires_in_seconds);
    /// # Ok(()) }
    /// ```
    pub async fn manifest(&self) -> Result<SnapshotDownloadResponse> {
        self.api.get_snapshot_download(&self.id).await
    }

    /// Deletes it for good. It is gone from all lists at once; the purge goes on at the service as the operation answered
    /// with ([`AsyncSandboxer::wait_for_deletion`] follows it).
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is no such snapshot, which an earlier try of the same call may
    /// have deleted where [`Error::delivery`](crate::Error::delivery) is `Unknown`; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.files().write("hello.txt", "hello").await?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// let operation = client.snapshot(&id).delete().await?;
    /// println!("{}", operation.status);
    /// # Ok(()) }
    /// ```
    pub async fn delete(&self) -> Result<DeletionOperation> {
        Ok(self.api.delete_snapshot(&self.id, DeleteSnapshotParams::new()).await?.operation)
    }
}

impl fmt::Debug for AsyncSnapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AsyncSnapshot").field("id", &self.id).finish_non_exhaustive()
    }
}

impl AsyncSandboxer {
    /// Lists the snapshots of all sandboxes over all pages, lazily.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # server.world().capture(sandbox.id()).unwrap();
    /// use sandboxer::SnapshotListOptions;
    ///
    /// let mut list = client.snapshots(SnapshotListOptions::new().limit(5));
    /// while let Some(snapshot) = list.next().await {
    ///     println!("{}", snapshot?.id);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn snapshots(&self, options: SnapshotListOptions) -> Pager<SnapshotSummary> {
        if let Err(error) = options.check() {
            return Pager::failing(error);
        }
        let api = self.api().clone();
        Pager::new(options.limit, options.cursor, move |page: PageRequest| {
            let api = api.clone();
            let mut request = ListSnapshotsParams::new().limit(page.size);
            request.sort = options.sort.clone();
            request.cursor = page.cursor;
            async move { Ok(page_of(api.list_snapshots(request).await?)) }
        })
    }

    /// A handle to a snapshot by its id. Nothing is asked: an unknown or malformed id is an error of the first call
    /// through the handle.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// let snapshot = client.snapshot("0b9c8f3e-6a53-4d53-8f0c-0a0b7a0c5d1e");
    /// assert_eq!(snapshot.id(), "0b9c8f3e-6a53-4d53-8f0c-0a0b7a0c5d1e");
    /// ```
    pub fn snapshot(&self, id: &str) -> AsyncSnapshot {
        AsyncSnapshot { api: self.api().clone(), id: id.into() }
    }
}

impl AsyncSandbox {
    /// Lists its completed snapshots over all pages, lazily.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # server.world().capture(sandbox.id()).unwrap();
    /// use sandboxer::SnapshotListOptions;
    ///
    /// let all = sandbox.snapshots(SnapshotListOptions::new().sort("asc")).collect().await?;
    /// println!("{} snapshots", all.len());
    /// # Ok(()) }
    /// ```
    pub fn snapshots(&self, options: SnapshotListOptions) -> Pager<SnapshotSummary> {
        if let Err(error) = options.check() {
            return Pager::failing(error);
        }
        let sandbox = self.clone();
        Pager::new(options.limit, options.cursor, move |page: PageRequest| {
            let sandbox = sandbox.clone();
            let mut request = ListSandboxSnapshotsParams::new().limit(page.size);
            request.sort = options.sort.clone();
            request.cursor = page.cursor;
            async move { Ok(page_of(sandbox.api().list_sandbox_snapshots(sandbox.id(), request).await?)) }
        })
    }

    /// Its newest completed snapshot, if it has one.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// assert!(sandbox.latest_snapshot().await?.is_none());
    /// # Ok(()) }
    /// ```
    pub async fn latest_snapshot(&self) -> Result<Option<SnapshotSummary>> {
        Ok(self.api().get_latest_sandbox_snapshot(self.id()).await?.snapshot)
    }

    /// Deletes all its snapshots for good; it stays, and so do the named snapshots made from it. They are gone from all
    /// lists at once; the purge goes on at the service as the operations answered with
    /// ([`AsyncSandboxer::wait_for_deletion`] follows one).
    ///
    /// # Errors
    ///
    /// [`PermissionDenied`](crate::ErrorKind::PermissionDenied) when the key may not; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # server.world().capture(sandbox.id()).unwrap();
    /// let operations = sandbox.delete_snapshots().await?;
    /// println!("{} are being deleted", operations.len());
    /// # Ok(()) }
    /// ```
    pub async fn delete_snapshots(&self) -> Result<Vec<DeletionOperation>> {
        let request = DeleteSandboxSnapshotsParams::new();
        Ok(self.api().delete_sandbox_snapshots(self.id(), request).await?.operations)
    }
}

fn page_of(answer: SnapshotListResponse) -> Page<SnapshotSummary> {
    let (next_cursor, has_more) =
        answer.page_info.map(|info| (info.next_cursor, info.has_more)).unwrap_or_default();
    Page { items: answer.snapshots, next_cursor, has_more }
}
