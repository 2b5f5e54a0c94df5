//! Files of any size on their way: limits, progress, and going on after a cut.

mod download;
mod local;
mod open;
mod parts;
mod resume;
mod signed;
mod source;
mod upload;

use std::fmt;

pub use download::Download;
pub(crate) use resume::Wanted;

use crate::error::{Delivery, Error, ErrorKind};

/// How often a download goes on after a cut unless something else is said.
const RESUMES: u32 = 5;

/// How far a transfer is.
///
/// ```
/// use sandboxer::Progress;
///
/// fn percent(progress: Progress) -> Option<u64> {
///     progress.total.map(|total| if total == 0 { 100 } else { progress.bytes * 100 / total })
/// }
/// # let _ = percent;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The bytes that have gone through so far.
    pub bytes: u64,
    /// How many there will be, if that is known.
    pub total: Option<u64>,
}

/// How a file is uploaded or downloaded: at most how big, told of to whom, and what after a cut.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// use sandboxer::Transfer;
/// use std::sync::{Arc, Mutex};
///
/// sandbox.files().write("data", "0123456789").await?;
/// let seen = Arc::new(Mutex::new(Vec::new()));
/// let log = seen.clone();
/// let transfer = Transfer::new().cap(1 << 20).resumes(2).progress(move |at| log.lock().unwrap().push(at.bytes));
/// let content = sandbox.files().download_with("data", transfer).await?.read_all(1 << 20).await?;
/// assert_eq!(&content[..], b"0123456789");
/// assert_eq!(*seen.lock().unwrap(), [0, 10]);
///
/// let upload = Transfer::new().length(10); // how much there is, where the source cannot tell
/// # drop(upload);
/// # Ok(()) }
/// ```
#[derive(Default)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Transfer {
    pub(super) cap: Option<u64>,
    pub(super) length: Option<u64>,
    pub(super) resumes: Option<u32>,
    progress: Option<Told>,
}

type Told = Box<dyn FnMut(Progress) + Send>;

impl Transfer {
    /// Nothing set: no cap beyond the service's own, nobody told.
    pub fn new() -> Self {
        Self::default()
    }

    /// At most this many bytes. More is an error of kind [`TooLarge`](ErrorKind::TooLarge) with the code
    /// `transfer_too_large`: at once where the size is known, else before a byte beyond it is passed on. The target is
    /// unchanged then.
    pub fn cap(mut self, bytes: u64) -> Self {
        self.cap = Some(bytes);
        self
    }

    /// Calls `told` with 0 bytes when the size is known or known to be unknown, and after each piece that went through.
    /// It should be quick: the transfer waits for it.
    ///
    /// In the blocking twin it is called on the client's own thread where that does the work, so it must not make calls
    /// of the same client.
    pub fn progress(mut self, told: impl FnMut(Progress) + Send + 'static) -> Self {
        self.progress = Some(Box::new(told));
        self
    }

    /// Says how many bytes the source of an upload holds: that is checked, announced where the service takes an
    /// announcement, and told as the total. A local file says it by itself; a download ignores it.
    pub fn length(mut self, bytes: u64) -> Self {
        self.length = Some(bytes);
        self
    }

    /// How often a download goes on where it broke, in all (default 5; 0 where the view's `retries` are 0). It goes on
    /// only where the service proves that the rest belongs to the same content; otherwise the break is the error.
    pub fn resumes(mut self, times: u32) -> Self {
        self.resumes = Some(times);
        self
    }

    /// Splits off what counts the bytes.
    fn meter(&mut self, total: Option<u64>) -> Meter {
        let mut meter = Meter { told: self.progress.take(), bytes: 0, total };
        meter.tell();
        meter
    }

    fn resumes_or_default(&self, retries: Option<u32>) -> u32 {
        self.resumes.unwrap_or(if retries == Some(0) { 0 } else { RESUMES })
    }
}

impl fmt::Debug for Transfer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Transfer")
            .field("cap", &self.cap)
            .field("length", &self.length)
            .field("resumes", &self.resumes)
            .finish_non_exhaustive()
    }
}

/// Counts the bytes of one transfer and tells of them.
struct Meter {
    told: Option<Told>,
    bytes: u64,
    total: Option<u64>,
}

impl Meter {
    fn advance(&mut self, bytes: usize) {
        if bytes > 0 {
            self.bytes += bytes as u64;
            self.tell();
        }
    }

    fn tell(&mut self) {
        if let Some(told) = &mut self.told {
            told(Progress { bytes: self.bytes, total: self.total });
        }
    }
}

/// More than the caller's cap.
fn too_large(cap: u64, delivery: Delivery) -> Error {
    let message = format!("it is longer than the cap of {cap} bytes");
    Error::new(ErrorKind::TooLarge, "transfer_too_large", message).with_delivery(delivery)
}

#[cfg(test)]
mod tests;
