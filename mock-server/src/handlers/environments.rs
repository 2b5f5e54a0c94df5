//! Environments: listed, made, changed, removed, and brought to the sandboxes that use older versions.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Call,
    environment_rules::{self as rules, Scope},
};
use crate::{
    app::App,
    reply::{Answer, ApiError, Outcome},
    secret_files,
    store::{Reader, StoreError, Writer, typed},
    view::time_or_null,
    world::{
        environments::{self, Contents, Environment, SecretFile},
        ids,
        pins::Pin,
        repositories::{DEFAULT_BRANCH, Repository, Selected},
        sandboxes::Sandbox,
        time::{Millis, iso},
    },
};

pub(super) fn list(app: &App, call: &Call) -> Outcome {
    let scope = Scope::of(call);
    scope.prepare(app)?;
    app.read(|tx| Ok(Answer::ok("environments.list", show_all(tx, call, &scope)?)))
}

fn show_all(tx: &dyn Reader, call: &Call, scope: &Scope) -> Result<Value, ApiError> {
    let mut shown = Vec::new();
    for environment in environments::of_owner(tx, &scope.owner)? {
        if call.caller.key.covers_environment(&environment.id) {
            shown.push(show(tx, &environment)?);
        }
    }
    Ok(json!({"environments": shown}))
}

fn show(tx: &dyn Reader, environment: &Environment) -> Result<Value, StoreError> {
    let latest = environments::latest(tx, environment)?;
    let contents = &latest.contents;
    let versions = environments::versions(tx, &environment.id)?;
    let show_version = |version: &environments::Summary| {
        json!({
            "id": version.id,
            "versionNumber": version.number,
            "sandboxCount": version.sandboxes,
            "createdAt": iso(version.created_at),
        })
    };
    Ok(json!({
        "id": environment.id,
        "name": environment.name,
        "isDefault": environment.is_default,
        "latestVersionId": latest.id,
        "latestVersionNumber": latest.number,
        "safetyAnsweredAt": time_or_null(environment.safety_answered_at),
        "safeForThirdParties": contents.safe_for_third_parties,
        "passGithub": contents.pass_github,
        "passSecrets": contents.pass_secrets,
        "passSandboxCredentials": contents.pass_sandbox_credentials,
        "passAgentsCredentials": contents.pass_agents_credentials,
        "envContents": contents.env,
        "secretFiles": show_files(&contents.secret_files),
        "selectedRepositories": show_selected(&contents.repositories),
        "versions": versions.iter().map(show_version).collect::<Vec<_>>(),
    }))
}

/// Secret files, with their contents.
pub(super) fn show_files(files: &[SecretFile]) -> Vec<Value> {
    files.iter().map(|file| json!({"path": file.path, "contents": file.contents})).collect()
}

/// Repositories that an environment brings along.
pub(super) fn show_selected(all: &[Selected]) -> Vec<Value> {
    let show = |selected: &Selected| {
        let mut shown = show_repository(&selected.repository);
        shown["baseBranch"] = selected.branch.as_str().into();
        shown["setupRoutineId"] = Value::Null;
        shown["setupScript"] = selected.setup_script.as_deref().into();
        shown["setupBlocking"] = selected.setup_blocking.into();
        shown
    };
    all.iter().map(show).collect()
}

/// A repository.
pub(super) fn show_repository(repository: &Repository) -> Value {
    json!({
        "id": i64::try_from(repository.number).unwrap_or(i64::MAX),
        "databaseId": repository.database_id(),
        "name": repository.name(),
        "fullName": repository.full_name,
        "description": repository.description,
        "url": format!("https://github.com/{}", repository.full_name),
        "private": repository.is_private,
        "permissions": repository.permissions,
        "pushedAt": time_or_null(repository.pushed_at),
        "lastUserCommitAt": null,
    })
}

pub(super) fn create(app: &App, call: &Call) -> Outcome {
    let scope = Scope::to_change(call)?;
    if call.caller.key.environments.is_some() {
        let problem = "the API key is limited to environments that are there already";
        return Err(ApiError::new(403, "forbidden", problem));
    }
    let name = call.text("name").unwrap_or_default();
    let now = app.now();
    app.write(|tx| {
        environments::ensure_default(tx, &scope.owner, now)?;
        if environments::by_name(&*tx, &scope.owner, name)?.is_some() {
            let problem = "there is an environment of that name";
            return Err(ApiError::new(409, "create_failed", problem)
                .retryable(false)
                .detail("field", "name"));
        }
        let blank = environments::blank(ids::new_uuid(), &scope.owner, name, now);
        environments::make(tx, blank, Contents::default(), now)?;
        Ok(Answer::ok("environment.created", show_all(&*tx, call, &scope)?))
    })
}

