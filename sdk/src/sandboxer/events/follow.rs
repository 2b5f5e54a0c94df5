//! From connections and pages to events: what is fetched next, and what becomes of it.

use std::{
    collections::VecDeque,
    task::{Context, Poll, ready},
    time::Duration,
};

use super::{
    Event, EventMode, EventOptions,
    growing::{Growing, One},
    laps::Laps,
    message::{self, Said},
    options::Start,
    position::{self, Position},
    seen::Seen,
    transport::{EventPage, Fetching, Filters, Media, Opened, Opening, PageQuery, StreamQuery, Transport},
    until::Finish,
};
use crate::{
    clock::{SharedClock, Sleep},
    error::{Delivery, Error, ErrorKind, Result},
    sandboxer::{
        answer,
        reconnect::{Life, Reconnects},
    },
    stream::sse::{MessageError, Messages, SseItem},
};

const PAGE_SIZE: u32 = 100;

/// How many pages one that still grows is looked for in at once, counted from where it was last.
const SEARCHED: u32 = 20;

/// How many of the newest events are looked at to find out where now is. One would do if all had an id and a time.
const NEWEST: u32 = 10;

/// Follows the events of a sandbox, one step a poll.
pub(super) struct Follower {
    transport: Box<dyn Transport>,
    filters: Filters,
    task: Option<String>,
    mode: EventMode,
    interval: Duration,
    idle: Option<Duration>,
    clock: SharedClock,
    /// Events on their way to the caller, each with the cursor right after it.
    ready: VecDeque<(Event, Option<String>)>,
    /// The cursor after the event that was taken out last.
    given: Option<String>,
    failure: Option<Error>,
    state: State,
    position: Position,
    seen: Seen,
    growing: Growing,
    reconnects: Reconnects,
    laps: Laps,
    /// Where now is has yet to be found.
    finding: bool,
    /// Pages are asked for, not connections.
    paging: bool,
    /// It ends with the last event there is.
    finishing: bool,
    /// How it ends, and how often the last events were looked at for that.
    finish: Finish,
    looks: u32,
    /// What still grew and is to be looked at again, and in how many pages the first of it was looked for.
    visits: VecDeque<One>,
    searched: u32,
    /// The id in effect on the connection, and whether the service ever gave one.
    id: Option<String>,
    gives_ids: bool,
}

enum State {
    /// Nothing is under way.
    Idle,
    Finding(Fetching),
    Fetching(Fetching),
    Opening(Opening),
    Open(Box<Messages>),
    /// Until it is time to ask for news.
    Waiting(Sleep),
    /// Until the service may be asked again.
    Pausing(Sleep),
    Over,
}

impl Follower {
    pub(super) fn new(
        transport: Box<dyn Transport>,
        options: EventOptions,
        idle: Option<Duration>,
        clock: SharedClock,
    ) -> Self {
        let filters = Filters::of(&options);
        let finding = options.start == Start::Now;
        let origin = match options.start {
            Start::After(cursor) => Some(cursor),
            Start::Beginning | Start::Now => None,
        };
        Self {
            transport,
            filters,
            task: options.task,
            mode: options.mode,
            interval: options.interval,
            idle,
            ready: VecDeque::new(),
            given: origin.clone(),
            failure: None,
            state: State::Idle,
            position: Position::starting_at(origin),
            seen: Seen::default(),
            growing: Growing::default(),
            reconnects: Reconnects::new(clock.elapsed(), cut),
            laps: Laps::default(),
            finding,
            paging: options.mode == EventMode::Poll,
            finishing: !options.follow,
            finish: Finish::AsItIs,
            looks: 0,
            visits: VecDeque::new(),
            searched: 0,
            id: None,
            gives_ids: false,
            clock,
        }
    }

    pub(super) fn clock(&self) -> &SharedClock {
        &self.clock
    }

    pub(super) fn cursor(&self) -> Option<&str> {
        if self.ready.is_empty() { self.position.exact() } else { self.given.as_deref() }
    }

