//! Files of a sandbox.

use std::{fmt, pin::Pin};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use tokio::io::AsyncWrite;

use super::sandbox::AsyncSandbox;
use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    generated::operations::Operation,
    models::{
        ArtifactParams, ContentEncoding, FileReadResponse, FileWriteRequest, FileWriteResponse,
        ReadFileParams,
    },
    stream::ByteBody,
};

/// The largest file that is read or written in one piece: 5 MiB.
pub const MAX_FILE: usize = 5 << 20;

/// The files of a sandbox; comes from [`AsyncSandbox::files`].
///
/// Paths are absolute or relative to `/home/user`, and must lie, symbolic links resolved, in `/home/user` or `/tmp`: the
/// service refuses others. A path is 1 to 4096 bytes without NUL.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// let files = sandbox.files();
/// files.write("app/main.py", "print('hi')\n").await?;
/// assert_eq!(files.read("app/main.py").await?, "print('hi')\n");
/// files.write("/tmp/raw", [0xFF, 0x00]).await?;
/// assert_eq!(&files.read_bytes("/tmp/raw").await?[..], [0xFF, 0x00]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AsyncFiles {
    pub(super) sandbox: AsyncSandbox,
}

impl AsyncFiles {
    pub(crate) fn new(sandbox: AsyncSandbox) -> Self {
        Self { sandbox }
    }

    /// Reads a text file of up to 5 MiB.
    ///
    /// # Errors
    ///
    /// [`Unexpected`](ErrorKind::Unexpected) with the code `not_utf8` when the content is not UTF-8:
    /// [`read_bytes`](Self::read_bytes) reads it. `path_not_found`, `invalid_path` and `file_too_large` of the service;
    /// and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// sandbox.files().write("note", "kept").await?;
    /// assert_eq!(sandbox.files().read("note").await?, "kept");
    /// # Ok(()) }
    /// ```
    pub async fn read(&self, path: &str) -> Result<String> {
        let answer = self.read_as(path, ContentEncoding::Utf8).await?;
        let exact = answer.encoding == ContentEncoding::Utf8
            && is_long(&answer, answer.content.len())
            && !answer.content.contains(char::REPLACEMENT_CHARACTER);
        if exact {
            return Ok(answer.content);
        }
        // The service writes U+FFFD for bytes that are not UTF-8; only the bytes tell whether the file has it itself.
        String::from_utf8(self.read_bytes(path).await?.into()).map_err(|error| {
            let message = "the file is not UTF-8 text; read it with `read_bytes`";
            self.label(Error::new(ErrorKind::Unexpected, "not_utf8", message), Operation::ReadFile)
                .with_delivery(Delivery::Answered)
                .with_source(error.utf8_error())
        })
    }

    /// Reads a file of up to 5 MiB, byte for byte.
    ///
    /// # Errors
    ///
    /// `path_not_found`, `invalid_path` and `file_too_large` of the service, and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// sandbox.exec(r"printf '\000\377' > raw").await?.check()?;
    /// assert_eq!(&sandbox.files().read_bytes("raw").await?[..], [0x00, 0xFF]);
    /// # Ok(()) }
    /// ```
    pub async fn read_bytes(&self, path: &str) -> Result<Bytes> {
        let answer = self.read_as(path, ContentEncoding::Base64).await?;
        let unexpected = |message: &str| {
            self.label(Error::new(ErrorKind::Unexpected, "unexpected_response", message), Operation::ReadFile)
                .with_delivery(Delivery::Answered)
        };
        let bytes = match answer.encoding {
            ContentEncoding::Base64 => STANDARD.decode(answer.content.as_bytes()).map_err(|error| {
                unexpected("the file's content is not the base64 it says it is").with_source(error)
            })?,
            _ => return Err(unexpected("the file's content did not come as base64")),
        };
        if !is_long(&answer, bytes.len()) {
            return Err(unexpected("the file's content is not as long as the service says"));
        }
        Ok(bytes.into())
    }

    async fn read_as(&self, path: &str, encoding: ContentEncoding) -> Result<FileReadResponse> {
        self.check_path(path, Operation::ReadFile)?;
        self.sandbox.api().read_file(self.sandbox.id(), ReadFileParams::new(path).encoding(encoding)).await
    }

