//! Events as the service's API carries them.

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::{
    Event, EventOptions, EventPage, EventStream, Fetching, IDLE, Opened, Opening, PageQuery, StreamQuery,
    Transport,
};
use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    generated::operations::Operation,
    models::EventsStreamParams,
    sandboxer::{Api, AsyncSandbox, RequestOptions},
    transport::check_id,
};

/// What of an id stands in a path as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The events of one sandbox.
struct Service {
    api: Api,
    sandbox_id: String,
}

impl Transport for Service {
    fn sandbox_id(&self) -> Option<&str> {
        Some(&self.sandbox_id)
    }

    fn page(&mut self, request: PageQuery) -> Fetching {
        Box::pin(page(self.api.clone(), self.sandbox_id.clone(), request))
    }

    fn open(&mut self, request: StreamQuery) -> Opening {
        let (api, sandbox_id) = (self.api.clone(), self.sandbox_id.clone());
        Box::pin(async move {
            let mut params = EventsStreamParams::new();
            params.cursor = request.cursor;
            params.kind = request.filters.kinds;
            params.conversation = request.filters.conversations;
            let body = api.events_stream(&sandbox_id, params).await?;
            Ok(Opened { content_type: body.content_type().map(str::to_owned), body: Box::pin(body) })
        })
    }
}

/// A page of events, each exactly as it came.
///
/// The models would not do: they leave out what is null and fill in what is missing, so an event would differ from itself
/// as a connection brings it, and come twice.
pub(crate) async fn page(api: Api, sandbox_id: String, request: PageQuery) -> Result<EventPage> {
    let label =
        |error: Error| error.with_operation(Operation::Events).with_sandbox_id(Some(sandbox_id.clone()));
    check_id("sandboxId", &sandbox_id).map_err(label)?;
    let sort = if request.newest_first { "desc" } else { "asc" };
    let mut options = RequestOptions::new().query("limit", request.limit).query("sort", sort);
    for (name, value) in [
        ("cursor", request.cursor),
        ("type", request.filters.kinds),
        ("conversation", request.filters.conversations),
    ] {
        if let Some(value) = value {
            options = options.query(name, value);
        }
    }
    let path = format!("/sandboxes/{}/events", utf8_percent_encode(&sandbox_id, SEGMENT));
    let answer = api.request(Method::GET, &path, options).await.map_err(label)?;
    read(answer).map_err(label)
}

fn read(mut answer: Value) -> Result<EventPage> {
    let unexpected = |code: &'static str, message: &str| {
        Error::new(ErrorKind::Unexpected, code, message).with_delivery(Delivery::Answered)
    };
    let Some(Value::Array(events)) = answer.get_mut("events").map(Value::take) else {
        return Err(unexpected("unexpected_response", "a page of events lists no events"));
    };
    let events: Option<Vec<Event>> = events.into_iter().map(|event| Event::read(event).ok()).collect();
    let Some(events) = events else {
        return Err(unexpected("malformed_event", "a page of events lists something else"));
    };
    let info = answer.get("pageInfo");
    let of = |name: &str| info.and_then(|info| info.get(name));
    Ok(EventPage {
        events,
        next_cursor: of("nextCursor").and_then(Value::as_str).map(str::to_owned),
        has_more: of("hasMore").and_then(Value::as_bool).unwrap_or(false),
    })
}

impl AsyncSandbox {
    /// Follows what agents do in it, event by event.
    ///
    /// Nothing is asked before the first event is. A view's idle limit is the longest silence of a connection, 45 s
    /// unless set.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](ErrorKind::InvalidInput): the options ask for what the service cannot take.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::EventOptions;
    ///
    /// # server.set_agent(|turn| async move { turn.say("hello").await; Ok(()) });
    /// # sandbox.prompt("greet me").await?.wait().await?;
    /// let mut events = sandbox.events(EventOptions::new().kind("response").follow(false))?;
    /// while let Some(event) = events.next().await {
    ///     let event = event?;
    ///     assert_eq!(event.as_response().unwrap().content, "hello");
    /// }
    /// # Ok(()) }
    /// ```
    pub fn events(&self, options: EventOptions) -> Result<EventStream> {
        let service = Service { api: self.api().clone(), sandbox_id: self.id().to_owned() };
        let idle = self.api().options().timeouts.idle.resolve(IDLE);
        EventStream::new(service, options, idle, self.api().clock().clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_is_read_as_it_came() {
        let event = json!({"id": "r1", "type": "response", "data": {"content": "x", "model": null}});
        let page =
            read(json!({"events": [event], "pageInfo": {"nextCursor": "c", "hasMore": true}})).unwrap();
        assert_eq!(serde_json::to_value(&page.events).unwrap(), json!([event]));
        assert_eq!((page.next_cursor.as_deref(), page.has_more), (Some("c"), true));
        let bare = read(json!({"events": [], "pageInfo": {"nextCursor": 5, "hasMore": "x"}})).unwrap();
        assert_eq!((bare.next_cursor, bare.has_more), (None, false));
        for bad in [json!(null), json!({}), json!({"events": {}}), json!({"events": [{}]}), json!([])] {
            assert_eq!(read(bad).unwrap_err().kind(), ErrorKind::Unexpected);
        }
    }
}
