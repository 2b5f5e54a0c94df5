//! Which events are wanted, from where on, and how they are fetched.

use std::time::Duration;

use crate::error::{Error, Result};

/// The pause between two questions for news, unless another is set.
const INTERVAL: Duration = Duration::from_secs(1);

/// How events are fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventMode {
    /// As server-sent events where the service has them, else page by page.
    #[default]
    Auto,
    /// Page by page, asking for news at an interval.
    Poll,
    /// As server-sent events; an error where the service has none.
    Sse,
}

/// Where a stream of events begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Start {
    #[default]
    Beginning,
    Now,
    After(String),
}

/// Which events to follow, from where on, and how.
///
/// ```
/// use sandboxer::{EventMode, EventOptions};
/// use std::time::Duration;
///
/// let options = EventOptions::new()
///     .mode(EventMode::Poll)
///     .from_start(true) // or `cursor`, from where an earlier stream ended
///     .kind("response")
///     .conversation("conv_1")
///     .poll_interval(Duration::from_secs(5))
///     .follow(false); // only what there is now
/// let later = EventOptions::new().cursor("c_1");
/// assert_ne!(options, later);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct EventOptions {
    pub(super) mode: EventMode,
    pub(super) start: Start,
    pub(super) kinds: Vec<String>,
    pub(super) conversations: Vec<String>,
    pub(super) task: Option<String>,
    pub(super) interval: Duration,
    pub(super) follow: bool,
}

impl Default for EventOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl EventOptions {
    /// All events from the beginning, and those to come.
    pub fn new() -> Self {
        Self {
            mode: EventMode::default(),
            start: Start::default(),
            kinds: Vec::new(),
            conversations: Vec::new(),
            task: None,
            interval: INTERVAL,
            follow: true,
        }
    }

    /// How they are fetched: [`EventMode::Auto`] unless set.
    pub fn mode(mut self, mode: EventMode) -> Self {
        self.mode = mode;
        self
    }

    /// Whether to begin with the first event there is, which is the default; `false` begins with what happens from now on.
    /// The last event there is is looked up for it, not the whole list.
    #[allow(clippy::wrong_self_convention, reason = "the name that other clients of the service gave it")]
    pub fn from_start(mut self, from_start: bool) -> Self {
        self.start = if from_start { Start::Beginning } else { Start::Now };
        self
    }

    /// What comes after this cursor: one of [`EventStream::cursor`](super::EventStream::cursor), or of a page of events.
    /// Not empty, at most 4,096 bytes.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.start = Start::After(cursor.into());
        self
    }

    /// Only events of this kind; several calls add up. Not empty, no comma.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kinds.push(kind.into());
        self
    }

    /// Only events of this conversation, by its id; several calls add up. Not empty, no comma.
    pub fn conversation(mut self, id: impl Into<String>) -> Self {
        self.conversations.push(id.into());
        self
    }

    /// The pause between two questions for news when polling, and between two looks at a stop condition: 1 s unless set,
    /// at least 0.1 s.
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Whether to wait for events to come, which is the default; `false` ends the stream after the last one there is, and
    /// fetches them page by page whatever the mode.
    pub fn follow(mut self, follow: bool) -> Self {
        self.follow = follow;
        self
    }

    /// Only events of this task: of one prompt, by its id.
    pub(crate) fn task(mut self, id: impl Into<String>) -> Self {
        self.task = Some(id.into());
        self
    }

    /// The conversations that are asked for.
    pub(crate) fn conversations(&self) -> &[String] {
        &self.conversations
    }

    /// Refuses what the service cannot take.
    pub(crate) fn check(&self) -> Result<()> {
        if let Start::After(cursor) = &self.start
            && (cursor.is_empty() || cursor.len() > super::position::LONGEST_CURSOR)
        {
            return Err(Error::invalid_input("cursor", "must have 1 to 4096 bytes"));
        }
        for (field, values) in [("type", &self.kinds), ("conversation", &self.conversations)] {
            if values.iter().any(|value| value.trim().is_empty() || value.contains(',')) {
                return Err(Error::invalid_input(field, "must not be empty or contain a comma"));
            }
        }
        if self.interval < Duration::from_millis(100) {
            return Err(Error::invalid_input("poll_interval", "must be at least 0.1 s"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let refused = |options: EventOptions| options.check().unwrap_err().message().to_owned();
        assert!(refused(EventOptions::new().cursor("")).contains("cursor"));
        assert!(refused(EventOptions::new().cursor("x".repeat(4097))).contains("4096"));
        assert!(refused(EventOptions::new().kind("prompt").kind(" ")).contains("type"));
        assert!(refused(EventOptions::new().kind("prompt,response")).contains("comma"));
        assert!(refused(EventOptions::new().conversation("")).contains("conversation"));
        assert!(refused(EventOptions::new().poll_interval(Duration::from_millis(99))).contains("0.1 s"));
        let most = EventOptions::new().cursor("x".repeat(4096)).kind("a").conversation("b").from_start(false);
        assert!(most.from_start(true).poll_interval(Duration::from_millis(100)).check().is_ok());
    }
}
