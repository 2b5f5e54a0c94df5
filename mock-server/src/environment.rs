//! What a command finds around it: variables, shell, files.

use std::{collections::BTreeMap, path::Path, sync::OnceLock};

use crate::{
    app::App,
    space::{FileError, Files, Owner},
    text::head,
    world::{machine_keys, pins, sandboxes::Sandbox},
};

/// The whole environment of a command: the usual variables, then those of the sandbox's environment, then the sandbox's own,
/// then the command's; the later ones win, but for those that the service keeps for itself.
pub(crate) fn variables(app: &App, sandbox: &Sandbox, own: &[(String, String)]) -> Vec<(String, String)> {
    const USUAL: [(&str, &str); 6] = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/home/user"),
        ("USER", "user"),
        ("LOGNAME", "user"),
        ("LANG", "C.UTF-8"),
        ("SHELL", "/bin/sh"),
    ];
    let mut all = BTreeMap::new();
    for (name, value) in USUAL {
        all.insert(name, value);
    }
    if bash().is_some() {
        all.insert("SHELL", "/bin/bash");
    }
    let given = given(app, sandbox);
    all.extend(given.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    all.extend(sandbox.env.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    all.extend(own.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    all.insert("SANDBOXER_ID", &sandbox.id);
    let (token, url) = (token(app, sandbox), app.url());
    all.extend(token.as_deref().map(|token| ("SANDBOXER_TOKEN", token)));
    all.extend(url.as_deref().map(|url| ("SANDBOXER_API_URL", url)));
    all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The variables of the sandbox's environment.
fn given(app: &App, sandbox: &Sandbox) -> BTreeMap<String, String> {
    let contents = app
        .read(|tx| pins::contents(tx, sandbox))
        .inspect_err(|error| tracing::error!(%error, "the environment of a sandbox could not be read"));
    contents.ok().flatten().map(|contents| contents.variables()).unwrap_or_default()
}

/// The key that the sandbox's own commands call the API with, if it is given one.
fn token(app: &App, sandbox: &Sandbox) -> Option<String> {
    if !machine_keys::is_given(sandbox) {
        return None;
    }
    app.read(|tx| machine_keys::secret(tx, &sandbox.id))
        .inspect_err(|error| tracing::error!(%error, "the key of a sandbox could not be told"))
        .ok()
}

/// The most bytes of a line that go in one argument: less than Linux takes, which is 128 KiB.
const ARGUMENT: usize = 96 << 10;

/// Puts a line back together that came in pieces; the line itself finds no arguments and no trace of that.
const JOIN: &str =
    "IFS=; _sandboxer_line=\"unset _sandboxer_line; $*\"; IFS=' \t\n'; set --; eval \"$_sandboxer_line\"";

/// The argument list that runs a shell line.
pub(crate) fn shell(line: &str) -> Vec<String> {
    let shell = bash().unwrap_or("sh");
    if line.len() <= ARGUMENT {
        return [shell, "-c", line].map(str::to_owned).into();
    }
    let mut arguments: Vec<String> = [shell, "-c", JOIN, shell].map(str::to_owned).into();
    let mut rest = line;
    while !rest.is_empty() {
        let (piece, left) = rest.split_at(head(rest, ARGUMENT).len());
        arguments.push(piece.to_owned());
        rest = left;
    }
    arguments
}

/// Bash, if this system has one; sandboxes see the same system.
fn bash() -> Option<&'static str> {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found =
        FOUND.get_or_init(|| ["/bin/bash", "/usr/bin/bash"].iter().any(|path| Path::new(path).exists()));
    found.then_some("bash")
}

/// The files of a sandbox.
pub(crate) fn files(app: &App, id: &str) -> Result<Files, FileError> {
    let space = app.space(id);
    let owner = match app.runner.owner() {
        Some(owner) => Owner { uid: owner.uid, gid: owner.gid },
        None => Owner::current(),
    };
    Ok(Files::open(&space.root, owner)?.drafting_in(app.scratch()))
}
