//! Uploads and downloads through addresses that let in whoever has them.

use std::{pin::pin, sync::atomic::Ordering, time::Duration};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::{
    FutureExt as _,
    future::{Either, select},
};
use http::{HeaderMap, HeaderValue, header};

use super::{
    Meter,
    resume::Part,
    source::{PIECE, Source},
};
use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    generated::operations::Operation,
    sandboxer::{Api, files::AsyncFiles},
    stream::ByteBody,
    transport::{
        Context, Plan,
        foreign::{self, Feed},
        timed_out,
    },
};

/// As long as the service lets an address live: what is begun late is still let in.
const ADDRESS_TTL: Duration = Duration::from_secs(3600);

/// What became of handing over the content.
enum Handed {
    /// All these bytes.
    All(u64),
    /// The request took no more of it.
    Refused,
}

impl AsyncFiles {
    pub(super) async fn send_to_address<S>(
        &self,
        path: &str,
        first: Bytes,
        source: Source<S>,
        length: Option<u64>,
        meter: &mut Meter,
    ) -> Result<u64>
    where
        S: Stream<Item = Result<Bytes>> + Unpin,
    {
        let operation = Operation::CreateUploadUrl;
        let address = self.upload_url(path, Some(ADDRESS_TTL)).await?;
        let unexpected = |message: &str| {
            let error = Error::new(ErrorKind::Unexpected, "unexpected_response", message);
            self.label(error.with_delivery(Delivery::Answered), operation)
        };
        if address.method != "PUT" {
            return Err(unexpected("the service wants another method than PUT for an upload"));
        }
        let context = context(self.sandbox.api(), operation, Some(self.sandbox.id()));
        let (feed, body) = foreign::feed(length);
        let taken = feed.taken();
        let sending = pin!(foreign::put(&context, address.url.expose(), body));
        let handing = pin!(hand_over(&feed, first, source, meter, &context));
        let handed = match select(sending, handing).await {
            Either::Left((answered, handing)) => {
                answered?;
                // The last piece may have been taken without this side having looked since.
                handing.now_or_never().unwrap_or(Ok(Handed::Refused))?
            }
            Either::Right((handed, sending)) => {
                let handed = handed?;
                within(&context, sending).await??;
                handed
            }
        };
        match handed {
            Handed::All(sent) if taken.load(Ordering::Acquire) == sent => Ok(sent),
            _ => Err(unexpected("the upload was accepted before it was whole")),
        }
    }
}

/// Gives the content to the connection as it takes it. Only the connection's time counts as silence, not the source's.
async fn hand_over<S>(
    feed: &Feed,
    mut first: Bytes,
    mut source: Source<S>,
    meter: &mut Meter,
    context: &Context,
) -> Result<Handed>
where
    S: Stream<Item = Result<Bytes>> + Unpin,
{
    loop {
        let piece = if first.is_empty() {
            source.piece().await?
        } else {
            Some(first.split_to(first.len().min(PIECE)))
        };
        let Some(piece) = piece else { break };
        let count = piece.len();
        if !within(context, feed.send(piece)).await? {
            return Ok(Handed::Refused);
        }
        meter.advance(count);
    }
    within(context, feed.end()).await?;
    Ok(Handed::All(meter.sent()))
}

/// What the peer does, unless it does nothing for longer than the `idle` limit.
async fn within<F: Future>(context: &Context, work: F) -> Result<F::Output> {
    let Some(idle) = context.plan.idle() else { return Ok(work.await) };
    match select(pin!(work), context.shared.clock().sleep(idle)).await {
        Either::Left((done, _)) => Ok(done),
        Either::Right(_) => Err(context.plan.label(timed_out("idle", idle).with_delivery(Delivery::Unknown))),
    }
}

fn context(api: &Api, operation: Operation, sandbox_id: Option<&str>) -> Context {
    let ids: Vec<_> = sandbox_id.map(|id| ("sandboxId", id)).into_iter().collect();
    let plan = Plan::of(operation, &ids, api.options_shared(), api.clock().elapsed());
    Context::new(api.shared().clone(), plan)
}

/// Opens what is at an address, or the part of it that is still wanted.
pub(super) async fn fetch(
    api: &Api,
    operation: Operation,
    sandbox_id: Option<&str>,
    address: &str,
    part: Option<&Part>,
) -> Result<ByteBody> {
    let context = context(api, operation, sandbox_id);
    let mut headers = HeaderMap::new();
    if let Some(part) = part {
        let value = |text: &str| {
            HeaderValue::from_str(text)
                .map_err(|error| Error::invalid_input("range", "a header value").with_source(error))
        };
        headers.insert(header::RANGE, value(&part.range())?);
        if let Some(validator) = &part.validator {
            headers.insert(header::IF_RANGE, value(validator)?);
        }
    }
    foreign::get(&context, address, headers).await
}
