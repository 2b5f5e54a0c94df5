//! Files of any size on their way.

use std::{
    error::Error as StdError,
    io::{self, Read},
    path::Path,
    pin::Pin,
    sync::mpsc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use sandboxer::{Result, SnapshotFile, Transfer, models::SnapshotChunk};
use tokio::sync::oneshot;

use crate::{Download, Files, Snapshot};

/// How much is read from a reader at once.
const PIECE: usize = 64 << 10;

impl Files {
    /// Uploads what a reader holds, of any size, and says how many bytes there were.
    ///
    /// The file is whole or unchanged, whatever happens on the way; folders above it are made. Up to 5 MiB go as one
    /// [`write`](Self::write). More goes, in [`Dialect::Boat`](crate::Dialect::Boat), to an
    /// [`upload_url`](Self::upload_url) as it is read; elsewhere in pieces of 5 MiB into a folder `.upload-…` beside the
    /// target, which one command (seen in the history; the key must be allowed to run commands) puts together, checks
    /// against their SHA-256 and renames. About 30 MiB of memory are used at most. The view's limits hold for each call;
    /// for an upload to an address, `idle` limits how long the connection takes nothing.
    ///
    /// After an error of the last step, which is the only write, the end of what goes to an address or that command
    /// ([`operation`](crate::Error::operation) `Command`), whose [`delivery`](crate::Error::delivery) is `Unknown` or that is
    /// a 5xx, the target may still be replaced, by the command up to ten minutes later, and the folder is left to it.
    ///
    /// The reader is read on the calling thread; the progress is told of on the client's own.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](crate::ErrorKind::TooLarge) over the cap. [`InvalidInput`](crate::ErrorKind::InvalidInput) with the code
    /// `wrong_length` when the source holds more or less than was announced; [`Unexpected`](crate::ErrorKind::Unexpected) with
    /// the code `read_failed` when it fails, with its error as the source, with `upload_failed` when the pieces cannot be
    /// put together, and with `upload_damaged` when they are not what was sent. `invalid_path` of the service, also for a
    /// target that is no plain file; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Transfer;
    ///
    /// let content = vec![7; 6 << 20]; // or a `std::fs::File`
    /// let transfer = Transfer::new().cap(100 << 20);
    /// assert_eq!(sandbox.files().upload_from("big.bin", &content[..], transfer)?, 6 << 20);
    /// assert_eq!(sandbox.exec("wc -c < big.bin")?.stdout_text().trim(), "6291456");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn upload_from<R>(&self, path: &str, mut reader: R, transfer: Transfer) -> Result<u64>
    where
        R: Read,
    {
        let mut space = vec![0; PIECE];
        self.feed(path, transfer, move || {
            loop {
                return match reader.read(&mut space) {
                    Ok(0) => None,
                    Ok(count) => Some(Ok(Bytes::copy_from_slice(&space[..count]))),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Some(Err(error.into())),
                };
            }
        })
    }

    /// Uploads the pieces of a stream, of any size, and says how many bytes there were.
    ///
    /// As [`upload_from`](Self::upload_from), for what comes in pieces.
    ///
    /// # Errors
    ///
    /// As [`upload_from`](Self::upload_from).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Transfer;
    ///
    /// let files = sandbox.files();
    /// files.write("one", "some text")?;
    /// let copied = files.upload_stream("two", files.download("one")?, Transfer::new())?;
    /// assert_eq!((copied, &*files.read("two")?), (9, "some text"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn upload_stream<S, E>(&self, path: &str, mut stream: S, transfer: Transfer) -> Result<u64>
    where
        S: Iterator<Item = Result<Bytes, E>>,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.feed(path, transfer, move || stream.next().map(|piece| piece.map_err(Into::into)))
    }

    /// Uploads a file of this machine, of any size, and says how many bytes there were.
    ///
    /// As [`upload_from`](Self::upload_from); the file's size is the length. One that grows or shrinks on the way is an
    /// error.
    ///
    /// # Errors
    ///
    /// As [`upload_from`](Self::upload_from); `read_failed` when `local` is no file that can be read.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # let local = std::env::temp_dir().join(format!("upload-example-{}", std::process::id()));
    /// use sandboxer_blocking::Transfer;
    ///
    /// std::fs::write(&local, "hello").unwrap();
    /// assert_eq!(sandbox.files().upload_file("copy", &local, Transfer::new())?, 5);
    /// assert_eq!(sandbox.files().read("copy")?, "hello");
    /// # std::fs::remove_file(local).unwrap();
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn upload_file<P>(&self, path: &str, local: P, transfer: Transfer) -> Result<u64>
    where
        P: AsRef<Path>,
    {
        let local = local.as_ref().to_owned();
        self.call(path, move |files, path| async move { files.upload_file(&path, local, transfer).await })
    }

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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::{ErrorKind, Transfer};
    ///
    /// sandbox.exec("head -c 1000000 /dev/zero > big")?.check()?;
    /// let files = sandbox.files();
    /// let content = files.download_with("big", Transfer::new())?.read_all(1 << 20)?;
    /// assert_eq!(content.len(), 1_000_000);
    /// let refused = files.download_with("big", Transfer::new().cap(1000)).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::TooLarge);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn download_with(&self, path: &str, transfer: Transfer) -> Result<Download> {
        let inner =
            self.call(path, move |files, path| async move { files.download_with(&path, transfer).await })?;
        Ok(Download::new(self.driver.clone(), inner))
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # let local = std::env::temp_dir().join(format!("download-example-{}", std::process::id()));
    /// use sandboxer_blocking::Transfer;
    ///
    /// sandbox.files().write("data", "0123456789")?;
    /// assert_eq!(sandbox.files().download_file("data", &local, Transfer::new())?, 10);
    /// assert_eq!(std::fs::read(&local).unwrap(), b"0123456789");
    /// # std::fs::remove_file(local).unwrap();
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn download_file<P>(&self, path: &str, local: P, transfer: Transfer) -> Result<u64>
    where
        P: AsRef<Path>,
    {
        self.download_with(path, transfer)?.save(local)
    }

    /// Uploads what `next` gives, asked for on the calling thread, a piece at a time.
    fn feed<N>(&self, path: &str, transfer: Transfer, mut next: N) -> Result<u64>
    where
        N: FnMut() -> Option<Piece>,
    {
        let (ask, asked) = mpsc::sync_channel(1);
        let (files, path, fed) = (self.inner.clone(), path.to_owned(), Fed { ask, waiting: None });
        let started = self.driver.start(async move { files.upload_stream(&path, fed, transfer).await })?;
        for answer in asked {
            // Nobody waits for the answer where the upload has just failed.
            let _ = answer.send(next());
        }
        started.wait()?
    }
}

