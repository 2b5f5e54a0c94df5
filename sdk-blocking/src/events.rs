//! What agents do in a sandbox, event by event.

use std::sync::{Arc, Mutex, PoisonError};

use sandboxer::{Delivery, Error, ErrorKind, Event, EventOptions, Result};

use crate::{Sandbox, driver::Driver, pull::Pull};

/// What agents do in a sandbox, pulled event by event; comes from [`Sandbox::events`] and
/// [`PromptRun::events`](crate::PromptRun::events).
///
/// It is an [`Iterator`] of events that blocks until the next one is there. Each content of an event comes once and in
/// order, however often the connection breaks or a page is read again; an event that grows comes with each new content
/// under its id, and one that goes back to an earlier content comes again too. The last content of the last 4,096 events is
/// remembered for that, as a hash.
///
/// A connection that breaks, falls silent for longer than the idle limit (45 s unless set) or is ended by the service is
/// made again from where it was. Ten in a row that bring neither an event nor a sign of life end the stream with an error
/// of kind [`StreamCut`](crate::ErrorKind::StreamCut); the pauses between them grow from a tenth of a second to ten, or are
/// as long as the service asks for, up to five minutes.
///
/// Its other errors are what the service answered when it refused for good (the sandbox is gone, or there are no
/// server-sent events in [`EventMode::Sse`](crate::EventMode::Sse), code `sse_unsupported`);
/// [`StreamFailed`](crate::ErrorKind::StreamFailed) when the service ends the stream with an error;
/// [`Unexpected`](crate::ErrorKind::Unexpected) or [`TooLarge`](crate::ErrorKind::TooLarge) for what cannot be read; and
/// what asking the condition of [`until`](Self::until) failed with. After an error it is over; a new stream can begin at
/// its [`cursor`](Self::cursor).
///
/// Nothing is asked before the first event is. Dropping it leaves the sandbox alone.
///
/// ```
/// # use sandboxer_mock_server::MockServer;
/// # let server = MockServer::start();
/// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
/// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
/// use sandboxer_blocking::{EventMode, EventOptions};
///
/// # sandbox.prompt("fix it")?.wait()?;
/// let options = EventOptions::new().mode(EventMode::Poll).from_start(true).follow(false);
/// let mut events = sandbox.events(options)?;
/// for event in &mut events {
///     println!("{}", event?.kind());
/// }
/// println!("a later stream can begin at {:?}", events.cursor());
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[must_use = "events are read when they are asked for"]
#[derive(Debug)]
pub struct EventStream {
    stream: Pull<sandboxer::EventStream>,
}

impl EventStream {
    pub(crate) fn new(driver: Driver, stream: sandboxer::EventStream) -> Self {
        Self { stream: Pull::new(driver, stream) }
    }

    /// The cursor right after the last event that was pulled, to go on from it with
    /// [`EventOptions::cursor`] at any later time. `None` at the beginning of the list; and as long as neither the
    /// service gave a cursor nor an event had what one is made of.
    ///
    /// A list tells of an event's new content only from before the event, so while one that came in a page is still
    /// growing (`is_streaming`) this stays before it: its end is not missed, and what followed it comes again. It waits for
    /// up to 100 events.
    pub fn cursor(&self) -> Option<&str> {
        self.stream.get()?.cursor()
    }

    /// Ends the stream once `check` answers `true`, after the events that were there by then.
    ///
    /// It is asked at once and then at every [`poll_interval`](EventOptions::poll_interval), also while a connection stays
    /// open, but only while an event is waited for, and on a thread where blocking calls can be made. A failure of it that
    /// may pass, up to ten in a row, leaves the stream running; any other ends it.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::{EventOptions, models::SandboxState};
    ///
    /// # sandbox.prompt("fix it")?.wait()?;
    /// let watched = sandbox.clone();
    /// let events = sandbox.events(EventOptions::new())?;
    /// let events = events.until(move || Ok(watched.refresh()?.state != SandboxState::Running));
    /// assert!(!events.collect::<sandboxer_blocking::Result<Vec<_>>>()?.is_empty());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn until<F>(mut self, check: F) -> Self
    where
        F: FnMut() -> Result<bool> + Send + 'static,
    {
        let check = Arc::new(Mutex::new(check));
        self.stream = self.stream.map(|stream| {
            stream.until(move || {
                let check = check.clone();
                async move {
                    // The runtime's own thread must not block.
                    let asked = tokio::task::spawn_blocking(move || {
                        let mut check = check.lock().unwrap_or_else(PoisonError::into_inner);
                        (*check)()
                    });
                    match asked.await {
                        Ok(answer) => answer,
                        Err(error) => match error.try_into_panic() {
                            Ok(panic) => std::panic::resume_unwind(panic),
                            Err(_) => Err(Error::local(
                                ErrorKind::Closed,
                                Delivery::Unknown,
                                "runtime_stopped",
                                "the client's own thread has ended",
                                None,
                            )),
                        },
                    }
                }
            })
        });
        self
    }
}

impl Iterator for EventStream {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        self.stream.next()
    }
}

impl Sandbox {
    /// Follows what agents do in it, event by event.
    ///
    /// Nothing is asked before the first event is. A view's idle limit is the longest silence of a connection, 45 s
    /// unless set.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput): the options ask for what the service cannot take.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::EventOptions;
    ///
    /// # server.set_agent(|turn| async move { turn.say("hello").await; Ok(()) });
    /// # sandbox.prompt("greet me")?.wait()?;
    /// for event in sandbox.events(EventOptions::new().kind("response").follow(false))? {
    ///     assert_eq!(event?.as_response().unwrap().content, "hello");
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn events(&self, options: EventOptions) -> Result<EventStream> {
        Ok(EventStream::new(self.driver().clone(), self.inner.events(options)?))
    }
}
