//! What agents do, as their clients see it: one record an event, found by its place in time.

use std::ops::ControlFlow;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::time::Millis;
use crate::store::{
    Order, Reader, StoreError, Table, Writer,
    typed::{self, Derived, Record},
};

/// A page ends early once its events have about this many bytes of text.
const PAGE_BYTES: usize = 8 << 20;

/// The latest content of an event. One that changes keeps its id and moves to the end of the list, so that whoever reads
/// on from an earlier place hears of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) sandbox: String,
    pub(crate) id: String,
    pub(crate) kind: String,
    /// Different for all events of a sandbox, and therefore now and then some milliseconds late.
    pub(crate) at: Millis,
    /// The prompt or the steering message that it belongs to.
    pub(crate) task: String,
    pub(crate) conversation: String,
    pub(crate) data: Value,
}

impl Record for Event {
    const TABLE: Table = Table::Events;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        format!("{}/{}", self.sandbox, place(self.at, &self.id))
    }

    fn derive(&self, derived: &mut Derived) {
        let Self { sandbox, id, kind, conversation, .. } = self;
        let (key, place) = (self.key(), place(self.at, id));
        derived.row(format!("event/{sandbox}/{id}"), &key);
        derived.row(format!("{}{place}", of_kind(sandbox, kind)), &key);
        derived.row(format!("{}{place}", of_conversation(sandbox, conversation)), &key);
        derived.row(format!("{}{place}", of_both(sandbox, conversation, kind)), &key);
    }
}

fn place(at: Millis, id: &str) -> String {
    format!("{:016}/{id}", at.max(0))
}

fn kinds_of(sandbox: &str) -> String {
    format!("events/{sandbox}/kind/")
}

fn of_kind(sandbox: &str, kind: &str) -> String {
    format!("{}{kind}/", kinds_of(sandbox))
}

fn of_conversation(sandbox: &str, conversation: &str) -> String {
    format!("events/{sandbox}/conversation/{conversation}/")
}

fn of_both(sandbox: &str, conversation: &str, kind: &str) -> String {
    format!("events/{sandbox}/both/{conversation}/{kind}/")
}

impl Event {
    /// The event as the service shows it.
    pub(crate) fn view(&self) -> Value {
        json!({
            "id": self.id,
            "type": self.kind,
            "timestamp": self.at,
            "taskId": self.task,
            "conversationId": self.conversation,
            "data": self.data,
        })
    }

    /// The cursor right after it.
    pub(crate) fn cursor(&self) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}:{}", self.at, self.id))
    }
}

/// The event of an id.
pub(crate) fn find(tx: &dyn Reader, sandbox: &str, id: &str) -> Result<Option<Event>, StoreError> {
    match typed::row(tx, &format!("event/{sandbox}/{id}"))? {
        Some(key) => typed::get(tx, &key),
        None => Ok(None),
    }
}

/// Writes an event at the end of its sandbox's list, in the place of an earlier content of it; says when it is said to
/// have happened.
pub(crate) fn record(tx: &mut dyn Writer, mut event: Event, now: Millis) -> Result<Millis, StoreError> {
    event.at = now.max(last_at(&*tx, &event.sandbox)?.saturating_add(1));
    if let Some(before) = typed::row(&*tx, &format!("event/{}/{}", event.sandbox, event.id))? {
        typed::remove::<Event>(tx, &before)?;
    }
    typed::put(tx, &event)?;
    Ok(event.at)
}

/// When the last event of a sandbox happened.
fn last_at(tx: &dyn Reader, sandbox: &str) -> Result<Millis, StoreError> {
    let (prefix, mut last) = (format!("{sandbox}/"), 0);
    let to = typed::after_prefix(&prefix);
    tx.scan(Table::Events, &prefix, to.as_deref(), Order::Descending, &mut |key, _| {
        last = key[prefix.len()..].split('/').next().and_then(|at| at.parse().ok()).unwrap_or(0);
        ControlFlow::Break(())
    })?;
    Ok(last)
}

/// Which events are wanted: all where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) kinds: Option<Vec<String>>,
    pub(crate) conversations: Option<Vec<String>>,
}