type Piece = Result<Bytes, Box<dyn StdError + Send + Sync>>;
type Answer = oneshot::Sender<Option<Piece>>;

/// Pieces that another thread is asked for one by one.
struct Fed {
    ask: mpsc::SyncSender<Answer>,
    waiting: Option<oneshot::Receiver<Option<Piece>>>,
}

impl Stream for Fed {
    type Item = Piece;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Piece>> {
        let gone = || Some(Err("the thread that reads the source is gone".into()));
        if self.waiting.is_none() {
            let (answer, waiting) = oneshot::channel();
            if self.ask.try_send(answer).is_err() {
                return Poll::Ready(gone());
            }
            self.waiting = Some(waiting);
        }
        let Some(waiting) = &mut self.waiting else { return Poll::Ready(gone()) };
        let answered = ready!(Pin::new(waiting).poll(context));
        self.waiting = None;
        Poll::Ready(answered.unwrap_or_else(|_| gone()))
    }
}

impl Snapshot {
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
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("hello.txt", "hello")?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// use sandboxer_blocking::{SnapshotFile, Transfer};
    ///
    /// let snapshot = client.snapshot(&id);
    /// let part = SnapshotFile::new("home/user/hello.txt").bytes(1..4);
    /// let download = snapshot.download_with(part, Transfer::new())?;
    /// assert_eq!(&download.read_all(1024)?[..], b"ell");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn download_with(&self, file: SnapshotFile, transfer: Transfer) -> Result<Download> {
        let inner = self.call(move |snapshot| async move { snapshot.download_with(file, transfer).await })?;
        Ok(Download::new(self.driver.clone(), inner))
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
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let local = std::env::temp_dir().join(format!("snapshot-example-{}", std::process::id()));
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("hello.txt", "hello")?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// use sandboxer_blocking::{SnapshotFile, Transfer};
    ///
    /// let snapshot = client.snapshot(&id);
    /// let file = SnapshotFile::new("home/user/hello.txt");
    /// assert_eq!(snapshot.download_file(file, &local, Transfer::new())?, 5);
    /// # std::fs::remove_file(local).unwrap();
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn download_file<P>(&self, file: SnapshotFile, local: P, transfer: Transfer) -> Result<u64>
    where
        P: AsRef<Path>,
    {
        self.download_with(file, transfer)?.save(local)
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
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("hello.txt", "hello")?;
    /// # let id = server.world().capture(sandbox.id()).unwrap();
    /// use sandboxer_blocking::Transfer;
    ///
    /// let snapshot = client.snapshot(&id);
    /// for chunk in snapshot.manifest()?.chunks {
    ///     let bytes = snapshot.download_chunk(&chunk, Transfer::new())?.read_all(64 << 20)?;
    ///     println!("{}/{}: {} bytes", chunk.generation, chunk.chunk_index, bytes.len());
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn download_chunk(&self, chunk: &SnapshotChunk, transfer: Transfer) -> Result<Download> {
        let chunk = chunk.clone();
        let inner =
            self.call(move |snapshot| async move { snapshot.download_chunk(&chunk, transfer).await })?;
        Ok(Download::new(self.driver.clone(), inner))
    }
}