    /// Writes a file of up to 5 MiB, making the folders above it. The file is whole or unchanged.
    ///
    /// `content` is text or bytes; what is valid UTF-8 travels as text, the rest as base64.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](ErrorKind::InvalidInput) before anything is sent, when it is over 5 MiB; `invalid_path` of the
    /// service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let written = sandbox.files().write("a/b/notes.txt", "one\n").await?;
    /// assert_eq!((&*written.path, written.size), ("a/b/notes.txt", 4));
    /// # Ok(()) }
    /// ```
    pub async fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<FileWriteResponse> {
        self.check_path(path, Operation::WriteFile)?;
        let request = self.write_request(path, content.as_ref())?;
        drop(content);
        self.sandbox.api().write_file(self.sandbox.id(), request).await
    }

    fn write_request(&self, path: &str, bytes: &[u8]) -> Result<FileWriteRequest> {
        if bytes.len() > MAX_FILE {
            let problem = format!("must not be longer than 5 MiB ({MAX_FILE} bytes); it has {}", bytes.len());
            return Err(self.label(Error::invalid_input("content", problem), Operation::WriteFile));
        }
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) => FileWriteRequest::new(path, text).encoding(ContentEncoding::Utf8),
            Err(_) => FileWriteRequest::new(path, STANDARD.encode(bytes)).encoding(ContentEncoding::Base64),
        })
    }

    /// Downloads a file of up to 50 MiB as a stream of its bytes.
    ///
    /// # Errors
    ///
    /// `path_not_found`, `invalid_path` and `file_too_large` of the service, and the failures of any call. The stream has
    /// errors of its own: one that breaks is not the file's end.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// sandbox.exec("head -c 1000000 /dev/zero > big").await?.check()?;
    /// let mut body = sandbox.files().download("big").await?;
    /// let mut length = 0;
    /// while let Some(piece) = body.next().await {
    ///     length += piece?.len();
    /// }
    /// assert_eq!(length, 1_000_000);
    /// # Ok(()) }
    /// ```
    pub async fn download(&self, path: &str) -> Result<ByteBody> {
        self.check_path(path, Operation::Artifact)?;
        self.sandbox.api().artifact(self.sandbox.id(), ArtifactParams::new(path)).await
    }

    /// Downloads a file of up to 50 MiB into a writer, piece by piece, flushes it, and says how many bytes there were.
    ///
    /// # Errors
    ///
    /// Those of [`download`](Self::download) and of its stream; [`Unexpected`](ErrorKind::Unexpected) with the code
    /// `write_failed` when the writer fails, with its error as the source. The writer may then hold a part of the file.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// sandbox.files().write("data", "0123456789").await?;
    /// let mut copy = Vec::new(); // or a `tokio::fs::File`
    /// assert_eq!(sandbox.files().download_to("data", &mut copy).await?, 10);
    /// assert_eq!(copy, b"0123456789");
    /// # Ok(()) }
    /// ```
    pub async fn download_to<W>(&self, path: &str, mut writer: W) -> Result<u64>
    where
        W: AsyncWrite + Unpin,
    {
        let mut body = self.download(path).await?;
        let failed = |error: std::io::Error| {
            self.label(
                Error::new(ErrorKind::Unexpected, "write_failed", "the writer failed"),
                Operation::Artifact,
            )
            .with_delivery(Delivery::Answered)
            .with_source(error)
        };
        while let Some(piece) = body.next().await {
            write_all(&mut writer, &piece?).await.map_err(failed)?;
        }
        std::future::poll_fn(|context| Pin::new(&mut writer).poll_flush(context)).await.map_err(failed)?;
        Ok(body.received())
    }

    pub(super) fn check_path(&self, path: &str, operation: Operation) -> Result<()> {
        let problem = match path.len() {
            0 => "must not be empty",
            4097.. => "must not be longer than 4096 bytes",
            _ if path.contains('\0') => "must not contain a NUL character",
            _ => return Ok(()),
        };
        Err(self.label(Error::invalid_input("path", problem), operation))
    }

    pub(super) fn label(&self, error: Error, operation: Operation) -> Error {
        error.with_operation(operation).with_sandbox_id(Some(self.sandbox.id().to_owned()))
    }
}

/// Whether the file has this length by what the answer says. One that leaves its size out, or tells it as something else than a
/// number, says nothing.
fn is_long(answer: &FileReadResponse, length: usize) -> bool {
    answer.size == 0 || usize::try_from(answer.size) == Ok(length)
}

async fn write_all<W: AsyncWrite + Unpin>(writer: &mut W, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let written =
            std::future::poll_fn(|context| Pin::new(&mut *writer).poll_write(context, bytes)).await?;
        if written == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
    }
    Ok(())
}

impl fmt::Debug for AsyncFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AsyncFiles").field("sandbox", &self.sandbox.id()).finish()
    }
}
