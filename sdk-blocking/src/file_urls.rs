//! Addresses for files of any size.

use std::time::Duration;

use sandboxer::{Result, models::FileUrlResponse};

use crate::Files;

impl Files {
    /// Makes an address that a file of any size is uploaded to: whoever has it may `PUT` the content there, without
    /// a key.
    ///
    /// It works for `ttl`, 1 second to 1 hour, 15 minutes unless given. Folders are made, and what is at the path
    /// is replaced only once all has arrived. The address is a [`Secret`](crate::wire::Secret).
    ///
    /// Only [`Dialect::Boat`](crate::Dialect::Boat) has it.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) in another dialect, and
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a bad argument, before anything is sent;
    /// `path_not_found` and `invalid_path` of the service; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer_blocking::Dialect::Boat).build()?;
    /// # let client = sandboxer_blocking::Sandboxer::from_async(client);
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use std::time::Duration;
    ///
    /// let upload = sandbox.files().upload_url("big.bin", Some(Duration::from_secs(60)))?;
    /// assert_eq!((upload.method.as_str(), upload.url.to_string().as_str()), ("PUT", "[redacted]"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn upload_url(&self, path: &str, ttl: Option<Duration>) -> Result<FileUrlResponse> {
        self.call(path, |files, path| async move { files.upload_url(&path, ttl).await })
    }

    /// Makes an address that a file of any size is downloaded from: whoever has it may `GET` the content there,
    /// without a key.
    ///
    /// It works for `ttl`, 1 second to 1 hour, 15 minutes unless given. The address is a
    /// [`Secret`](crate::wire::Secret).
    ///
    /// Only [`Dialect::Boat`](crate::Dialect::Boat) has it.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) in another dialect, and
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a bad argument, before anything is sent;
    /// `path_not_found` and `invalid_path` of the service; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer_blocking::Dialect::Boat).build()?;
    /// # let client = sandboxer_blocking::Sandboxer::from_async(client);
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("big.bin", "any size")?;
    /// let download = sandbox.files().download_url("big.bin", None)?;
    /// assert_eq!((download.method.as_str(), download.path.as_str()), ("GET", "/home/user/big.bin"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn download_url(&self, path: &str, ttl: Option<Duration>) -> Result<FileUrlResponse> {
        self.call(path, |files, path| async move { files.download_url(&path, ttl).await })
    }
}
