//! One event, as the service sent it.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value};

use super::views::{PromptView, ResponseView, SteerView};

/// Something an agent did or was asked to do in a sandbox.
///
/// It is kept as it came: a kind or a field that this client does not know is there in [`raw`](Self::raw) and
/// [`data`](Self::data). The same event comes again, under the same id, while its content grows; the last content is the
/// one that counts.
///
/// Printing it with `Debug` shows names of its data only: prompts, answers and attachments may hold anything.
///
/// ```
/// use sandboxer::Event;
/// use std::time::{Duration, SystemTime};
///
/// let event: Event = serde_json::from_str(
///     r#"{"id":"e1","type":"response","timestamp":1767225600250,"taskId":"p1","conversationId":"c1",
///         "data":{"content":"Done.","is_streaming":false},"colour":"blue"}"#,
/// )?;
/// assert_eq!((event.id(), event.kind()), (Some("e1"), "response"));
/// assert_eq!((event.task_id(), event.conversation_id()), (Some("p1"), Some("c1")));
/// assert_eq!(event.timestamp(), Some(1_767_225_600_250)); // in milliseconds
/// assert_eq!(event.time(), Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_225_600_250)));
/// assert_eq!((event.as_response().unwrap().content, &event.data()["content"]), ("Done.", &"Done.".into()));
/// assert!(event.as_prompt().is_none() && event.as_steer().is_none());
/// assert!(!event.is_streaming() && !event.is_reverted());
/// assert_eq!(event.raw()["colour"], "blue");
/// assert_eq!(event.into_raw().len(), 7);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Event(Map<String, Value>);

impl Event {
    /// An event from a JSON value; gives the value back when it is not an object with a `type`.
    pub(crate) fn read(value: Value) -> Result<Self, Value> {
        match value {
            Value::Object(fields) if fields.get("type").is_some_and(Value::is_string) => Ok(Self(fields)),
            other => Err(other),
        }
    }

    /// Its id, the same for all its contents; `None` when the service gave it none.
    pub fn id(&self) -> Option<&str> {
        self.text("id").filter(|id| !id.is_empty())
    }

    /// What kind it is: `prompt`, `response`, `steer`, `compaction_complete`, `usage_limit`, or one not known here.
    pub fn kind(&self) -> &str {
        self.text("type").unwrap_or_default()
    }

    /// When it happened, in milliseconds since 1970-01-01 UTC.
    pub fn timestamp(&self) -> Option<i64> {
        self.0.get("timestamp").and_then(Value::as_i64)
    }

    /// When it happened, as a point in time; `None` also where this machine's clock cannot tell it.
    pub fn time(&self) -> Option<SystemTime> {
        let milliseconds = self.timestamp()?;
        let distance = Duration::from_millis(milliseconds.unsigned_abs());
        if milliseconds < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(distance)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(distance)
        }
    }

    /// The id of the task it belongs to: of the prompt that is being worked on, or of a steering message.
    pub fn task_id(&self) -> Option<&str> {
        self.text("taskId")
    }

    /// The id of its conversation.
    pub fn conversation_id(&self) -> Option<&str> {
        self.text("conversationId")
    }

    /// What it says; `null` when it says nothing.
    pub fn data(&self) -> &Value {
        self.0.get("data").unwrap_or(&Value::Null)
    }

    /// All its fields.
    pub fn raw(&self) -> &Map<String, Value> {
        &self.0
    }

    /// All its fields, as a map of their own.
    pub fn into_raw(self) -> Map<String, Value> {
        self.0
    }

    /// Whether more contents of it are to be expected: its data says `is_streaming`.
    pub fn is_streaming(&self) -> bool {
        self.data().get("is_streaming").and_then(Value::as_bool) == Some(true)
    }

    /// Whether it was taken back together with the turn it belonged to: its data says `is_reverted`.
    pub fn is_reverted(&self) -> bool {
        self.data().get("is_reverted").and_then(Value::as_bool) == Some(true)
    }

    /// The event as a prompt, if it is one.
    pub fn as_prompt(&self) -> Option<PromptView<'_>> {
        (self.kind() == "prompt").then(|| PromptView::of(self.data()))
    }

    /// The event as an answer of an agent, if it is one.
    pub fn as_response(&self) -> Option<ResponseView<'_>> {
        (self.kind() == "response").then(|| ResponseView::of(self.data()))
    }

    /// The event as a message into a running turn, if it is one.
    pub fn as_steer(&self) -> Option<SteerView<'_>> {
        (self.kind() == "steer").then(|| SteerView::of(self.data()))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(Value::deserialize(deserializer)?)
            .map_err(|_| D::Error::custom("an event is an object with a `type`"))
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data: Option<Vec<&String>> = self.data().as_object().map(|data| data.keys().collect());
        formatter
            .debug_struct("Event")
            .field("id", &self.id())
            .field("kind", &self.kind())
            .field("timestamp", &self.timestamp())
            .field("task_id", &self.task_id())
            .field("conversation_id", &self.conversation_id())
            .field("data", &data)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(value: Value) -> Event {
        Event::read(value).unwrap()
    }

    #[test]
    fn an_event_is_kept_as_it_came() {
        let value = json!({"id": "r1", "type": "response", "timestamp": 1_767_225_600_250_i64, "taskId": "p1",
            "conversationId": "c1", "data": {"content": "s3cr3t", "is_streaming": true}, "new": [1]});
        let event = event(value.clone());
        assert_eq!((event.id(), event.kind()), (Some("r1"), "response"));
        assert_eq!((event.task_id(), event.conversation_id()), (Some("p1"), Some("c1")));
        assert_eq!(event.time(), Some(SystemTime::UNIX_EPOCH + Duration::from_millis(1_767_225_600_250)));
        assert!(event.is_streaming() && !event.is_reverted());
        assert_eq!(serde_json::to_value(&event).unwrap(), value);
        assert_eq!(serde_json::from_value::<Event>(value).unwrap(), event);
        let printed = format!("{event:?}");
        assert!(printed.contains("r1") && printed.contains("content") && !printed.contains("s3cr3t"));
    }

    #[test]
    fn only_the_type_is_essential() {
        let bare = event(json!({"type": "shield", "id": "", "timestamp": "x", "taskId": 5, "data": [1]}));
        assert_eq!((bare.id(), bare.timestamp(), bare.time(), bare.task_id()), (None, None, None, None));
        assert_eq!(bare.data(), &json!([1]));
        assert_eq!(event(json!({"type": "x"})).data(), &Value::Null);
        for bad in [json!({}), json!({"type": 5}), json!("x"), json!([{"type": "x"}]), Value::Null] {
            assert!(Event::read(bad.clone()).is_err(), "{bad}");
            assert!(serde_json::from_value::<Event>(bad).is_err());
        }
        let far = event(json!({"type": "x", "timestamp": i64::MIN}));
        let _ = far.time();
    }
}
