//! Whose environments a call is about, and what may be written into them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Call;
use crate::{
    app::App,
    reply::ApiError,
    store::{Reader, Writer},
    validate,
    world::{
        dotenv,
        environments::{self, Contents, Environment, SecretFile},
        repositories::{self, DEFAULT_BRANCH, Repository, Selected},
        time::Millis,
    },
};

/// The most bytes of an environment's variables as text, and how many variables.
const ENV_BYTES: usize = 64 << 10;
const VARIABLES: u64 = 100;

/// The most secret files of an environment, and the most bytes in them.
const SECRET_FILES: usize = 100;
const SECRET_BYTES: usize = 1 << 20;

/// Whose environments a call is about: the caller's own, or those of the organisation that `org` of the query names. What
/// a header says, and which wallet is active, does not count here.
pub(super) struct Scope {
    pub(super) owner: String,
    may_change: bool,
}

impl Scope {
    /// As the call says.
    pub(super) fn of(call: &Call) -> Self {
        let in_query = call.query("org").is_some_and(|named| !named.is_empty());
        let account = &call.caller.account.id;
        match &call.caller.organisation {
            Some(organisation) if in_query => Self {
                owner: format!("organisation/{}", organisation.id),
                may_change: organisation.member(account).is_some_and(|member| member.role == "owner"),
            },
            _ => Self { owner: format!("account/{account}"), may_change: true },
        }
    }

    /// The same, for a call that changes something: of an organisation's, its members use the environments and its owners
    /// change them.
    pub(super) fn to_change(call: &Call) -> Result<Self, ApiError> {
        let scope = Self::of(call);
        match scope.may_change {
            true => Ok(scope),
            false => Err(ApiError::new(
                403,
                "forbidden",
                "only owners of the organisation change the environments that it shares",
            )),
        }
    }

    /// The environment of the path.
    pub(super) fn environment(&self, tx: &dyn Reader, call: &Call) -> Result<Environment, ApiError> {
        let id = call.id("environmentId");
        let found = environments::by_id(tx, &self.owner, id)?;
        found.ok_or_else(|| ApiError::not_found("environment"))
    }

    /// Makes the environment that every owner begins with, if it is not there yet.
    pub(super) fn prepare(&self, app: &App) -> Result<(), ApiError> {
        match app.read(|tx| environments::default_of(tx, &self.owner))? {
            Some(_) => Ok(()),
            None => {
                app.write(|tx| environments::ensure_default(tx, &self.owner, app.now()))?;
                Ok(())
            }
        }
    }

    /// The default environment; refused to a key that is limited to others.
    pub(super) fn default(&self, tx: &dyn Reader, call: &Call) -> Result<Environment, ApiError> {
        let found = environments::default_of(tx, &self.owner)?;
        let found = found.ok_or_else(|| ApiError::not_found("environment"))?;
        match call.caller.key.covers_environment(&found.id) {
            true => Ok(found),
            false => Err(ApiError::new(403, "forbidden", "the API key may not use the default environment")),
        }
    }
}

/// Adds a version to an environment that differs from the latest by a change.
pub(super) fn change(
    tx: &mut dyn Writer,
    environment: &mut Environment,
    now: Millis,
    change: impl FnOnce(&dyn Reader, &mut Contents) -> Result<(), ApiError>,
) -> Result<environments::Version, ApiError> {
    let mut contents = environments::latest(&*tx, environment)?.contents;
    change(&*tx, &mut contents)?;
    Ok(environments::add_version(tx, environment, contents, now)?)
}

/// Refuses `.env` text that cannot be read, or whose variables may not be set.
pub(super) fn check_env(text: &str, field: &str) -> Result<(), ApiError> {
    if text.len() > ENV_BYTES {
        let allowed = format!("must not be longer than {ENV_BYTES} bytes in all");
        return Err(ApiError::invalid("invalid_env", field, allowed));
    }
    let variables = dotenv::parse(text).map_err(|bad| ApiError::invalid("invalid_env", field, bad))?;
    validate::check_env("invalid_env", field, &json!(variables), Some(VARIABLES))
}

/// Refuses a path that leads out of the work folder, or nowhere.
pub(super) fn check_secret_path(path: &str, field: &str) -> Result<(), ApiError> {
    match environments::is_secret_path(path) {
        true => Ok(()),
        false => Err(ApiError::invalid(
            "invalid_secret_path",
            field,
            "must be a path inside the work folder and relative to it, without . and ..",
        )),
    }
}

