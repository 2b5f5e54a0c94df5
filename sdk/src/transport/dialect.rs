//! What of a request depends on the operation and on the service that is spoken to: its path, where the organisation goes, and
//! from where a stream of events goes on.

use super::{Context, headers};
use crate::{error::Result, generated::operations::Media};
use http::{HeaderName, HeaderValue};
use reqwest::Request;
use url::Url;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Makes a request that is filled in what the service takes.
pub(super) fn adapt(context: &Context, request: &mut Request) -> Result<()> {
    let Some(operation) = context.plan.operation else { return Ok(()) };
    if operation.info().media == Media::Sse {
        resume(request);
    }
    let dialect = context.shared.dialect();
    let (ours, own) = (operation.info().path, dialect.path(operation));
    if ours != own {
        replace(request.url_mut(), ours, own);
    }
    if dialect.info().org_in_query.contains(&operation)
        && let Some(org) = &context.plan.options.org
    {
        request.url_mut().query_pairs_mut().append_pair("org", org);
        request.headers_mut().remove(headers::org_of(dialect));
    }
    Ok(())
}

/// A stream that is opened at a cursor says so in the header that servers of events look at, too.
fn resume(request: &mut Request) {
    let cursor = request.url().query_pairs().find(|(name, _)| name == "cursor").map(|(_, value)| value);
    // What a header cannot carry is left to the query.
    let cursor = cursor.filter(|text| text.trim() == text && text.bytes().all(|b| (0x20..0x7F).contains(&b)));
    if let Some(value) = cursor.and_then(|cursor| HeaderValue::from_str(&cursor).ok()) {
        request.headers_mut().insert(LAST_EVENT_ID, value);
    }
}

/// Puts the segments that another path has in the place of ours; what stands for parameters stays as it is.
fn replace(url: &mut Url, ours: &str, own: &str) {
    let count = ours.split('/').count() - 1;
    let path = url.path().to_owned();
    let mut pieces: Vec<&str> = path.split('/').collect();
    let Some(start) = pieces.len().checked_sub(count) else { return };
    for (index, (ours, own)) in ours.split('/').zip(own.split('/')).skip(1).enumerate() {
        if ours != own {
            pieces[start + index] = own;
        }
    }
    url.set_path(&pieces.join("/"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_replaced() {
        let mut url = Url::parse("https://a.example/named/named/n%2Fm/shares/s?x=/named").unwrap();
        replace(&mut url, "/named/{name}/shares/{id}", "/saved/{name}/shares/{id}");
        assert_eq!(url.as_str(), "https://a.example/named/saved/n%2Fm/shares/s?x=/named");
    }
}
