//! Ports that can be reached from outside.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Call, hold_until_up, not_running, prompts::check_wallet, scenarios};
use crate::{
    app::App,
    hosting::{self, Goal},
    reply::{Answer, ApiError, Outcome},
    store::{Reader, typed},
    world::{
        hosted_ports::{HostedPort, MOST, hosted_key},
        sandboxes::{Sandbox, State},
    },
};

/// Where the machine of a sandbox can be found, as far as it has an address.
pub(super) const MACHINE: &str = "127.0.0.1";

/// The sandbox of the call once it is up and paid for; one that is starting is waited for.
pub(super) async fn reachable(app: &App, call: &Call) -> Result<Sandbox, ApiError> {
    let sandbox = call.sandbox(app)?;
    app.read(|tx| check_wallet(tx, &call.caller, &sandbox))?;
    if sandbox.state.is_starting() {
        // How it went is read below.
        let _ = hold_until_up(app, &app.live(&sandbox)).await;
    }
    let sandbox = call.sandbox(app)?;
    check_up(sandbox.state)?;
    scenarios::check(app, call.operation, &sandbox)?;
    Ok(sandbox)
}

/// Refuses a way in to a sandbox that is stopped: a bad request here, unlike at all that works in the sandbox.
fn check_up(state: State) -> Result<(), ApiError> {
    if state.is_up() { Ok(()) } else { Err(not_running(state).with_status(400)) }
}

/// The secret of an address.
pub(super) fn token() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

pub(super) async fn host(app: &Arc<App>, call: &Call) -> Outcome {
    let id = reachable(app, call).await?.id;
    let hosted = host_port(app, &id, &call.body, |sandbox| check_up(sandbox.state)).await?;
    let mut body = view(&hosted);
    body["success"] = true.into();
    Ok(Answer::ok("port.hosted", body))
}

/// Opens the port that a body names, if the sandbox may have one as it is then.
pub(super) async fn host_port(
    app: &Arc<App>,
    id: &str,
    wanted: &Value,
    may: impl FnOnce(&Sandbox) -> Result<(), ApiError>,
) -> Result<HostedPort, ApiError> {
    let flag = |name: &str| wanted[name].as_bool().unwrap_or_default();
    let invalid = || ApiError::invalid("invalid_request", "port", "must be 1 to 65535");
    let port: u16 = wanted["port"].as_u64().and_then(|port| port.try_into().ok()).ok_or_else(invalid)?;
    let _turn = app.hosting.turn.lock().await;
    let before: Option<HostedPort> = app.read(|tx| {
        let before = typed::get(tx, &hosted_key(id, port))?;
        if before.is_none() && hosted(tx, id)?.len() >= MOST {
            let allowed = format!("would be one more than the {MOST} that a sandbox may host");
            return Err(ApiError::invalid("invalid_request", "port", allowed));
        }
        Ok::<_, ApiError>(before)
    })?;
    let is_new = before.is_none();
    let was_public = before.as_ref().is_some_and(|before| before.public);
    let outside = hosting::open(app, id, Goal::Port(port), before.as_ref().map(|before| before.outside))?;
    let (token, title) = before.map_or_else(|| (token(), None), |before| (before.token, before.title));
    let record = HostedPort {
        sandbox: id.to_owned(),
        port,
        outside,
        token,
        public: flag("public"),
        localhost: flag("localhost"),
        title: wanted["title"].as_str().map(str::to_owned).or(title),
    };
    let written = app.write(|tx| {
        let sandbox: Option<Sandbox> = typed::get(&*tx, id)?;
        may(&sandbox.ok_or_else(|| ApiError::not_found("sandbox"))?)?;
        Ok::<_, ApiError>(typed::put(tx, &record)?)
    });
    if let Err(error) = written {
        // That of a sandbox which is gone leads nowhere, new or not.
        if is_new || error.code() == "not_found" {
            hosting::close(app, id, Goal::Port(port));
        }
        return Err(error);
    }
    if was_public && !record.public {
        hosting::show_guests_out(app, id, Goal::Port(port));
    }
    Ok(record)
}

/// A port as the answers show it; only the list has its title, too.
pub(super) fn view(hosted: &HostedPort) -> Value {
    let mut view = shown(hosted);
    if let Some(fields) = view.as_object_mut() {
        fields.remove("title");
    }
    view
}

fn hosted(tx: &dyn Reader, sandbox: &str) -> Result<Vec<HostedPort>, ApiError> {
    Ok(typed::with_prefix(tx, &format!("{sandbox}/"))?)
}

fn shown(hosted: &HostedPort) -> Value {
    json!({
        "port": hosted.port,
        "url": hosting::url(hosted.outside, hosted.public, &hosted.token),
        "isProtected": !hosted.public,
        "access": if hosted.public { "public" } else { "private" },
        "localhost": hosted.localhost,
        "title": hosted.title,
    })
}

pub(super) fn list(app: &App, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let ports = app.read(|tx| hosted(tx, &sandbox.id))?;
    Ok(Answer::ok("port.list", json!({"ports": ports.iter().map(shown).collect::<Vec<_>>()})))
}

pub(super) async fn unhost(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let port = call.number("port").and_then(|port| u16::try_from(port).ok());
    if let Some(port) = port {
        let _turn = app.hosting.turn.lock().await;
        app.write(|tx| {
            call.caller.using(tx, &sandbox.id)?;
            Ok::<_, ApiError>(typed::remove::<HostedPort>(tx, &hosted_key(&sandbox.id, port))?)
        })?;
        hosting::close(app, &sandbox.id, Goal::Port(port));
    }
    Ok(Answer::ok("port.unhosted", json!({})))
}
