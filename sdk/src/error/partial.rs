//! What a broken stream had delivered before it broke.

use bytes::Bytes;
use std::{borrow::Cow, fmt};

/// The output that had arrived when a stream failed: all of it if the caller was collecting, else the last 64 KiB of
/// each stream.
///
/// ```
/// use sandboxer::PartialOutput;
///
/// let partial = PartialOutput::new("half a li", vec![0xFF]);
/// assert_eq!((&*partial.stdout_text(), &*partial.stderr_text()), ("half a li", "\u{FFFD}"));
/// assert_eq!(&partial.stderr[..], vec![0xFF]);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartialOutput {
    /// What had arrived of the standard output.
    pub stdout: Bytes,
    /// What had arrived of the standard error.
    pub stderr: Bytes,
}

impl PartialOutput {
    /// Joins what had arrived of the two streams.
    pub fn new(stdout: impl Into<Bytes>, stderr: impl Into<Bytes>) -> Self {
        Self { stdout: stdout.into(), stderr: stderr.into() }
    }

    /// The standard output as text, bytes that are not UTF-8 replaced.
    pub fn stdout_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stdout)
    }

    /// The standard error as text, bytes that are not UTF-8 replaced.
    pub fn stderr_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stderr)
    }
}

impl fmt::Debug for PartialOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "PartialOutput {{ stdout: {} bytes, stderr: {} bytes }}",
            self.stdout.len(),
            self.stderr.len()
        )
    }
}

/// Byte offsets in the two logs of a command, from which reading can go on.
///
/// ```
/// use sandboxer::Offsets;
///
/// let offsets = Offsets::new(4096, 0);
/// assert_eq!((offsets.stdout, offsets.stderr), (4096, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Offsets {
    /// Bytes of standard output already read.
    pub stdout: u64,
    /// Bytes of standard error already read.
    pub stderr: u64,
}

impl Offsets {
    /// Offsets in standard output and standard error, in bytes.
    pub fn new(stdout: u64, stderr: u64) -> Self {
        Self { stdout, stderr }
    }
}
