//! The kept output of a command, page by page, byte for byte.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use futures_util::stream::try_unfold;
use serde_json::json;

use super::process::{AsyncCommand, wire_offset};
use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    generated::operations::Operation,
    models::{CommandLogsParams, CommandLogsResponse, ContentEncoding, OutputStreamName},
    stream::{Chunk, Gap, OutputStream},
};

/// The kept output of one stream of a command; comes from [`AsyncCommand::logs`].
///
/// Pages of up to 1 MiB are asked for as they are needed. It ends where the kept output ends now, whether the command
/// still runs or not; output that was not kept comes as a [`Chunk::Gap`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// use sandboxer::stream::OutputStream;
///
/// let command = sandbox.start("echo one; echo two").await?;
/// command.wait().await?;
/// let mut log = command.logs(OutputStream::Stdout);
/// while let Some(chunk) = log.next().await {
///     print!("{}", chunk?.text());
/// }
/// assert_eq!(&command.logs(OutputStream::Stdout).collect(1 << 20).await?[..], b"one\ntwo\n");
/// # Ok(()) }
/// ```
#[must_use = "logs are read when they are asked for"]
pub struct LogStream {
    pages: Pin<Box<dyn Stream<Item = Result<Chunk>> + Send>>,
    command: AsyncCommand,
    stream: OutputStream,
}

impl LogStream {
    pub(crate) fn new(command: AsyncCommand, stream: OutputStream, offset: u64) -> Self {
        let reading =
            Reading { command: command.clone(), stream, wanted: offset, ready: VecDeque::new(), over: false };
        let pages = try_unfold(reading, |mut reading| async {
            loop {
                if let Some(chunk) = reading.ready.pop_front() {
                    return Ok(Some((chunk, reading)));
                }
                if reading.over {
                    return Ok(None);
                }
                reading.read_page().await?;
            }
        });
        Self { pages: Box::pin(pages), command, stream }
    }

    /// The next piece; `None` where the kept output ends.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) when the service has no record of the command (yet),
    /// [`Conflict`](ErrorKind::Conflict) with the code `monitoring_off`, [`Unexpected`](ErrorKind::Unexpected) for pages
    /// that are not exact or lead nowhere, and the failures of any call. After an error it is over.
    pub async fn next(&mut self) -> Option<Result<Chunk>> {
        crate::stream::next(self).await
    }

    /// All of it at once, if it is no longer than `limit` bytes and nothing of it is missing.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) when there is more, [`Unexpected`](ErrorKind::Unexpected) with the code
    /// `output_missing` where the service no longer has a part, with its byte offsets `from` and `to` in the details
    /// ([`next`](Self::next) has what is there), and those of `next`.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes> {
        let mut all = BytesMut::new();
        while let Some(chunk) = self.next().await {
            let chunk = chunk?;
            if let Chunk::Gap(Gap { from, to, .. }) = chunk {
                let message = format!("bytes {from} to {to} of the command's {} were not kept", self.stream);
                let details = json!({ "stream": self.stream.to_string(), "from": from, "to": to });
                let error = Error::new(ErrorKind::Unexpected, "output_missing", message);
                return Err(self.label(error.with_details(details)));
            }
            if all.len() + chunk.bytes().len() > limit {
                let message = format!("the command's {} is longer than {limit} bytes", self.stream);
                return Err(self.label(Error::new(ErrorKind::TooLarge, "output_too_large", message)));
            }
            all.extend_from_slice(chunk.bytes());
        }
        Ok(all.freeze())
    }

    fn label(&self, error: Error) -> Error {
        error
            .with_delivery(Delivery::Answered)
            .with_operation(Operation::CommandLogs)
            .with_sandbox_id(Some(self.command.sandbox().id().to_owned()))
            .with_command_id(self.command.command_id().map(str::to_owned))
    }
}

/// How far the output of one command was read.
struct Reading {
    command: AsyncCommand,
    stream: OutputStream,
    /// The next byte that was not given out.
    wanted: u64,
    ready: VecDeque<Chunk>,
    over: bool,
}

impl Reading {
    async fn read_page(&mut self) -> Result<()> {
        let command_id = self.command.find_command_id().await?;
        let (api, sandbox_id) = (self.command.sandbox().api(), self.command.sandbox().id());
        let request = CommandLogsParams::new()
            .stream(match self.stream {
                OutputStream::Stdout => OutputStreamName::Stdout,
                OutputStream::Stderr => OutputStreamName::Stderr,
            })
            .offset(wire_offset(self.wanted))
            .encoding(ContentEncoding::Base64);
        let page = api.command_logs(sandbox_id, &command_id, request).await?;
        let label = |error: Error| {
            error.with_sandbox_id(Some(sandbox_id.to_owned())).with_command_id(Some(command_id.clone()))
        };
        let done = page.done;
        let (start, bytes) = bytes_of(page, self.wanted).map_err(label)?;
        if start > self.wanted {
            self.ready.push_back(Chunk::Gap(Gap { stream: self.stream, from: self.wanted, to: start }));
            self.wanted = start;
        }
        let repeated = usize::try_from(self.wanted - start).unwrap_or(usize::MAX).min(bytes.len());
        let fresh = bytes.slice(repeated..);
        if !done && repeated > 0 && fresh.is_empty() {
            // There is more, and the service gives out what lies before it: going on would never end.
            return Err(label(unexpected("a page of logs lies before the offset it was asked for")));
        }
        self.over = done || fresh.is_empty();
        if !fresh.is_empty() {
            self.wanted = self.wanted.saturating_add(fresh.len() as u64);
            self.ready.push_back(Chunk::of(self.stream, fresh));
        }
        Ok(())
    }
}

/// Where a page begins, and its bytes.
fn bytes_of(page: CommandLogsResponse, wanted: u64) -> Result<(u64, Bytes)> {
    let bytes: Bytes = match page.encoding {
        ContentEncoding::Base64 => match STANDARD.decode(page.data.as_bytes()) {
            Ok(bytes) => bytes.into(),
            Err(error) => {
                return Err(unexpected("a page of logs is not the base64 it says it is").with_source(error));
            }
        },
        // Text may have other bytes than the command wrote.
        _ => return Err(unexpected("a page of logs did not come as base64")),
    };
    Ok((u64::try_from(page.offset).unwrap_or(wanted), bytes))
}

fn unexpected(message: &str) -> Error {
    Error::new(ErrorKind::Unexpected, "unexpected_response", message)
        .with_delivery(Delivery::Answered)
        .with_operation(Operation::CommandLogs)
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
