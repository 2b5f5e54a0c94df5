//! Which bytes are asked for, and whether those that come are the ones.

use http::{HeaderMap, StatusCode};

use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    stream::ByteBody,
};

/// A part of a file to ask for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// The first byte.
    pub(crate) start: u64,
    /// The last byte, if not the file's.
    pub(crate) last: Option<u64>,
    /// Only if the file still has this entity tag.
    pub(crate) validator: Option<String>,
}

impl Part {
    /// As the `Range` header says it.
    pub(crate) fn range(&self) -> String {
        let last = self.last.map(|last| last.to_string()).unwrap_or_default();
        format!("bytes={}-{last}", self.start)
    }
}

/// What the caller asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wanted {
    /// The whole of it.
    All,
    /// From the first up to and with the last byte, if the file has so many.
    Between(u64, Option<u64>),
    /// This many bytes at its end.
    Last(u64),
}

/// What an answer holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Held {
    /// Where its first byte is in the file.
    pub(super) start: u64,
    /// How many bytes it has, if it says so.
    pub(super) length: Option<u64>,
    /// Of how many the file has, if it says so.
    pub(super) whole: Option<u64>,
    /// The entity tag that says byte for byte whether it is the same content.
    pub(super) validator: Option<String>,
    /// Whether a part of it can be asked for: an archive is made anew each time.
    pub(super) divisible: bool,
}

/// Reads the head of an answer.
pub(super) fn held(body: &ByteBody) -> Result<Held> {
    let headers = body.headers();
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let validator = text("etag").filter(|tag| tag.starts_with('"')).map(str::to_owned);
    let archive = body.content_type().is_some_and(|kind| kind.starts_with("application/x-tar"))
        || text("x-snapshot-entry-kind") == Some("dir");
    // Where the bytes are packed, neither counts nor offsets are those of the file.
    let packed = text("content-encoding").is_some_and(|coding| !coding.eq_ignore_ascii_case("identity"));
    let length = body.content_length().filter(|_| !packed);
    if body.status() != StatusCode::PARTIAL_CONTENT {
        let whole = length.filter(|_| !archive);
        return Ok(Held { start: 0, length, whole, validator, divisible: !archive && !packed });
    }
    let (start, last, whole) = content_range(headers)
        .ok_or_else(|| mismatch("a part came that does not say which part of the file it is"))?;
    let length = last - start + 1;
    if body.content_length().is_some_and(|announced| announced != length) {
        return Err(mismatch("a part came whose length is not that of its range"));
    }
    Ok(Held { start, length: Some(length), whole, validator, divisible: !packed })
}

fn content_range(headers: &HeaderMap) -> Option<(u64, u64, Option<u64>)> {
    let text = headers.get("content-range")?.to_str().ok()?.trim();
    let (unit, rest) = text.split_once(' ')?;
    let (range, whole) = rest.trim().split_once('/')?;
    let (start, last) = range.split_once('-')?;
    let (start, last) = (start.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
    let whole = match whole.trim() {
        "*" => None,
        whole => Some(whole.parse::<u64>().ok()?),
    };
    let fine = unit.eq_ignore_ascii_case("bytes")
        && start <= last
        && last < u64::MAX
        && whole.is_none_or(|whole| last < whole);
    fine.then_some((start, last, whole))
}

impl Wanted {
    /// Whether this answer holds what was wanted.
    pub(super) fn check(self, held: &Held, status: StatusCode) -> Result<()> {
        let is_part = status == StatusCode::PARTIAL_CONTENT;
        let end = held.length.and_then(|length| held.start.checked_add(length));
        let fits = match self {
            Self::All => !is_part,
            Self::Between(0, None) if !is_part => true,
            // A folder has no parts: all of it comes, and says that it is an archive.
            _ if !is_part => !held.divisible,
            Self::Between(start, last) => {
                // Less is right only where the file ends before.
                let ends = end == held.whole || held.whole.is_none() && last.is_none();
                held.start == start
                    && match last {
                        Some(last) => {
                            let wanted = last.checked_add(1);
                            end == wanted || ends && end < wanted
                        }
                        None => ends,
                    }
            }
            Self::Last(count) => {
                let all = held.whole.is_some_and(|whole| whole <= count) && held.start == 0;
                (held.length == Some(count) || all) && (held.whole.is_none() || end == held.whole)
            }
        };
        if fits {
            return Ok(());
        }
        let message = "other bytes came than those that were asked for";
        Err(Error::new(ErrorKind::Unexpected, "range_ignored", message).with_delivery(Delivery::Answered))
    }
}

/// What came to go on with does not belong to what came before.
pub(super) fn mismatch(message: &str) -> Error {
    Error::new(ErrorKind::Unexpected, "range_mismatch", message).with_delivery(Delivery::Answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges() {
        for (text, expected) in [
            ("bytes 0-0/1", Some((0, 0, Some(1)))),
            ("Bytes 5-9/*", Some((5, 9, None))),
            ("bytes 5-9/9", None),
            ("bytes 9-5/20", None),
            ("bytes */20", None),
            ("items 0-1/2", None),
            ("bytes 0-18446744073709551615/*", None),
            ("bytes 0-18446744073709551616/*", None),
            ("bytes -1-2/3", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("content-range", text.parse().unwrap());
            assert_eq!(content_range(&headers), expected, "{text}");
        }
    }

    #[test]
    fn an_answer_holds_what_was_wanted_or_not() {
        let part = |start, length, whole| Held {
            start,
            length: Some(length),
            whole,
            validator: None,
            divisible: true,
        };
        use Wanted::{All, Between, Last};
        for (wanted, held, fits) in [
            (All, part(0, 5, Some(5)), false),
            (Between(2, Some(4)), part(2, 3, Some(9)), true),
            (Between(2, Some(4)), part(2, 3, None), true),
            (Between(2, Some(40)), part(2, 7, Some(9)), true),
            (Between(2, Some(40)), part(2, 6, Some(9)), false),
            (Between(2, Some(4)), part(2, 4, Some(9)), false),
            (Between(2, Some(4)), part(1, 4, Some(9)), false),
            (Between(2, None), part(2, 7, Some(9)), true),
            (Between(2, None), part(2, 6, Some(9)), false),
            (Last(3), part(6, 3, Some(9)), true),
            (Last(30), part(0, 9, Some(9)), true),
            (Last(3), part(5, 3, Some(9)), false),
            (Last(3), part(5, 4, Some(9)), false),
        ] {
            let found = wanted.check(&held, StatusCode::PARTIAL_CONTENT).is_ok();
            assert_eq!(found, fits, "{wanted:?} {held:?}");
        }
        let whole = Held { divisible: true, ..part(0, 9, Some(9)) };
        assert!(All.check(&whole, StatusCode::OK).is_ok());
        assert_eq!(Last(3).check(&whole, StatusCode::OK).unwrap_err().code(), "range_ignored");
        let archive = Held { divisible: false, ..whole };
        assert!(Last(3).check(&archive, StatusCode::OK).is_ok());
    }
}
