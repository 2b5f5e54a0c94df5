//! Repositories that environments bring along: checked out from folders of this machine, where the world names one.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use sandboxer::clock::{Clock as _, SystemClock};

use crate::{
    app::App,
    space,
    store::{
        StoreError,
        typed::{self, Record as _},
    },
    world::{
        pins,
        repositories::{Repository, Selected},
        sandboxes::Sandbox,
    },
};

/// How long git may take for one repository.
const LIMIT: Duration = Duration::from_secs(120);

/// Checks out the repositories of a sandbox's environment that its work folder does not have yet, before anything runs in
/// it, and hands back those that were. One that cannot be had is left out, and the log says why.
pub(crate) async fn bring(app: &App, id: &str) -> Result<Vec<Selected>, StoreError> {
    let contents = app.read(|tx| {
        let Some(sandbox) = typed::get::<Sandbox>(tx, id)? else { return Ok(None) };
        let mut contents = pins::contents(tx, &sandbox)?;
        for selected in contents.iter_mut().flat_map(|contents| &mut contents.repositories) {
            // Where its folder is on this machine is for the world to say, and no part of a version.
            if let Some(known) = typed::get::<Repository>(tx, &selected.repository.key())? {
                selected.repository.path = known.path;
            }
        }
        Ok::<_, StoreError>(contents)
    })?;
    let mut brought = Vec::new();
    for selected in contents.iter().flat_map(|contents| contents.checkouts()) {
        let Some(path) = &selected.repository.path else { continue };
        let name = selected.repository.name();
        let target = app.space(id).root.join("home/user").join(name);
        if target.symlink_metadata().is_ok() {
            continue;
        }
        // Not seen by anything that runs before it is complete; swept with the disks of nobody if it stays.
        let draft = app.spaces.join(format!("{id}.checkout"));
        match check_out(app, selected, Path::new(path), &draft, &target).await {
            Ok(()) => brought.push(selected.clone()),
            Err(problem) => {
                let repository = &selected.repository.full_name;
                tracing::warn!(sandbox = %id, %repository, %problem, "a repository was not checked out");
            }
        }
        if let Err(error) = space::remove_tree(draft).await {
            tracing::warn!(sandbox = %id, %error, "the draft of a checkout could not be removed");
        }
    }
    Ok(brought)
}

async fn check_out(
    app: &App,
    selected: &Selected,
    source: &Path,
    draft: &Path,
    target: &Path,
) -> io::Result<()> {
    if !source.is_dir() {
        return Err(io::Error::other(format!("{} is no folder", source.display())));
    }
    space::remove_tree(draft.to_owned()).await?;
    if source.join(".git").exists() || source.join("objects").is_dir() {
        let branch = format!("--branch={}", selected.branch);
        let clone = ["clone", "--quiet", "--no-hardlinks", &branch, "--"].map(OsStr::new);
        git(clone.into_iter().chain([source.as_os_str(), draft.as_os_str()])).await?;
        let origin = format!("https://github.com/{}.git", selected.repository.full_name);
        let at = [OsStr::new("-C"), draft.as_os_str()];
        git(at.into_iter().chain(["remote", "set-url", "origin", &origin].map(OsStr::new))).await?;
    } else {
        // A folder that is no repository has one branch: what is in it.
        space::copy_tree(source.to_owned(), draft.to_owned()).await?;
    }
    let (draft, target) = (draft.to_owned(), target.to_owned());
    let owner = app.runner.owner();
    tokio::task::spawn_blocking(move || {
        if let Some(owner) = owner {
            give_away(&draft, owner.uid, owner.gid)?;
        }
        std::fs::rename(draft, target)
    })
    .await
    .map_err(io::Error::other)?
}

/// Gives a tree that nobody else can reach to another user.
fn give_away(path: &PathBuf, uid: u32, gid: u32) -> io::Result<()> {
    std::os::unix::fs::lchown(path, Some(uid), Some(gid))?;
    if path.symlink_metadata()?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            give_away(&entry?.path(), uid, gid)?;
        }
    }
    Ok(())
}

/// Runs git without anything that is set on this machine.
async fn git(arguments: impl Iterator<Item = &OsStr>) -> io::Result<()> {
    let mut command = tokio::process::Command::new("git");
    command
        // The folders are those that the world names, whoever owns them.
        .args(["-c", "safe.directory=*"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    // About a real program, not about modelled time.
    let clock = SystemClock::new();
    let output = tokio::select! {
        output = command.output() => output?,
        () = clock.sleep(LIMIT) => return Err(io::Error::other("git did not end in time")),
    };
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}
