//! What is in a snapshot: the list of its files, one file, a folder as an archive.

use std::{ffi::CString, fs::File, path::Path};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::{Call, snapshots::find};
use crate::{
    app::App,
    ranges,
    reply::{Answer, ApiError, Outcome},
    snapshots::{self, Listed, Totals},
    space::frozen::{self, Entry, EntryKind, Frozen},
    store::typed,
    world::{ids, sandboxes::Sandbox, scenarios::Scenario, snapshots::Snapshot},
};

/// The folders of the base image that sandboxes can look into.
const BASE_IMAGE: [&str; 8] = ["bin", "etc", "lib", "lib32", "lib64", "libx32", "sbin", "usr"];

/// Why there is no list of a snapshot's files.
fn unlisted(app: &App, snapshot: &Snapshot) -> Result<Option<&'static str>, ApiError> {
    let sandbox: Option<Sandbox> = app.read(|tx| typed::get(tx, &snapshot.sandbox))?;
    let name = sandbox.map(|sandbox| sandbox.name).unwrap_or_default();
    let scenarios = app.scenarios();
    let is_on = |scenario| scenarios.is_on_named(scenario, &snapshot.sandbox, &name);
    Ok(match () {
        () if is_on(Scenario::LegacySnapshots) => Some("legacy_snapshot"),
        () if is_on(Scenario::UnindexedSnapshots) => Some("snapshot_not_indexed"),
        () => None,
    })
}

pub(super) async fn tree(app: &App, call: &Call) -> Outcome {
    // Held before it is looked up: what is found has its files.
    let _held = app.shelf.hold(call.id("snapshotId")).await;
    let snapshot = app.read(|tx| find(tx, call, call.id("snapshotId")))?;
    let listed = match unlisted(app, &snapshot)? {
        Some(reason) => Err(reason),
        None => {
            let path = app.shelf.inventory(&snapshot.id);
            match off_thread(move || snapshots::list(&path)).await? {
                Listed::Entries(entries, is_cut) => Ok((entries, is_cut)),
                Listed::TooMany => Err("inventory_too_large"),
            }
        }
    };
    let is_available = listed.is_ok();
    let reason = listed.as_ref().err().copied();
    let (entries, is_cut) = listed.unwrap_or_default();
    let mut body = json!({
        "snapshotId": snapshot.id,
        "sandboxId": snapshot.sandbox,
        "generation": snapshot.generation,
        "treeAvailable": is_available,
        "truncated": is_cut,
        "fileCount": snapshot.files,
        "totalSizeBytes": snapshot.bytes,
        "entries": entries,
    });
    if let Some(reason) = reason {
        body["reason"] = Value::from(reason);
    }
    Ok(Answer::ok("snapshot.tree", body))
}

/// What a path leads to.
enum Found {
    File(File, u64),
    Folder(Frozen, Totals),
    Link,
    Nothing,
}

pub(super) async fn file(app: &App, call: &Call) -> Outcome {
    let held = app.shelf.hold(call.id("snapshotId")).await;
    let snapshot = app.read(|tx| find(tx, call, call.id("snapshotId")))?;
    let refuse = |status, code, why: &str| ApiError::new(status, code, why).retryable(false);
    let missing = || refuse(404, "path_not_found", "there is nothing at this path of the snapshot");
    match unlisted(app, &snapshot)? {
        Some("legacy_snapshot") => {
            let why = "the snapshot is of an older kind, whose files cannot be read one by one";
            return Err(refuse(409, "legacy_snapshot", why));
        }
        Some(_) => {
            let why = "the list of the snapshot's files is not made yet";
            return Err(ApiError::new(409, "snapshot_not_indexed", why).retryable(true).retry_after(5));
        }
        None => {}
    }
    let path = call.query("path").unwrap_or_default();
    let names = frozen::names(path).ok_or_else(missing)?;
    let (disk, wanted) = (app.shelf.disk(&snapshot.id), names.clone());
    let wants_folder = path.ends_with('/');
    match off_thread(move || look(&disk, &wanted)).await? {
        Found::File(..) if wants_folder => Err(missing()),
        Found::File(file, size) => {
            let tag = format!("\"{}\"", &ids::digest(&format!("{} {path}", snapshot.id))[..32]);
            ranges::serve(&call.headers, file, size, &tag, &[("x-snapshot-entry-kind", "file")])
        }
        Found::Folder(tree, totals) => {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-tar"));
            headers.insert("x-snapshot-entry-kind", HeaderValue::from_static("dir"));
            headers.insert("x-snapshot-file-count", HeaderValue::from(totals.files));
            headers.insert("x-snapshot-total-size-bytes", HeaderValue::from(totals.bytes));
            // The disks of sandboxes hold nothing of the base image.
            headers.insert("x-snapshot-skipped-base-image-files", HeaderValue::from(0));
            let archive = snapshots::stream_folder(&app.tasks, tree, names, held);
            Ok(Answer::Raw(StatusCode::OK, headers, archive))
        }
        Found::Link => Err(refuse(409, "is_symlink", "a link has no content; ask for what it leads to")),
        Found::Nothing if is_of_base_image(&names) => Err(refuse(
            409,
            "base_image_file",
            "the file is one of the base image's, which snapshots do not hold",
        )),
        Found::Nothing => Err(missing()),
    }
}

fn look(disk: &Path, names: &[CString]) -> std::io::Result<Found> {
    let mut tree = Frozen::open(disk)?;
    Ok(match tree.find(names)? {
        Some(entry @ Entry { kind: EntryKind::File, .. }) => Found::File(tree.open_file(&entry)?, entry.size),
        Some(Entry { kind: EntryKind::Folder, .. }) => {
            let totals = Totals::below(&mut tree, names)?;
            Found::Folder(tree, totals)
        }
        Some(Entry { kind: EntryKind::Link, .. }) => Found::Link,
        Some(Entry { kind: EntryKind::Pipe, .. }) | None => Found::Nothing,
    })
}

/// Whether a path leads to a file that every machine has.
fn is_of_base_image(names: &[CString]) -> bool {
    let first = names.first().and_then(|name| name.to_str().ok());
    let path = [b"/", frozen::path_of(names).as_slice()].concat();
    first.is_some_and(|first| BASE_IMAGE.contains(&first)) && frozen::as_path(&path).is_file()
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(ApiError::internal)?;
    done.map_err(ApiError::internal)
}
