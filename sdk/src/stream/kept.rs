//! Output kept while it streams by: the beginning up to a limit, or the end.

use std::collections::VecDeque;

use bytes::Bytes;

use super::chunk::{Chunk, OutputStream};

/// How much of the end of each stream is kept when the caller asked for nothing.
pub(crate) const TAIL: usize = 64 << 10;

/// What is kept of both streams.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) stdout: KeptStream,
    pub(crate) stderr: KeptStream,
}

impl Kept {
    /// Keeps the last [`TAIL`] bytes of each stream.
    pub(crate) fn tail() -> Self {
        Self { stdout: KeptStream::Tail(Tail::default()), stderr: KeptStream::Tail(Tail::default()) }
    }

    /// Keeps the first `cap` bytes of each stream.
    pub(crate) fn head(cap: usize) -> Self {
        Self { stdout: KeptStream::Head(Head::new(cap)), stderr: KeptStream::Head(Head::new(cap)) }
    }

    pub(crate) fn push(&mut self, chunk: &Chunk) {
        let kept = match chunk.stream() {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        match kept {
            KeptStream::Head(head) => head.push(chunk.bytes()),
            KeptStream::Tail(tail) => tail.push(chunk.bytes()),
        }
    }
}

#[derive(Debug)]
pub(crate) enum KeptStream {
    Head(Head),
    Tail(Tail),
}

impl KeptStream {
    /// The bytes kept so far.
    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            Self::Head(head) => Bytes::copy_from_slice(&head.bytes),
            Self::Tail(tail) => {
                let (front, back) = tail.bytes.as_slices();
                Bytes::from([front, back].concat())
            }
        }
    }

    /// The bytes kept so far, leaving nothing behind.
    pub(crate) fn take(&mut self) -> Bytes {
        match self {
            Self::Head(head) => std::mem::take(&mut head.bytes).into(),
            Self::Tail(tail) => Vec::from(std::mem::take(&mut tail.bytes)).into(),
        }
    }

    /// Whether bytes went by that were not kept.
    pub(crate) fn dropped(&self) -> bool {
        match self {
            Self::Head(head) => head.dropped,
            Self::Tail(tail) => tail.dropped,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Head {
    bytes: Vec<u8>,
    cap: usize,
    dropped: bool,
}

impl Head {
    fn new(cap: usize) -> Self {
        Self { bytes: Vec::new(), cap, dropped: false }
    }

    fn push(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(self.cap - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        self.dropped |= taken < bytes.len();
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    dropped: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let fresh = &bytes[bytes.len().saturating_sub(TAIL)..];
        let surplus = (self.bytes.len() + fresh.len()).saturating_sub(TAIL);
        self.dropped |= surplus > 0 || fresh.len() < bytes.len();
        self.bytes.drain(..surplus);
        self.bytes.extend(fresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_is_kept_up_to_the_limit() {
        let mut kept = Kept::head(5);
        for text in ["abc", "de", ""] {
            kept.push(&Chunk::Stdout(text.into()));
        }
        assert!(!kept.stdout.dropped());
        kept.push(&Chunk::Stdout("f".into()));
        assert_eq!(kept.stdout.take(), "abcde");
        assert!(kept.stdout.dropped());
        assert!(kept.stderr.bytes().is_empty() && !kept.stderr.dropped());
    }

    #[test]
    fn the_end_is_kept_in_bounded_memory() {
        let all: Vec<u8> = (0..3 * TAIL as u32 + 17).map(|n| (n % 251) as u8).collect();
        for size in [1_000, TAIL, TAIL + 1, all.len()] {
            let mut kept = Kept::tail();
            for piece in all.chunks(size) {
                kept.push(&Chunk::Stderr(Bytes::copy_from_slice(piece)));
            }
            assert_eq!(kept.stderr.bytes(), all[all.len() - TAIL..], "in pieces of {size}");
            assert!(kept.stderr.dropped());
        }
        let mut kept = Kept::tail();
        kept.push(&Chunk::Stdout(Bytes::from(vec![7; TAIL])));
        assert!(!kept.stdout.dropped());
    }
}
