//! What an agent answered in the end, found from the newest event backwards.

use std::{
    collections::HashSet,
    time::{Duration, UNIX_EPOCH},
};

use serde_json::{Value, json};

use super::{
    events::{Event, Filters, PageQuery, page},
    sandbox::AsyncSandbox,
};
use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    models::PromptRun,
};

const PAGE_SIZE: u32 = 50;

/// An event this much older than the prompt is none of its own, clocks of two machines allowed for.
const SLACK: Duration = Duration::from_secs(60);

/// How often, and how far apart, a last response that still grows after its run has ended is looked at.
pub(super) const LOOKS: u32 = 5;
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// What is to be found out about the events of one prompt.
pub(super) struct Question<'a> {
    sandbox: &'a AsyncSandbox,
    prompt_id: &'a str,
    conversation: Option<&'a str>,
    /// Events from before this, in milliseconds, are none of its own.
    since: Option<i64>,
    /// When it was asked, in milliseconds.
    asked: Option<i64>,
}

impl<'a> Question<'a> {
    pub(super) fn new(
        sandbox: &'a AsyncSandbox,
        prompt_id: &'a str,
        conversation: Option<&'a str>,
        run: &PromptRun,
    ) -> Self {
        let created = run.created_at.as_ref().and_then(|created| created.to_system_time());
        let created = created.and_then(|created| created.duration_since(UNIX_EPOCH).ok());
        let millis = |time: Duration| i64::try_from(time.as_millis()).ok();
        let since = created.and_then(|created| millis(created.saturating_sub(SLACK)));
        Self { sandbox, prompt_id, conversation, since, asked: created.and_then(millis) }
    }

    /// The final answer.
    pub(super) async fn text(&self) -> Result<String> {
        let mut looks = 1;
        loop {
            let mut search = Search::default();
            self.backwards("prompt,response", |event| search.is_over(event, self.prompt_id, self.asked))
                .await?;
            let Some(partial) = search.grows else { return Ok(search.found.unwrap_or_default()) };
            if looks == LOOKS {
                // What it said before is no answer.
                let details =
                    json!({ "promptId": self.prompt_id, "partial": partial, "before": search.found });
                return Err(incomplete(details).with_sandbox_id(Some(self.sandbox.id().to_owned())));
            }
            looks += 1;
            self.sandbox.api().clock().sleep(PAUSE).await;
        }
    }

    /// Why it failed, if that can be found out.
    pub(super) async fn failure(&self) -> Option<String> {
        let mut reason = None;
        let look = self.backwards("prompt", |event| {
            let own = event.id() == Some(self.prompt_id);
            if own {
                reason = event.as_prompt().and_then(|prompt| prompt.error).map(str::to_owned);
            }
            own
        });
        // How the run ended is known; an error of this look would hide it.
        look.await.ok()?;
        reason
    }

    /// Shows events to `is_over`, newest first, until it says so or they are older than the prompt.
    async fn backwards(&self, kinds: &str, mut is_over: impl FnMut(&Event) -> bool) -> Result<()> {
        let (mut cursor, mut cursors) = (None::<String>, HashSet::new());
        loop {
            let filters = Filters {
                kinds: Some(kinds.to_owned()),
                conversations: self.conversation.map(str::to_owned),
            };
            let request = PageQuery { cursor: cursor.take(), filters, limit: PAGE_SIZE, newest_first: true };
            let answer = page(self.sandbox.api().clone(), self.sandbox.id().to_owned(), request).await?;
            for event in &answer.events {
                let older = self.since.zip(event.timestamp()).is_some_and(|(since, time)| time < since);
                if older || is_over(event) {
                    return Ok(());
                }
            }
            if !answer.has_more {
                return Ok(());
            }
            let Some(next) = answer.next_cursor.filter(|next| cursors.insert(next.clone())) else {
                let message = "the service says that there are more events and gives no way to them";
                return Err(Error::new(ErrorKind::Unexpected, "repeated_cursor", message)
                    .with_delivery(Delivery::Answered)
                    .with_sandbox_id(Some(self.sandbox.id().to_owned())));
            };
            cursor = Some(next);
        }
    }
}

/// The error of a run that has ended while its last response is not complete.
pub(super) fn incomplete(details: Value) -> Error {
    let message = "the run has finished, but its last response was still incomplete two seconds later";
    Error::new(ErrorKind::StreamCut, "answer_incomplete", message)
        .with_details(details)
        .with_delivery(Delivery::Answered)
        .with_retryable(true)
}

/// What was found so far.
#[derive(Default)]
struct Search {
    /// Responses whose latest content was seen.
    seen: HashSet<String>,
    found: Option<String>,
    /// What the newest response says so far, when it is not complete yet.
    grows: Option<String>,
}

impl Search {
    /// Takes the next older event; whether no older one matters.
    fn is_over(&mut self, event: &Event, prompt_id: &str, asked: Option<i64>) -> bool {
        let Some(response) = event.as_response() else {
            // The oldest of its events, unless it was moved to where it was last changed.
            let moved = asked.zip(event.timestamp()).is_some_and(|(asked, time)| time > asked);
            return event.id() == Some(prompt_id) && !moved;
        };
        let latest = event.id().is_none_or(|id| self.seen.insert(id.to_owned()));
        let own = event.task_id() == Some(prompt_id);
        let spoken = response.tools.is_empty() && (!response.content.is_empty() || response.is_streaming);
        if !latest || !own || !spoken || response.is_reverted {
            return false;
        }
        if response.is_streaming {
            self.grows.get_or_insert_with(|| response.content.to_owned());
            return false;
        }
        self.found = Some(response.content.to_owned());
        true
    }
}
