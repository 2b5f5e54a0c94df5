//! Checks of what the account's verbs are given that the API document's schemas do not say. Messages never hold values.

use url::Url;

use crate::{
    config::base_url::is_loopback,
    error::{Error, Result},
    generated::dialects::Dialect,
};

/// An address that the service sends to: `https`, a host, one of these ports. A service on this machine may also take
/// `http` and any port of this machine; whether it does is its own to say.
pub(super) fn https(field: &str, text: &str, ports: &[u16]) -> Result<()> {
    let fits = Url::parse(text).is_ok_and(|url| {
        let is_public = || {
            url.scheme() == "https"
                && url.host_str().is_some_and(|host| !host.is_empty())
                && url.port_or_known_default().is_some_and(|port| ports.contains(&port))
        };
        let is_local = matches!(url.scheme(), "http" | "https") && is_loopback(&url);
        (is_local || is_public()) && url.username().is_empty() && url.password().is_none()
    });
    if fits && text.trim() == text {
        return Ok(());
    }
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    Err(Error::invalid_input(
        field,
        format!("must be an https URL on port {}, without a user name", ports.join(" or ")),
    ))
}

/// The name of a variable that is to be set; the service's own are refused.
pub(super) fn variable(key: &str, dialect: Dialect) -> Result<()> {
    variable_name(key)?;
    if dialect.info().reserved_variables.contains(&key) {
        return Err(Error::invalid_input("key", "must not be a name that belongs to the service"));
    }
    Ok(())
}

/// The name of a variable.
pub(super) fn variable_name(key: &str) -> Result<()> {
    let first = key.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let rest = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if first && rest && key.len() <= 128 {
        return Ok(());
    }
    let problem = "must be a letter or underscore and up to 127 letters, digits and underscores";
    Err(Error::invalid_input("key", problem))
}

/// The path of a secret file: relative to the work folder, and inside it.
pub(super) fn secret_path(field: &str, path: &str) -> Result<()> {
    let inside = !path.starts_with(['/', '~']) && path.split('/').all(|segment| segment != "..");
    let printable = !path.is_empty() && !path.contains('\0') && path.chars().count() <= 4096;
    if inside && printable {
        return Ok(());
    }
    let problem = "must be 1 to 4096 characters without NUL, relative to the work folder, and have no `..`";
    Err(Error::invalid_input(field, problem))
}

/// A change must change something.
pub(super) fn some_change(is_empty: bool) -> Result<()> {
    if is_empty {
        return Err(Error::invalid_input("change", "must change something"));
    }
    Ok(())
}
