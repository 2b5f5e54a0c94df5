//! Uploads of any size, and the choice of their way.

use std::{error::Error as StdError, path::Path, pin::pin};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_core::Stream;
use tokio::io::AsyncRead;

use super::{
    Meter, Transfer,
    source::{Mapped, Reading, Source, read_failed},
    too_large,
};
use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    generated::operations::Operation,
    models::{ContentEncoding, FileWriteRequest},
    sandboxer::files::{AsyncFiles, MAX_FILE},
};

impl AsyncFiles {
    /// Uploads what a reader holds, of any size, and says how many bytes there were.
    ///
    /// The file is whole or unchanged, whatever happens on the way; folders above it are made. Up to 5 MiB go as one
    /// [`write`](Self::write). More goes, in [`Dialect::Boat`](crate::Dialect::Boat), to an
    /// [`upload_url`](Self::upload_url) as it is read; elsewhere in pieces of 5 MiB into a folder `.upload-…` beside the
    /// target, which one command (seen in the history; the key must be allowed to run commands) puts together, checks
    /// against their SHA-256 and renames. About 30 MiB of memory are used at most. The view's limits hold for each call;
    /// for an upload to an address, `idle` limits how long the connection takes nothing.
    ///
    /// A future that is dropped on the way leaves the target as it was, and maybe that folder. That holds up to the last
    /// step: once the only write, the end of what goes to an address or that command was sent, the target may still be
    /// replaced, by the command up to ten minutes later. An error of that last step
    /// ([`operation`](Error::operation) `Command` for the command) whose [`delivery`](Error::delivery) is `Unknown`, or that
    /// is a 5xx, says the same, and the folder is left to the command then.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) over the cap. [`InvalidInput`](ErrorKind::InvalidInput) with the code
    /// `wrong_length` when the source holds more or less than was announced; [`Unexpected`](ErrorKind::Unexpected) with
    /// the code `read_failed` when it fails, with its error as the source, with `upload_failed` when the pieces cannot be
    /// put together, and with `upload_damaged` when they are not what was sent. `invalid_path` of the service, also for a
    /// target that is no plain file; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Transfer;
    ///
    /// let content = vec![7; 6 << 20]; // or a `tokio::fs::File`
    /// let transfer = Transfer::new().cap(100 << 20);
    /// assert_eq!(sandbox.files().upload_from("big.bin", &content[..], transfer).await?, 6 << 20);
    /// assert_eq!(sandbox.exec("wc -c < big.bin").await?.stdout_text().trim(), "6291456");
    /// # Ok(()) }
    /// ```
    pub async fn upload_from<R>(&self, path: &str, reader: R, transfer: Transfer) -> Result<u64>
    where
        R: AsyncRead,
    {
        let reader = pin!(reader);
        self.send(path, Reading::new(reader), transfer).await
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Transfer;
    ///
    /// let files = sandbox.files();
    /// files.write("one", "some text").await?;
    /// let copied = files.upload_stream("two", files.download("one").await?, Transfer::new()).await?;
    /// assert_eq!((copied, &*files.read("two").await?), (9, "some text"));
    /// # Ok(()) }
    /// ```
    pub async fn upload_stream<S, E>(&self, path: &str, stream: S, transfer: Transfer) -> Result<u64>
    where
        S: Stream<Item = Result<Bytes, E>>,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let stream = pin!(stream);
        self.send(path, Mapped(stream), transfer).await
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # let local = std::env::temp_dir().join(format!("upload-example-{}", std::process::id()));
    /// use sandboxer::Transfer;
    ///
    /// std::fs::write(&local, "hello").unwrap();
    /// assert_eq!(sandbox.files().upload_file("copy", &local, Transfer::new()).await?, 5);
    /// assert_eq!(sandbox.files().read("copy").await?, "hello");
    /// # std::fs::remove_file(local).unwrap();
    /// # Ok(()) }
    /// ```
    pub async fn upload_file<P>(&self, path: &str, local: P, transfer: Transfer) -> Result<u64>
    where
        P: AsRef<Path>,
    {
        self.check_path(path, Operation::WriteFile)?;
        let refused = |error: std::io::Error| self.label(read_failed(error), Operation::WriteFile);
        let file = tokio::fs::File::open(local.as_ref()).await.map_err(refused)?;
        let about = file.metadata().await.map_err(refused)?;
        if about.is_dir() {
            return Err(refused(std::io::ErrorKind::IsADirectory.into()));
        }
        // A pipe or device has no size to announce.
        let transfer = if about.is_file() { transfer.length(about.len()) } else { transfer };
        self.upload_from(path, file, transfer).await
    }

    async fn send<S>(&self, path: &str, pieces: S, mut transfer: Transfer) -> Result<u64>
    where
        S: Stream<Item = Result<Bytes>> + Unpin,
    {
        let ours = |error: Error| match error.operation() {
            None => self.label(error, Operation::WriteFile),
            Some(_) => error,
        };
        self.check_path(path, Operation::WriteFile)?;
        if let (Some(cap), Some(length)) = (transfer.cap, transfer.length)
            && length > cap
        {
            return Err(ours(too_large(cap, Delivery::NotSent)));
        }
        let mut source = Source::new(pieces, transfer.length, transfer.cap);
        let mut meter = transfer.meter(transfer.length);
        let first = source.part(MAX_FILE).await.map_err(ours)?;
        if !source.more().await.map_err(ours)? {
            self.write_part(path, &first).await?;
            meter.advance(first.len());
            return Ok(first.len() as u64);
        }
        let sent = if self.sandbox.api().dialect().has(Operation::CreateUploadUrl) {
            self.send_to_address(path, first, source, transfer.length, &mut meter).await
        } else {
            self.send_in_parts(path, first, source, &mut meter).await
        };
        sent.map_err(ours)
    }

    /// Writes bytes that fit into one call, and makes sure that the service counted the same.
    pub(super) async fn write_part(&self, path: &str, bytes: &[u8]) -> Result<()> {
        // Base64 is a third more whatever the bytes; text could be six times as much in JSON.
        let request = FileWriteRequest::new(path, STANDARD.encode(bytes)).encoding(ContentEncoding::Base64);
        let answer = self.sandbox.api().write_file(self.sandbox.id(), request).await?;
        if usize::try_from(answer.size) == Ok(bytes.len()) {
            return Ok(());
        }
        let message = format!("of {} bytes the service says that it wrote {}", bytes.len(), answer.size);
        let error = Error::new(ErrorKind::Unexpected, "unexpected_response", message);
        Err(self.label(error.with_delivery(Delivery::Answered), Operation::WriteFile))
    }
}

impl Meter {
    /// The parts of the two big ways count what was confirmed or taken.
    pub(super) fn sent(&self) -> u64 {
        self.bytes
    }
}
