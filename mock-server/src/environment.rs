//! What a command finds around it: variables, shell, files.

use std::{path::Path, sync::OnceLock};

use crate::{
    app::App,
    space::{FileError, Files, Owner},
    world::sandboxes::Sandbox,
};

/// The whole environment of a command: the usual variables, then the sandbox's, then its own; the later ones win.
pub(crate) fn variables(sandbox: &Sandbox, own: &[(String, String)]) -> Vec<(String, String)> {
    const USUAL: [(&str, &str); 6] = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/home/user"),
        ("USER", "user"),
        ("LOGNAME", "user"),
        ("LANG", "C.UTF-8"),
        ("SHELL", "/bin/sh"),
    ];
    let mut all = std::collections::BTreeMap::new();
    for (name, value) in USUAL {
        all.insert(name, value);
    }
    if bash().is_some() {
        all.insert("SHELL", "/bin/bash");
    }
    all.extend(sandbox.env.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    all.extend(own.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    all.insert("SANDBOXER_ID", &sandbox.id);
    all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The argument list that runs a shell line.
pub(crate) fn shell(line: &str) -> [String; 3] {
    [bash().unwrap_or("sh").to_owned(), "-c".to_owned(), line.to_owned()]
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
    Files::open(&space.root, owner)
}