pub(super) fn update(app: &App, call: &Call) -> Outcome {
    let scope = Scope::to_change(call)?;
    scope.prepare(app)?;
    let now = app.now();
    let files = rules::secret_files(call)?;
    if let Some(text) = call.text("envContents") {
        rules::check_env(text, "envContents")?;
    }
    app.write(|tx| {
        let mut environment = scope.environment(&*tx, call)?;
        if call.text("credentialProfileId").is_some() {
            // Nothing makes one here.
            let problem = "there is no credential profile of that id";
            return Err(ApiError::new(404, "credential_profile_not_found", problem)
                .retryable(false)
                .detail("field", "credentialProfileId"));
        }
        let before = environments::latest(&*tx, &environment)?.contents;
        let after = changed(&*tx, call, before.clone(), files)?;
        rename(tx, &scope, &mut environment, call)?;
        match call.body.get("isDefault").and_then(Value::as_bool) {
            Some(true) => environments::make_default(tx, &mut environment)?,
            Some(false) if environment.is_default => {
                let problem = "one environment is the default; make another one that";
                return Err(update_failed(problem).detail("field", "isDefault"));
            }
            _ => {}
        }
        if call.body.get("safeForThirdParties").is_some_and(Value::is_boolean) {
            environment.safety_answered_at = Some(now);
        }
        match after == before {
            true => typed::put(tx, &environment)?,
            false => drop(environments::add_version(tx, &mut environment, after, now)?),
        }
        let body = json!({"success": true, "environment": show(&*tx, &environment)?});
        Ok(Answer::ok("environment.updated", body))
    })
}

fn update_failed(problem: &str) -> ApiError {
    ApiError::new(400, "update_failed", problem).retryable(false)
}

fn rename(
    tx: &dyn Reader,
    scope: &Scope,
    environment: &mut Environment,
    call: &Call,
) -> Result<(), ApiError> {
    let Some(name) = call.text("name") else { return Ok(()) };
    let holder = environments::by_name(tx, &scope.owner, name)?;
    if holder.is_some_and(|holder| holder.id != environment.id) {
        return Err(update_failed("another environment has that name").detail("field", "name"));
    }
    environment.name = name.to_owned();
    Ok(())
}

/// The contents with everything that a body gives in the place of what was.
fn changed(
    tx: &dyn Reader,
    call: &Call,
    mut contents: Contents,
    files: Option<Vec<SecretFile>>,
) -> Result<Contents, ApiError> {
    contents.safe_for_third_parties = call.flag_or("safeForThirdParties", contents.safe_for_third_parties);
    contents.pass_github = call.flag_or("passGithub", contents.pass_github);
    contents.pass_secrets = call.flag_or("passSecrets", contents.pass_secrets);
    contents.pass_sandbox_credentials =
        call.flag_or("passSandboxCredentials", contents.pass_sandbox_credentials);
    contents.pass_agents_credentials =
        call.flag_or("passAgentsCredentials", contents.pass_agents_credentials);
    if let Some(text) = call.text("envContents") {
        text.clone_into(&mut contents.env);
    }
    contents.secret_files = files.unwrap_or(contents.secret_files);
    if let Some(given) = call.body.get("repositories").and_then(Value::as_array) {
        let mut selected: Vec<Selected> = Vec::new();
        for repository in given {
            let text = |name: &str| repository[name].as_str().map(str::to_owned);
            let found = rules::repository(tx, call, &text("repositoryId").unwrap_or_default())?;
            // Of one that is named twice, the last counts.
            selected.retain(|known| known.repository.number != found.number);
            selected.push(Selected {
                repository: found,
                branch: text("baseBranch").unwrap_or_else(|| DEFAULT_BRANCH.to_owned()),
                setup_script: text("setupScript"),
                setup_blocking: repository["setupBlocking"].as_bool().unwrap_or(false),
            });
        }
        contents.repositories = selected;
    }
    Ok(contents)
}

pub(super) fn delete(app: &App, call: &Call) -> Outcome {
    let scope = Scope::to_change(call)?;
    scope.prepare(app)?;
    let now = app.now();
    app.write(|tx| {
        let mut environment = scope.environment(&*tx, call)?;
        if environment.is_default {
            return Err(update_failed("the default environment cannot be removed"));
        }
        environment.deleted_at = Some(now);
        typed::put(tx, &environment)?;
        Ok(Answer::ok("environment.deleted", json!({"success": true})))
    })
}

