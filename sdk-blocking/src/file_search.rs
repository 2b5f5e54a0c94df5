//! Looking for files, and for text in them.

use sandboxer::{
    Result,
    models::{FileFindResponse, FileReplaceResponse, FileSearchResponse},
};

use crate::Files;

impl Files {
    /// Searches a folder and all below it for names that fit a pattern such as `*.py`; links are not followed.
    ///
    /// It answers at most 10,000 absolute paths; `truncated` says that there are more, `errors` which parts could
    /// not be read.
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
    /// # sandbox.files().write("app/main.py", "")?;
    /// let found = sandbox.files().search("app", "*.py")?;
    /// assert_eq!(found.files, ["/home/user/app/main.py"]);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn search(&self, path: &str, pattern: &str) -> Result<FileSearchResponse> {
        let pattern = pattern.to_owned();
        self.call(path, |files, path| async move { files.search(&path, &pattern).await })
    }

    /// Finds the lines that have a text in them, or fit an extended regular expression, in a file or a folder and
    /// all below it.
    ///
    /// It answers at most 1,000 lines, each cut at 500 characters; files that are not text are skipped.
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
    /// # sandbox.files().write("app/a.py", "one\n\n# TODO\n")?;
    /// let found = sandbox.files().find("app", "TODO", false)?;
    /// assert_eq!(found.matches[0].line, 3);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn find(&self, path: &str, pattern: &str, regex: bool) -> Result<FileFindResponse> {
        let pattern = pattern.to_owned();
        self.call(path, |files, path| async move { files.find(&path, &pattern, regex).await })
    }

    /// Replaces a text wherever it is in 1 to 100 files of up to 5 MiB.
    ///
    /// The text is no expression. There is a result for each file, and one that failed does not stop the others:
    /// look at `success` of each. A call that is cut off is not repeated.
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
    /// # sandbox.files().write("a.py", "foo foo")?;
    /// let results = sandbox.files().replace(["a.py"], "foo", "bar")?.results;
    /// assert_eq!(results[0].replacements, Some(2));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn replace<I>(&self, paths: I, pattern: &str, new_value: &str) -> Result<FileReplaceResponse>
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let paths: Vec<String> = paths.into_iter().map(Into::into).collect();
        let pattern = pattern.to_owned();
        let new_value = new_value.to_owned();
        self.call("", |files, _| async move { files.replace(paths, &pattern, &new_value).await })
    }
}
