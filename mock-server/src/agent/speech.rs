//! What an agent says and does in a turn, event by event.

use serde_json::{Value, json};

use super::desk::Running;
use crate::{
    app::lock,
    store::{StoreError, Writer, typed},
    text::{head, tail},
    world::{
        events::{self, Event},
        ids,
        prompts::{Prompt, Status, prompt_key},
        time::Millis,
    },
};

/// The most bytes of text in one response, and of what a tool answered.
const TEXT_LIMIT: usize = 1 << 20;
const RESULT_LIMIT: usize = 64 << 10;

/// The most uses of tools in one event.
const BATCH: usize = 20;

/// The response that is being written, and the tools used after it.
#[derive(Default)]
pub(super) struct Speech {
    id: Option<String>,
    content: String,
    tools: Vec<Value>,
}

impl Running {
    /// Adds to the response; begins another one if tools were used since.
    pub(super) fn say(&self, text: &str) {
        let mut speech = lock(&self.speech);
        if !speech.tools.is_empty() {
            *speech = Speech::default();
        }
        if text.is_empty() {
            return;
        }
        let left = TEXT_LIMIT.saturating_sub(speech.content.len());
        speech.content.push_str(head(text, left));
        let id = speech.id.get_or_insert_with(|| ids::in_order("rsp", self.app.now())).clone();
        let data = json!({"content": speech.content, "model": self.model(), "is_streaming": true});
        self.tell("response", &id, data, true);
    }

    /// Completes the response.
    pub(super) fn complete_response(&self) {
        self.finish(&mut lock(&self.speech));
    }

    fn finish(&self, speech: &mut Speech) {
        if !speech.content.is_empty()
            && let (Some(id), true) = (&speech.id, speech.tools.is_empty())
        {
            self.tell("response", id, json!({"content": speech.content, "model": self.model()}), false);
        }
        speech.content.clear();
    }

    /// Completes what is said so far, so that what comes next is another response.
    pub(super) fn end_response(&self) {
        let mut speech = lock(&self.speech);
        self.finish(&mut speech);
        *speech = Speech::default();
    }

    /// Tells of the use of a tool; what is handed back goes to [`Self::tool_answered`].
    pub(super) fn tool_used(&self, name: &str, input: &Value) -> (String, String) {
        let mut speech = lock(&self.speech);
        self.finish(&mut speech);
        if speech.tools.len() >= BATCH {
            *speech = Speech::default();
        }
        let now = self.app.now();
        let batch = format!("{}-tools", speech.id.get_or_insert_with(|| ids::in_order("rsp", now)));
        let call = ids::in_order("call", now);
        let used = json!({"id": call, "type": "tool_use", "name": name, "input": input});
        speech.tools.push(json!({"use": used, "result": null}));
        self.tell("response", &batch, self.tools_data(&speech), true);
        (batch, call)
    }

    /// Tells what a tool answered.
    pub(super) fn tool_answered(&self, (batch, call): &(String, String), is_error: bool, content: &str) {
        let mut speech = lock(&self.speech);
        let result = json!({"type": "tool_result", "tool_use_id": call, "is_error": is_error, "content": cut(content)});
        if let Some(tool) = speech.tools.iter_mut().find(|tool| tool["use"]["id"] == **call) {
            tool["result"] = result;
            let grows = speech.tools.iter().any(|tool| tool["result"].is_null());
            self.tell("response", batch, self.tools_data(&speech), grows);
            return;
        }
        // The agent has said something since.
        self.change(|tx, prompt, now| {
            let Some(mut event) = events::find(&*tx, &prompt.sandbox, batch)? else { return Ok(()) };
            let tools = event.data["tools"].as_array_mut();
            for tool in tools.into_iter().flatten().filter(|tool| tool["use"]["id"] == **call) {
                tool["result"] = result.clone();
            }
            let grows =
                event.data["tools"].as_array().is_some_and(|all| all.iter().any(|it| it["result"].is_null()));
            note(prompt, batch, grows);
            events::record(tx, event, now).map(drop)
        });
    }

    fn tools_data(&self, speech: &Speech) -> Value {
        json!({"content": "", "model": self.model(), "tools": speech.tools})
    }

    /// Tells of something else.
    pub(super) fn note_event(&self, kind: &str, data: &Value) {
        self.tell(kind, &ids::in_order("evt", self.app.now()), data.clone(), false);
    }

    fn model(&self) -> &str {
        let own =
            || crate::world::providers::provider(&self.prompt.provider).map_or("", |it| it.default_model());
        self.prompt.model.as_deref().unwrap_or_else(own)
    }

    fn tell(&self, kind: &str, id: &str, data: Value, grows: bool) {
        self.change(|tx, prompt, now| {
            note(prompt, id, grows);
            let event = Event {
                sandbox: prompt.sandbox.clone(),
                id: id.to_owned(),
                kind: kind.to_owned(),
                at: 0,
                task: prompt.id.clone(),
                conversation: prompt.conversation.clone(),
                data,
            };
            events::record(tx, event, now).map(drop)
        });
    }

    /// Changes the events of the turn, for as long as it goes on.
    fn change(&self, change: impl FnOnce(&mut dyn Writer, &mut Prompt, Millis) -> Result<(), StoreError>) {
        let now = self.app.now();
        let changed = self.app.write_later(|tx| {
            let key = prompt_key(&self.prompt.sandbox, &self.prompt.id);
            let found: Option<Prompt> = typed::get(&*tx, &key)?;
            let Some(mut prompt) = found.filter(|prompt| prompt.status == Status::Running) else {
                return Ok(());
            };
            let before = prompt.growing.clone();
            change(tx, &mut prompt, now)?;
            if prompt.growing != before {
                typed::put(tx, &prompt)?;
            }
            Ok::<_, StoreError>(())
        });
        if let Err(error) = changed {
            tracing::error!(%error, "what an agent did could not be stored");
        }
        self.app.agents.changed(&self.prompt.sandbox);
    }
}

/// Remembers that an event is not complete yet, or forgets it.
fn note(prompt: &mut Prompt, id: &str, grows: bool) {
    prompt.growing.retain(|growing| growing != id);
    if grows {
        prompt.growing.push(id.to_owned());
    }
}

/// A text that is too long loses its middle.
fn cut(text: &str) -> String {
    if text.len() <= RESULT_LIMIT {
        return text.to_owned();
    }
    let (first, last) = (head(text, RESULT_LIMIT / 2), tail(text, RESULT_LIMIT / 2));
    format!("{first}\n[{} bytes are left out]\n{last}", text.len() - first.len() - last.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_results_lose_their_middle() {
        assert_eq!(cut("short"), "short");
        let text = "é".repeat(RESULT_LIMIT);
        let short = cut(&text);
        assert!(short.starts_with('é') && short.ends_with('é') && short.len() < RESULT_LIMIT + 100);
        assert!(short.contains("65536 bytes are left out"), "{}", short.len());
    }
}