/// Which sandboxes were given another version, and how many could not be.
#[derive(Default)]
struct Moved {
    live: Vec<(String, Option<Pin>)>,
    stopped: u64,
    failed: u64,
}

pub(super) async fn upgrade(app: &Arc<App>, call: &Call) -> Outcome {
    let scope = Scope::to_change(call)?;
    scope.prepare(app)?;
    let now = app.now();
    let asked: Option<Vec<&str>> = call
        .body
        .get("agentIds")
        .and_then(Value::as_array)
        .map(|ids| ids.iter().filter_map(Value::as_str).collect());
    let (latest, moved) = app.write(|tx| {
        let environment = scope.environment(&*tx, call)?;
        let latest = environments::latest(&*tx, &environment)?;
        let pin = Pin::new(&environment, &latest);
        let mut moved = Moved::default();
        let older = environments::outdated(&*tx, &environment)?;
        for id in &older {
            let Some(sandbox) = typed::get::<Sandbox>(&*tx, id)? else { continue };
            let is_asked = asked.as_ref().is_none_or(|asked| asked.contains(&sandbox.id.as_str()));
            if is_asked && sandbox.account == call.caller.account.id && call.caller.key.covers(&sandbox.id) {
                move_to(app, tx, sandbox, &pin, now, &mut moved)?;
            }
        }
        Ok::<_, ApiError>((latest, moved))
    })?;
    let Moved { live, stopped, mut failed } = moved;
    let mut upgraded_live = 0;
    for (id, before) in live {
        match push_or_take_back(app, &id, before).await? {
            true => upgraded_live += 1,
            false => failed += 1,
        }
    }
    let body = json!({
        "success": true,
        "upgraded": upgraded_live + stopped,
        "upgradedLive": upgraded_live,
        "upgradedStopped": stopped,
        "failed": failed,
        "latestVersionId": latest.id,
    });
    Ok(Answer::ok("environment.upgraded", body))
}

/// Gives a sandbox another version; one that is up and cannot be reached keeps its own.
fn move_to(
    app: &App,
    tx: &mut dyn Writer,
    mut sandbox: Sandbox,
    pin: &Pin,
    now: Millis,
    moved: &mut Moved,
) -> Result<(), StoreError> {
    if app.scenarios().cut_off(&sandbox) {
        moved.failed += 1;
        return Ok(());
    }
    match sandbox.state.is_up() || sandbox.state.is_starting() {
        true => moved.live.push((sandbox.id.clone(), Pin::of(&sandbox))),
        false => moved.stopped += 1,
    }
    pin.clone().give(&mut sandbox);
    sandbox.updated_at = now;
    typed::put(tx, &sandbox)
}

/// Brings the files of the new version to a sandbox; one that cannot take them keeps the version that it had.
async fn push_or_take_back(app: &App, id: &str, before: Option<Pin>) -> Result<bool, ApiError> {
    let Err(problem) = secret_files::push(app, id).await else { return Ok(true) };
    tracing::warn!(sandbox = %id, %problem, "a sandbox did not take a version of its environment");
    app.write(|tx| {
        if let (Some(mut sandbox), Some(before)) = (typed::get::<Sandbox>(&*tx, id)?, before) {
            before.give(&mut sandbox);
            typed::put(tx, &sandbox)?;
        }
        Ok::<_, StoreError>(())
    })?;
    if let Err(problem) = secret_files::push(app, id).await {
        tracing::warn!(sandbox = %id, %problem, "nor did it get its earlier one back");
    }
    Ok(false)
}

/// Moves the sandboxes of an owner that are up, or on their way, to the latest version of an environment; answers with how
/// many were and how many could not be.
pub(super) async fn push_to_active(app: &App, environment: &Environment) -> Result<(u64, u64), ApiError> {
    let now = app.now();
    let moved = app.write(|tx| {
        let latest = environments::latest(&*tx, environment)?;
        let pin = Pin::new(environment, &latest);
        let mut moved = Moved::default();
        for id in environments::active_in(&*tx, environment)? {
            if let Some(sandbox) = typed::get::<Sandbox>(&*tx, &id)?
                && sandbox.environment_id.as_ref() == Some(&environment.id)
            {
                move_to(app, tx, sandbox, &pin, now, &mut moved)?;
            }
        }
        Ok::<_, ApiError>(moved)
    })?;
    let (mut updated, mut failed) = (0, moved.failed);
    for (id, before) in moved.live {
        match push_or_take_back(app, &id, before).await? {
            true => updated += 1,
            false => failed += 1,
        }
    }
    Ok((updated, failed))
}
