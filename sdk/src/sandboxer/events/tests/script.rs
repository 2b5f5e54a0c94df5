//! A service that answers as a test says, and keeps what it was asked.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::{Value, json};

use super::super::{
    Event, EventOptions, EventPage, EventStream, Fetching, Opened, Opening, PageQuery, StreamQuery, Transport,
};
use crate::{
    clock::{Clock as _, ManualClock},
    error::{Delivery, Error, ErrorKind, Result},
    stream::{ByteSource, frames::scripted},
};
use std::{future::Future, time::Duration};

/// What the service was asked.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Asked {
    Page(PageQuery),
    Stream(StreamQuery),
}

impl Asked {
    pub(super) fn cursor(&self) -> Option<&str> {
        match self {
            Self::Page(query) => query.cursor.as_deref(),
            Self::Stream(query) => query.cursor.as_deref(),
        }
    }
}

pub(super) type Log = Arc<Mutex<Vec<Asked>>>;
type OnPage = Box<dyn FnMut(usize, PageQuery) -> Result<EventPage> + Send>;
type OnOpen = Box<dyn FnMut(usize, StreamQuery) -> Result<Opened> + Send>;

/// Answers the nth question of each kind.
pub(super) struct Script {
    pub(super) page: OnPage,
    pub(super) open: OnOpen,
    pub(super) log: Log,
    pages: usize,
    opens: usize,
}

impl Script {
    pub(super) fn new(
        open: impl FnMut(usize, StreamQuery) -> Result<Opened> + Send + 'static,
        page: impl FnMut(usize, PageQuery) -> Result<EventPage> + Send + 'static,
    ) -> Self {
        Self { page: Box::new(page), open: Box::new(open), log: Log::default(), pages: 0, opens: 0 }
    }

    /// Only connections; a page is not to be asked for.
    pub(super) fn streams(open: impl FnMut(usize, StreamQuery) -> Result<Opened> + Send + 'static) -> Self {
        Self::new(open, |_, query| panic!("a page was asked for: {query:?}"))
    }

    /// Only pages; a connection is not to be asked for.
    pub(super) fn pages(page: impl FnMut(usize, PageQuery) -> Result<EventPage> + Send + 'static) -> Self {
        Self::new(|_, query| panic!("a connection was asked for: {query:?}"), page)
    }

    pub(super) fn follow(self, clock: &ManualClock, options: EventOptions) -> (EventStream, Log) {
        let log = self.log.clone();
        let idle = Some(super::super::IDLE);
        (EventStream::new(self, options, idle, clock.shared()).unwrap(), log)
    }
}

impl Transport for Script {
    fn sandbox_id(&self) -> Option<&str> {
        Some("bx_1")
    }

    fn page(&mut self, request: PageQuery) -> Fetching {
        self.log.lock().unwrap().push(Asked::Page(request.clone()));
        self.pages += 1;
        let answer = (self.page)(self.pages - 1, request);
        Box::pin(async move { answer })
    }

    fn open(&mut self, request: StreamQuery) -> Opening {
        self.log.lock().unwrap().push(Asked::Stream(request.clone()));
        self.opens += 1;
        let answer = (self.open)(self.opens - 1, request);
        Box::pin(async move { answer })
    }
}

/// Runs a future, moving the clock to the next sleep whenever it waits for one; far more waits than any test has are a
/// stream that never ends.
pub(super) async fn run<T>(clock: &ManualClock, future: impl Future<Output = T>) -> T {
    tokio::pin!(future);
    for _ in 0..100_000 {
        tokio::select! {
            biased;
            done = &mut future => return done,
            () = tokio::task::yield_now() => clock.advance(clock.next_due().unwrap_or_default()),
        }
    }
    panic!("it never ends")
}

/// As [`run`], but gives up at a point in time.
pub(super) async fn run_to<T>(
    clock: &ManualClock,
    end: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut due = clock.sleep(end.saturating_sub(clock.elapsed()));
    run(clock, async {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = &mut due => None,
        }
    })
    .await
}

