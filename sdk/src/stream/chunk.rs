//! The pieces a running command's output comes in.

use std::{borrow::Cow, fmt};

use bytes::Bytes;

/// One of the two streams a command writes to.
///
/// ```
/// use sandboxer::stream::OutputStream;
///
/// assert_eq!(OutputStream::Stderr.as_str(), "stderr");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl OutputStream {
    /// Its name on the wire: `stdout` or `stderr`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl fmt::Display for OutputStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Output that the service no longer had when it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The stream that lacks bytes.
    pub stream: OutputStream,
    /// The first byte that is missing.
    pub from: u64,
    /// The first byte that is there again.
    pub to: u64,
}

/// A piece of a command's output, in the order the service sent it.
///
/// ```
/// use sandboxer::stream::{Chunk, OutputStream};
///
/// let chunk = Chunk::Stdout("made in €\n".into());
/// assert_eq!(chunk.stream(), OutputStream::Stdout);
/// assert_eq!(chunk.text(), "made in €\n");
/// assert_eq!(chunk.bytes().len(), 12);
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chunk {
    /// Bytes written to standard output.
    Stdout(Bytes),
    /// Bytes written to standard error.
    Stderr(Bytes),
    /// Bytes that were written and are lost. Comes only when following a background command whose log was cut.
    Gap(Gap),
}

impl Chunk {
    pub(crate) fn of(stream: OutputStream, bytes: Bytes) -> Self {
        match stream {
            OutputStream::Stdout => Self::Stdout(bytes),
            OutputStream::Stderr => Self::Stderr(bytes),
        }
    }

    /// The stream it belongs to.
    pub fn stream(&self) -> OutputStream {
        match self {
            Self::Stdout(_) => OutputStream::Stdout,
            Self::Stderr(_) => OutputStream::Stderr,
            Self::Gap(gap) => gap.stream,
        }
    }

    /// Its bytes; none for a gap.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Stdout(bytes) | Self::Stderr(bytes) => bytes,
            Self::Gap(_) => &[],
        }
    }

    /// Its bytes as text, with U+FFFD for what is not UTF-8.
    ///
    /// The service never cuts a character in two; across other sources use a
    /// [`TextDecoder`](crate::stream::TextDecoder) for each stream.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes())
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap(gap) => formatter.debug_tuple("Gap").field(gap).finish(),
            other => write!(formatter, "{}({:?})", other.stream(), crate::output::Preview(other.bytes())),
        }
    }
}
