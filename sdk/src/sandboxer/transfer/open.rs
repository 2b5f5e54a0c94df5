//! The verbs that begin a download.

use std::path::Path;

use super::{
    Download, Transfer,
    download::{Known, Open},
    resume::{Part, Wanted},
    signed,
};
use crate::{
    call::CallOptions,
    error::{Error, Result},
    generated::operations::Operation,
    models::{ArtifactParams, SnapshotChunk},
    sandboxer::{Api, files::AsyncFiles, snapshots::AsyncSnapshot, snapshots::SnapshotFile},
};

/// A view that asks for a part.
fn asking(api: &Api, part: &Part, with_range: bool) -> Api {
    let mut options = CallOptions::new();
    if with_range {
        options = options.header("range", part.range());
    }
    if let Some(validator) = &part.validator {
        options = options.header("if-range", validator);
    }
    api.with(options)
}

impl AsyncFiles {
    /// Downloads a file as a stream of its bytes that knows a cap, tells of its progress, and goes on after a cut.
    ///
    /// In [`Dialect::Boat`](crate::Dialect::Boat) it comes from a [`download_url`](Self::download_url) and may have any
    /// size; elsewhere up to 50 MiB.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](crate::ErrorKind::TooLarge) when the service says that it is over the cap; `path_not_found`,
    /// `invalid_path` and `file_too_large` of the service; and the failures of any call. The stream has errors of its own.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::{ErrorKind, Transfer};
    ///
    /// sandbox.exec("head -c 1000000 /dev/zero > big").await?.check()?;
    /// let files = sandbox.files();
    /// let content = files.download_with("big", Transfer::new()).await?.read_all(1 << 20).await?;
    /// assert_eq!(content.len(), 1_000_000);
    /// let refused = files.download_with("big", Transfer::new().cap(1000)).await.unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::TooLarge);
    /// # Ok(()) }
    /// ```
    pub async fn download_with(&self, path: &str, transfer: Transfer) -> Result<Download> {
        let api = self.sandbox.api();
        let known = Known { sandbox_id: Some(self.sandbox.id().to_owned()), ..Known::default() };
        let by_address = api.dialect().has(Operation::CreateDownloadUrl);
        let operation = if by_address { Operation::CreateDownloadUrl } else { Operation::Artifact };
        self.check_path(path, operation)?;
        let (files, path) = (self.clone(), path.to_owned());
        let open: Open = Box::new(move |part| {
            let (files, path) = (files.clone(), path.clone());
            Box::pin(async move {
                let (api, id) = (files.sandbox.api(), files.sandbox.id());
                if by_address {
                    // A new one each time: the one before may have ended by now.
                    let address = files.download_url(&path, None).await?;
                    return signed::fetch(api, operation, Some(id), address.url.expose(), part.as_ref())
                        .await;
                }
                let request = ArtifactParams::new(path);
                match part {
                    None => api.artifact(id, request).await,
                    Some(part) => asking(api, &part, true).artifact(id, request).await,
                }
            })
        });
        Download::begin(api, operation, Wanted::All, transfer, known, open).await
    }

    /// Downloads a file into a file of this machine, and says how many bytes there were.
    ///
    /// [`download_with`](Self::download_with) and [`Download::save`] in one: what is at `local` is unchanged until all has
    /// come.
    ///
    /// # Errors
    ///
    /// Those of [`download_with`](Self::download_with) and of [`Download::save`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # let local = std::env::temp_dir().join(format!("download-example-{}", std::process::id()));
    /// use sandboxer::Transfer;
    ///
    /// sandbox.files().write("data", "0123456789").await?;
    /// assert_eq!(sandbox.files().download_file("data", &local, Transfer::new()).await?, 10);
    /// assert_eq!(std::fs::read(&local).unwrap(), b"0123456789");
    /// # std::fs::remove_file(local).unwrap();
    /// # Ok(()) }
    /// ```
    pub async fn download_file<P>(&self, path: &str, local: P, transfer: Transfer) -> Result<u64>
    where
        P: AsRef<Path>,
    {
        self.download_with(path, transfer).await?.save(local).await
    }
}

