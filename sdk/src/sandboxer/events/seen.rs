//! Which contents of which events were given out already, in bounded memory.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, Hash, Hasher, RandomState},
};

use serde_json::Value;

use super::Event;

/// The most events whose last content is remembered.
pub(super) const REMEMBERED: usize = 4096;

/// The last content of each of the events that came last, as hashes.
///
/// An event comes through when its content is not the last one that came through under its id. Its time stamp is no part
/// of its content.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Keyed anew for each stream, so that nobody can make two contents with one hash.
    keys: RandomState,
    more_keys: RandomState,
    last: HashMap<u128, (u128, u64)>,
    by_age: BTreeMap<u64, u128>,
    age: u64,
    anonymous: Anonymous,
}

/// Where in the list of events an event without an id stands, so that it comes once, and its equal neighbour too.
#[derive(Debug, Default)]
struct Anonymous {
    place: u128,
    alike: HashMap<u128, u32>,
}

impl Seen {
    /// A page or a connection begins: equal events without ids are counted anew.
    pub(super) fn begin(&mut self) {
        self.anonymous.alike.clear();
    }

    /// Takes note of an event that stands after `place`, a cursor; whether it is news.
    pub(super) fn is_news(&mut self, event: &Event, place: Option<&str>) -> bool {
        let content = self.fingerprint(|hasher| hash_event(event, hasher));
        let id = match event.id() {
            Some(id) => self.fingerprint(|mut hasher| (0_u8, id).hash(&mut hasher)),
            None => self.place_of(content, event.timestamp(), place),
        };
        self.age += 1;
        let known = self.last.insert(id, (content, self.age));
        if let Some((_, age)) = known {
            self.by_age.remove(&age);
        }
        self.by_age.insert(self.age, id);
        if self.last.len() > REMEMBERED
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.last.remove(&oldest);
        }
        known.is_none_or(|(last, _)| last != content)
    }

    fn place_of(&mut self, content: u128, timestamp: Option<i64>, place: Option<&str>) -> u128 {
        let place = self.fingerprint(|mut hasher| place.hash(&mut hasher));
        if self.anonymous.place != place {
            self.anonymous = Anonymous { place, alike: HashMap::new() };
        }
        let alike = self.anonymous.alike.entry(content).or_default();
        *alike += 1;
        let number = *alike;
        // Beyond any page there may be: a connection that never says where it is must not fill the memory.
        if self.anonymous.alike.len() > REMEMBERED {
            self.anonymous.alike.clear();
        }
        self.fingerprint(|mut hasher| (1_u8, place, content, timestamp, number).hash(&mut hasher))
    }

    fn fingerprint(&self, feed: impl Fn(&mut dyn Hasher)) -> u128 {
        let half = |keys: &RandomState| {
            let mut hasher = keys.build_hasher();
            feed(&mut hasher);
            u128::from(hasher.finish())
        };
        half(&self.keys) << 64 | half(&self.more_keys)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.last.len(), self.by_age.len());
        self.last.len()
    }
}

fn hash_event(event: &Event, hasher: &mut dyn Hasher) {
    let fields = event.raw().iter().filter(|(name, _)| *name != "timestamp");
    hash_object(fields.collect(), hasher);
}

fn hash_object(mut fields: Vec<(&String, &Value)>, hasher: &mut dyn Hasher) {
    // The order of an object's fields says nothing, and a field that is null as much as one that is not there.
    fields.retain(|(_, value)| !value.is_null());
    fields.sort_unstable_by_key(|(name, _)| *name);
    hasher.write_usize(fields.len());
    for (name, value) in fields {
        hash_text(name, hasher);
        hash_value(value, hasher);
    }
}

fn hash_value(value: &Value, hasher: &mut dyn Hasher) {
    match value {
        Value::Null => hasher.write_u8(0),
        Value::Bool(flag) => hasher.write_u8(1 + u8::from(*flag)),
        Value::Number(number) => {
            hasher.write_u8(3);
            hash_text(&number.to_string(), hasher);
        }
        Value::String(text) => {
            hasher.write_u8(4);
            hash_text(text, hasher);
        }
        Value::Array(values) => {
            hasher.write_u8(5);
            hasher.write_usize(values.len());
            values.iter().for_each(|value| hash_value(value, hasher));
        }
        Value::Object(fields) => {
            hasher.write_u8(6);
            hash_object(fields.iter().collect(), hasher);
        }
    }
}

