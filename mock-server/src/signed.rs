//! Addresses on this server that let in whoever has them, for a while: a path outside the API, when it ends, and a
//! signature over both.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::{
    app::App,
    reply::ApiError,
    router,
    store::{StoreError, Table},
    validate,
    world::{ids, time::Millis},
};

/// The key's place in the store: an address outlives the server that made it.
const KEY: &str = "signing-key";

/// The address of a path, good until then.
pub(crate) fn address(app: &App, path: &str, until: Millis) -> Result<String, ApiError> {
    let base = app.url().ok_or_else(|| ApiError::internal("the server does not listen yet"))?;
    let origin = base.strip_suffix(router::PREFIX).unwrap_or(&base);
    Ok(format!(
        "{origin}{path}?expires={until}&signature={}",
        ids::hex(&sign(app, path, until)?.finalize().into_bytes())
    ))
}

/// Refuses an address that is not good, or no longer.
pub(crate) fn check(app: &App, path: &str, query: &str) -> Result<(), ApiError> {
    let refused = || ApiError::new(403, "forbidden", "the address is not one that this server has signed");
    let query = validate::parse_query(query)?;
    let value = |name: &str| query.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str());
    let until: Millis = value("expires").and_then(|text| text.parse().ok()).ok_or_else(refused)?;
    let signature = value("signature").and_then(unhex).ok_or_else(refused)?;
    sign(app, path, until)?.verify_slice(&signature).map_err(|_| refused())?;
    match until > app.now() {
        true => Ok(()),
        false => Err(ApiError::new(403, "forbidden", "the address was good for a while, which is over")),
    }
}

fn sign(app: &App, path: &str, until: Millis) -> Result<Hmac<Sha256>, ApiError> {
    let key = key(app)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).map_err(ApiError::internal)?;
    mac.update(format!("{until}\n{path}").as_bytes());
    Ok(mac)
}

fn key(app: &App) -> Result<String, StoreError> {
    if let Some(key) = app.shelf.signing_key.get() {
        return Ok(key.clone());
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let key = app.write(|tx| {
        if let Some(key) = tx.get(Table::Meta, KEY)? {
            return Ok(text(key));
        }
        let fresh = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()].map(|id| id.simple().to_string()).concat();
        tx.put(Table::Meta, KEY, fresh.as_bytes())?;
        Ok::<_, StoreError>(fresh)
    })?;
    Ok(app.shelf.signing_key.get_or_init(|| key).clone())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}
