//! API keys: what there are, making, rotating and revoking them.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::Call;
use crate::{
    app::App,
    reply::{Answer, ApiError, Outcome},
    store::{Order, Reader, StoreError, typed},
    view::time_or_null,
    world::{
        accounts::{self, Organisation, PERSONAL, PERSONAL_NAME},
        actions, environments, ids, key_uses,
        keys::{self, Key, Origin},
        machine_keys,
        sandboxes::{Sandbox, State, listed, made_by, made_by_sum},
        scenarios::Scenario,
        time::{DAY, Millis, iso},
    },
};

/// How long a key lives when nothing is said, and at most.
const DEFAULT_TTL: &str = "90d";
const MAX_TTL: &str = "365d";
const MAX_TTL_MS: Millis = 365 * DAY;

/// The name of a key that was given none.
const NAME: &str = "API key";

/// How many sandboxes the catalogue names, the newest first.
const NAMED_RESOURCES: usize = 1000;

pub(super) fn list(app: &App, call: &Call) -> Outcome {
    app.write_key_uses()?;
    let now = app.now();
    app.read(|tx| {
        let body = json!({"apiKeys": all(tx, call, now)?, "catalog": catalogue(tx, app, call)?});
        Ok(Answer::ok("api_key.list", body))
    })
}

/// Every key of the account, the newest first; none for a key that may do less than its people.
fn all(tx: &dyn Reader, call: &Call, now: Millis) -> Result<Vec<Value>, StoreError> {
    if call.caller.key.is_restricted() {
        return Ok(Vec::new());
    }
    let account = &call.caller.account.id;
    let mut found = keys::of_account(tx, account)?;
    found.extend(machine_keys::of_account(tx, account)?);
    found.retain(|key| key.revoked_at.is_none());
    found.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
    found.iter().map(|key| show(tx, key, now)).collect()
}

fn show(tx: &dyn Reader, key: &Key, now: Millis) -> Result<Value, StoreError> {
    let (requests, last) = key_uses::of_key(tx, &key.id, now)?;
    let sandboxes = typed::sum(tx, &made_by_sum(&key.id))?;
    let every = |reach: &Option<Vec<String>>| reach.as_ref().map_or_else(|| json!("*"), |ids| json!(ids));
    let scope = json!({
        "expiresAt": time_or_null(key.expires_at),
        "actions": key.actions,
        "sandboxes": every(&key.sandboxes),
        "environments": every(&key.environments),
        "grandfathered": false,
    });
    Ok(json!({
        "id": key.id,
        "name": key.name.as_deref().unwrap_or(NAME),
        "credentialLane": if key.is_legacy() { "legacy" } else { "scoped-v1" },
        "keyPrefix": key.shown.0,
        "keyLastFour": key.shown.1,
        "sandboxId": machine_keys::sandbox_of(key),
        "createdAt": iso(key.created_at),
        "lastUsedAt": time_or_null(key.last_used_at.max(last)),
        "usage": {"requests": requests, "windowDays": key_uses::WINDOW_DAYS},
        "resources": {"total": sandboxes, "sandboxes": sandboxes, "agents": 0},
        "expiresAt": time_or_null(key.expires_at),
        "expired": key.has_expired(now),
        "expiringSoon": key.expires_soon(now),
        "scope": if key.is_legacy() { Value::Null } else { scope },
    }))
}

/// A key that was changed, and all of them. Looked at when others may write again: an account can have many.
fn among_all(app: &App, call: &Call, key: &Key, now: Millis) -> Result<(Value, Vec<Value>), StoreError> {
    app.read(|tx| Ok((show(tx, key, now)?, all(tx, call, now)?)))
}