fn hash_text(text: &str, hasher: &mut dyn Hasher) {
    hasher.write_usize(text.len());
    hasher.write(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(value: Value) -> Event {
        Event::read(value).unwrap()
    }

    fn numbered(number: usize, content: &str) -> Event {
        event(json!({"id": format!("e{number}"), "type": "response", "data": {"content": content}}))
    }

    #[test]
    fn each_content_comes_once_and_the_latest_always() {
        let mut seen = Seen::default();
        let mut news = |content| seen.is_news(&numbered(1, content), None);
        assert!(news("A") && !news("A") && news("B") && !news("B") && news("A") && !news("A"));
    }

    #[test]
    fn order_of_fields_and_time_are_no_content() {
        let mut seen = Seen::default();
        let mut news = |text: &str| seen.is_news(&event(serde_json::from_str(text).unwrap()), None);
        assert!(news(r#"{"id":"a","type":"x","timestamp":1,"data":{"b":[1,{"c":null}],"d":"e"}}"#));
        assert!(!news(r#"{"timestamp":2,"data":{"d":"e","b":[1,{}],"f":null},"type":"x","id":"a"}"#));
        for other in [
            r#"{"id":"a","type":"x","data":{"b":[1,{"c":0}],"d":"e"}}"#,
            r#"{"id":"a","type":"x","data":{"b":[[1],{}],"d":"e"}}"#,
            r#"{"id":"a","type":"x","data":{"b":[1,{"c":null}],"d":"e","timestamp":1}}"#,
            r#"{"id":"a","type":"x"}"#,
            r#"{"id":"a","type":"x","data":""}"#,
            r#"{"id":"a","type":"x","data":[]}"#,
            r#"{"id":"a","type":"x","data":["a","b"]}"#,
            r#"{"id":"a","type":"x","data":["ab"]}"#,
            r#"{"id":"a","type":"x","data":["ab",""]}"#,
            r#"{"id":"a","type":"x","data":["ab",null]}"#,
        ] {
            assert!(news(other), "{other}");
            assert!(!news(other), "{other}");
        }
    }

    #[test]
    fn five_thousand_events_keep_the_memory_of_the_last_4096() {
        let mut seen = Seen::default();
        for number in 0..5000 {
            assert!(seen.is_news(&numbered(number, "x"), None));
        }
        assert_eq!(seen.len(), REMEMBERED);
        for number in (5000 - REMEMBERED)..5000 {
            assert!(!seen.is_news(&numbered(number, "x"), None), "{number}");
        }
        assert!(seen.is_news(&numbered(5000 - REMEMBERED - 1, "x"), None), "this one is forgotten");
        assert_eq!(seen.len(), REMEMBERED);
    }

    #[test]
    fn three_hundred_growing_contents_are_one_entry() {
        let mut seen = Seen::default();
        let mut content = String::new();
        for _ in 0..300 {
            content += &"x".repeat(100);
            assert!(seen.is_news(&numbered(1, &content), None));
        }
        assert_eq!(seen.len(), 1);
    }

    #[test]
    fn events_without_ids_come_once_at_each_place() {
        let mut seen = Seen::default();
        let tick = event(json!({"type": "tick", "timestamp": 5}));
        let mut page = |place| {
            seen.begin();
            [seen.is_news(&tick, place), seen.is_news(&tick, place)]
        };
        assert_eq!(page(None), [true, true]);
        assert_eq!(page(None), [false, false]);
        assert_eq!(page(Some("c1")), [true, true]);
        assert_eq!(page(Some("c1")), [false, false]);
    }

    #[test]
    fn events_without_ids_or_places_fill_no_memory() {
        let mut seen = Seen::default();
        for number in 0..3 * REMEMBERED {
            assert!(seen.is_news(&event(json!({"type": "tick", "data": number})), None));
        }
        assert_eq!(seen.len(), REMEMBERED);
        assert!(seen.anonymous.alike.len() <= REMEMBERED);
    }
}
