//! A list the service gives out in pages, read as it is needed.

use std::{
    collections::{HashSet, VecDeque},
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;

use crate::error::{Delivery, Error, ErrorKind, Result};

/// The largest page asked for unless the caller wants fewer items.
pub(crate) const PAGE_SIZE: u32 = 100;

/// One page as the service gave it.
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    pub(crate) next_cursor: Option<String>,
    pub(crate) has_more: bool,
}

/// Which page is wanted.
pub(crate) struct PageRequest {
    pub(crate) cursor: Option<String>,
    pub(crate) size: u32,
}

type Fetching<T> = Pin<Box<dyn Future<Output = Result<Page<T>>> + Send>>;

/// A lazy list over all pages: a page is asked for when the one before is used up.
///
/// It is a [`Stream`] of items; [`next`](Self::next), [`next_page`](Self::next_page) and [`collect`](Self::collect) need
/// no trait in scope. A cursor that comes a second time ends it with an error, so a faulty service cannot make it run
/// for ever; after an error it is over.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// use sandboxer::{Create, ListOptions};
///
/// for _ in 0..3 {
///     client.create(Create::new()).await?;
/// }
/// let mut list = client.list(ListOptions::new());
/// let first = list.next().await.unwrap()?;
/// let rest = list.collect().await?;
/// assert_eq!(rest.len(), 2);
/// assert!(rest.iter().all(|sandbox| sandbox.id() != first.id()));
///
/// let mut pages = client.list(ListOptions::new());
/// assert_eq!(pages.next_page().await.unwrap()?.len(), 3);
/// assert!(pages.next_page().await.is_none());
/// # Ok(()) }
/// ```
#[must_use = "a list is read when it is asked for items"]
pub struct Pager<T> {
    fetch: Box<dyn FnMut(PageRequest) -> Fetching<T> + Send>,
    fetching: Option<Fetching<T>>,
    ready: VecDeque<T>,
    next: Next,
    seen: HashSet<String>,
    left: Option<u64>,
}

enum Next {
    Page(Option<String>),
    Failure(Error),
    Nothing,
}

impl<T> Pager<T> {
    pub(crate) fn new<F, Fut>(limit: Option<u64>, start: Option<String>, mut fetch: F) -> Self
    where
        F: FnMut(PageRequest) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Page<T>>> + Send + 'static,
    {
        Self {
            fetch: Box::new(move |request| Box::pin(fetch(request))),
            fetching: None,
            ready: VecDeque::new(),
            next: if limit == Some(0) { Next::Nothing } else { Next::Page(start) },
            seen: HashSet::new(),
            left: limit,
        }
    }

    /// A list that cannot be read at all.
    pub(crate) fn failing(error: Error) -> Self
    where
        T: 'static,
    {
        let nothing = |_| std::future::pending();
        Self { next: Next::Failure(error), ..Self::new(None, None, nothing) }
    }

    /// The next item; `None` at the end of the list.
    ///
    /// # Errors
    ///
    /// Whatever fetching its page failed with, or [`ErrorKind::Unexpected`] with the code `repeated_cursor`.
    pub async fn next(&mut self) -> Option<Result<T>>
    where
        T: Unpin,
    {
        super::next(self).await
    }

    /// The rest of the page at hand, or the next page; `None` at the end of the list. A page can be empty.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub async fn next_page(&mut self) -> Option<Result<Vec<T>>> {
        if self.ready.is_empty() {
            match std::future::poll_fn(|context| self.poll_page(context)).await? {
                Ok(()) => {}
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(std::mem::take(&mut self.ready).into()))
    }

    /// All items that are left.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next); the items read before are dropped then.
    pub async fn collect(mut self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while let Some(page) = self.next_page().await {
            all.append(&mut page?);
        }
        Ok(all)
    }

