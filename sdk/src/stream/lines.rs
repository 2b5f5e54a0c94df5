//! Cuts bytes that arrive in pieces into lines, in linear time and bounded memory.

use bytes::{Bytes, BytesMut};

/// The longest line taken: a frame of output escaped in JSON stays far below it.
pub(crate) const MAX_LINE: usize = 16 << 20;

/// A line grew over the decoder's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineTooLong;

/// Line decoder: LF and CRLF end a line, a line inside one piece is not copied.
#[derive(Debug)]
pub(crate) struct LineDecoder {
    carry: BytesMut,
    piece: Bytes,
    limit: usize,
    lines: u64,
}

impl LineDecoder {
    pub(crate) fn new(limit: usize) -> Self {
        Self { carry: BytesMut::new(), piece: Bytes::new(), limit, lines: 0 }
    }

    /// Changes how long a line may be.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Takes the next piece; the lines of the one before must have been taken out.
    pub(crate) fn push(&mut self, piece: Bytes) {
        debug_assert!(self.piece.is_empty(), "lines are taken out before the next piece comes");
        self.piece = piece;
    }

    /// The next whole line without its end, or `None` when more bytes are needed.
    pub(crate) fn next_line(&mut self) -> Result<Option<Bytes>, LineTooLong> {
        let end = memchr::memchr(b'\n', &self.piece);
        let taken = end.unwrap_or(self.piece.len());
        let last = self.piece[..taken].last().or(self.carry.last());
        // It may be half an end, which does not count.
        let length = self.carry.len() + taken - usize::from(last == Some(&b'\r'));
        if length > self.limit {
            return Err(LineTooLong);
        }
        let part = self.piece.split_to(taken);
        if end.is_none() {
            self.carry.extend_from_slice(&part);
            return Ok(None);
        }
        let _newline = self.piece.split_to(1);
        self.lines += 1;
        let line = if self.carry.is_empty() {
            part
        } else {
            self.carry.extend_from_slice(&part);
            self.carry.split().freeze()
        };
        Ok(Some(without_cr(line)))
    }

    /// What stands after the last line end once the bytes are over, if anything.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        let rest = without_cr(self.carry.split().freeze());
        if rest.is_empty() {
            return None;
        }
        self.lines += 1;
        Some(rest)
    }

    /// The number of the line given out last, counted from 1.
    pub(crate) fn line_number(&self) -> u64 {
        self.lines
    }
}

fn without_cr(mut line: Bytes) -> Bytes {
    if line.last() == Some(&b'\r') {
        line.truncate(line.len() - 1);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]], limit: usize) -> Result<Vec<String>, LineTooLong> {
        let mut decoder = LineDecoder::new(limit);
        let mut out = Vec::new();
        for piece in pieces {
            decoder.push(Bytes::copy_from_slice(piece));
            while let Some(line) = decoder.next_line()? {
                out.push(String::from_utf8(line.to_vec()).unwrap());
            }
        }
        out.extend(decoder.rest().map(|line| String::from_utf8(line.to_vec()).unwrap()));
        assert_eq!(decoder.line_number(), out.len() as u64);
        Ok(out)
    }

    #[test]
    fn any_split_gives_the_same_lines() {
        let text = "{\"a\":1}\r\n\n{\"b\":\"é\"}\n\r\nlast".as_bytes();
        let expected = lines(&[text], 100).unwrap();
        assert_eq!(expected, ["{\"a\":1}", "", "{\"b\":\"é\"}", "", "last"]);
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(lines(&pieces, 100).unwrap(), expected, "cut at {first} and {second}");
            }
        }
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(lines(&single, 100).unwrap(), expected);
    }

    #[test]
    fn a_line_over_the_limit_is_refused_however_it_arrives() {
        assert_eq!(lines(&[b"12345\n"], 5).unwrap(), ["12345"]);
        for crlf in [&[&b"12345\r\n"[..]][..], &[b"12345\r", b"\n"], &[b"12345", b"\r\n"]] {
            assert_eq!(lines(crlf, 5).unwrap(), ["12345"], "the end does not count");
        }
        assert_eq!(lines(&[b"12345\r6\n"], 5), Err(LineTooLong));
        assert_eq!(lines(&[b"12345\r", b"\r\n"], 5), Err(LineTooLong));
        assert_eq!(lines(&[b"123456\n"], 5), Err(LineTooLong));
        assert_eq!(lines(&[b"123", b"456"], 5), Err(LineTooLong));
        assert_eq!(lines(&[b"123", b"45", b"\n67890"], 5).unwrap(), ["12345", "67890"]);
    }
}
