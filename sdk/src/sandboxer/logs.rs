//! The kept output of a command, page by page, byte for byte.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use futures_core::Stream;

use super::process::{AsyncCommand, wire_offset};
use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    models::{CommandLogsParams, CommandLogsResponse, ContentEncoding, OutputStreamName},
    stream::{Chunk, Gap, OutputStream},
};

/// The kept output of one stream of a command; comes from [`AsyncCommand::logs`].
///
/// Pages of up to 1 MiB are asked for as they are needed. It ends where the kept output ends now, whether the command
/// still runs or not; output that was not kept comes as a [`Chunk::Gap`].
#[must_use = "logs are read when they are asked for"]
pub struct LogStream {
    pages: Pin<Box<dyn Stream<Item = Result<Chunk>> + Send>>,
    stream: OutputStream,
}

impl LogStream {
    pub(crate) fn new(command: AsyncCommand, stream: OutputStream, offset: u64) -> Self {
        let pages = async_stream::try_stream! {
            let command_id = command.find_command_id().await?;
            let (api, sandbox_id) = (command.sandbox().api(), command.sandbox().id());
            let mut wanted = offset;
            loop {
                let request = CommandLogsParams::new()
                    .stream(match stream {
                        OutputStream::Stdout => OutputStreamName::Stdout,
                        OutputStream::Stderr => OutputStreamName::Stderr,
                    })
                    .offset(wire_offset(wanted))
                    .encoding(ContentEncoding::Base64);
                let page = api.command_logs(sandbox_id, &command_id, request).await?;
                let done = page.done;
                let (start, bytes) = bytes_of(page, wanted)
                    .map_err(|error| error.with_sandbox_id(Some(sandbox_id.to_owned())).with_command_id(Some(command_id.clone())))?;
                if start > wanted {
                    yield Chunk::Gap(Gap { stream, from: wanted, to: start });
                    wanted = start;
                }
                let repeated = usize::try_from(wanted - start).unwrap_or(usize::MAX).min(bytes.len());
                let fresh = bytes.slice(repeated..);
                let came = fresh.len() as u64;
                if came > 0 {
                    wanted += came;
                    yield Chunk::of(stream, fresh);
                }
                if done || came == 0 {
                    break;
                }
            }
        };
        Self { pages: Box::pin(pages), stream }
    }

    /// The next piece; `None` where the kept output ends.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) when the service has no record of the command (yet),
    /// [`Conflict`](ErrorKind::Conflict) with the code `monitoring_off`, and the failures of any call. After an error it
    /// is over.
    pub async fn next(&mut self) -> Option<Result<Chunk>> {
        crate::stream::next(self).await
    }

    /// All of it at once, if it is no longer than `limit` bytes. Gaps are passed over.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) when there is more, and those of [`next`](Self::next).
    pub async fn collect(mut self, limit: usize) -> Result<Bytes> {
        let mut all = BytesMut::new();
        while let Some(chunk) = self.next().await {
            let chunk = chunk?;
            if all.len() + chunk.bytes().len() > limit {
                let message = format!("the command's {} is longer than {limit} bytes", self.stream);
                return Err(Error::new(ErrorKind::TooLarge, "output_too_large", message)
                    .with_delivery(Delivery::Answered));
            }
            all.extend_from_slice(chunk.bytes());
        }
        Ok(all.freeze())
    }
}

/// Where a page begins, and its bytes.
fn bytes_of(page: CommandLogsResponse, wanted: u64) -> Result<(u64, Bytes)> {
    let bytes: Bytes = match page.encoding {
        ContentEncoding::Base64 => match STANDARD.decode(page.data.as_bytes()) {
            Ok(bytes) => bytes.into(),
            Err(error) => {
                let message = "a page of logs is not the base64 it says it is";
                return Err(Error::new(ErrorKind::Unexpected, "unexpected_response", message)
                    .with_delivery(Delivery::Answered)
                    .with_source(error));
            }
        },
        _ => page.data.into(),
    };
    Ok((u64::try_from(page.offset).unwrap_or(wanted), bytes))
}

impl Stream for LogStream {
    type Item = Result<Chunk>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.pages.as_mut().poll_next(context)
    }
}

impl fmt::Debug for LogStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LogStream").field("stream", &self.stream).finish_non_exhaustive()
    }
}