    /// Fetches a page into `ready`; `None` when there is none.
    fn poll_page(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<()>>> {
        let fetching = match &mut self.fetching {
            Some(fetching) => fetching,
            None => {
                let cursor = match std::mem::replace(&mut self.next, Next::Nothing) {
                    Next::Page(cursor) => cursor,
                    Next::Failure(error) => return Poll::Ready(Some(Err(error))),
                    Next::Nothing => return Poll::Ready(None),
                };
                let size = self.left.map_or(PAGE_SIZE, |left| left.min(u64::from(PAGE_SIZE)) as u32);
                self.fetching.insert((self.fetch)(PageRequest { cursor, size }))
            }
        };
        let page = ready!(fetching.as_mut().poll(context));
        self.fetching = None;
        Poll::Ready(Some(page.map(|page| self.take_page(page))))
    }

    fn take_page(&mut self, page: Page<T>) {
        self.ready = page.items.into();
        if let Some(left) = &mut self.left {
            self.ready.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= self.ready.len() as u64;
        }
        if let Some(cursor) = page.next_cursor.filter(|_| page.has_more && self.left != Some(0)) {
            // The page at hand is still given out; what comes after it is not known.
            self.next =
                if self.seen.insert(cursor.clone()) { Next::Page(Some(cursor)) } else { repeated_cursor() };
        }
    }
}

fn repeated_cursor() -> Next {
    let message = "the service gave out the same page cursor twice, so the list cannot be read to its end";
    let error = Error::new(ErrorKind::Unexpected, "repeated_cursor", message);
    Next::Failure(error.with_delivery(Delivery::Answered))
}

impl<T: Unpin> Stream for Pager<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            match ready!(self.poll_page(context)) {
                None => return Poll::Ready(None),
                Some(Ok(())) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

impl<T> fmt::Debug for Pager<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pager").field("ready", &self.ready.len()).field("left", &self.left).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    type Asked = Arc<Mutex<Vec<(Option<String>, u32)>>>;

    fn pager(limit: Option<u64>, pages: Vec<(Vec<u32>, Option<&'static str>, bool)>) -> (Pager<u32>, Asked) {
        let asked = Asked::default();
        let log = asked.clone();
        let mut pages = VecDeque::from(pages);
        let pager = Pager::new(limit, None, move |request| {
            log.lock().unwrap().push((request.cursor, request.size));
            let page = pages.pop_front().expect("no page is asked for after the last");
            async move { Ok(Page { items: page.0, next_cursor: page.1.map(str::to_owned), has_more: page.2 }) }
        });
        (pager, asked)
    }

    #[tokio::test]
    async fn all_pages_are_read_with_their_cursors() {
        let (pager, asked) = pager(
            None,
            vec![(vec![1, 2], Some("a"), true), (vec![], Some("b"), true), (vec![3], None, false)],
        );
        assert_eq!(pager.collect().await.unwrap(), [1, 2, 3]);
        let asked = asked.lock().unwrap();
        assert_eq!(*asked, [(None, 100), (Some("a".into()), 100), (Some("b".into()), 100)]);
    }

    #[tokio::test]
    async fn it_is_lazy_and_a_small_limit_makes_a_small_page() {
        let (mut pager, asked) =
            pager(Some(3), vec![(vec![1, 2], Some("a"), true), (vec![3, 4], Some("b"), true)]);
        assert!(asked.lock().unwrap().is_empty());
        assert_eq!(pager.next().await.unwrap().unwrap(), 1);
        assert_eq!(asked.lock().unwrap().len(), 1);
        assert_eq!(pager.next_page().await.unwrap().unwrap(), [2]);
        assert_eq!(pager.next().await.unwrap().unwrap(), 3);
        assert!(pager.next().await.is_none());
        assert_eq!(*asked.lock().unwrap(), [(None, 3), (Some("a".into()), 1)]);
    }

    #[tokio::test]
    async fn a_repeated_cursor_is_an_error_and_a_missing_one_the_end() {
        let (mut repeated, asked) = pager(
            None,
            vec![(vec![1], Some("a"), true), (vec![2], Some("b"), true), (vec![3], Some("a"), true)],
        );
        assert_eq!(repeated.next().await.unwrap().unwrap(), 1);
        assert_eq!(repeated.next().await.unwrap().unwrap(), 2);
        assert_eq!(repeated.next().await.unwrap().unwrap(), 3);
        let error = repeated.next().await.unwrap().unwrap_err();
        assert_eq!(error.code(), "repeated_cursor");
        assert!(repeated.next().await.is_none());
        assert_eq!(asked.lock().unwrap().len(), 3);
        let (missing, _) = pager(None, vec![(vec![1], None, true)]);
        assert_eq!(missing.collect().await.unwrap(), [1]);
        let (nothing, asked) = pager(Some(0), vec![]);
        assert!(nothing.collect().await.unwrap().is_empty() && asked.lock().unwrap().is_empty());
    }
}
