//! Addresses for files of any size.

use std::time::Duration;

use super::AsyncFiles;
use crate::{
    error::{Error, Result},
    generated::operations::Operation,
    models::{FileUrlRequest, FileUrlResponse},
};

impl AsyncFiles {
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer::Dialect::Boat).build()?;
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use std::time::Duration;
    ///
    /// let upload = sandbox.files().upload_url("big.bin", Some(Duration::from_secs(60))).await?;
    /// assert_eq!((upload.method.as_str(), upload.url.to_string().as_str()), ("PUT", "[redacted]"));
    /// # Ok(()) }
    /// ```
    pub async fn upload_url(&self, path: &str, ttl: Option<Duration>) -> Result<FileUrlResponse> {
        let request = self.url_request(path, ttl, Operation::CreateUploadUrl)?;
        self.sandbox.api().create_upload_url(self.sandbox.id(), request).await
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer::Dialect::Boat).build()?;
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.files().write("big.bin", "any size").await?;
    /// let download = sandbox.files().download_url("big.bin", None).await?;
    /// assert_eq!((download.method.as_str(), download.path.as_str()), ("GET", "/home/user/big.bin"));
    /// # Ok(()) }
    /// ```
    pub async fn download_url(&self, path: &str, ttl: Option<Duration>) -> Result<FileUrlResponse> {
        let request = self.url_request(path, ttl, Operation::CreateDownloadUrl)?;
        self.sandbox.api().create_download_url(self.sandbox.id(), request).await
    }
}

impl AsyncFiles {
    fn url_request(&self, path: &str, ttl: Option<Duration>, operation: Operation) -> Result<FileUrlRequest> {
        self.check_path(path, operation)?;
        let request = FileUrlRequest::new(path);
        let Some(ttl) = ttl else { return Ok(request) };
        let seconds = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
        match i64::try_from(seconds) {
            Ok(seconds @ 1..=3600) => Ok(request.ttl_seconds(seconds)),
            _ => Err(self.label(Error::invalid_input("ttl", "must be from 1 second to 1 hour"), operation)),
        }
    }
}
