//! What agents were asked to do, and how far they are with it.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::time::{Millis, iso};
use crate::store::{
    Order, Reader, StoreError, Table,
    typed::{self, Derived, Record},
};

/// How far a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// The sandbox is not up yet.
    Sending,
    /// Others come first.
    Queued,
    Running,
    Finished,
    Failed,
    Interrupted,
}

impl Status {
    /// The status as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Status::Sending => "sending",
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Finished => "finished",
            Status::Failed => "failed",
            Status::Interrupted => "interrupted",
        }
    }

    /// Whether it has ended.
    pub(crate) fn is_done(self) -> bool {
        matches!(self, Status::Finished | Status::Failed | Status::Interrupted)
    }
}

/// A prompt, or a steering message that came too late and is carried out as a turn of its own. The text is in the event
/// of the same id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Prompt {
    /// It sorts by the time.
    pub(crate) id: String,
    pub(crate) sandbox: String,
    pub(crate) conversation: String,
    pub(crate) created_at: Millis,
    pub(crate) status: Status,
    pub(crate) provider: String,
    #[serde(default)]
    pub(crate) model: Option<String>,
    #[serde(default)]
    pub(crate) effort: Option<String>,
    #[serde(default)]
    pub(crate) fast: Option<bool>,
    #[serde(default)]
    pub(crate) ended_at: Option<Millis>,
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// Whether it is a steering message: no run that can be asked for.
    #[serde(default)]
    pub(crate) is_steer: bool,
    /// Events of it that are not complete yet.
    #[serde(default)]
    pub(crate) growing: Vec<String>,
}

impl Record for Prompt {
    const TABLE: Table = Table::Prompts;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        prompt_key(&self.sandbox, &self.id)
    }

    fn derive(&self, derived: &mut Derived) {
        let Self { id, sandbox, conversation, .. } = self;
        if !self.status.is_done() {
            derived.row(format!("{OPEN}{sandbox}/{id}"), self.key());
        }
        match self.status {
            Status::Queued => derived.row(format!("{}{id}", waiting(sandbox)), conversation),
            Status::Running => {
                derived.row(running(sandbox, conversation), id);
                derived.add(running_sum(sandbox), 1);
            }
            _ => {}
        }
    }
}

/// The key of a prompt.
pub(crate) fn prompt_key(sandbox: &str, id: &str) -> String {
    format!("{sandbox}/{id}")
}

/// Rows of the index that lead to the prompts that have not ended.
pub(crate) const OPEN: &str = "open-prompt/";

fn waiting(sandbox: &str) -> String {
    format!("queued-prompt/{sandbox}/")
}

/// The row of the index that leads to what runs in a conversation, by its id.
pub(crate) fn running(sandbox: &str, conversation: &str) -> String {
    format!("running-prompt/{sandbox}/{conversation}")
}

fn running_sum(sandbox: &str) -> String {
    format!("running-prompts/{sandbox}")
}

/// The prompts of a sandbox that have not ended, the oldest first.
pub(crate) fn open(tx: &dyn Reader, sandbox: &str) -> Result<Vec<Prompt>, StoreError> {
    let keys = typed::rows_with_prefix(tx, &format!("{OPEN}{sandbox}/"), usize::MAX)?;
    typed::get_all(tx, &keys)
}

/// Whether a sandbox has any such prompt.
pub(crate) fn is_any_open(tx: &dyn Reader, sandbox: &str) -> Result<bool, StoreError> {
    Ok(!typed::rows_with_prefix(tx, &format!("{OPEN}{sandbox}/"), 1)?.is_empty())
}

/// How many conversations of a sandbox are at work.
pub(crate) fn running_count(tx: &dyn Reader, sandbox: &str) -> Result<u64, StoreError> {
    typed::sum(tx, &running_sum(sandbox))
}

/// What is to be begun next in a sandbox where so many conversations may be at work: the oldest prompt that waits for no
/// other one of its conversation.
pub(crate) fn next(tx: &dyn Reader, sandbox: &str, most: u64) -> Result<Option<Prompt>, StoreError> {
    if running_count(tx, sandbox)? >= most {
        return Ok(None);
    }
    let prefix = waiting(sandbox);
    let mut waiting: Vec<(String, String)> = Vec::new();
    let to = typed::after_prefix(&prefix);
    typed::rows(tx, &prefix, to.as_deref(), Order::Ascending, |row, conversation| {
        waiting.push((row[prefix.len()..].to_owned(), conversation.to_owned()));
        ControlFlow::Continue(())
    })?;
    for (id, conversation) in waiting {
        if typed::row(tx, &running(sandbox, &conversation))?.is_none() {
            return typed::get(tx, &prompt_key(sandbox, &id));
        }
    }
    Ok(None)
}

/// A run as the service shows it.
pub(crate) fn view(prompt: &Prompt) -> Value {
    json!({
        "id": prompt.id,
        "promptId": prompt.id,
        "sandboxId": prompt.sandbox,
        "status": prompt.status.as_str(),
        "done": prompt.status.is_done(),
        "createdAt": iso(prompt.created_at),
        "model": prompt.model,
        "reasoningEffort": prompt.effort,
        "fast": prompt.fast,
        "conversationId": prompt.conversation,
    })
}
