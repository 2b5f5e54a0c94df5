//! Cursors that say where in a list by time a page ends.

use base64::{Engine as _, engine::general_purpose};

use crate::world::time::{self, Millis, iso};

/// The cursor after something.
pub(super) fn write_cursor(created_at: Millis, id: &str) -> String {
    general_purpose::STANDARD.encode(format!("{}:{id}", iso(created_at)))
}

/// Reads a cursor in either alphabet, padded or not; `None` if it is none.
pub(super) fn read_cursor(cursor: &str) -> Option<(Millis, String)> {
    let bare = cursor.trim_end_matches('=');
    let bytes = general_purpose::STANDARD_NO_PAD
        .decode(bare)
        .or_else(|_| general_purpose::URL_SAFE_NO_PAD.decode(bare))
        .ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (at, id) = text.rsplit_once(':')?;
    // A bare number is milliseconds here, as in the cursors of events.
    let at = at.parse().ok().or_else(|| time::parse(at))?;
    (!id.is_empty()).then(|| (at, id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_cursor_forms_are_read_and_nonsense_is_not() {
        let place = Some((1_767_225_600_042, "bx_2345abcd".to_owned()));
        let text = "2026-01-01T00:00:00.042Z:bx_2345abcd";
        assert_eq!(write_cursor(1_767_225_600_042, "bx_2345abcd"), general_purpose::STANDARD.encode(text));
        assert_eq!(read_cursor(&general_purpose::STANDARD.encode(text)), place);
        assert_eq!(read_cursor(&general_purpose::URL_SAFE_NO_PAD.encode(text)), place);
        let millis = general_purpose::URL_SAFE_NO_PAD.encode("1767225600042:bx_2345abcd");
        assert_eq!(read_cursor(&millis), place);
        for nonsense in ["", "x", "%%%", &general_purpose::STANDARD.encode("yesterday:bx_2"), "////"] {
            assert_eq!(read_cursor(nonsense), None, "{nonsense}");
        }
    }
}