    /// The next item that is there already.
    pub(super) fn take(&mut self) -> Option<Result<Event>> {
        if let Some((event, cursor)) = self.ready.pop_front() {
            self.given = cursor;
            return Some(Ok(event));
        }
        self.failure.take().map(Err)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Over) && self.ready.is_empty() && self.failure.is_none()
    }

    /// Goes on to the last event there is, and no further.
    pub(super) fn finish(&mut self, finish: Finish) {
        (self.finishing, self.finish) = (true, finish);
        self.look_again();
        // What is under way may have been answered before the end was known. A pause the service asked for is kept.
        if !matches!(self.state, State::Finding(_) | State::Pausing(_) | State::Over) {
            self.state = State::Idle;
        }
    }

    /// Goes back to before what still grows, since a list tells of its new content from there only.
    fn look_again(&mut self) {
        let ahead = self.asked_page();
        self.visits = self.growing.look_again().into();
        // The next page has them anyway.
        self.visits.retain(|one| one.before != ahead);
        self.searched = 0;
    }

    /// A page came that was asked for because of what still grew. Nothing else in it matters, unless it is the last one.
    fn on_visit(&mut self, page: EventPage) {
        let Some(first) = self.visits.front() else { return };
        let (before, sought) = (first.before.clone(), first.id.clone());
        self.seen.begin();
        self.reconnects.answered(true);
        for event in page.events {
            let known = self.visits.iter().position(|one| Some(&*one.id) == event.id());
            if let Some(known) = known {
                self.visits.remove(known);
                self.accept(event, before.as_deref(), true);
            }
        }
        self.state = State::Idle;
        self.searched += 1;
        let Some(first) = self.visits.front_mut().filter(|first| first.id == sought) else {
            self.searched = 0;
            return;
        };
        // It may have moved to where it was changed.
        let next = page.next_cursor.filter(|next| page.has_more && !next.is_empty());
        match next.as_deref().map(position::checked) {
            Some(Ok(next)) => {
                first.before = Some(next);
                if self.searched == SEARCHED {
                    // The next look goes on from there.
                    self.visits.pop_front().into_iter().for_each(|one| self.growing.keep(one));
                    self.searched = 0;
                }
            }
            _ => {
                self.visits.pop_front();
                self.searched = 0;
            }
        }
    }

    /// The last event there is was taken; what still grows may get another look.
    fn ended(&mut self) {
        self.looks += 1;
        if self.growing.is_empty() || self.finish == Finish::AsItIs {
            self.state = State::Over;
        } else if self.looks < answer::LOOKS {
            self.look_again();
            self.state = State::Pausing(self.clock.sleep(answer::PAUSE));
        } else if let Some(last) = self.growing.last_response().filter(|_| self.finish == Finish::Complete) {
            let details = serde_json::json!({ "promptId": self.task, "eventId": last });
            let sandbox_id = self.transport.sandbox_id().map(str::to_owned);
            self.fail(answer::incomplete(details).with_sandbox_id(sandbox_id));
        } else {
            self.state = State::Over;
        }
    }

    pub(super) fn fail(&mut self, error: Error) {
        self.failure = Some(error);
        self.state = State::Over;
    }

    /// Does one step; ready when something may have changed.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.state {
            State::Over => {}
            State::Idle => self.begin(),
            State::Waiting(sleep) | State::Pausing(sleep) => {
                ready!(sleep.as_mut().poll(context));
                self.state = State::Idle;
            }
            State::Finding(fetching) => match ready!(fetching.as_mut().poll(context)) {
                Ok(page) => self.found(&page),
                Err(error) => self.refused(error),
            },
            State::Fetching(fetching) => match ready!(fetching.as_mut().poll(context)) {
                Ok(page) if page.has_more && !self.visits.is_empty() => self.on_visit(page),
                Ok(page) => self.on_page(page),
                Err(error) => self.refused(error),
            },
            State::Opening(opening) => match ready!(opening.as_mut().poll(context)) {
                Ok(opened) => self.on_opened(opened),
                Err(error)
                    if self.mode == EventMode::Auto && matches!(error.status(), Some(406 | 415 | 501)) =>
                {
                    self.change_to_pages();
                }
                Err(error) => self.refused(error),
            },
            State::Open(messages) => {
                let item = messages.poll_next(context);
                if messages.alive() {
                    self.reconnects.alive(Life::Heartbeat);
                }
                let Poll::Ready(item) = item else {
                    // Blocks with nothing but an id bring no item.
                    self.follow_id();
                    return if matches!(self.state, State::Over) { Poll::Ready(()) } else { Poll::Pending };
                };
                match item {
                    Some(Ok(SseItem::Message { name, data })) => self.on_message(&name, &data),
                    Some(Ok(SseItem::Retry(retry))) => self.reconnects.set_retry(retry),
                    Some(Err(MessageError::TooLong(error))) => self.fail(error),
                    Some(Err(MessageError::Broken(error))) => self.on_end(Some(error)),
                    None => self.on_end(None),
                }
            }
        }
        Poll::Ready(())
    }

    fn begin(&mut self) {
        self.state = if self.finding {
            let request =
                PageQuery { cursor: None, filters: self.filters.clone(), limit: NEWEST, newest_first: true };
            State::Finding(self.transport.page(request))
        } else if self.paging || self.finishing {
            let request = PageQuery {
                cursor: self.asked_page(),
                filters: self.filters.clone(),
                limit: PAGE_SIZE,
                newest_first: false,
            };
            State::Fetching(self.transport.page(request))
        } else {
            State::Opening(
                self.transport.open(StreamQuery { cursor: self.asked(), filters: self.filters.clone() }),
            )
        };
    }

    fn asked(&self) -> Option<String> {
        self.position.ask().map(str::to_owned)
    }

    fn asked_page(&self) -> Option<String> {
        match self.visits.front() {
            Some(first) => first.before.clone(),
            None => self.position.ask_page().map(str::to_owned),
        }
    }

    /// The newest events came: the stream begins after them.
    fn found(&mut self, page: &EventPage) {
        let position = Position::after_newest(&page.events, page.has_more);
        let origin = position.ask().map(str::to_owned);
        if origin.is_none() && !page.events.is_empty() {
            let message = "the newest events have no id and time, so there is no saying where now is";
            return self.fail(unexpected("no_cursor", message));
        }
        self.seen.begin();
        for event in &page.events {
            self.seen.is_news(event, origin.as_deref());
        }
        self.given = origin;
        self.position = position;
        self.finding = false;
        self.state = State::Idle;
        self.reconnects.answered(true);
    }

    fn on_page(&mut self, page: EventPage) {
        let asked = self.asked_page();
        self.seen.begin();
        let mut news = false;
        // A list tells of a new content only when it is asked from before the event.
        let grows = !page.has_more && page.events.iter().any(Event::is_streaming);
        for event in page.events {
            news |= self.accept(event, asked.as_deref(), true);
        }
        self.reconnects.answered(news || !page.has_more);
        let mut moved = false;
        let next = page.next_cursor.filter(|next| !next.is_empty() && Some(next) != asked.as_ref());
        if let Some(next) = next.filter(|_| !grows) {
            match position::checked(&next) {
                Ok(next) => {
                    moved = !(page.has_more && self.laps.comes_again(&next));
                    self.reach(next);
                }
                Err(error) => return self.fail(error),
            }
        }
        self.state = if !page.has_more {
            self.laps = Laps::default();
            self.visits.clear();
            if self.finishing {
                return self.ended();
            }
            State::Waiting(self.clock.sleep(self.interval))
        } else if !moved {
            let message = "the service says that there are more events and gives no way to them";
            return self.fail(unexpected("repeated_cursor", message));
        } else if news {
            State::Idle
        } else {
            State::Pausing(self.clock.sleep(self.reconnects.pause()))
        };
    }

    fn on_opened(&mut self, opened: Opened) {
        match opened.media() {
            Media::Events => {
                self.reconnects.connected(self.clock.elapsed());
                self.seen.begin();
                self.id = self.asked();
                let messages = Messages::new(opened.body, self.id.as_deref(), self.clock.clone(), self.idle);
                self.state = State::Open(Box::new(messages));
            }
            Media::Json if self.mode == EventMode::Auto => self.change_to_pages(),
            Media::Json => {
                self.fail(unexpected("sse_unsupported", "the service has no server-sent events for this"));
            }
            Media::Other => {
                self.fail(unexpected("unexpected_response", "the answer is no stream of server-sent events"));
            }
        }
    }

    fn change_to_pages(&mut self) {
        tracing::debug!("the service has no server-sent events; asking for pages");
        self.paging = true;
        self.state = State::Idle;
        self.reconnects.answered(true);
    }

    fn on_message(&mut self, name: &str, data: &str) {
        let events = match message::read(name, data) {
            Said::Nothing => Vec::new(),
            Said::Events(events) => events,
            // The id of what was not understood is not taken.
            Said::Failed(error) => return self.fail(error),
        };
        let place = match &self.state {
            State::Open(messages) => messages.last_id().map(str::to_owned),
            _ => None,
        };
        let mut news = false;
        for event in events {
            news |= self.accept(event, place.as_deref(), false);
        }
        if news {
            self.reconnects.alive(Life::News);
        }
        self.follow_id();
        if news && !self.gives_ids {
            self.position.ask_exactly();
        }
    }

    /// The connection ended; blocks with nothing but an id may have come before.
    fn on_end(&mut self, cause: Option<Error>) {
        self.follow_id();
        if !matches!(self.state, State::Over) {
            self.lost(cause);
        }
    }

    /// Goes to where the id in effect on the connection is.
    fn follow_id(&mut self) {
        let State::Open(messages) = &self.state else { return };
        let id = messages.last_id();
        if id == self.id.as_deref() {
            return;
        }
        self.gives_ids = true;
        match id.map(position::checked) {
            Some(Ok(id)) => {
                self.id = Some(id.clone());
                self.reach(id);
            }
            Some(Err(error)) => self.fail(error),
            None => {
                self.id = None;
                self.position.reset();
                self.mark();
            }
        }
    }

    fn reach(&mut self, cursor: String) {
        self.position.reach(cursor);
        self.mark();
    }

    /// The last event that waits to be taken is followed by where the stream stands now.
    fn mark(&mut self) {
        if let Some((_, cursor)) = self.ready.back_mut() {
            *cursor = self.position.exact().map(str::to_owned);
        }
    }

    /// Takes an event if it is news; whether it is. `listed` when it stood in a page.
    fn accept(&mut self, event: Event, place: Option<&str>, listed: bool) -> bool {
        let wanted =
            self.task.as_deref().is_none_or(|task| event.task_id() == Some(task) || event.id() == Some(task));
        if wanted {
            self.growing.note(&event, if listed { place } else { self.position.latest() });
        }
        if !self.seen.is_news(&event, place) {
            return false;
        }
        self.position.pass(&event, listed);
        if wanted {
            self.ready.push_back((event, self.position.exact().map(str::to_owned)));
        }
        true
    }

    fn refused(&mut self, error: Error) {
        if error.is_retryable() { self.lost(Some(error)) } else { self.fail(error) }
    }

    /// Another connection is made, or the question asked again, after a pause and within the budget.
    fn lost(&mut self, cause: Option<Error>) {
        match self.reconnects.lost(self.clock.elapsed(), cause) {
            Ok(pause) => {
                tracing::debug!(?pause, "an event connection ended; going on after a pause");
                self.state = State::Pausing(self.clock.sleep(pause));
            }
            Err(error) => self.fail(error),
        }
    }
}

fn unexpected(code: &'static str, message: &str) -> Error {
    Error::new(ErrorKind::Unexpected, code, message).with_delivery(Delivery::Answered)
}

/// The error of a stream that cannot be gone on with.
fn cut(cause: Option<Error>) -> Error {
    const WHAT: &str = "the event stream broke and could not be gone on with";
    let error = match cause {
        Some(cause) => Error::new(ErrorKind::StreamCut, "stream_cut", format!("{WHAT}: {}", cause.message()))
            .with_status(cause.status())
            .with_operation(cause.operation())
            .with_attempts(cause.attempts())
            .with_request_id(cause.request_id().map(str::to_owned))
            .with_source(cause),
        None => Error::new(ErrorKind::StreamCut, "stream_cut", WHAT),
    };
    error.with_delivery(Delivery::Unknown)
}
