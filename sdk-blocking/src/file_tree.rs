//! Files and folders as things: what is there, moving, permissions, deleting.

use sandboxer::{
    Result,
    models::{FileDeleteResponse, FileInfoResponse, FileListResponse, FileMoveResponse},
};

use crate::Files;

impl Files {
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer_blocking::Dialect::Boat).build()?;
    /// # let client = sandboxer_blocking::Sandboxer::from_async(client);
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("a.txt", "abc")?;
    /// let folder = sandbox.files().list("/home/user")?;
    /// assert_eq!(folder.files[0].name, "a.txt");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn list(&self, path: &str) -> Result<FileListResponse> {
        self.call(path, |files, path| async move { files.list(&path).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer_blocking::Dialect::Boat).build()?;
    /// # let client = sandboxer_blocking::Sandboxer::from_async(client);
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("a.txt", "abc")?;
    /// let info = sandbox.files().info("a.txt")?;
    /// assert_eq!((info.size, info.mode.as_str()), (3, "0644"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn info(&self, path: &str) -> Result<FileInfoResponse> {
        self.call(path, |files, path| async move { files.info(&path).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer_blocking::Dialect::Boat).build()?;
    /// # let client = sandboxer_blocking::Sandboxer::from_async(client);
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// assert!(sandbox.files().create_folder("app", Some(0o755))?.is_dir);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn create_folder(&self, path: &str, mode: Option<u32>) -> Result<FileInfoResponse> {
        self.call(path, |files, path| async move { files.create_folder(&path, mode).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer_blocking::Dialect::Boat).build()?;
    /// # let client = sandboxer_blocking::Sandboxer::from_async(client);
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("a.txt", "abc")?;
    /// assert_eq!(sandbox.files().move_to("a.txt", "/tmp/b.txt", false)?.destination, "/tmp/b.txt");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn move_to(&self, path: &str, destination: &str, overwrite: bool) -> Result<FileMoveResponse> {
        let destination = destination.to_owned();
        self.call(path, |files, path| async move { files.move_to(&path, &destination, overwrite).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer_blocking::Dialect::Boat).build()?;
    /// # let client = sandboxer_blocking::Sandboxer::from_async(client);
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("a.txt", "abc")?;
    /// assert_eq!(sandbox.files().set_permissions("a.txt", 0o644)?.mode, "0644");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn set_permissions(&self, path: &str, mode: u32) -> Result<FileInfoResponse> {
        self.call(path, |files, path| async move { files.set_permissions(&path, mode).await })
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
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer_blocking::Dialect::Boat).build()?;
    /// # let client = sandboxer_blocking::Sandboxer::from_async(client);
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # sandbox.files().write("app/a.txt", "abc")?;
    /// sandbox.files().delete("app", true)?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn delete(&self, path: &str, recursive: bool) -> Result<FileDeleteResponse> {
        self.call(path, |files, path| async move { files.delete(&path, recursive).await })
    }
}
