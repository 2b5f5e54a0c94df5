//! Files and folders as things: what is there, moving, permissions, deleting.

use super::AsyncFiles;
use crate::{
    error::{Error, Result},
    generated::operations::Operation,
    models::{
        DeleteFileParams, FileDeleteResponse, FileFolderRequest, FileInfoResponse, FileListResponse,
        FileMoveRequest, FileMoveResponse, FilePermissionsRequest, GetFileInfoParams, ListFilesParams,
    },
};

impl AsyncFiles {
    /// Lists what is in a folder, one level, by name; links are shown as links.
    ///
    /// `truncated` says that there are more than 10,000 entries.
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
    /// # sandbox.files().write("a.txt", "abc").await?;
    /// let folder = sandbox.files().list("/home/user").await?;
    /// assert_eq!(folder.files[0].name, "a.txt");
    /// # Ok(()) }
    /// ```
    pub async fn list(&self, path: &str) -> Result<FileListResponse> {
        self.check_path(path, Operation::ListFiles)?;
        self.sandbox.api().list_files(self.sandbox.id(), ListFilesParams::new().path(path)).await
    }

    /// Tells what a path is: file, folder or link, its size, permissions and time of change.
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
    /// # sandbox.files().write("a.txt", "abc").await?;
    /// let info = sandbox.files().info("a.txt").await?;
    /// assert_eq!((info.size, info.mode.as_str()), (3, "0644"));
    /// # Ok(()) }
    /// ```
    pub async fn info(&self, path: &str) -> Result<FileInfoResponse> {
        self.check_path(path, Operation::GetFileInfo)?;
        self.sandbox.api().get_file_info(self.sandbox.id(), GetFileInfoParams::new(path)).await
    }

    /// Creates a folder and those above it; one that exists is fine.
    ///
    /// `mode` is its permission bits, such as `0o755`.
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
    /// assert!(sandbox.files().create_folder("app", Some(0o755)).await?.is_dir);
    /// # Ok(()) }
    /// ```
    pub async fn create_folder(&self, path: &str, mode: Option<u32>) -> Result<FileInfoResponse> {
        self.check_path(path, Operation::CreateFolder)?;
        let mut request = FileFolderRequest::new(path);
        if let Some(mode) = mode {
            request = request.mode(self.octal(mode, Operation::CreateFolder)?);
        }
        self.sandbox.api().create_folder(self.sandbox.id(), request).await
    }

    /// Moves a file or folder, across `/home/user` and `/tmp`, and makes the folders above its new place.
    ///
    /// A link is moved itself. What is at `destination` is an error, unless `overwrite` is true. A call that is cut
    /// off is not repeated, since it may have moved it.
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
    /// # sandbox.files().write("a.txt", "abc").await?;
    /// assert_eq!(sandbox.files().move_to("a.txt", "/tmp/b.txt", false).await?.destination, "/tmp/b.txt");
    /// # Ok(()) }
    /// ```
    pub async fn move_to(&self, path: &str, destination: &str, overwrite: bool) -> Result<FileMoveResponse> {
        self.check_path(path, Operation::MoveFile)?;
        self.check_path(destination, Operation::MoveFile)?;
        let request = FileMoveRequest::new(path, destination).overwrite(overwrite);
        self.sandbox.api().move_file(self.sandbox.id(), request).await
    }

    /// Sets the permission bits of a file or folder, such as `0o644`; its owner stays.
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
    /// # sandbox.files().write("a.txt", "abc").await?;
    /// assert_eq!(sandbox.files().set_permissions("a.txt", 0o644).await?.mode, "0644");
    /// # Ok(()) }
    /// ```
    pub async fn set_permissions(&self, path: &str, mode: u32) -> Result<FileInfoResponse> {
        self.check_path(path, Operation::SetFilePermissions)?;
        let request = FilePermissionsRequest::new(path, self.octal(mode, Operation::SetFilePermissions)?);
        self.sandbox.api().set_file_permissions(self.sandbox.id(), request).await
    }

    /// Deletes a file, a link or, if `recursive` is true, a folder with all that is in it.
    ///
    /// Of a link only itself goes. `/home/user` and `/tmp` never go.
    ///
    /// Only [`Dialect::Boat`](crate::Dialect::Boat) has it.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) in another dialect, and
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a bad argument, before anything is sent;
    /// `invalid_path` of the service, and `path_not_found`, of what an earlier try of the same call may have deleted where
    /// [`Error::delivery`](crate::Error::delivery) is `Unknown`; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer::Dialect::Boat).build()?;
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.files().write("app/a.txt", "abc").await?;
    /// sandbox.files().delete("app", true).await?;
    /// # Ok(()) }
    /// ```
    pub async fn delete(&self, path: &str, recursive: bool) -> Result<FileDeleteResponse> {
        self.check_path(path, Operation::DeleteFile)?;
        let request = DeleteFileParams::new(path).recursive(recursive);
        self.sandbox.api().delete_file(self.sandbox.id(), request).await
    }
}

impl AsyncFiles {
    /// Permission bits as the service writes them.
    fn octal(&self, mode: u32, operation: Operation) -> Result<String> {
        if mode > 0o7777 {
            return Err(
                self.label(Error::invalid_input("mode", "must be permission bits, up to 0o7777"), operation)
            );
        }
        Ok(format!("{mode:04o}"))
    }
}
