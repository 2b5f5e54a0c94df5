//! A list the service gives out in pages, read as it is needed.

use std::fmt;

use sandboxer::{Error, Result};

use crate::{driver::Driver, pull::Pull};

/// A lazy list over all pages: a page is asked for when the one before is used up.
///
/// It is an [`Iterator`] of items: `collect::<Result<Vec<_>>>()` reads them all. A cursor that comes a second time ends
/// it with an error, so a faulty service cannot make it run for ever; after an error it is over.
///
/// ```
/// # let server = sandboxer_mock_server::MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// use sandboxer_blocking::{ListOptions, Result};
///
/// let all = client.list(ListOptions::new()).collect::<Result<Vec<_>>>()?;
/// assert!(all.is_empty());
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[must_use = "a list is read when it is asked for items"]
pub struct Pager<T>(Box<dyn Pages<T> + Send>);

/// A list of the async SDK whose items become `T`.
trait Pages<T> {
    fn next(&mut self) -> Option<Result<T>>;
    fn next_page(&mut self) -> Option<Result<Vec<T>>>;
}

struct Converted<A: Send + 'static, F> {
    pages: Pull<sandboxer::stream::Pager<A>>,
    convert: F,
}

impl<A, T, F> Pages<T> for Converted<A, F>
where
    A: Send + Unpin + 'static,
    F: FnMut(A) -> T,
{
    fn next(&mut self) -> Option<Result<T>> {
        Some(self.pages.next()?.map(&mut self.convert))
    }

    fn next_page(&mut self) -> Option<Result<Vec<T>>> {
        let page = self.pages.lend(|mut pages| async move {
            let page = pages.next_page().await;
            (pages, page)
        })?;
        let page = page.unwrap_or_else(|error| Some(Err(error)))?;
        Some(page.map(|items| items.into_iter().map(&mut self.convert).collect()))
    }
}

/// A list that cannot be read at all.
struct Failing(Option<Error>);

impl<T> Pages<T> for Failing {
    fn next(&mut self) -> Option<Result<T>> {
        self.0.take().map(Err)
    }

    fn next_page(&mut self) -> Option<Result<Vec<T>>> {
        self.0.take().map(Err)
    }
}

impl<T> Pager<T> {
    pub(crate) fn failing(error: Error) -> Self {
        Self(Box::new(Failing(Some(error))))
    }

    pub(crate) fn new<A, F>(driver: Driver, pages: sandboxer::stream::Pager<A>, convert: F) -> Self
    where
        A: Send + Unpin + 'static,
        F: FnMut(A) -> T + Send + 'static,
        T: 'static,
    {
        Self(Box::new(Converted { pages: Pull::new(driver, pages), convert }))
    }

    /// The rest of the page at hand, or the next page; `None` at the end of the list. A page can be empty.
    ///
    /// # Errors
    ///
    /// Whatever fetching it failed with, or [`ErrorKind::Unexpected`](crate::ErrorKind::Unexpected) with the code
    /// `repeated_cursor`.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let mut list = client.list(sandboxer_blocking::ListOptions::new());
    /// let page = list.next_page().unwrap()?;
    /// assert_eq!((page.len(), page[0].id()), (1, sandbox.id()));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn next_page(&mut self) -> Option<Result<Vec<T>>> {
        self.0.next_page()
    }
}

impl<T> Iterator for Pager<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl<T> fmt::Debug for Pager<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pager").finish_non_exhaustive()
    }
}
