//! A download: counted, capped, and going on after a cut.

use std::{
    fmt,
    future::Future,
    path::Path,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::{
    Meter, Transfer,
    local::Partial,
    resume::{Held, Part, Wanted, held, mismatch},
    too_large,
};
use crate::{
    clock::SharedClock,
    error::{Delivery, Error, ErrorKind, Result},
    generated::operations::Operation,
    retry::backoff::Backoff,
    sandboxer::Api,
    stream::ByteBody,
};

type Opening = Pin<Box<dyn Future<Output = Result<ByteBody>> + Send>>;

/// Opens the content, or the part of it that is still wanted.
pub(super) type Open = Box<dyn Fn(Option<Part>) -> Opening + Send>;

/// What is known of the content before it comes.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// It never changes, so that any part of it fits to any other.
    pub(super) immutable: bool,
    pub(super) size: Option<u64>,
    /// In hex.
    pub(super) sha256: Option<String>,
    pub(super) sandbox_id: Option<String>,
}

/// The content of a file on its way here, as it comes; from [`AsyncFiles::download_with`](crate::AsyncFiles::download_with)
/// and its like.
///
/// It is a [`Stream`] of pieces; nothing is read before it is asked for. Where the connection breaks or falls silent, it
/// goes on where it was, if the service proves that the rest belongs to the same content: by a strong entity tag, or
/// because a snapshot never changes. A content that ends early is an error, never an end. Nothing follows an error.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// use sandboxer::Transfer;
///
/// sandbox.files().write("data", "0123456789").await?;
/// let mut download = sandbox.files().download_with("data", Transfer::new()).await?;
/// assert_eq!((download.total(), download.is_archive()), (Some(10), false));
/// while let Some(piece) = download.next().await {
///     print!("{}", String::from_utf8_lossy(&piece?));
/// }
/// assert_eq!(download.received(), 10);
/// # Ok(()) }
/// ```
#[must_use = "a download is read when it is asked for pieces"]
pub struct Download {
    state: State,
    open: Open,
    clock: SharedClock,
    operation: Operation,
    known: Known,
    first: Held,
    /// The last byte that the caller wants, where that is not the file's.
    last: Option<u64>,
    cap: Option<u64>,
    meter: Meter,
    digest: Option<Sha256>,
    resumes: u32,
    backoff: Backoff,
}

enum State {
    /// Reading, after so many bytes that came before already.
    Reading(Box<ByteBody>, u64),
    Opening(Opening),
    Ended,
}

impl Download {
    pub(super) async fn begin(
        api: &Api,
        operation: Operation,
        wanted: Wanted,
        mut transfer: Transfer,
        known: Known,
        open: Open,
    ) -> Result<Self> {
        let label = |error: Error| error.with_operation(operation).with_sandbox_id(known.sandbox_id.clone());
        let body = open(None).await?;
        let first = held(&body).map_err(label)?;
        wanted.check(&first, body.status()).map_err(label)?;
        if known.size.is_some_and(|size| first.length.is_some_and(|length| length != size)) {
            return Err(label(damaged("the content is not as long as the service said")));
        }
        let total = first.length.or(known.size);
        if let (Some(cap), Some(total)) = (transfer.cap, total)
            && total > cap
        {
            return Err(label(too_large(cap, Delivery::Answered)));
        }
        Ok(Self {
            state: State::Reading(Box::new(body), 0),
            open,
            clock: api.clock().clone(),
            operation,
            digest: known.sha256.is_some().then(Sha256::new),
            known,
            last: match wanted {
                Wanted::Between(_, Some(_)) | Wanted::Last(_) => {
                    first.length.and_then(|length| (first.start + length).checked_sub(1))
                }
                _ => None,
            },
            first,
            cap: transfer.cap,
            resumes: transfer.resumes_or_default(api.options().retries),
            meter: transfer.meter(total),
            backoff: Backoff::new(),
        })
    }

    /// The next piece, never empty; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) over the cap; [`StreamCut`](ErrorKind::StreamCut) or
    /// [`Timeout`](ErrorKind::Timeout) when the connection broke or fell silent and going on was not possible;
    /// [`Unexpected`](ErrorKind::Unexpected) with the code `range_mismatch` when what came to go on with is other
    /// content, and with `content_damaged` when the whole is not what the service said it would be.
    pub async fn next(&mut self) -> Option<Result<Bytes>> {
        crate::stream::next(self).await
    }

