//! Offset arithmetic of one output stream: every byte is given out once, in order, or known to be missing.

use bytes::Bytes;

/// Where one output stream stands, in bytes of its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Track {
    /// The next byte the caller has not had.
    wanted: u64,
    /// The byte at which the connection at hand goes on.
    at: u64,
    /// The byte from which the connection at hand was asked for.
    asked: u64,
    lossy: bool,
    shrunk: bool,
}

/// What a piece of a stream brings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Bytes that are missing before `bytes`, from the first that is missing to the first that is there.
    pub(crate) gap: Option<(u64, u64)>,
    /// Bytes the caller has not had.
    pub(crate) bytes: Bytes,
}

impl Track {
    pub(crate) fn starting_at(offset: u64) -> Self {
        Self { wanted: offset, at: offset, asked: offset, ..Self::default() }
    }

    /// The next byte the caller has not had.
    pub(crate) fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Whether text that came was not as long as the bytes it stands for.
    pub(crate) fn lossy(&self) -> bool {
        self.lossy
    }

    /// Whether the log turned out to end before the byte that it was asked for from: what was given out, or is left out
    /// as given out before, is not of this log.
    pub(crate) fn shrunk(&self) -> bool {
        self.shrunk
    }

    /// A new connection was made, from the next byte the caller has not had.
    pub(crate) fn connected(&mut self) {
        (self.asked, self.at) = (self.wanted, self.wanted);
    }

    /// The connection at hand begins at `offset`, or where it was asked to when the service does not say.
    pub(crate) fn opened(&mut self, offset: Option<u64>) -> News {
        self.at = offset.unwrap_or(self.wanted);
        self.skip_to(self.at)
    }

    /// The log ends at `offset`, or where it stands when the service does not say; whatever lies before it and did not
    /// come is missing.
    pub(crate) fn ended(&mut self, offset: Option<u64>) -> News {
        let end = offset.unwrap_or(self.at);
        self.shrunk = end < self.asked;
        self.skip_to(end)
    }

    /// Text came that stands for the log's bytes up to `next`.
    pub(crate) fn data(&mut self, text: Bytes, next: Option<u64>) -> News {
        let length = text.len() as u64;
        let next = next.unwrap_or(self.at.saturating_add(length));
        if next < self.at {
            // The service went back; the text's own length is all there is to go by.
            self.at = next.saturating_sub(length);
        }
        let span = next - self.at;
        // Replacing bytes that are no UTF-8 makes a text longer, never shorter: a shorter one leaves bytes out.
        let replaced = length > span;
        let start = if length < span { next - length } else { self.at };
        self.lossy |= replaced;
        self.at = next;
        if next <= self.wanted {
            return News::default();
        }
        let gap = (start > self.wanted).then_some((self.wanted, start));
        let repeated = self.wanted.saturating_sub(start);
        let bytes = if repeated == 0 {
            text
        } else if replaced {
            // Which character stands for which bytes is not known; as many as are new are taken from the end.
            let mut from = usize::try_from(length - (next - self.wanted).min(length)).unwrap_or(0);
            while from < text.len() && text[from] & 0xC0 == 0x80 {
                from += 1;
            }
            text.slice(from..)
        } else {
            text.slice(usize::try_from(repeated).unwrap_or(text.len())..)
        };
        self.wanted = next;
        News { gap, bytes }
    }

