//! Checks of what callers give that the API document leaves open.

use std::time::Duration;

use crate::error::{Error, Result};

/// A text that says something, where one is given.
pub(crate) fn filled(field: &str, value: Option<&str>) -> Result<()> {
    if value.is_some_and(|value| value.trim().is_empty()) {
        return Err(Error::invalid_input(field, "must not be empty"));
    }
    Ok(())
}

/// Texts that travel as one, with commas between them.
pub(crate) fn listed<'a>(field: &str, mut values: impl Iterator<Item = &'a str>) -> Result<()> {
    if values.any(|value| value.trim().is_empty() || value.contains(',')) {
        return Err(Error::invalid_input(field, "must not be empty or contain a comma"));
    }
    Ok(())
}

/// How long a verb waits: a limit that is over at once could never be kept, and the thing would be begun all the same.
pub(crate) fn wait_limit(limit: Option<Duration>) -> Result<()> {
    if limit == Some(Duration::ZERO) {
        return Err(Error::invalid_input("wait_limit", "must be longer than 0; `wait(false)` does not wait"));
    }
    Ok(())
}

/// A sandbox starts with a stored environment or with none.
pub(crate) fn environment(environment: Option<&str>, no_env: Option<bool>) -> Result<()> {
    if environment.is_some() && no_env == Some(true) {
        return Err(Error::invalid_input("environment", "must not be set together with `no_env`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_is_refused() {
        assert!(
            filled("a", Some(" ")).is_err() && filled("a", Some("b")).is_ok() && filled("a", None).is_ok()
        );
        assert!(
            listed("a", ["b", "c,d"].into_iter()).is_err() && listed("a", ["b", "c"].into_iter()).is_ok()
        );
        assert!(listed("a", [""].into_iter()).is_err());
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        assert!(wait_limit(Some(Duration::ZERO)).is_err());
        assert!(wait_limit(Some(Duration::from_nanos(1))).is_ok() && wait_limit(None).is_ok());
        assert!(environment(Some("base"), Some(true)).is_err());
        assert!(environment(Some("base"), None).is_ok() && environment(None, Some(true)).is_ok());
    }
}
