//! Ids that become path segments.

use crate::error::{Error, Result};

/// Refuses an id that would name another resource than its place in the path says.
///
/// Everything else is percent-encoded on the way, a slash included. A backslash is refused because URL parsers take it for a
/// slash and leave it unencoded.
pub(crate) fn check(name: &str, id: &str) -> Result<()> {
    let problem = match id {
        "" => "an id is not empty",
        "." | ".." => "an id is not a dot segment",
        _ if id.chars().any(char::is_control) => "an id has no control characters",
        _ if id.contains('\\') => "an id has no backslashes",
        _ => return Ok(()),
    };
    Err(Error::invalid_input(name, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused() {
        for id in ["", ".", "..", "a\nb", "a\0", "..\\me", "\u{7f}"] {
            let error = check("sandboxId", id).unwrap_err();
            assert!(error.message().contains("sandboxId"));
        }
        for id in ["bx_1", "...", "a/b", "a b", "ä", "%2e%2e", "?x"] {
            check("sandboxId", id).unwrap();
        }
    }
}
