//! Looking for files, and for text in them.

use super::AsyncFiles;
use crate::{
    error::{Error, Result},
    generated::operations::Operation,
    models::{
        FileFindResponse, FileReplaceRequest, FileReplaceResponse, FileSearchResponse, FindInFilesParams,
        SearchFilesParams,
    },
};

impl AsyncFiles {
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer::Dialect::Boat).build()?;
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.files().write("app/main.py", "").await?;
    /// let found = sandbox.files().search("app", "*.py").await?;
    /// assert_eq!(found.files, ["/home/user/app/main.py"]);
    /// # Ok(()) }
    /// ```
    pub async fn search(&self, path: &str, pattern: &str) -> Result<FileSearchResponse> {
        self.check_path(path, Operation::SearchFiles)?;
        self.check_pattern(pattern, Operation::SearchFiles)?;
        let request = SearchFilesParams::new(pattern).path(path);
        self.sandbox.api().search_files(self.sandbox.id(), request).await
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer::Dialect::Boat).build()?;
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.files().write("app/a.py", "one\n\n# TODO\n").await?;
    /// let found = sandbox.files().find("app", "TODO", false).await?;
    /// assert_eq!(found.matches[0].line, 3);
    /// # Ok(()) }
    /// ```
    pub async fn find(&self, path: &str, pattern: &str, regex: bool) -> Result<FileFindResponse> {
        self.check_path(path, Operation::FindInFiles)?;
        self.check_pattern(pattern, Operation::FindInFiles)?;
        let request = FindInFilesParams::new(pattern).path(path).regex(regex);
        self.sandbox.api().find_in_files(self.sandbox.id(), request).await
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = server.client_builder().dialect(sandboxer::Dialect::Boat).build()?;
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.files().write("a.py", "foo foo").await?;
    /// let results = sandbox.files().replace(["a.py"], "foo", "bar").await?.results;
    /// assert_eq!(results[0].replacements, Some(2));
    /// # Ok(()) }
    /// ```
    pub async fn replace<I>(&self, paths: I, pattern: &str, new_value: &str) -> Result<FileReplaceResponse>
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let paths: Vec<String> = paths.into_iter().map(Into::into).collect();
        let (pattern, new_value) = (pattern.to_owned(), new_value.to_owned());
        for path in &paths {
            self.check_path(path, Operation::ReplaceInFiles)?;
        }
        let request = FileReplaceRequest::new(paths, pattern, new_value);
        self.sandbox.api().replace_in_files(self.sandbox.id(), request).await
    }
}

impl AsyncFiles {
    fn check_pattern(&self, pattern: &str, operation: Operation) -> Result<()> {
        let fits = !pattern.contains('\0') && (1..=4096).contains(&pattern.chars().count());
        let problem = || Error::invalid_input("pattern", "must be 1 to 4096 characters without NUL");
        if fits { Ok(()) } else { Err(self.label(problem(), operation)) }
    }
}
