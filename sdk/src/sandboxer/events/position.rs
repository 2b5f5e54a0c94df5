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

/// Where the stream stands.
#[derive(Debug, Default)]
pub(super) struct Position {
    /// The cursor to ask with: the last one the service gave. Asked with it, the service also tells of new contents of
    /// events that came after it.
    ask: Option<String>,
    /// The cursor right after the last event that was taken, for a caller to store.
    exact: Option<String>,
    /// Where the stream began, which an id that the service takes back leads to.
    origin: Option<String>,
    /// The newest time stamp of an event that was taken.
    newest: Option<i64>,
}

impl Position {
    pub(super) fn starting_at(origin: Option<String>) -> Self {
        Self { ask: origin.clone(), exact: origin.clone(), origin, newest: None }
    }

    pub(super) fn ask(&self) -> Option<&str> {
        self.ask.as_deref()
    }

    pub(super) fn exact(&self) -> Option<&str> {
        self.exact.as_deref()
    }

    /// An event was taken that came with no cursor of its own.
    pub(super) fn pass(&mut self, event: &Event) {
        let Some(cursor) = cursor_after(event) else { return };
        // A new content of an older event leads no way back.
        if self.newest <= event.timestamp() {
            self.newest = event.timestamp();
            self.exact = Some(cursor);
        }
    }

    /// The service gave a cursor for everything up to here.
    pub(super) fn reach(&mut self, cursor: String) {
        self.ask = Some(cursor.clone());
        self.exact = Some(cursor);
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
        position.pass(&event("a", 1));
        position.pass(&event("b", 2));
        let after_b = cursor_after(&event("b", 2));
        position.pass(&event("a", 1));
        assert_eq!((position.ask(), position.exact()), (Some("c0"), after_b.as_deref()));
        position.reach("c1".into());
        position.pass(&event("a", 1));
        assert_eq!((position.ask(), position.exact()), (Some("c1"), Some("c1")));
        position.pass(&event("c", 3));
        assert_eq!((position.ask(), position.exact()), (Some("c1"), cursor_after(&event("c", 3)).as_deref()));
        position.reset();
        assert_eq!((position.ask(), position.exact()), (Some("c0"), Some("c0")));
    }
}
