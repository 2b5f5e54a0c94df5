//! Which of the events given out were not complete when they were last seen.

use super::Event;

/// The most events whose growth is followed.
const FOLLOWED: usize = 100;

/// The events that still grow, oldest first.
#[derive(Debug, Default)]
pub(super) struct Growing(Vec<One>);

#[derive(Debug)]
pub(super) struct One {
    pub(super) id: String,
    /// A cursor from which a list has it.
    pub(super) before: Option<String>,
    /// It is a response, and not about tools.
    speaks: bool,
}

impl Growing {
    /// Takes note of an event that a list asked for with the cursor `before` has.
    pub(super) fn note(&mut self, event: &Event, before: Option<&str>) {
        let Some(id) = event.id() else { return };
        let place = self.0.iter().position(|known| known.id == id);
        let response = event.as_response().filter(|said| said.tools.is_empty());
        if event.is_streaming() && !event.is_reverted() {
            let speaks = response.is_some();
            match place {
                Some(place) => self.0[place].speaks = speaks,
                None if self.0.len() < FOLLOWED => {
                    self.0.push(One { id: id.to_owned(), before: before.map(str::to_owned), speaks });
                }
                None => {}
            }
            return;
        }
        // With a complete response, nobody waits for an earlier one any more.
        let spoken = response.is_some_and(|said| !said.content.is_empty());
        match place {
            Some(place) if spoken && !event.is_reverted() => drop(self.0.drain(..=place)),
            Some(place) => drop(self.0.remove(place)),
            None if spoken && !event.is_reverted() => self.0.clear(),
            None => {}
        }
    }

    /// Forgets them all, and says what to look at again.
    pub(super) fn look_again(&mut self) -> Vec<One> {
        std::mem::take(&mut self.0)
    }

    /// Takes one back that was not found.
    pub(super) fn keep(&mut self, one: One) {
        self.0.push(one);
    }

    /// Whether none grows.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The id of the last of them that is a response, and not about tools.
    pub(super) fn last_response(&self) -> Option<&str> {
        self.0.iter().rev().find(|one| one.speaks).map(|one| one.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn note(growing: &mut Growing, id: &str, data: Value) {
        let event = Event::read(json!({"id": id, "type": "response", "data": data})).unwrap();
        growing.note(&event, Some(&format!("before {id}")));
    }

    fn half() -> Value {
        json!({"content": "ha", "is_streaming": true})
    }

    #[test]
    fn what_is_complete_or_overtaken_does_not_grow() {
        for (then, left) in [
            ([("a", json!({"content": "half"})), ("c", half())], Some("before b")),
            ([("b", json!({"content": "half"})), ("c", half())], Some("before c")),
            ([("c", json!({"content": "whole"})), ("d", half())], Some("before d")),
            ([("c", half()), ("d", json!({"content": "whole"}))], None),
            ([("c", json!({"content": "", "tools": [{}]})), ("d", half())], Some("before a")),
            ([("a", json!({"content": "", "tools": [{}]})), ("c", half())], Some("before b")),
            ([("d", json!({"content": "whole", "is_reverted": true})), ("c", half())], Some("before a")),
            ([("a", json!({"is_streaming": true, "is_reverted": true})), ("c", half())], Some("before b")),
        ] {
            let mut growing = Growing::default();
            note(&mut growing, "a", half());
            note(&mut growing, "b", half());
            for (id, data) in then.clone() {
                note(&mut growing, id, data);
            }
            let first = growing.look_again().into_iter().next().map(|one| one.before);
            assert_eq!(first, left.map(|left| Some(left.to_owned())), "{then:?}");
            assert!(growing.is_empty());
        }
    }

    #[test]
    fn no_more_are_followed_than_there_is_room_for() {
        let mut growing = Growing::default();
        for number in 0..3 * FOLLOWED {
            note(&mut growing, &number.to_string(), half());
        }
        assert_eq!((growing.0.len(), growing.last_response()), (FOLLOWED, Some("99")));
    }

    #[test]
    fn what_is_about_tools_is_no_response_that_lacks_its_end() {
        let mut growing = Growing::default();
        let tools = || json!({"content": "", "tools": [{}], "is_streaming": true});
        note(&mut growing, "a", tools());
        assert_eq!((growing.is_empty(), growing.last_response()), (false, None));
        note(&mut growing, "b", half());
        note(&mut growing, "c", tools());
        assert_eq!(growing.last_response(), Some("b"));
        // It turns out to be about tools.
        note(&mut growing, "b", tools());
        assert_eq!((growing.is_empty(), growing.last_response()), (false, None));
    }
}