/// A part of a list.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) events: Vec<Event>,
    pub(crate) has_more: bool,
}

/// Up to `most` events from a place on. What it costs does not depend on how many lie before it.
pub(crate) fn page(
    tx: &dyn Reader,
    sandbox: &str,
    filter: &Filter,
    after: Option<&(Millis, String)>,
    order: Order,
    most: usize,
) -> Result<Page, StoreError> {
    let after = after.map(|(at, id)| place(*at, id));
    let range = |prefix: &str| {
        let (mut from, mut to) = (prefix.to_owned(), typed::after_prefix(prefix));
        match (&after, order) {
            // A key that is just after the cursor's.
            (Some(after), Order::Ascending) => from = format!("{prefix}{after}\0"),
            (Some(after), Order::Descending) => to = Some(format!("{prefix}{after}")),
            (None, _) => {}
        }
        (from, to)
    };
    let mut taking = Taking { page: Page::default(), most, bytes: 0 };
    let Some(prefixes) = prefixes(tx, sandbox, filter)? else {
        let (from, to) = range(&format!("{sandbox}/"));
        typed::scan(tx, &from, to.as_deref(), order, |_, event| taking.take(event))?;
        return Ok(taking.page);
    };
    let mut found: Vec<(String, String)> = Vec::new();
    for prefix in prefixes {
        let (from, to) = range(&prefix);
        // One more than wanted, to know whether there is more.
        let mut left = most.saturating_add(1);
        typed::rows(tx, &from, to.as_deref(), order, |row, key| {
            found.push((row[prefix.len()..].to_owned(), key.to_owned()));
            left -= 1;
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    found.sort_unstable();
    if order == Order::Descending {
        found.reverse();
    }
    for (_, key) in found {
        if let Some(event) = typed::get::<Event>(tx, &key)?
            && taking.take(event).is_break()
        {
            break;
        }
    }
    Ok(taking.page)
}

struct Taking {
    page: Page,
    most: usize,
    bytes: usize,
}

impl Taking {
    fn take(&mut self, event: Event) -> ControlFlow<()> {
        if self.page.events.len() >= self.most || self.bytes >= PAGE_BYTES {
            self.page.has_more = true;
            return ControlFlow::Break(());
        }
        self.bytes += text_bytes(&event.data);
        self.page.events.push(event);
        ControlFlow::Continue(())
    }
}

fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields.values().map(text_bytes).sum(),
        _ => 0,
    }
}

/// The rows of the index that lead to the events of a filter; `None` if it lets everything through.
fn prefixes(tx: &dyn Reader, sandbox: &str, filter: &Filter) -> Result<Option<Vec<String>>, StoreError> {
    // Only what there is: a long list of what there is not must cost no more than looking it up.
    let kinds = match &filter.kinds {
        Some(wanted) => {
            let known = typed::next_parts(tx, &kinds_of(sandbox))?;
            Some(known.into_iter().filter(|kind| wanted.contains(kind)).collect::<Vec<_>>())
        }
        None => None,
    };
    let conversations = match &filter.conversations {
        Some(wanted) => {
            let mut there = Vec::new();
            for id in wanted {
                if !there.contains(id) && tx.get(Table::Conversations, &format!("{sandbox}/{id}"))?.is_some()
                {
                    there.push(id.clone());
                }
            }
            Some(there)
        }
        None => None,
    };
    Ok(match (kinds, conversations) {
        (None, None) => None,
        (Some(kinds), None) => Some(kinds.iter().map(|kind| of_kind(sandbox, kind)).collect()),
        (None, Some(ids)) => Some(ids.iter().map(|id| of_conversation(sandbox, id)).collect()),
        (Some(kinds), Some(ids)) => {
            let pairs = ids.iter().flat_map(|id| kinds.iter().map(move |kind| (id, kind)));
            Some(pairs.map(|(id, kind)| of_both(sandbox, id, kind)).collect())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        store::{Durability, RedbStore},
        world::conversations::Conversation,
    };

    fn event(id: &str, kind: &str, conversation: &str) -> Event {
        Event {
            sandbox: "bx_a".into(),
            id: id.into(),
            kind: kind.into(),
            at: 0,
            task: "p".into(),
            conversation: conversation.into(),
            data: json!({}),
        }
    }

    fn ids(page: &Page) -> Vec<&str> {
        page.events.iter().map(|event| event.id.as_str()).collect()
    }

    fn world() -> RedbStore {
        let store = RedbStore::in_memory().unwrap();
        let kinds = ["prompt", "response", "steer"];
        typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
            for conversation in ["c0", "c1"] {
                typed::put(tx, &Conversation::new("bx_a", conversation, 0))?;
            }
            for number in 0..12 {
                let conversation = format!("c{}", number % 2);
                record(tx, event(&format!("e{number:02}"), kinds[number % 3], &conversation), 5)?;
            }
            // Another sandbox's, whose id the first one's begins.
            record(tx, Event { sandbox: "bx_ab".into(), ..event("other", "prompt", "c0") }, 5).map(drop)
        })
        .unwrap();
        store
    }

    #[test]
    fn pages_go_on_where_they_ended_both_ways_and_filtered() {
        let store = world();
        typed::read::<_, StoreError>(&store, |tx| {
            let all = Filter::default();
            for (order, first) in [(Order::Ascending, "e00"), (Order::Descending, "e11")] {
                let (mut after, mut seen) = (None, Vec::new());
                loop {
                    let page = page(tx, "bx_a", &all, after.as_ref(), order, 5)?;
                    seen.extend(ids(&page).into_iter().map(str::to_owned));
                    let Some(last) = page.events.last() else { break };
                    after = Some((last.at, last.id.clone()));
                    assert_eq!(page.has_more, seen.len() < 12);
                }
                assert_eq!((seen.len(), seen[0].as_str()), (12, first));
            }
            let filter = |kinds: Option<&str>, conversations: Option<&str>| {
                let list = |text: &str| text.split(',').map(str::to_owned).collect();
                let filter = Filter { kinds: kinds.map(list), conversations: conversations.map(list) };
                page(tx, "bx_a", &filter, None, Order::Ascending, 3)
            };
            assert_eq!(ids(&filter(Some("prompt,response"), None)?), ["e00", "e01", "e03"]);
            assert_eq!(ids(&filter(None, Some("c1,c1"))?), ["e01", "e03", "e05"]);
            assert_eq!(ids(&filter(Some("steer"), Some("c0,none"))?), ["e02", "e08"]);
            assert!(filter(Some("none"), None)?.events.is_empty());
            assert!(filter(None, Some("none"))?.events.is_empty());
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_new_content_moves_an_event_to_the_end_and_leaves_no_trace_of_the_old_one() {
        let store = world();
        typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
            let before = find(&*tx, "bx_a", "e00")?.unwrap();
            assert_eq!(before.at, 5);
            let at = record(tx, Event { data: json!({"n": 2}), ..before }, 5)?;
            assert_eq!(at, 17, "after all others, however the clock stands");
            let page = page(&*tx, "bx_a", &Filter::default(), None, Order::Ascending, 100)?;
            assert_eq!((page.events.len(), ids(&page)[11]), (12, "e00"));
            let only = Filter { kinds: Some(vec!["prompt".into()]), ..Filter::default() };
            let page = super::page(&*tx, "bx_a", &only, None, Order::Descending, 100)?;
            assert_eq!(ids(&page), ["e00", "e09", "e06", "e03"]);
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_page_of_long_events_ends_early() {
        let store = RedbStore::in_memory().unwrap();
        typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
            for number in 0..4 {
                let text = "x".repeat(5 << 20);
                record(tx, Event { data: json!({"text": text}), ..event(&number.to_string(), "x", "c") }, 5)?;
            }
            let page = page(&*tx, "bx_a", &Filter::default(), None, Order::Ascending, 100)?;
            assert_eq!((page.events.len(), page.has_more), (2, true));
            Ok(())
        })
        .unwrap();
    }
}
