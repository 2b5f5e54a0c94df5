//! The secret files of environments in the work folders of sandboxes.

use std::collections::BTreeSet;

use crate::{
    app::App,
    environment,
    space::FileError,
    store::{StoreError, typed},
    world::{
        environments::SecretFile,
        pins::{self, Pin},
        sandboxes::Sandbox,
        snapshots::Snapshot,
    },
};

/// What is to be in the work folder, and what was put there before.
struct Plan {
    pin: Option<Pin>,
    wanted: Vec<SecretFile>,
    before: BTreeSet<String>,
}

/// Why the secret files in the work folder are not what they are to be.
pub(crate) struct NotPlaced {
    pub(crate) problem: String,
    /// Whether some that were there before may be there still.
    pub(crate) leaves_some: bool,
}

impl NotPlaced {
    fn unknown(error: impl std::fmt::Display) -> Self {
        Self { problem: error.to_string(), leaves_some: true }
    }
}

/// Brings the work folder in line with the version of the environment that the sandbox uses, and hands that back: the
/// files of earlier versions go, its own are written. All that can be done is done before a failure is reported.
///
/// The caller sees to it that the disk stays where it is meanwhile.
pub(crate) async fn place(app: &App, id: &str) -> Result<Option<Pin>, NotPlaced> {
    let find = || app.read(|tx| plan(tx, id)).map_err(NotPlaced::unknown);
    let Some((sandbox, plan)) = find()? else { return Ok(None) };
    if plan.wanted.is_empty() && plan.before.is_empty() {
        return Ok(plan.pin);
    }
    let live = app.live(&sandbox);
    let _turn = live.placing.lock().await;
    // It may have been changed by whoever had the turn before.
    let Some((_, Plan { pin, wanted, before })) = find()? else { return Ok(None) };
    let wanted_paths: BTreeSet<String> = wanted.iter().map(|file| file.path.clone()).collect();
    // Noted before they are written: a server that is killed in between still knows what to take away.
    note(app, id, before.union(&wanted_paths))?;
    let gone: Vec<String> = before.difference(&wanted_paths).cloned().collect();
    let files = environment::files(app, id).map_err(NotPlaced::unknown)?;
    let work = move || {
        let mut failed = Vec::new();
        let mut report = |path: String, result: Result<(), FileError>| {
            if let Err(error) = result {
                failed.push((path, error));
            }
        };
        for path in gone {
            let removed = files.remove_file_blocking(&path);
            report(path, removed);
        }
        for SecretFile { path, contents } in wanted {
            let written = files.write_secret_blocking(&path, contents.as_bytes());
            report(path, written.map(|_| ()));
        }
        failed
    };
    let failed = tokio::task::spawn_blocking(work).await.map_err(NotPlaced::unknown)?;
    let left = failed.iter().map(|(path, _)| path.clone()).collect();
    note(app, id, wanted_paths.union(&left))?;
    // Where a folder is by now, there is no such file any more.
    let is_left = |(path, error): &(String, FileError)| {
        before.contains(path) && !matches!(error, FileError::IsDirectory)
    };
    let leaves_some = failed.iter().any(is_left);
    match failed.first() {
        None => Ok(pin),
        Some((path, error)) => {
            Err(NotPlaced { problem: format!("the secret file {path}: {error}"), leaves_some })
        }
    }
}

fn plan(tx: &dyn crate::store::Reader, id: &str) -> Result<Option<(Sandbox, Plan)>, StoreError> {
    let Some(sandbox) = typed::get::<Sandbox>(tx, id)? else { return Ok(None) };
    let mut before: BTreeSet<String> = sandbox.secret_files.iter().cloned().collect();
    // One that is brought back from a snapshot has what was there then.
    if let Some(snapshot) = &sandbox.restore_from
        && let Some(snapshot) = typed::get::<Snapshot>(tx, snapshot)?
    {
        before.extend(snapshot.secret_files);
    }
    let contents = pins::contents(tx, &sandbox)?;
    let wanted = contents.map_or_else(Vec::new, |contents| contents.files().to_vec());
    let plan = Plan { pin: Pin::of(&sandbox), wanted, before };
    Ok(Some((sandbox, plan)))
}

fn note<'a>(app: &App, id: &str, paths: impl Iterator<Item = &'a String>) -> Result<(), NotPlaced> {
    let paths: Vec<String> = paths.cloned().collect();
    let noted = app.write(|tx| match typed::get::<Sandbox>(&*tx, id)? {
        Some(mut sandbox) if sandbox.secret_files != paths => {
            sandbox.secret_files = paths;
            typed::put(tx, &sandbox)
        }
        _ => Ok::<_, StoreError>(()),
    });
    noted.map_err(NotPlaced::unknown)
}

/// Brings the files of a sandbox that is up to the version that it uses since a moment ago; one that is on its way up or
/// down gets them when it is up the next time.
pub(crate) async fn push(app: &App, id: &str) -> Result<(), String> {
    let find = || app.read(|tx| typed::get::<Sandbox>(tx, id)).map_err(|error| error.to_string());
    let Some(sandbox) = find()? else { return Err("it is gone".into()) };
    if !sandbox.state.is_up() {
        return Ok(());
    }
    let live = app.live(&sandbox);
    let _turn = live.turn.read().await;
    match find()? {
        Some(sandbox) if sandbox.state.is_up() => {
            place(app, id).await.map(|_| ()).map_err(|failed| failed.problem)
        }
        Some(_) => Ok(()),
        None => Err("it is gone".into()),
    }
}