/// The next `count` events, each as its id and content.
pub(super) async fn take(clock: &ManualClock, stream: &mut EventStream, count: usize) -> Vec<String> {
    let mut out = Vec::new();
    while out.len() < count {
        out.push(text(&run(clock, stream.next()).await.expect("the stream goes on").unwrap()));
    }
    out
}

/// All events to the end.
pub(super) async fn drain(clock: &ManualClock, stream: &mut EventStream) -> Result<Vec<String>> {
    let mut out = Vec::new();
    while let Some(event) = run(clock, stream.next()).await {
        out.push(text(&event?));
    }
    Ok(out)
}

pub(super) fn text(event: &Event) -> String {
    let content = event.as_response().map(|response| response.content.to_owned()).unwrap_or_default();
    format!("{} {content}", event.id().unwrap_or("-"))
}

/// An event as JSON: a response of this id and content, at a time of its number.
pub(super) fn value(number: usize, content: &str) -> Value {
    json!({"id": format!("e{number}"), "type": "response", "timestamp": 1000 + number, "taskId": "p1",
        "data": {"content": content}})
}

pub(super) fn event(number: usize, content: &str) -> Event {
    Event::read(value(number, content)).unwrap()
}

/// An event that may still grow, at a time of its number.
pub(super) fn growing(number: usize, content: &str) -> Event {
    let mut event = value(number, content);
    event["data"]["is_streaming"] = true.into();
    Event::read(event).unwrap()
}

pub(super) fn cursor(number: usize) -> String {
    super::super::position::cursor_after(&event(number, "")).unwrap()
}

/// The number of the event that a cursor stands for.
pub(super) fn number_of(cursor: Option<&str>) -> Option<usize> {
    let cursor = cursor?;
    Some((0..10_000).find(|number| self::cursor(*number) == cursor).expect("a cursor of ours"))
}

/// A message with an event, and its cursor as its id.
pub(super) fn message(number: usize, content: &str) -> String {
    format!("id: {}\ndata: {}\n\n", cursor(number), value(number, content))
}

pub(super) fn sse(pieces: Vec<Result<Bytes>>) -> Result<Opened> {
    opened("text/event-stream", scripted(pieces))
}

/// A connection that brings this text and then ends.
pub(super) fn brings(text: impl Into<String>) -> Result<Opened> {
    sse(vec![Ok(Bytes::from(text.into()))])
}

/// A connection that brings this text and then is silent for ever.
pub(super) fn stays_open(text: impl Into<String>) -> Result<Opened> {
    use futures_util::StreamExt as _;
    let text = Bytes::from(text.into());
    let first = futures_util::stream::iter([Ok(text)]);
    opened("text/event-stream", Box::pin(first.chain(futures_util::stream::pending())))
}

pub(super) fn opened(content_type: &str, body: ByteSource) -> Result<Opened> {
    Ok(Opened { content_type: Some(content_type.to_owned()), body })
}

pub(super) fn reset() -> Error {
    Error::new(ErrorKind::StreamCut, "stream_cut", "reset").with_delivery(Delivery::Unknown)
}

pub(super) fn answer(status: u16) -> Error {
    Error::new(ErrorKind::of_status(status), format!("http_{status}"), "no").with_status(status)
}

pub(super) fn page(events: Vec<Event>, next: Option<String>, has_more: bool) -> Result<EventPage> {
    Ok(EventPage { events, next_cursor: next, has_more })
}

/// A page of `size` out of events numbered from 0 to below `total`, after a cursor, as the service gives it: the last page
/// has no next cursor.
pub(super) fn page_of(total: usize, size: usize, query: &PageQuery) -> Result<EventPage> {
    if query.newest_first {
        let events: Vec<Event> = (0..total).rev().take(query.limit as usize).map(|n| event(n, "x")).collect();
        let next = events.last().map(|_| "newest".to_owned());
        return page(events, next, total > query.limit as usize);
    }
    let first = number_of(query.cursor.as_deref()).map_or(0, |number| number + 1);
    let end = total.min(first + size);
    let more = end < total;
    page((first..end).map(|n| event(n, "x")).collect(), more.then(|| cursor(end - 1)), more)
}
