//! What a new sandbox starts from: a named snapshot of the wallet that pays, or a share code of anybody's.

use super::Call;
use crate::{
    app::App,
    reply::ApiError,
    snapshots::Held,
    store::{Reader, Writer, typed},
    world::{
        accounts::Organisation,
        named_snapshots::{NamedSnapshot, named_key},
        sandboxes::Sandbox,
        shares::{self, CODE_PREFIX, Share},
        snapshots::Snapshot,
        time::Millis,
    },
};

/// A snapshot whose files stay for as long as this is there.
pub(super) struct Origin {
    pub(super) snapshot: Snapshot,
    /// The share code that led to it.
    code: Option<String>,
    _held: Held,
}

impl Origin {
    /// What `from` of a create names, if there is one.
    pub(super) async fn find(
        app: &App,
        call: &Call,
        pays: Option<&Organisation>,
    ) -> Result<Option<Self>, ApiError> {
        let Some(from) = call.text("from") else { return Ok(None) };
        let find = || app.read(|tx| look_up(tx, call, pays, from));
        loop {
            let snapshot = find()?;
            let held = app.shelf.hold(&snapshot.id).await;
            // It may have been replaced before it was held.
            if find()?.id == snapshot.id {
                let code = from.starts_with(CODE_PREFIX).then(|| from.to_owned());
                return Ok(Some(Self { snapshot, code, _held: held }));
            }
        }
    }

    /// Gives a new sandbox what comes with the snapshot: the variables only to whoever's they were.
    pub(super) fn give(&self, call: &Call, sandbox: &mut Sandbox) {
        sandbox.started_once = true;
        // They are somebody else's secrets: gone before anybody can read them.
        sandbox.secret_files.clone_from(&self.snapshot.secret_files);
        sandbox.holds_others_secrets =
            self.snapshot.account != sandbox.account && !sandbox.secret_files.is_empty();
        let is_own = self.code.is_none() && self.snapshot.account == sandbox.account;
        if is_own && call.body.get("env").is_none_or(serde_json::Value::is_null) {
            sandbox.env.clone_from(&self.snapshot.env);
        }
    }

    /// Counts the use of the share code, in the transaction that stores the new sandbox; a code that was revoked since is
    /// not used.
    pub(super) fn count(&self, tx: &mut dyn Writer, now: Millis) -> Result<(), ApiError> {
        let Some(code) = &self.code else { return Ok(()) };
        let mut share = shares::of_code(&*tx, code)?.ok_or_else(not_found)?;
        share.uses += 1;
        share.used_at = Some(now);
        typed::put::<Share>(tx, &share)?;
        Ok(())
    }
}

fn not_found() -> ApiError {
    let problem = "from names no snapshot or share code that may be used";
    ApiError::new(404, "snapshot_not_found", problem).detail("field", "from")
}

fn look_up(
    tx: &dyn Reader,
    call: &Call,
    pays: Option<&Organisation>,
    from: &str,
) -> Result<Snapshot, ApiError> {
    let key = match (from.starts_with(CODE_PREFIX), pays) {
        (true, _) => shares::of_code(tx, from)?.ok_or_else(not_found)?.named,
        (false, None) => named_key(&format!("account/{}", call.caller.account.id), from),
        (false, Some(pays)) => named_key(&format!("organisation/{}", pays.id), from),
    };
    let named: Option<NamedSnapshot> = typed::get(tx, &key)?;
    match named.and_then(|named| named.snapshot) {
        Some(id) => typed::get(tx, &id)?.ok_or_else(not_found),
        None => Err(not_found()),
    }
}