fn catalogue(tx: &dyn Reader, app: &App, call: &Call) -> Result<Value, StoreError> {
    let presets: Value =
        actions::PRESETS.iter().map(|name| ((*name).to_owned(), json!(actions::preset(name)))).collect();
    let mut known = vec![actions::EVERYTHING];
    known.extend(actions::ACTIONS);
    let mut catalogue = json!({
        "actions": known,
        "presets": presets,
        "defaultTtl": DEFAULT_TTL,
        "maxTtl": MAX_TTL,
        "scopedCreationEnabled": !app.scenarios().is_everywhere(Scenario::ScopedKeysOff),
    });
    if call.caller.key.is_session() {
        catalogue["scopeResources"] = resources(tx, call)?;
    }
    Ok(catalogue)
}

/// What a key can be limited to.
fn resources(tx: &dyn Reader, call: &Call) -> Result<Value, StoreError> {
    let account = &call.caller.account.id;
    let organisations = accounts::organisations_of(tx, account)?;
    let prefix = listed(&format!("account/{account}"), None);
    let mut found = Vec::new();
    typed::rows(tx, &prefix, typed::after_prefix(&prefix).as_deref(), Order::Descending, |_, id| {
        found.push(id.to_owned());
        if found.len() < NAMED_RESOURCES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    let mut sandboxes = Vec::new();
    for id in found {
        let Some(sandbox) = typed::get::<Sandbox>(tx, &id)? else { continue };
        let pays = organisations.iter().find(|pays| Some(&pays.id) == sandbox.organisation.as_ref());
        sandboxes.push(json!({
            "id": sandbox.id,
            "name": sandbox.name,
            "organizationId": pays.map_or(PERSONAL, |pays| &pays.id),
            "organizationName": pays.map_or(PERSONAL_NAME, |pays| &pays.name),
        }));
    }
    let mut environments = Vec::new();
    for (owner, id, name) in owners(account, &organisations) {
        for environment in environments::of_owner(tx, &owner)? {
            environments.push(json!({
                "id": environment.id,
                "name": environment.name,
                "organizationId": id,
                "organizationName": name,
            }));
        }
    }
    Ok(json!({"sandboxes": sandboxes, "environments": environments}))
}

/// Whoever has environments that an account may use, with the id and the name of the wallet.
fn owners<'a>(account: &str, organisations: &'a [Organisation]) -> Vec<(String, &'a str, &'a str)> {
    let mut owners = vec![(format!("account/{account}"), PERSONAL, PERSONAL_NAME)];
    owners.extend(organisations.iter().map(|organisation| {
        (format!("organisation/{}", organisation.id), organisation.id.as_str(), organisation.name.as_str())
    }));
    owners
}

pub(super) fn create(app: &App, call: &Call) -> Outcome {
    if app.scenarios().is_everywhere(Scenario::ScopedKeysOff) {
        return Err(ApiError::new(503, "scoped_api_key_creation_disabled", "keys cannot be made for now")
            .detail("scopedCreationEnabled", false)
            .bare());
    }
    let now = app.now();
    let wanted = wanted_actions(call)?;
    let caller = &call.caller.key;
    if let Some(action) = wanted.iter().find(|action| !caller.grants(Some(action))) {
        return Err(beyond(&format!("{action} is not granted by the key that asks"))
            .detail("action", action.as_str()));
    }
    let lives_until = now + ttl(call.text("ttl").unwrap_or(DEFAULT_TTL))?;
    let secret = keys::new_secret();
    let mut key = Key {
        id: ids::new_key(),
        name: Some(
            call.text("name").map(str::trim).filter(|name| !name.is_empty()).unwrap_or(NAME).to_owned(),
        ),
        account: call.caller.account.id.clone(),
        actions: wanted,
        sandboxes: ids_of(call, "sandboxIds"),
        environments: ids_of(call, "environmentIds"),
        // A key does not outlive the one that made it.
        expires_at: Some(caller.expires_at.map_or(lives_until, |at| at.min(lives_until))),
        origin: Origin::Made,
        created_at: now,
        ..Key::default()
    };
    key.set_secret(&secret);
    app.write_key_uses()?;
    app.write(|tx| {
        check_reach(&*tx, call, &key)?;
        Ok::<_, ApiError>(typed::put(tx, &key)?)
    })?;
    let (shown, others) = among_all(app, call, &key, now)?;
    Ok(Answer::new(201, "api_key.created", json!({"apiKey": shown, "secret": secret, "apiKeys": others})))
}

/// The actions that a new key is to grant.
fn wanted_actions(call: &Call) -> Result<Vec<String>, ApiError> {
    let given = call.body.get("actions").and_then(Value::as_array);
    let preset = call.text("preset");
    if let (Some(_), Some(_)) = (given, preset) {
        return Err(ApiError::invalid("invalid_request", "preset", "and actions cannot both be given"));
    }
    let Some(given) = given else {
        let named = preset.unwrap_or(actions::DEFAULT_PRESET);
        return actions::preset(named)
            .ok_or_else(|| ApiError::invalid("invalid_request", "preset", "is not known"));
    };
    let mut wanted: Vec<String> = Vec::new();
    for (index, action) in given.iter().filter_map(Value::as_str).enumerate() {
        if !actions::is_known(action) {
            let field = format!("actions[{index}]");
            return Err(ApiError::invalid("invalid_request", &field, "is no action"));
        }
        if !wanted.iter().any(|known| known == action) {
            wanted.push(action.to_owned());
        }
    }
    Ok(wanted)
}

/// The length of a life in milliseconds; its form was checked before.
fn ttl(text: &str) -> Result<Millis, ApiError> {
    let (number, unit) = match text.strip_suffix('d') {
        Some(days) => (days, DAY),
        None => text.strip_suffix('h').map_or((text, 1000), |hours| (hours, 3_600_000)),
    };
    let length = number.parse::<Millis>().ok().and_then(|number| number.checked_mul(unit));
    length.filter(|length| (1..=MAX_TTL_MS).contains(length)).ok_or_else(|| {
        ApiError::invalid(
            "invalid_request",
            "ttl",
            format!("must be seconds, hours or days, at most {MAX_TTL}"),
        )
    })
}

/// A list of ids in the body, without those that come twice.
fn ids_of(call: &Call, field: &str) -> Option<Vec<String>> {
    let given = call.body.get(field)?.as_array()?;
    let mut ids: Vec<String> = given.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    ids.sort_unstable();
    ids.dedup();
    Some(ids)
}

/// Refuses a key that would reach what does not exist, or further than the one that makes it.
fn check_reach(tx: &dyn Reader, call: &Call, key: &Key) -> Result<(), ApiError> {
    let caller = &call.caller.key;
    if caller.sandboxes.is_some() && key.sandboxes.is_none() {
        return Err(beyond("the key that asks is limited to some sandboxes, so must be this one"));
    }
    if caller.environments.is_some() && key.environments.is_none() {
        return Err(beyond("the key that asks is limited to some environments, so must be this one"));
    }
    for id in key.sandboxes.iter().flatten() {
        // One that is not there and one that is out of reach are not told apart.
        if !matches!(call.caller.see(tx, id), Ok((sandbox, _)) if sandbox.state != State::Cancelled) {
            return Err(ApiError::invalid(
                "invalid_request",
                "sandboxIds",
                format!("{id} is no sandbox of the caller"),
            ));
        }
    }
    for id in key.environments.iter().flatten() {
        if !reaches_environment(tx, call, id)? {
            let allowed = format!("{id} is no environment of the caller");
            return Err(ApiError::invalid("invalid_request", "environmentIds", allowed));
        }
    }
    Ok(())
}

/// Whether an environment is one that the caller may use.
fn reaches_environment(tx: &dyn Reader, call: &Call, id: &str) -> Result<bool, StoreError> {
    let account = &call.caller.account.id;
    let organisations = accounts::organisations_of(tx, account)?;
    for (owner, ..) in owners(account, &organisations) {
        if environments::by_id(tx, &owner, id)?.is_some() {
            return Ok(call.caller.key.covers_environment(id));
        }
    }
    Ok(false)
}

fn beyond(why: &str) -> ApiError {
    ApiError::new(403, "forbidden", why)
}

/// A key of the caller's account, revoked or not.
fn find(tx: &dyn Reader, call: &Call) -> Result<Key, ApiError> {
    let id = call.id("apiKeyId");
    let account = &call.caller.account.id;
    let found = match keys::by_id(tx, id)? {
        Some(key) => Some(key),
        None => machine_keys::by_id(tx, id)?,
    };
    found.filter(|key| key.account == *account).ok_or_else(|| ApiError::not_found("API key"))
}

pub(super) fn revoke(app: &App, call: &Call) -> Outcome {
    let now = app.now();
    app.write_key_uses()?;
    app.write(|tx| {
        let key = find(&*tx, call)?;
        match machine_keys::sandbox_of(&key) {
            Some(sandbox) => machine_keys::revoke(tx, sandbox, now)?,
            None => keys::revoke(tx, key, now)?,
        }
        Ok::<_, ApiError>(())
    })?;
    app.reach_changed.send_replace(());
    let left = app.read(|tx| all(tx, call, now))?;
    Ok(Answer::ok("api_key.revoked", json!({"apiKeys": left})))
}

pub(super) fn rotate(app: &App, call: &Call) -> Outcome {
    let now = app.now();
    app.write_key_uses()?;
    let (key, secret) = app.write(|tx| {
        let key = find(&*tx, call)?;
        if key.revoked_at.is_some() {
            return Err(ApiError::not_found("API key"));
        }
        if key.has_expired(now) {
            return Err(ApiError::new(409, "api_key_expired", "the key has ended; make a new one").bare());
        }
        Ok(match machine_keys::sandbox_of(&key) {
            Some(sandbox) => {
                let secret = machine_keys::rotate(tx, sandbox)?;
                (find(&*tx, call)?, secret)
            }
            None => {
                let secret = keys::new_secret();
                (keys::rotate(tx, key, &secret)?, secret)
            }
        })
    })?;
    app.reach_changed.send_replace(());
    let (shown, others) = among_all(app, call, &key, now)?;
    Ok(Answer::ok("api_key.rotated", json!({"apiKey": shown, "secret": secret, "apiKeys": others})))
}

pub(super) fn usage(app: &App, call: &Call) -> Outcome {
    app.write_key_uses()?;
    let now = app.now();
    app.read(|tx| {
        let caller = &call.caller.key;
        // A key that does not see the others sees itself.
        if caller.is_restricted() && caller.id != call.id("apiKeyId") {
            return Err(ApiError::not_found("API key"));
        }
        let key = find(tx, call)?;
        let mut made = Vec::new();
        for id in typed::rows_with_prefix(tx, &made_by(&key.id), usize::MAX)? {
            let Some(sandbox) = typed::get::<Sandbox>(tx, &id)? else { continue };
            made.push(json!({
                "kind": "sandbox",
                "id": sandbox.id,
                "name": sandbox.name,
                "state": sandbox.state.as_str(),
                "createdAt": iso(sandbox.created_at),
            }));
        }
        made.reverse();
        let mut body = show(tx, &key, now)?;
        body["createdResources"] = made.into();
        Ok(Answer::ok("api_key.usage", body))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_are_read_in_days_hours_and_seconds() {
        let read = |text: &str| ttl(text).ok();
        assert_eq!(read("90d"), Some(90 * DAY));
        assert_eq!(read("24h"), Some(DAY));
        assert_eq!(read("90"), Some(90_000));
        assert_eq!(read("365d"), Some(MAX_TTL_MS));
        for bad in ["366d", "8761h", "31536001", "999999999d", "0", "d", "x"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
