//! Files of which a part can be asked for (RFC 9110, section 14).

use std::fs::File;

use axum::body::Body;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::{
    reply::{Answer, ApiError},
    space::FileStream,
};

/// Which bytes a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    All,
    /// From here, up to but not including there.
    Part(u64, u64),
    /// None that there are.
    Nothing,
}

/// Answers with a file, or the part of it that the request wants. `tag` is its entity tag, quotes included.
pub(crate) fn serve(
    request: &HeaderMap,
    file: File,
    size: u64,
    tag: &str,
    more: &[(&'static str, &str)],
) -> Result<Answer, ApiError> {
    let (status, start, end) = match wanted(request, tag, size) {
        Wanted::All => (StatusCode::OK, 0, size),
        Wanted::Part(start, end) => (StatusCode::PARTIAL_CONTENT, start, end),
        Wanted::Nothing => {
            let problem = format!("the file has {size} bytes; the range begins after its end");
            return Err(ApiError::new(416, "range_not_satisfiable", problem)
                .retryable(false)
                .content_range(format!("bytes */{size}")));
        }
    };
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: &str| {
        HeaderValue::from_str(value).map(|value| headers.insert(name, value)).map_err(ApiError::internal)
    };
    set(header::CONTENT_TYPE, "application/octet-stream")?;
    set(header::CONTENT_LENGTH, &(end - start).to_string())?;
    set(header::ACCEPT_RANGES, "bytes")?;
    set(header::ETAG, tag)?;
    if status == StatusCode::PARTIAL_CONTENT {
        set(header::CONTENT_RANGE, &format!("bytes {start}-{}/{size}", end - 1))?;
    }
    for (name, value) in more {
        set(HeaderName::from_static(name), value)?;
    }
    Ok(Answer::Raw(status, headers, Body::from_stream(FileStream::part(file, start, end))))
}

/// What a request wants of so many bytes. What is no range of bytes, or more than one, is as if it were not there.
fn wanted(request: &HeaderMap, tag: &str, size: u64) -> Wanted {
    let mut ranges = request.get_all(header::RANGE).iter();
    let (Some(range), None) = (ranges.next(), ranges.next()) else { return Wanted::All };
    // A weak tag does not say that it is the same byte for byte.
    let is_other = |held: &HeaderValue| tag.starts_with("W/") || held.as_bytes() != tag.as_bytes();
    if request.get(header::IF_RANGE).is_some_and(is_other) {
        return Wanted::All;
    }
    range.to_str().ok().and_then(|range| parse(range, size)).unwrap_or(Wanted::All)
}

fn parse(range: &str, size: u64) -> Option<Wanted> {
    let (unit, set) = range.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = set.trim().split_once('-')?;
    // Digits alone: a number that is too large for us is one after every end.
    let number = |text: &str| {
        let is_one = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_one.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let (start, end) = match (first, last) {
        ("", count) => (size.saturating_sub(number(count)?), if number(count)? == 0 { 0 } else { size }),
        (first, "") => (number(first)?, size),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            (first, last.saturating_add(1).min(size))
        }
    };
    Some(if start < end { Wanted::Part(start, end) } else { Wanted::Nothing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_counts_and_anything_else_does_not() {
        let want = |range: &str, size| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, HeaderValue::from_str(range).unwrap());
            wanted(&headers, "\"t\"", size)
        };
        for (range, expected) in [
            ("bytes=0-9", Wanted::Part(0, 10)),
            ("bytes=90-", Wanted::Part(90, 100)),
            ("Bytes=95-200", Wanted::Part(95, 100)),
            ("bytes=-7", Wanted::Part(93, 100)),
            ("bytes=-700", Wanted::Part(0, 100)),
            ("bytes=99-99", Wanted::Part(99, 100)),
            ("bytes=100-", Wanted::Nothing),
            ("bytes=99999999999999999999999-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=0-1,5-6", Wanted::All),
            ("bytes=9-5", Wanted::All),
            ("bytes=-", Wanted::All),
            ("bytes=+1-2", Wanted::All),
            ("bytes= 1 - 2", Wanted::All),
            ("lines=1-2", Wanted::All),
            ("bytes", Wanted::All),
        ] {
            assert_eq!(want(range, 100), expected, "{range}");
        }
        assert_eq!((want("bytes=0-", 0), want("bytes=-1", 0)), (Wanted::Nothing, Wanted::Nothing));
    }

    #[test]
    fn a_part_of_another_content_is_all_of_this_one() {
        for (held, expected) in
            [("\"t\"", Wanted::Part(1, 2)), ("\"u\"", Wanted::All), ("W/\"t\"", Wanted::All)]
        {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, HeaderValue::from_static("bytes=1-1"));
            headers.insert(header::IF_RANGE, HeaderValue::from_str(held).unwrap());
            assert_eq!(wanted(&headers, "\"t\"", 9), expected, "{held}");
        }
    }
}
