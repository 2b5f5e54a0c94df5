//! The events of a sandbox, a page at a time or as they come.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::{Call, paging::read_cursor, prompts::check_wallet};
use crate::{
    app::App,
    auth::Caller,
    reply::{Answer, ApiError, Outcome},
    store::Order,
    world::{
        events::{self, Event, Filter, Page},
        prompts,
        sandboxes::Sandbox,
        time::Millis,
    },
};

/// How many events a page has unless the call says otherwise, and how many a stream reads at a time.
const PAGE: u64 = 100;
const READ: usize = 100;

/// A sign of life comes after this long without an event.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Milliseconds after which a client that was cut off should come again.
const RETRY: u32 = 1000;

pub(super) fn events(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    app.read(|tx| check_wallet(tx, &call.caller, &sandbox))?;
    let filter = Filter { kinds: list(call, "type"), conversations: list(call, "conversation") };
    match wants_stream(&call.headers) {
        true => Ok(stream(app.clone(), call.caller.clone(), sandbox.id, filter, start(call))),
        false => page(app, call, &sandbox, &filter),
    }
}

fn page(app: &App, call: &Call, sandbox: &Sandbox, filter: &Filter) -> Outcome {
    let limit = call.number("limit").unwrap_or(PAGE);
    let order = if call.query("sort") == Some("asc") { Order::Ascending } else { Order::Descending };
    let after = call.query("cursor").and_then(read_cursor);
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let Page { events, has_more } =
        app.read(|tx| events::page(tx, &sandbox.id, filter, after.as_ref(), order, most))?;
    let next = events.last().filter(|_| has_more).map(Event::cursor);
    let body = json!({
        "id": sandbox.id,
        "events": events.iter().map(Event::view).collect::<Vec<Value>>(),
        "pageInfo": {"nextCursor": next, "hasMore": has_more, "limit": limit},
    });
    Ok(Answer::ok("events.list", body))
}

/// The values of a list in the query; `None` if nothing is said.
fn list(call: &Call, name: &str) -> Option<Vec<String>> {
    let values = call.query(name)?.split(',').map(str::trim).filter(|value| !value.is_empty());
    Some(values.map(str::to_owned).collect())
}

/// Whether a stream is wanted rather than a page.
fn wants_stream(headers: &HeaderMap) -> bool {
    let wanted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = wanted.flat_map(|value| value.split(','));
    kinds.any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/event-stream")
    })
}

/// Where a stream begins: what the client has seen last wins over what it asked for once.
fn start(call: &Call) -> Option<(Millis, String)> {
    let seen = call.header("last-event-id").filter(|id| !id.is_empty());
    seen.or(call.query("cursor")).and_then(read_cursor)
}

fn stream(
    app: Arc<App>,
    caller: Caller,
    id: String,
    filter: Filter,
    start: Option<(Millis, String)>,
) -> Answer {
    // Watched before the first look, so that nothing falls between them.
    let mut changed = app.agents.watch(&id);
    let body = Body::from_stream(async_stream::stream! {
        yield frame(format!("retry: {RETRY}\n\n"));
        let mut after = start;
        let mut silence = app.clock.sleep(HEARTBEAT);
        let mut was_silent = false;
        loop {
            changed.borrow_and_update();
            // The next part is read when this one was taken: a slow reader holds no more than that.
            let read = app.read(|tx| {
                // Whoever may not come in any more hears no more, either.
                caller.again(tx, app.now())?.using(tx, &id)?;
                let page = events::page(tx, &id, &filter, after.as_ref(), Order::Ascending, READ)?;
                Ok::<_, ApiError>((page, prompts::is_any_open(tx, &id)?))
            });
            let (page, is_at_work) = match read {
                Ok(read) => read,
                Err(error) => {
                    let data = json!({"code": error.code(), "message": error.message()});
                    yield frame(format!("event: error\ndata: {data}\n\n"));
                    return;
                }
            };
            let is_empty = page.events.is_empty();
            for event in page.events {
                yield frame(format!("id: {}\ndata: {}\n\n", event.cursor(), event.view()));
                after = Some((event.at, event.id));
            }
            if !is_empty {
                silence = app.clock.sleep(HEARTBEAT);
            }
            if page.has_more {
                continue;
            }
            if std::mem::take(&mut was_silent) && is_empty {
                yield frame(": heartbeat\n\n".to_owned());
                // Nothing comes until somebody prompts: whoever reads to the end has it now, and whoever follows comes again.
                if !is_at_work {
                    return;
                }
            }
            tokio::select! {
                biased;
                () = app.closing.cancelled() => return,
                // Nobody changes it any more when the sandbox is gone; the next look finds that.
                _ = changed.changed() => {}
                () = &mut silence => {
                    was_silent = true;
                    silence = app.clock.sleep(HEARTBEAT);
                }
            }
        }
    });
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Answer::Raw(StatusCode::OK, headers, body)
}

fn frame(text: String) -> Result<Bytes, Infallible> {
    Ok(text.into())
}
