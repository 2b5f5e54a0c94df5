//! The data of the kinds of event that are known, read without copying.

use serde_json::Value;

/// What a `prompt` event says.
///
/// ```
/// use sandboxer::Event;
///
/// let event: Event = serde_json::from_str(r#"{"type":"prompt","data":{"prompt":"fix it","status":"failed","error":"no"}}"#)?;
/// let prompt = event.as_prompt().unwrap();
/// assert!(prompt.is_done());
/// assert_eq!((prompt.prompt, prompt.error), ("fix it", Some("no")));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PromptView<'a> {
    /// The text of the prompt.
    pub prompt: &'a str,
    /// Where its run stands: `sending`, `queued`, `running`, `finished`, `failed`, `interrupted`, or a value not known
    /// here; empty when the service did not say.
    pub status: &'a str,
    /// Why it failed; only on a failed one.
    pub error: Option<&'a str>,
    /// Whether it was taken back.
    pub is_reverted: bool,
    /// Its attachments, as they came.
    pub attachments: &'a [Value],
    /// Earlier events it refers to, as they came.
    pub citations: &'a [Value],
}

/// What a `response` event says.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResponseView<'a> {
    /// The text so far; empty on an event that only lists uses of tools.
    pub content: &'a str,
    /// The model that wrote it.
    pub model: Option<&'a str>,
    /// Uses of tools and their results, as they came.
    pub tools: &'a [Value],
    /// Whether more of the text is to come under the same id.
    pub is_streaming: bool,
    /// Whether it was taken back.
    pub is_reverted: bool,
}

/// What a `steer` event says.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SteerView<'a> {
    /// The message.
    pub message: &'a str,
    /// Whether the agent takes messages into a running turn itself.
    pub native: Option<bool>,
    /// How it was delivered: `native`, `native-continued`, `fallback`, `late`, or a value not known here; empty when the
    /// service did not say.
    pub mode: &'a str,
}

impl<'a> PromptView<'a> {
    pub(super) fn of(data: &'a Value) -> Self {
        Self {
            prompt: text(data, "prompt"),
            status: text(data, "status"),
            error: data.get("error").and_then(Value::as_str),
            is_reverted: flag(data, "is_reverted") == Some(true),
            attachments: list(data, "attachments"),
            citations: list(data, "citations"),
        }
    }

    /// Whether its run has ended: finished, failed or interrupted.
    pub fn is_done(&self) -> bool {
        matches!(self.status, "finished" | "failed" | "interrupted")
    }
}

impl<'a> ResponseView<'a> {
    pub(super) fn of(data: &'a Value) -> Self {
        Self {
            content: text(data, "content"),
            model: data.get("model").and_then(Value::as_str),
            tools: list(data, "tools"),
            is_streaming: flag(data, "is_streaming") == Some(true),
            is_reverted: flag(data, "is_reverted") == Some(true),
        }
    }
}

impl<'a> SteerView<'a> {
    pub(super) fn of(data: &'a Value) -> Self {
        Self { message: text(data, "message"), native: flag(data, "native"), mode: text(data, "mode") }
    }
}

fn text<'a>(data: &'a Value, name: &str) -> &'a str {
    data.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(data: &Value, name: &str) -> Option<bool> {
    data.get(name).and_then(Value::as_bool)
}

fn list<'a>(data: &'a Value, name: &str) -> &'a [Value] {
    data.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Event;

    #[test]
    fn known_kinds_have_views_and_odd_data_is_as_good_as_absent() {
        let read = |value| Event::read(value).unwrap();
        let event = read(json!({"type": "prompt", "data": {"prompt": "hi", "status": "failed", "error": "e",
            "attachments": [{"filename": "a"}], "citations": null}}));
        let prompt = event.as_prompt().unwrap();
        assert_eq!((prompt.prompt, prompt.status, prompt.error), ("hi", "failed", Some("e")));
        assert!(prompt.is_done() && prompt.attachments.len() == 1 && prompt.citations.is_empty());
        assert!(event.as_response().is_none() && event.as_steer().is_none());

        let event =
            read(json!({"type": "response", "data": {"content": 5, "is_streaming": "x", "tools": {}}}));
        let response = event.as_response().unwrap();
        assert_eq!((response.content, response.model, response.tools.len()), ("", None, 0));
        assert!(!response.is_streaming);

        let event = read(json!({"type": "steer", "data": {"message": "m", "native": false, "mode": "new"}}));
        let steer = event.as_steer().unwrap();
        assert_eq!((steer.message, steer.native, steer.mode), ("m", Some(false), "new"));
        assert!(read(json!({"type": "steer"})).as_steer().unwrap().message.is_empty());
    }
}
