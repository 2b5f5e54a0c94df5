//! Where in the list of events a stream stands.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::Event;
use crate::error::{Delivery, Error, ErrorKind, Result};

/// The longest cursor taken, in bytes: it has to fit into a header.
pub(super) const LONGEST_CURSOR: usize = 4096;

/// The cursor right after an event: the service takes `<timestamp>:<id>` as unpadded base64url. `None` for an event that
/// lacks one of them or has them at their defaults, and for one whose id is too long.
pub(super) fn cursor_after(event: &Event) -> Option<String> {
    let timestamp = event.timestamp().filter(|timestamp| *timestamp > 0)?;
    let cursor = URL_SAFE_NO_PAD.encode(format!("{timestamp}:{}", event.id()?));
    (cursor.len() <= LONGEST_CURSOR).then_some(cursor)
}

/// A cursor as the service gave it.
pub(super) fn checked(cursor: &str) -> Result<String> {
    if cursor.len() > LONGEST_CURSOR {
        let message = format!("the service gave a cursor of more than {LONGEST_CURSOR} bytes");
        return Err(
            Error::new(ErrorKind::Unexpected, "cursor_too_long", message).with_delivery(Delivery::Answered)
        );
    }
    Ok(cursor.to_owned())
}

/// How many events may follow one that grows before a caller's cursor goes on without its end.
const HELD: u32 = 100;

/// Where the stream stands.
#[derive(Debug, Default)]
pub(super) struct Position {
    /// The cursor to ask with: the last one the service gave. Asked with it, the service also tells of new contents of
    /// events that came after it.
    ask: Option<String>,
    /// A place before `ask` to ask for pages from, since an event after it was still growing; inside, `None` is the
    /// beginning.
    back: Option<Option<String>>,
    /// The cursor right after the last event that was taken, for a caller to store; but not behind one that still grows: a
    /// list tells of a new content only when it is asked from before the event.
    exact: Option<String>,
    /// The cursor right after the last event that was taken.
    latest: Option<String>,
    /// The ids of the events that `exact` stands before, and how many others came since.
    growing: Vec<String>,
    held: u32,
    /// Where the stream began, which an id that the service takes back leads to.
    origin: Option<String>,
    /// The newest time stamp of an event that was taken.
    newest: Option<i64>,
}

impl Position {
    pub(super) fn starting_at(origin: Option<String>) -> Self {
        let (ask, exact, latest) = (origin.clone(), origin.clone(), origin.clone());
        Self { ask, exact, latest, origin, ..Self::default() }
    }

    /// Right after the newest events of a list, which come newest first; `has_more` when there are older ones.
    pub(super) fn after_newest(events: &[Event], has_more: bool) -> Self {
        let after = |events: &[Event]| events.iter().find_map(cursor_after);
        // Events without ids could not be told from those that come again.
        let told_apart = events.iter().all(|event| event.id().is_some());
        let growing = events.iter().rposition(Event::is_streaming).filter(|_| told_apart);
        let back = growing.map(|oldest| after(&events[oldest + 1..]));
        let back = back.filter(|back| back.is_some() || !has_more);
        Self { back, ..Self::starting_at(after(events)) }
    }

    pub(super) fn ask(&self) -> Option<&str> {
        self.ask.as_deref()
    }

    /// What to ask for a page with.
    pub(super) fn ask_page(&self) -> Option<&str> {
        self.back.as_ref().unwrap_or(&self.ask).as_deref()
    }

    /// The cursor right after the last event that was taken: a list asked for with it has what comes next.
    pub(super) fn latest(&self) -> Option<&str> {
        self.latest.as_deref()
    }

    pub(super) fn exact(&self) -> Option<&str> {
        self.exact.as_deref()
    }

    /// An event was taken that came with no cursor of its own; `listed` when it stood in a page.
    pub(super) fn pass(&mut self, event: &Event, listed: bool) {
        if let Some(id) = event.id().filter(|_| listed) {
            self.growing.retain(|growing| growing != id);
            if event.is_streaming() {
                self.growing.push(id.to_owned());
            } else {
                self.held += 1;
            }
        }
        // A new content of an older event leads no way back.
        if let Some(cursor) = cursor_after(event)
            && self.newest <= event.timestamp()
        {
            self.newest = event.timestamp();
            self.latest = Some(cursor);
        }
        self.go_on();
    }

    fn go_on(&mut self) {
        // One that never ends must not hold the cursor for ever.
        if self.held > HELD || self.growing.len() > HELD as usize {
            self.growing.clear();
        }
        if self.growing.is_empty() {
            self.held = 0;
            self.exact.clone_from(&self.latest);
        }
    }

