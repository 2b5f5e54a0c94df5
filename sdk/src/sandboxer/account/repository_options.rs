//! Which repositories to list.

use crate::{
    error::Result,
    models::{ReposParams, SortOrder},
    sandboxer::given,
};

/// Which repositories to list, and how.
///
/// ```
/// use sandboxer::ListRepositories;
///
/// let options = ListRepositories::new().search("app").selected(true).sync().sort("asc").limit(20).cursor("c_1");
/// # drop(options);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct ListRepositories {
    pub(super) request: ReposParams,
    pub(super) limit: Option<u64>,
}

impl ListRepositories {
    /// All repositories that the account's connection to GitHub sees.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks GitHub anew first; otherwise the service answers with what it knows.
    pub fn sync(mut self) -> Self {
        self.request = self.request.sync(true);
        self
    }

    /// Only those whose name has this text in it, of up to 200 characters; small and capital letters are the same.
    pub fn search(mut self, text: impl Into<String>) -> Self {
        self.request = self.request.q(text);
        self
    }

    /// Only those that sandboxes start with, or only the others.
    pub fn selected(mut self, selected: bool) -> Self {
        self.request = self.request.selected(selected);
        self
    }

    /// In which order.
    pub fn sort(mut self, order: impl Into<SortOrder>) -> Self {
        self.request = self.request.sort(order);
        self
    }

    /// At most this many, over all pages.
    pub fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// From this cursor on, as an earlier answer of the service gave it.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.request = self.request.cursor(cursor);
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        given::filled("sort", self.request.sort.as_ref().map(SortOrder::as_str))?;
        given::filled("cursor", self.request.cursor.as_deref())
    }
}
