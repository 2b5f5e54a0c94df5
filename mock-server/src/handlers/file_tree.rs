//! Files and folders as things: what is there, new folders, moving, permissions, deleting.

use std::{ffi::OsStr, sync::Arc};

use serde_json::{Value, json};

use super::{
    Call,
    files::{change, file_error, look, open},
};
use crate::{
    app::App,
    reply::{Answer, ApiError, Outcome},
    space::{FileEntry, FileError, HOME, Leaf, MoveError},
    world::time,
};

/// How many entries of a folder are listed.
const MOST: usize = 10_000;

/// A path as text; what is none is shown as near as can be.
pub(super) fn text(path: &OsStr) -> String {
    path.to_string_lossy().into_owned()
}

/// A folder that the query names, or the one where programs begin.
pub(super) fn folder(call: &Call) -> &str {
    call.query("path").unwrap_or(HOME)
}

fn view(entry: &FileEntry) -> Value {
    let (seconds, nanoseconds) = entry.modified;
    json!({
        "name": text(entry.name()),
        "path": text(&entry.path),
        "isDir": entry.is_folder,
        "isSymlink": entry.is_link,
        "size": entry.size,
        "mode": format!("{:04o}", entry.mode),
        "modifiedAt": time::iso(seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)),
    })
}

fn shown(kind: &str, entry: &FileEntry) -> Answer {
    Answer::ok(kind, view(entry)).with("success", true)
}

pub(super) async fn list(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let path = folder(call);
    let files = open(app, &sandbox, path, "path", Leaf::Followed).await?;
    let listed = look(&files, path, "path", |files, path| files.entries_blocking(path, MOST));
    let (path, entries, is_cut) = listed.await?;
    let body = json!({"success": true, "path": text(&path), "truncated": is_cut});
    Ok(Answer::ok("file.list", body).with("files", entries.iter().map(view).collect::<Vec<_>>()))
}

pub(super) async fn info(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let path = call.query("path").unwrap_or_default();
    let files = open(app, &sandbox, path, "path", Leaf::Itself).await?;
    let entry = look(&files, path, "path", |files, path| files.entry_blocking(path, Leaf::Itself)).await?;
    Ok(shown("file.info", &entry))
}

pub(super) async fn create_folder(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let path = call.text("path").unwrap_or_default().to_owned();
    let mode = mode(call);
    open(app, &sandbox, &path, "path", Leaf::Followed).await?;
    let entry = change(app, &sandbox, move |files| {
        files.make_folder_blocking(&path, mode).map_err(|error| file_error(error, "path"))
    });
    Ok(shown("folder.created", &entry.await?))
}

pub(super) async fn set_permissions(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let path = call.text("path").unwrap_or_default().to_owned();
    let mode = mode(call).unwrap_or_default();
    open(app, &sandbox, &path, "path", Leaf::Followed).await?;
    let entry = change(app, &sandbox, move |files| {
        files.set_mode_blocking(&path, mode).map_err(|error| file_error(error, "path"))
    });
    Ok(shown("file.permissions_set", &entry.await?))
}

/// The permission bits of the body; checked before.
fn mode(call: &Call) -> Option<u32> {
    call.text("mode").and_then(|digits| u32::from_str_radix(digits, 8).ok())
}

pub(super) async fn delete(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let path = call.query("path").unwrap_or_default().to_owned();
    let is_recursive = call.query("recursive") == Some("true");
    open(app, &sandbox, &path, "path", Leaf::Itself).await?;
    let gone = change(app, &sandbox, move |files| {
        files.remove_blocking(&path, is_recursive).map_err(|error| match error {
            FileError::IsDirectory => {
                ApiError::invalid("folder_not_empty", "path", "names a folder: only `recursive` removes it")
            }
            FileError::Root => {
                ApiError::invalid("folder_not_empty", "path", "names /home/user or /tmp, which stay")
            }
            error => file_error(error, "path"),
        })
    });
    Ok(Answer::ok("file.deleted", json!({"success": true, "path": text(&gone.await?)})))
}

pub(super) async fn rename(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let source = call.text("source").unwrap_or_default().to_owned();
    let destination = call.text("destination").unwrap_or_default().to_owned();
    let overwrite = call.flag("overwrite");
    open(app, &sandbox, &source, "source", Leaf::Itself).await?;
    open(app, &sandbox, &destination, "destination", Leaf::Itself).await?;
    let aside = app.scratch();
    let moved = change(app, &sandbox, move |files| {
        files.move_blocking(&source, &destination, overwrite, &aside).map_err(|error| match error {
            MoveError::Source(error) => file_error(error, "source"),
            MoveError::Destination(FileError::Exists) => {
                ApiError::invalid("already_exists", "destination", "names something that is there already")
            }
            // It leads through something that is no folder, or asks for one.
            MoveError::Destination(FileError::NotFound | FileError::NotFolder) => {
                ApiError::invalid("invalid_path", "destination", "leads through something that is no folder")
            }
            MoveError::Destination(error) => file_error(error, "destination"),
        })
    });
    let moved = moved.await?;
    let body = json!({"success": true, "path": text(&moved.from), "destination": text(&moved.to)});
    Ok(Answer::ok("file.moved", body))
}