    /// The rest of the content, if it is no longer than `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) when there is more, and those of [`next`](Self::next).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # use sandboxer::Transfer;
    /// sandbox.files().write("data", "0123456789").await?;
    /// let download = sandbox.files().download_with("data", Transfer::new()).await?;
    /// assert_eq!(&download.read_all(1024).await?[..], b"0123456789");
    /// # Ok(()) }
    /// ```
    pub async fn read_all(mut self, limit: usize) -> Result<Bytes> {
        let mut all = BytesMut::new();
        while let Some(piece) = self.next().await {
            let piece = piece?;
            if all.len() + piece.len() > limit {
                return Err(self.label(too_large(limit as u64, Delivery::Answered)));
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    /// Writes the rest of the content into a writer, flushes it, and says how many bytes there were.
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next); [`Unexpected`](ErrorKind::Unexpected) with the code `write_failed` when the writer
    /// fails, with its error as the source. The writer may then hold a part.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # use sandboxer::Transfer;
    /// sandbox.files().write("data", "0123456789").await?;
    /// let mut copy = Vec::new();
    /// let download = sandbox.files().download_with("data", Transfer::new()).await?;
    /// assert_eq!(download.copy_to(&mut copy).await?, 10);
    /// assert_eq!(copy, b"0123456789");
    /// # Ok(()) }
    /// ```
    pub async fn copy_to<W>(mut self, mut writer: W) -> Result<u64>
    where
        W: AsyncWrite + Unpin,
    {
        let before = self.received();
        while let Some(piece) = self.next().await {
            writer.write_all(&piece?).await.map_err(|error| self.write_failed(error))?;
        }
        writer.flush().await.map_err(|error| self.write_failed(error))?;
        Ok(self.received() - before)
    }

    /// Saves the rest of the content as a file of this machine, and says how many bytes there were.
    ///
    /// It is written beside `local` under another name and put into place when it is whole; until then, and after an
    /// error or a drop, what is at `local` is unchanged and nothing else is left. An existing file's permissions are kept, a
    /// link is followed.
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next), and `write_failed` as for [`copy_to`](Self::copy_to), also where `local` is
    /// anything but a plain file, as a device or a folder is.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # let local = std::env::temp_dir().join(format!("save-example-{}", std::process::id()));
    /// # use sandboxer::Transfer;
    /// sandbox.files().write("data", "0123456789").await?;
    /// let download = sandbox.files().download_with("data", Transfer::new()).await?;
    /// assert_eq!(download.save(&local).await?, 10);
    /// assert_eq!(std::fs::read(&local).unwrap(), b"0123456789");
    /// # std::fs::remove_file(local).unwrap();
    /// # Ok(()) }
    /// ```
    pub async fn save<P>(mut self, local: P) -> Result<u64>
    where
        P: AsRef<Path>,
    {
        let before = self.received();
        let created = Partial::create(local.as_ref()).await;
        let mut file = created.map_err(|error| self.write_failed(error))?;
        while let Some(piece) = self.next().await {
            file.write(&piece?).await.map_err(|error| self.write_failed(error))?;
        }
        file.finish().await.map_err(|error| self.write_failed(error))?;
        Ok(self.received() - before)
    }

    /// How many bytes have come so far.
    pub fn received(&self) -> u64 {
        self.meter.bytes
    }

    /// How many there will be, if the service said so; of a part, the part's.
    pub fn total(&self) -> Option<u64> {
        self.meter.total
    }

    /// Whether it is a folder, which comes as a tar archive.
    pub fn is_archive(&self) -> bool {
        !self.first.divisible
    }

    fn label(&self, error: Error) -> Error {
        error.with_operation(self.operation).with_sandbox_id(self.known.sandbox_id.clone())
    }

    fn write_failed(&self, cause: std::io::Error) -> Error {
        let error = Error::new(ErrorKind::Unexpected, "write_failed", "the writer failed");
        self.label(error.with_delivery(Delivery::Answered).with_source(cause))
    }

    /// How to go on after this failure, if that can be right.
    fn resume(&mut self, failure: &Error) -> Option<State> {
        let broken =
            matches!(failure.kind(), ErrorKind::StreamCut | ErrorKind::Timeout | ErrorKind::Connection);
        let fits = self.known.immutable || self.first.validator.is_some();
        if !broken || !fits || !self.first.divisible || self.resumes == 0 {
            return None;
        }
        self.resumes -= 1;
        let start = self.first.start.checked_add(self.meter.bytes)?;
        let part = Part { start, last: self.last, validator: self.first.validator.clone() };
        tracing::debug!(operation = self.operation.id(), offset = start, "the download broke; going on");
        let (pause, opening) =
            (self.clock.sleep(self.backoff.next(Default::default())), (self.open)(Some(part)));
        Some(State::Opening(Box::pin(async move {
            pause.await;
            opening.await
        })))
    }

    /// What came to go on with: from where on it is new.
    fn go_on(&self, body: ByteBody) -> Result<State> {
        let now = held(&body)?;
        let offset = self.first.start + self.meter.bytes;
        if now.validator != self.first.validator && now.validator.is_some() {
            return Err(mismatch("the file was changed while it was downloaded"));
        }
        if now.whole.is_some() && self.first.whole.is_some() && now.whole != self.first.whole {
            return Err(mismatch("the file has another length than before"));
        }
        let skip = if body.status() == http::StatusCode::PARTIAL_CONTENT {
            if now.start != offset {
                return Err(mismatch("the rest of the file begins elsewhere"));
            }
            0
        } else if self.last.is_none() && (self.known.immutable || now.validator.is_some()) {
            // All of the same content came again.
            offset
        } else {
            return Err(mismatch("the file may have been changed while it was downloaded"));
        };
        let left = self.meter.total.map(|total| total - self.meter.bytes + skip);
        if now.length.is_some() && left.is_some() && now.length != left {
            return Err(mismatch("the rest of the file has another length than what is missing"));
        }
        Ok(State::Reading(Box::new(body), skip))
    }

    /// Takes note of a piece, or refuses it.
    fn take(&mut self, piece: &Bytes) -> Result<()> {
        let after = self.meter.bytes + piece.len() as u64;
        if let Some(cap) = self.cap.filter(|cap| after > *cap) {
            return Err(too_large(cap, Delivery::Answered));
        }
        if self.meter.total.is_some_and(|total| after > total) {
            return Err(damaged("more came than the service said"));
        }
        if let Some(digest) = &mut self.digest {
            digest.update(piece);
        }
        self.meter.advance(piece.len());
        Ok(())
    }

    /// Whether what came is all and right.
    fn finish(&mut self) -> Result<()> {
        let found: Option<String> = self
            .digest
            .take()
            .map(|digest| digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        match (found, &self.known.sha256) {
            (Some(found), Some(sum)) if !found.eq_ignore_ascii_case(sum) => {
                Err(damaged("the content has another SHA-256 than the service said"))
            }
            _ => Ok(()),
        }
    }

    fn early(&self) -> Option<Error> {
        let (bytes, total) = (self.meter.bytes, self.meter.total?);
        let message = format!("the stream ended after {bytes} of {total} bytes");
        let error = Error::new(ErrorKind::StreamCut, "stream_cut", message).with_delivery(Delivery::Unknown);
        (bytes < total).then(|| self.label(error))
    }
}

fn damaged(message: &str) -> Error {
    Error::new(ErrorKind::Unexpected, "content_damaged", message).with_delivery(Delivery::Answered)
}

impl Stream for Download {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let this = &mut *self;
        loop {
            let is_all_here = this.meter.total == Some(this.meter.bytes);
            let failure = match &mut this.state {
                State::Ended => return Poll::Ready(None),
                State::Opening(opening) => match ready!(opening.as_mut().poll(context)) {
                    Ok(body) => match this.go_on(body) {
                        Ok(state) => {
                            this.state = state;
                            continue;
                        }
                        Err(error) => this.label(error),
                    },
                    Err(error) => error,
                },
                State::Reading(body, skip) => match ready!(Pin::new(&mut **body).poll_next(context)) {
                    Some(Ok(mut piece)) => {
                        let known = usize::try_from(*skip).unwrap_or(usize::MAX).min(piece.len());
                        *skip -= known as u64;
                        drop(piece.split_to(known));
                        if piece.is_empty() {
                            continue;
                        }
                        match this.take(&piece) {
                            Ok(()) => return Poll::Ready(Some(Ok(piece))),
                            Err(error) => this.label(error),
                        }
                    }
                    Some(Err(error)) if *skip > 0 || !is_all_here => error,
                    None if *skip > 0 => {
                        this.label(mismatch("the file is shorter than what came of it before"))
                    }
                    // A connection that breaks after the last byte takes nothing away.
                    Some(Err(_)) | None => match this.early() {
                        Some(early) => early,
                        None => {
                            this.state = State::Ended;
                            let finished = this.finish();
                            return Poll::Ready(finished.err().map(|error| Err(this.label(error))));
                        }
                    },
                },
            };
            match this.resume(&failure) {
                Some(state) => this.state = state,
                None => {
                    this.state = State::Ended;
                    return Poll::Ready(Some(Err(failure)));
                }
            }
        }
    }
}

impl fmt::Debug for Download {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Download")
            .field("operation", &self.operation)
            .field("received", &self.meter.bytes)
            .field("total", &self.meter.total)
            .field("ended", &matches!(self.state, State::Ended))
            .finish_non_exhaustive()
    }
}
