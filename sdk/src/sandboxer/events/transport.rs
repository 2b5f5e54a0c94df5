//! What following events needs of the service.

use std::{future::Future, pin::Pin};

use super::{Event, EventOptions};
use crate::{error::Result, stream::ByteSource};

/// The two ways to fetch events.
pub(crate) trait Transport: Send {
    /// Asks for a page.
    fn page(&mut self, request: PageQuery) -> Fetching;
    /// Opens a connection for server-sent events, oldest first.
    fn open(&mut self, request: StreamQuery) -> Opening;
    /// Whose events they are.
    fn sandbox_id(&self) -> Option<&str>;
}

pub(crate) type Fetching = Pin<Box<dyn Future<Output = Result<EventPage>> + Send>>;
pub(crate) type Opening = Pin<Box<dyn Future<Output = Result<Opened>> + Send>>;

/// Which events are wanted, as the service takes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filters {
    /// Kinds, separated by commas.
    pub(crate) kinds: Option<String>,
    /// Ids of conversations, separated by commas.
    pub(crate) conversations: Option<String>,
}

impl Filters {
    pub(super) fn of(options: &EventOptions) -> Self {
        let list = |values: &[String]| (!values.is_empty()).then(|| values.join(","));
        Self { kinds: list(&options.kinds), conversations: list(&options.conversations) }
    }
}

/// A page that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageQuery {
    pub(crate) cursor: Option<String>,
    pub(crate) filters: Filters,
    /// The most events wanted.
    pub(crate) limit: u32,
    /// Whether the newest event comes first, not the oldest.
    pub(crate) newest_first: bool,
}

/// A connection that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamQuery {
    /// Sent as `cursor` and as `Last-Event-ID`, which therefore are equal.
    pub(crate) cursor: Option<String>,
    pub(crate) filters: Filters,
}

/// One page as the service gave it.
#[derive(Debug)]
pub(crate) struct EventPage {
    pub(crate) events: Vec<Event>,
    pub(crate) next_cursor: Option<String>,
    pub(crate) has_more: bool,
}

/// An answer to the question for server-sent events.
pub(crate) struct Opened {
    /// The media type as the header has it.
    pub(crate) content_type: Option<String>,
    pub(crate) body: ByteSource,
}

/// What kind of answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Events,
    Json,
    Other,
}

impl Opened {
    pub(super) fn media(&self) -> Media {
        let media = self.content_type.as_deref().unwrap_or_default();
        let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match &*media {
            "text/event-stream" => Media::Events,
            "application/json" => Media::Json,
            other if other.starts_with("application/") && other.ends_with("+json") => Media::Json,
            _ => Media::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::frames::scripted;

    #[test]
    fn media_types_are_told_apart() {
        let media = |text: Option<&str>| {
            Opened { content_type: text.map(str::to_owned), body: scripted(vec![]) }.media()
        };
        assert_eq!(media(Some("text/event-stream")), Media::Events);
        assert_eq!(media(Some(" Text/Event-Stream ; charset=utf-8")), Media::Events);
        assert_eq!(media(Some("application/json; charset=utf-8")), Media::Json);
        assert_eq!(media(Some("application/problem+json")), Media::Json);
        for other in [None, Some(""), Some("text/html"), Some("text/event-streams")] {
            assert_eq!(media(other), Media::Other, "{other:?}");
        }
    }
}
