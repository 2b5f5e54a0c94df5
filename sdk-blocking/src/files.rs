//! Files of a sandbox.

use std::{
    fmt,
    future::Future,
    io::{self, Write},
};

use bytes::Bytes;
use sandboxer::{AsyncFiles, Delivery, Error, ErrorKind, Result, models::FileWriteResponse};

use crate::{ByteIter, driver::Driver};

/// The files of a sandbox; comes from [`Sandbox::files`](crate::Sandbox::files).
///
/// Paths are absolute or relative to `/home/user`, and must lie, symbolic links resolved, in `/home/user` or `/tmp`: the
/// service refuses others. A path is 1 to 4096 bytes without NUL.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// let files = sandbox.files();
/// files.write("app/main.py", "print('hi')\n")?;
/// assert_eq!(files.read("app/main.py")?, "print('hi')\n");
/// files.write("/tmp/raw", [0xFF, 0x00])?;
/// assert_eq!(&files.read_bytes("/tmp/raw")?[..], [0xFF, 0x00]);
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[derive(Clone)]
pub struct Files {
    pub(crate) driver: Driver,
    pub(crate) inner: AsyncFiles,
}

impl Files {
    pub(crate) fn new(driver: Driver, inner: AsyncFiles) -> Self {
        Self { driver, inner }
    }

    pub(crate) fn call<T, F, Fut>(&self, path: &str, verb: F) -> Result<T>
    where
        F: FnOnce(AsyncFiles, String) -> Fut,
        Fut: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        self.driver.run(verb(self.inner.clone(), path.to_owned()))
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// sandbox.exec("echo hi > greeting")?.check()?;
    /// assert_eq!(sandbox.files().read("greeting")?, "hi\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn read(&self, path: &str) -> Result<String> {
        self.call(path, |files, path| async move { files.read(&path).await })
    }

    /// Reads a file of up to 5 MiB, byte for byte.
    ///
    /// # Errors
    ///
    /// `path_not_found`, `invalid_path` and `file_too_large` of the service, and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// sandbox.exec(r"printf '\377\000' > raw")?.check()?;
    /// assert_eq!(&sandbox.files().read_bytes("raw")?[..], [0xFF, 0x00]);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn read_bytes(&self, path: &str) -> Result<Bytes> {
        self.call(path, |files, path| async move { files.read_bytes(&path).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// sandbox.files().write("app/run.sh", "echo hi\n")?;
    /// assert_eq!(sandbox.exec("sh app/run.sh")?.stdout_text(), "hi\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<FileWriteResponse> {
        let content = Bytes::copy_from_slice(content.as_ref());
        self.call(path, |files, path| async move { files.write(&path, content).await })
    }

    /// Downloads a file of up to 50 MiB as a stream of its bytes.
    ///
    /// # Errors
    ///
    /// `path_not_found`, `invalid_path` and `file_too_large` of the service, and the failures of any call. The stream has
    /// errors of its own: one that breaks is not the file's end.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use std::io::Read as _;
    ///
    /// sandbox.exec("head -c 1000000 /dev/zero > big")?.check()?;
    /// let mut content = Vec::new();
    /// sandbox.files().download("big")?.read_to_end(&mut content).unwrap();
    /// assert_eq!(content.len(), 1_000_000);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn download(&self, path: &str) -> Result<ByteIter> {
        let body = self.call(path, |files, path| async move { files.download(&path).await })?;
        Ok(ByteIter::new(self.driver.clone(), body))
    }

    /// Downloads a file of up to 50 MiB into a writer, piece by piece, flushes it, and says how many bytes there were.
    ///
    /// # Errors
    ///
    /// Those of [`download`](Self::download) and of its stream; [`Unexpected`](ErrorKind::Unexpected) with the code
    /// `write_failed` when the writer fails, with its error as the source. The writer may then hold a part of the file.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// sandbox.files().write("note", "hello")?;
    /// let mut content = Vec::new();
    /// assert_eq!(sandbox.files().download_to("note", &mut content)?, 5);
    /// assert_eq!(content, b"hello");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn download_to<W>(&self, path: &str, mut writer: W) -> Result<u64>
    where
        W: Write,
    {
        let mut body = self.download(path)?;
        for piece in &mut body {
            writer.write_all(&piece?).map_err(write_failed)?;
        }
        writer.flush().map_err(write_failed)?;
        Ok(body.received())
    }
}

fn write_failed(cause: io::Error) -> Error {
    Error::local(ErrorKind::Unexpected, Delivery::Answered, "write_failed", "the writer failed", Some(cause))
}

impl fmt::Debug for Files {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { driver: _, inner } = self;
        formatter.debug_struct("Files").field("inner", inner).finish()
    }
}
