//! Single variables, secret files and repositories of an environment; each change makes a version.

use serde_json::json;

use super::{
    Call,
    environment_rules::{self as rules, Scope},
};
use crate::{
    app::App,
    reply::{Answer, ApiError, Outcome},
    store::Reader,
    validate,
    world::{
        dotenv,
        environments::{Contents, SecretFile},
    },
};

/// Makes the version that a change leads to.
fn change(
    app: &App,
    call: &Call,
    change: impl FnOnce(&dyn Reader, &mut Contents) -> Result<(), ApiError>,
) -> Outcome {
    let scope = Scope::to_change(call)?;
    scope.prepare(app)?;
    let version = app.write(|tx| {
        let mut environment = scope.environment(&*tx, call)?;
        rules::change(tx, &mut environment, app.now(), change)
    })?;
    let body = json!({"success": true, "versionId": version.id, "versionNumber": version.number});
    Ok(Answer::ok("environment.updated", body))
}

/// The name of a variable in the path.
fn name(call: &Call) -> Result<&str, ApiError> {
    let name = call.id("key");
    match validate::is_variable_name(name) {
        true => Ok(name),
        false => Err(ApiError::invalid(
            "invalid_key",
            "key",
            "must be 1 to 128 letters, digits and underscores, no digit first",
        )),
    }
}

/// Text that was checked when it was written cannot be read.
fn unreadable(bad: dotenv::BadLine) -> ApiError {
    ApiError::internal(format!("the variables of an environment: {bad}"))
}

pub(super) fn set_var(app: &App, call: &Call) -> Outcome {
    let name = name(call)?;
    let value = call.text("value").unwrap_or_default();
    change(app, call, |_, contents| {
        let text = dotenv::set(&contents.env, name, value).map_err(unreadable)?;
        rules::check_env(&text, "value")?;
        contents.env = text;
        Ok(())
    })
}

pub(super) fn delete_var(app: &App, call: &Call) -> Outcome {
    let name = name(call)?;
    change(app, call, |_, contents| {
        let text = dotenv::unset(&contents.env, name).map_err(unreadable)?;
        contents.env = text.ok_or_else(|| missing("variable of that name"))?;
        Ok(())
    })
}

pub(super) fn set_secret_file(app: &App, call: &Call) -> Outcome {
    let path = call.text("path").unwrap_or_default();
    let text = call.text("contents").unwrap_or_default().to_owned();
    change(app, call, |_, contents| {
        match contents.secret_files.iter_mut().find(|file| file.path == path) {
            Some(known) => known.contents = text,
            None => contents.secret_files.push(SecretFile { path: path.to_owned(), contents: text }),
        }
        rules::check_secret_files(&contents.secret_files, "path")
    })
}

pub(super) fn delete_secret_file(app: &App, call: &Call) -> Outcome {
    let path = call.query("path").unwrap_or_default();
    rules::check_secret_path(path, "path")?;
    change(app, call, |_, contents| {
        let before = contents.secret_files.len();
        contents.secret_files.retain(|file| file.path != path);
        match contents.secret_files.len() == before {
            true => Err(missing("secret file at that path")),
            false => Ok(()),
        }
    })
}

pub(super) fn add_repo(app: &App, call: &Call) -> Outcome {
    change(app, call, |tx, contents| rules::select(tx, call, contents))
}

pub(super) fn delete_repo(app: &App, call: &Call) -> Outcome {
    let id = call.id("repositoryId");
    change(app, call, |_, contents| {
        let before = contents.repositories.len();
        contents.repositories.retain(|selected| selected.repository.database_id() != id);
        match contents.repositories.len() == before {
            true => Err(missing("repository of that number")),
            false => Ok(()),
        }
    })
}

fn missing(what: &str) -> ApiError {
    ApiError::new(404, "not_found", format!("the environment has no {what}"))
}