    /// The service gave a cursor for everything up to here.
    pub(super) fn reach(&mut self, cursor: String) {
        self.ask = Some(cursor.clone());
        self.back = None;
        self.latest = Some(cursor);
        self.go_on();
    }

    /// The service gives no cursors; those made of events are asked with.
    pub(super) fn ask_exactly(&mut self) {
        self.ask.clone_from(&self.exact);
    }

    /// The service took its last cursor back.
    pub(super) fn reset(&mut self) {
        *self = Self::starting_at(self.origin.take());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cursor_is_made_of_time_and_id() {
        let event = |value| Event::read(value).unwrap();
        let whole = event(json!({"id": "ev_1", "type": "x", "timestamp": 1_767_225_600_000_i64}));
        assert_eq!(cursor_after(&whole).unwrap(), "MTc2NzIyNTYwMDAwMDpldl8x");
        assert_eq!(cursor_after(&event(json!({"id": "ev_1", "type": "x"}))), None);
        assert_eq!(cursor_after(&event(json!({"timestamp": 5, "type": "x"}))), None);
        assert_eq!(cursor_after(&event(json!({"id": "ev_1", "timestamp": 0, "type": "x"}))), None);
        let long = json!({"id": "x".repeat(4000), "type": "x", "timestamp": 1});
        assert_eq!(cursor_after(&event(long)), None);
        assert!(checked(&"x".repeat(4096)).is_ok() && checked(&"x".repeat(4097)).is_err());
    }

    #[test]
    fn new_contents_of_old_events_lead_no_way_back() {
        let event = |id: &str, at: i64| Event::read(json!({"id": id, "type": "x", "timestamp": at})).unwrap();
        let mut position = Position::starting_at(Some("c0".into()));
        position.pass(&event("a", 1), true);
        position.pass(&event("b", 2), true);
        let after_b = cursor_after(&event("b", 2));
        position.pass(&event("a", 1), true);
        assert_eq!((position.ask(), position.exact()), (Some("c0"), after_b.as_deref()));
        position.reach("c1".into());
        position.pass(&event("a", 1), true);
        assert_eq!((position.ask(), position.exact()), (Some("c1"), Some("c1")));
        position.pass(&event("c", 3), true);
        assert_eq!((position.ask(), position.exact()), (Some("c1"), cursor_after(&event("c", 3)).as_deref()));
        position.reset();
        assert_eq!((position.ask(), position.exact()), (Some("c0"), Some("c0")));
    }

    #[test]
    fn a_cursor_stays_before_what_grows_in_a_list_for_a_while() {
        let event = |id: &str, at: i64, grows: bool| {
            let value = json!({"id": id, "type": "x", "timestamp": at, "data": {"is_streaming": grows}});
            Event::read(value).unwrap()
        };
        let after = |id: &str, at: i64| cursor_after(&event(id, at, false));
        let mut position = Position::default();
        position.pass(&event("a", 1, false), true);
        position.pass(&event("b", 2, true), true);
        position.pass(&event("c", 3, false), true);
        position.reach("c1".into());
        assert_eq!((position.ask(), position.exact()), (Some("c1"), after("a", 1).as_deref()));
        position.pass(&event("b", 2, false), true);
        assert_eq!(position.exact(), Some("c1"));
        position.pass(&event("d", 4, true), false);
        assert_eq!(position.exact(), after("d", 4).as_deref(), "a stream tells of what grows by itself");
        position.pass(&event("e", 5, true), true);
        for at in 6..=106 {
            assert_eq!(position.exact(), after("d", 4).as_deref(), "{at}");
            position.pass(&event("f", at, false), true);
        }
        assert_eq!(position.exact(), after("f", 106).as_deref(), "it never ended");
    }

    #[test]
    fn now_is_after_the_newest_and_pages_are_asked_for_from_before_what_grows() {
        let event = |at: i64, grows: bool| {
            let value =
                json!({"id": at.to_string(), "type": "x", "timestamp": at, "data": {"is_streaming": grows}});
            Event::read(value).unwrap()
        };
        let after = |at: i64| cursor_after(&event(at, false));
        for (growing, has_more, ask_page) in [
            (0, true, after(3)),
            (3, true, after(2)),
            (2, true, after(1)),
            (1, false, None),
            (1, true, after(3)),
        ] {
            let events: Vec<Event> = (1..=3).rev().map(|at| event(at, at == growing)).collect();
            let position = Position::after_newest(&events, has_more);
            let found = (position.ask(), position.exact(), position.ask_page());
            assert_eq!(found, (after(3).as_deref(), after(3).as_deref(), ask_page.as_deref()), "{growing}");
        }
        assert_eq!(Position::after_newest(&[], false).ask_page(), None);
    }
}