impl AsyncSnapshot {
    /// Downloads a file of it, or a part of one, or a folder as a tar archive, as a stream that knows a cap, tells of its
    /// progress, and goes on after a cut.
    ///
    /// A snapshot never changes, so going on is always right; only an archive, made anew each time, does not go on. Other
    /// bytes than the `range` of [`SnapshotFile`] are an error.
    ///
    /// # Errors
    ///
    /// Those of [`download`](Self::download); [`TooLarge`](crate::ErrorKind::TooLarge) when the service says that it is
    /// over the cap; [`Unexpected`](crate::ErrorKind::Unexpected) with the code `range_ignored` for other bytes than those
    /// asked for. The stream has errors of its own.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.files().write("hello.txt", "hello").await?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// use sandboxer::{SnapshotFile, Transfer};
    ///
    /// let snapshot = client.snapshot(&id);
    /// let part = SnapshotFile::new("home/user/hello.txt").bytes(1..4);
    /// let download = snapshot.download_with(part, Transfer::new()).await?;
    /// assert_eq!(&download.read_all(1024).await?[..], b"ell");
    /// # Ok(()) }
    /// ```
    pub async fn download_with(&self, file: SnapshotFile, transfer: Transfer) -> Result<Download> {
        let (wanted, request) = (file.wanted(), file.request()?);
        let (api, id) = (self.api.clone(), self.id.clone());
        let open: Open = Box::new(move |part| {
            let (api, id, mut request) = (api.clone(), id.clone(), request.clone());
            Box::pin(async move {
                let Some(part) = part else { return api.get_snapshot_file(&id, request).await };
                request = request.range(part.range());
                asking(&api, &part, false).get_snapshot_file(&id, request).await
            })
        });
        let known = Known { immutable: true, ..Known::default() };
        Download::begin(&self.api, Operation::GetSnapshotFile, wanted, transfer, known, open).await
    }

    /// Downloads a file of it, a part of one or a folder into a file of this machine, and says how many bytes there were.
    ///
    /// [`download_with`](Self::download_with) and [`Download::save`] in one: what is at `local` is unchanged until all has
    /// come. A folder is saved as the tar archive it comes as.
    ///
    /// # Errors
    ///
    /// Those of [`download_with`](Self::download_with) and of [`Download::save`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let local = std::env::temp_dir().join(format!("snapshot-example-{}", std::process::id()));
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.files().write("hello.txt", "hello").await?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// use sandboxer::{SnapshotFile, Transfer};
    ///
    /// let snapshot = client.snapshot(&id);
    /// let file = SnapshotFile::new("home/user/hello.txt");
    /// assert_eq!(snapshot.download_file(file, &local, Transfer::new()).await?, 5);
    /// # std::fs::remove_file(local).unwrap();
    /// # Ok(()) }
    /// ```
    pub async fn download_file<P>(&self, file: SnapshotFile, local: P, transfer: Transfer) -> Result<u64>
    where
        P: AsRef<Path>,
    {
        self.download_with(file, transfer).await?.save(local).await
    }

    /// Downloads one of the pieces that its [`manifest`](Self::manifest) names, without the key, checked against the size
    /// and SHA-256 it names.
    ///
    /// # Errors
    ///
    /// [`Unexpected`](crate::ErrorKind::Unexpected) with the code `content_damaged`, at the end of the stream or before,
    /// when it is not what the manifest says; a refusal of the address by its status, as when its time is over; and the
    /// failures of any call. The stream has errors of its own.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.files().write("hello.txt", "hello").await?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// use sandboxer::Transfer;
    ///
    /// let snapshot = client.snapshot(&id);
    /// for chunk in snapshot.manifest().await?.chunks {
    ///     let bytes = snapshot.download_chunk(&chunk, Transfer::new()).await?.read_all(64 << 20).await?;
    ///     println!("{}/{}: {} bytes", chunk.generation, chunk.chunk_index, bytes.len());
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn download_chunk(&self, chunk: &SnapshotChunk, transfer: Transfer) -> Result<Download> {
        let operation = Operation::GetSnapshotDownload;
        if chunk
            .sha256
            .as_ref()
            .is_some_and(|sum| sum.len() != 64 || !sum.bytes().all(|b| b.is_ascii_hexdigit()))
        {
            let problem = "must have a SHA-256 of 64 hexadecimal digits or none";
            return Err(Error::invalid_input("chunk", problem).with_operation(operation));
        }
        let known = Known {
            immutable: true,
            size: chunk.size_bytes.and_then(|size| u64::try_from(size).ok()),
            sha256: chunk.sha256.clone(),
            sandbox_id: None,
        };
        let (api, address) = (self.api.clone(), chunk.signed_url.clone());
        let open: Open = Box::new(move |part| {
            let (api, address) = (api.clone(), address.clone());
            Box::pin(
                async move { signed::fetch(&api, operation, None, address.expose(), part.as_ref()).await },
            )
        });
        Download::begin(&self.api, operation, Wanted::All, transfer, known, open).await
    }
}
