//! Conversations with agents.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::time::Millis;
use crate::store::{
    Order, Reader, StoreError, Table,
    typed::{self, Derived, Record},
};

/// Characters of the last prompt that are shown.
const PREVIEW: usize = 80;

/// A conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Conversation {
    pub(crate) id: String,
    pub(crate) sandbox: String,
    pub(crate) created_at: Millis,
    #[serde(default)]
    pub(crate) prompted_at: Option<Millis>,
    /// The time stamp of the event that it was last prompted by; no two conversations of a sandbox have the same.
    #[serde(default)]
    pub(crate) active_at: Millis,
    #[serde(default)]
    pub(crate) prompts: u64,
    /// The agent of its last prompt.
    #[serde(default)]
    pub(crate) provider: Option<String>,
    /// The model of its last prompt.
    #[serde(default)]
    pub(crate) model: Option<String>,
    #[serde(default)]
    pub(crate) preview: Option<String>,
    /// What runs or ran in it last, by its id.
    #[serde(default)]
    pub(crate) last_turn: Option<String>,
}

impl Record for Conversation {
    const TABLE: Table = Table::Conversations;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        conversation_key(&self.sandbox, &self.id)
    }

    fn derive(&self, derived: &mut Derived) {
        derived.row(
            format!("{}{:016}/{}", by_activity(&self.sandbox), self.active_at.max(0), self.id),
            self.key(),
        );
    }
}

/// The key of a conversation.
pub(crate) fn conversation_key(sandbox: &str, id: &str) -> String {
    format!("{sandbox}/{id}")
}

/// Rows of the index that lead to the conversations of a sandbox, the one prompted last at the end.
fn by_activity(sandbox: &str) -> String {
    format!("conversations/{sandbox}/")
}

impl Conversation {
    /// One that nothing was said in yet.
    pub(crate) fn new(sandbox: &str, id: &str, now: Millis) -> Self {
        Self {
            id: id.to_owned(),
            sandbox: sandbox.to_owned(),
            created_at: now,
            prompted_at: None,
            active_at: 0,
            prompts: 0,
            provider: None,
            model: None,
            preview: None,
            last_turn: None,
        }
    }

    /// Notes a prompt.
    pub(crate) fn prompted(&mut self, text: &str, now: Millis) {
        self.prompted_at = Some(now);
        self.prompts += 1;
        self.preview = Some(text.chars().take(PREVIEW).collect());
    }
}

/// The conversations of a sandbox, the one prompted last first; at most so many.
pub(crate) fn latest(tx: &dyn Reader, sandbox: &str, most: usize) -> Result<Vec<Conversation>, StoreError> {
    let prefix = by_activity(sandbox);
    let mut keys = Vec::new();
    typed::rows(tx, &prefix, typed::after_prefix(&prefix).as_deref(), Order::Descending, |_, key| {
        keys.push(key.to_owned());
        if keys.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    typed::get_all(tx, &keys)
}

/// The conversation that was prompted last.
pub(crate) fn current(tx: &dyn Reader, sandbox: &str) -> Result<Option<Conversation>, StoreError> {
    Ok(latest(tx, sandbox, 1)?.pop())
}