    fn skip_to(&mut self, offset: u64) -> News {
        let gap = (offset > self.wanted).then_some((self.wanted, offset));
        self.wanted = self.wanted.max(offset);
        News { gap, bytes: Bytes::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(text: &'static str) -> News {
        News { gap: None, bytes: text.into() }
    }

    #[test]
    fn pieces_in_order_pass_through() {
        let mut track = Track::starting_at(0);
        assert_eq!(track.opened(Some(0)), News::default());
        assert_eq!(track.data("abc".into(), Some(3)), news("abc"));
        assert_eq!(track.data("dé".into(), Some(6)), news("dé"));
        assert_eq!(track.data("f".into(), None), news("f"));
        assert_eq!(track.ended(Some(7)), News::default());
        assert_eq!((track.wanted(), track.lossy(), track.shrunk()), (7, false, false));
    }

    #[test]
    fn what_came_before_is_not_repeated() {
        for start in 0..=5 {
            let log = "abcdefgh";
            let mut track = Track::starting_at(5);
            assert_eq!(track.opened(Some(start)), News::default());
            let rest = &log[start as usize..];
            let got = track.data(Bytes::copy_from_slice(rest.as_bytes()), Some(8));
            assert_eq!(got, News { gap: None, bytes: "fgh".into() }, "from {start}");
            assert!(!track.lossy());
        }
        let mut track = Track::starting_at(5);
        let _ = track.opened(Some(0));
        assert_eq!(track.data("abc".into(), Some(3)), News::default());
        assert_eq!(track.data("defg".into(), Some(7)), news("fg"));
    }

    #[test]
    fn what_is_missing_is_reported() {
        let mut track = Track::starting_at(2);
        assert_eq!(track.opened(Some(10)).gap, Some((2, 10)));
        assert_eq!(track.data("ab".into(), Some(12)), news("ab"));
        assert_eq!(track.data("cd".into(), Some(20)), News { gap: Some((12, 18)), bytes: "cd".into() });
        assert_eq!(track.ended(Some(25)).gap, Some((20, 25)));
        assert_eq!(track.wanted(), 25);
        assert!(!track.lossy());
    }

    #[test]
    fn replaced_bytes_are_noticed() {
        let mut track = Track::starting_at(0);
        let _ = track.opened(Some(0));
        // Two bytes that are no UTF-8 became two U+FFFD of three bytes each.
        assert_eq!(track.data("a\u{FFFD}\u{FFFD}".into(), Some(3)), news("a\u{FFFD}\u{FFFD}"));
        assert!(track.lossy());
        assert_eq!(track.wanted(), 3);
    }

    #[test]
    fn a_log_that_ends_before_what_was_asked_for_is_another_one() {
        // It began too early and was not as long; it said no more than where it ends; it said nothing more at all.
        for (start, data, end) in
            [(Some(10), Some(60), Some(60)), (None, None, Some(60)), (Some(10), None, None)]
        {
            let mut track = Track::starting_at(100);
            let _ = track.opened(start);
            if let Some(next) = data {
                assert_eq!(track.data(vec![b'x'; 50].into(), Some(next)), News::default());
            }
            assert_eq!(track.ended(end), News::default());
            assert_eq!((track.shrunk(), track.wanted()), (true, 100), "{start:?} {end:?}");
        }
        // It reached what was asked for, or said nothing about it.
        for (start, next, end) in [(Some(10), 100, Some(100)), (Some(10), 150, None), (None, 101, None)] {
            let mut track = Track::starting_at(100);
            let _ = track.opened(start);
            let _ = track.data("x".into(), Some(next));
            let _ = track.ended(end);
            assert!(!track.shrunk(), "{start:?} {next} {end:?}");
        }
        // A later connection is asked for from further on.
        let mut track = Track::starting_at(0);
        let _ = track.opened(Some(0));
        let _ = track.data("abcd".into(), Some(4));
        track.connected();
        let _ = track.opened(Some(0));
        let _ = track.data("ab".into(), Some(2));
        let _ = track.ended(Some(2));
        assert!(track.shrunk());
    }

    #[test]
    fn an_offset_that_goes_back_gives_nothing_twice() {
        let mut track = Track::starting_at(0);
        let _ = track.opened(None);
        assert_eq!(track.data("abcdef".into(), Some(6)), news("abcdef"));
        assert_eq!(track.data("cd".into(), Some(4)), News::default());
        assert_eq!(track.data("efgh".into(), Some(8)), news("gh"));
        assert_eq!(track.data(Bytes::new(), Some(0)), News::default());
        assert_eq!(track.data("x".into(), Some(u64::MAX)).gap, Some((8, u64::MAX - 1)));
        assert_eq!(track.data("y".into(), None), News::default());
    }
}