/// Refuses secret files that cannot all be there.
pub(super) fn check_secret_files(files: &[SecretFile], field: &str) -> Result<(), ApiError> {
    let refuse = |allowed: &str| Err(ApiError::invalid("invalid_secret_path", field, allowed));
    if files.len() > SECRET_FILES
        || files.iter().map(|file| file.contents.len()).sum::<usize>() > SECRET_BYTES
    {
        return refuse(&format!(
            "must not be more than {SECRET_FILES} files and {SECRET_BYTES} bytes in all"
        ));
    }
    let mut paths = BTreeSet::new();
    for file in files {
        check_secret_path(&file.path, field)?;
        if !paths.insert(file.path.as_str()) {
            return refuse("must not name a file twice");
        }
    }
    let is_folder = |path: &str| {
        paths
            .range(format!("{path}/").as_str()..)
            .next()
            .is_some_and(|next| next.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    };
    match paths.iter().any(|path| is_folder(path)) {
        true => refuse("must not name something both as a file and as a folder"),
        false => Ok(()),
    }
}

/// The secret files of a body; `None` if they were left out.
pub(super) fn secret_files(call: &Call) -> Result<Option<Vec<SecretFile>>, ApiError> {
    let Some(given) = call.body.get("secretFiles").and_then(Value::as_array) else { return Ok(None) };
    let text = |file: &Value, name: &str| file[name].as_str().unwrap_or_default().to_owned();
    let files: Vec<_> = given
        .iter()
        .map(|file| SecretFile { path: text(file, "path"), contents: text(file, "contents") })
        .collect();
    check_secret_files(&files, "secretFiles")?;
    Ok(Some(files))
}

/// A repository that the caller can reach.
pub(super) fn repository(tx: &dyn Reader, call: &Call, id: &str) -> Result<Repository, ApiError> {
    repositories::find(tx, &call.caller.account.id, id)?.ok_or_else(|| {
        ApiError::new(404, "repository_not_found", "the account can reach no repository of that number")
    })
}

/// Adds the repository that a body names, or changes its branch where it is.
pub(super) fn select(tx: &dyn Reader, call: &Call, contents: &mut Contents) -> Result<(), ApiError> {
    let repository = repository(tx, call, call.text("repositoryId").unwrap_or_default())?;
    let branch = call.text("baseBranch").unwrap_or(DEFAULT_BRANCH).to_owned();
    match contents.repositories.iter_mut().find(|it| it.repository.number == repository.number) {
        Some(known) => (known.repository, known.branch) = (repository, branch),
        None => contents.repositories.push(Selected {
            repository,
            branch,
            setup_script: None,
            setup_blocking: false,
        }),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> SecretFile {
        SecretFile { path: path.into(), contents: String::new() }
    }

    #[test]
    fn secret_files_stay_inside_and_apart() {
        let long = "n".repeat(256);
        for bad in ["", "/etc/key", "a/", "a//b", "./a", "a/./b", "..", "a/../../b", "a\0b", long.as_str()] {
            let refused = check_secret_files(&[file(bad)], "path").unwrap_err();
            assert_eq!(refused.code(), "invalid_secret_path", "{bad}");
        }
        check_secret_files(&[file("a"), file("a.b"), file("b/a"), file(".env"), file("a-b/c")], "path")
            .unwrap();
        for bad in [["a", "a"], ["a", "a/b"], ["a/b/c", "a/b"]] {
            assert!(check_secret_files(&bad.map(file), "path").is_err(), "{bad:?}");
        }
        check_secret_files(&["a", "a-", "a/b"].map(file), "path").unwrap_err();
    }

    #[test]
    fn variables_are_counted_and_their_names_checked() {
        check_env("A=1\nB=2", "envContents").unwrap();
        let many: String = (0..101).map(|n| format!("A{n}=1\n")).collect();
        for bad in ["nothing", "SANDBOXER_TOKEN=hush", many.as_str(), &"#".repeat(65_537)] {
            let refused = check_env(bad, "envContents").unwrap_err();
            assert_eq!(refused.code(), "invalid_env");
            assert!(!refused.message().contains("hush"));
        }
    }
}
