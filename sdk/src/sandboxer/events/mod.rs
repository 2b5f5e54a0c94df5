//! The events of a sandbox as one stream, over whatever carries them.

mod event;
mod follow;
mod growing;
mod laps;
mod message;
mod options;
mod position;
mod seen;
mod service;
#[cfg(test)]
mod tests;
mod transport;
mod until;
mod views;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;

use self::transport::{EventPage, Fetching, Opened, Opening, StreamQuery, Transport};
pub use self::{
    event::Event,
    options::{EventMode, EventOptions},
    views::{PromptView, ResponseView, SteerView},
};
use self::{follow::Follower, until::Until};
pub(crate) use self::{
    service::page,
    transport::{Filters, PageQuery},
    until::Finish,
};
use crate::{clock::SharedClock, error::Result};

/// The longest silence of a connection unless another is set: heartbeats are promised every 15 s.
pub(crate) const IDLE: Duration = Duration::from_secs(45);

/// What agents do in a sandbox, pulled event by event.
///
/// Each content of an event comes once and in order, however often the connection breaks or a page is read again; an event
/// that grows comes with each new content under its id, and one that goes back to an earlier content comes again too. The
/// last content of the last 4,096 events is remembered for that, as a hash.
///
/// A connection that breaks, falls silent for longer than the idle limit (45 s unless set) or is ended by the service is
/// made again from where it was. Ten in a row that bring neither an event nor a sign of life end the stream with an error
/// of kind [`StreamCut`](crate::ErrorKind::StreamCut); the pauses between them grow from a tenth of a second to ten, or are
/// as long as the service asks for, up to five minutes.
///
/// Nothing is asked before the first event is. Dropping it leaves the sandbox alone.
///
/// ```
/// # use sandboxer_mock_server::MockServer;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// use sandboxer::{EventMode, EventOptions};
///
/// # sandbox.prompt("fix it").await?.wait().await?;
/// let options = EventOptions::new().mode(EventMode::Poll).from_start(true).follow(false);
/// let mut events = sandbox.events(options)?;
/// while let Some(event) = events.next().await {
///     println!("{}", event?.kind());
/// }
/// println!("a later stream can begin at {:?}", events.cursor());
///
/// // `until` asks from time to time whether that was all, and ends the stream once it was.
/// let seen = sandbox.events(EventOptions::new().from_start(true))?.until(async || Ok(true));
/// # drop(seen);
/// # Ok(()) }
/// ```
#[must_use = "events are read when they are asked for"]
pub struct EventStream {
    follower: Follower,
    until: Option<Until>,
    interval: Duration,
}

impl EventStream {
    /// Follows the events that `transport` brings. `idle` is the longest silence of a connection.
    ///
    /// # Errors
    ///
    /// The options are refused; nothing was asked then.
    pub(crate) fn new(
        transport: impl Transport + 'static,
        options: EventOptions,
        idle: Option<Duration>,
        clock: SharedClock,
    ) -> Result<Self> {
        options.check()?;
        let interval = options.interval;
        Ok(Self { follower: Follower::new(Box::new(transport), options, idle, clock), until: None, interval })
    }

    /// The next event; `None` once the stream is over.
    ///
    /// # Errors
    ///
    /// [`StreamCut`](crate::ErrorKind::StreamCut) when the budget of connections is used up; what the service answered when
    /// it refused for good (the sandbox is gone, or there are no server-sent events in [`EventMode::Sse`], code
    /// `sse_unsupported`); [`StreamFailed`](crate::ErrorKind::StreamFailed) when the service ends the stream with an
    /// error; [`Unexpected`](crate::ErrorKind::Unexpected) or [`TooLarge`](crate::ErrorKind::TooLarge) for what cannot be
    /// read; and what asking the condition of [`until`](Self::until) failed with. After an error it is over; a new stream
    /// can begin at its [`cursor`](Self::cursor).
    pub async fn next(&mut self) -> Option<Result<Event>> {
        crate::stream::next(self).await
    }

    /// The cursor right after the last event that was pulled, to go on from it with
    /// [`EventOptions::cursor`] at any later time. `None` at the beginning of the list; and as long as neither the
    /// service gave a cursor nor an event had what one is made of.
    ///
    /// A list tells of an event's new content only from before the event, so while one that came in a page is still
    /// growing (`is_streaming`) this stays before it: its end is not missed, and what followed it comes again. It waits for
    /// up to 100 events.
    pub fn cursor(&self) -> Option<&str> {
        self.follower.cursor()
    }

    /// Ends the stream once `check` answers `true`, after the events that were there by then.
    ///
    /// It is asked at once and then at every [`poll_interval`](EventOptions::poll_interval), also while a connection stays open,
    /// but only while an event is waited for. A failure of it that may pass, up to ten in a row, leaves the stream
    /// running; any other ends it.
    pub fn until<F, Fut>(mut self, mut check: F) -> Self
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<bool>> + Send + 'static,
    {
        self.until = Some(Until::new(
            Box::new(move || {
                let asked = check();
                Box::pin(async move { Ok(asked.await?.then_some(Finish::AsItIs)) })
            }),
            self.interval,
        ));
        self
    }

    /// Ends the stream once `check` says how, as [`until`](Self::until) does otherwise.
    pub(crate) fn until_over<F, Fut>(mut self, mut check: F) -> Self
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<Option<Finish>>> + Send + 'static,
    {
        self.until = Some(Until::new(Box::new(move || Box::pin(check())), self.interval));
        self
    }
}

impl Stream for EventStream {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(item) = this.follower.take() {
                return Poll::Ready(Some(item));
            }
            if this.follower.is_over() {
                this.until = None;
                return Poll::Ready(None);
            }
            if let Some(until) = &mut this.until
                && let Poll::Ready(end) = until.poll(this.follower.clock(), context)
            {
                this.until = None;
                match end {
                    Ok(finish) => this.follower.finish(finish),
                    Err(error) => this.follower.fail(error),
                }
                continue;
            }
            std::task::ready!(this.follower.poll(context));
        }
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("EventStream")
            .field("cursor", &self.cursor())
            .field("over", &self.follower.is_over())
            .finish_non_exhaustive()
    }
}
