//! What of a snapshot can be downloaded to rebuild its disk, and the addresses where it is.

use std::{fs::File, sync::Arc};

use http::{Method, request};
use serde_json::{Value, json};

use super::{
    Call,
    snapshots::{find, kind},
};
use crate::{
    app::App,
    ranges,
    reply::{Answer, ApiError, Outcome},
    signed,
    snapshots::{self, Piece},
    store::typed,
    world::{
        ids,
        sandboxes::Sandbox,
        scenarios::Scenario,
        snapshots::{self as world, Snapshot},
        time::Millis,
    },
};

/// For how many seconds the addresses are good.
const GOOD_FOR: i64 = 3600;

/// Where the pieces are on the server; a name in the store follows.
pub(crate) const STORAGE: &str = "/storage/";

const RECONSTRUCT: &str = "Take the generations in ascending order. Put the chunks of a generation together in the order of \
                           chunkIndex, decompress them with zstd and unpack the tar archive over what is there. The \
                           archive of a generation after the first begins with the file .deleted: paths, each ended by a \
                           NUL, to be removed with all below them before the rest is unpacked.";

pub(super) async fn manifest(app: &Arc<App>, call: &Call) -> Outcome {
    // Held before it is looked up. What others build on is not removed: this keeps the last one, and with it all of them.
    let _held = app.shelf.hold(call.id("snapshotId")).await;
    let (snapshot, chain, is_legacy) = app.read(|tx| {
        let snapshot = find(tx, call, call.id("snapshotId"))?;
        let sandbox: Option<Sandbox> = typed::get(tx, &snapshot.sandbox)?;
        let name = sandbox.map(|sandbox| sandbox.name).unwrap_or_default();
        let is_legacy = app.scenarios().is_on_named(Scenario::LegacySnapshots, &snapshot.sandbox, &name);
        let chain = world::chain(tx, &snapshot)?;
        Ok::<_, ApiError>((snapshot, chain, is_legacy))
    })?;
    let until = app.now() + GOOD_FOR * 1000;
    if !snapshots::promise(app, &snapshot.id, until)? {
        return Err(ApiError::not_found("snapshot"));
    }
    let mut chunks = Vec::new();
    for snapshot in &chain {
        let pieces = snapshots::pieces(app, snapshot).await.map_err(ApiError::internal)?;
        for (index, piece) in pieces.iter().enumerate() {
            chunks.push(chunk(app, snapshot, index, piece, until)?);
        }
    }
    let inventory = match is_legacy {
        true => Value::Null,
        false => {
            let name = inventory_name(&snapshot.id);
            json!({"r2Key": name, "signedUrl": signed::address(app, &format!("{STORAGE}{name}"), until)?})
        }
    };
    let body = json!({
        "snapshotId": snapshot.id,
        "sandboxId": snapshot.sandbox,
        "kind": kind(&snapshot, is_legacy),
        "generation": snapshot.generation,
        "expiresInSeconds": GOOD_FOR,
        "reconstruct": RECONSTRUCT,
        "inventory": inventory,
        "chunks": chunks,
    });
    Ok(Answer::ok("snapshot.download", body))
}

fn chunk(
    app: &App,
    snapshot: &Snapshot,
    index: usize,
    piece: &Piece,
    until: Millis,
) -> Result<Value, ApiError> {
    let name = format!("snapshots/{}/{index}.tar.zst", snapshot.id);
    Ok(json!({
        "snapshotId": snapshot.id,
        "generation": snapshot.generation,
        "chunkIndex": index,
        "sizeBytes": piece.bytes,
        "sha256": piece.sha256,
        "signedUrl": signed::address(app, &format!("{STORAGE}{name}"), until)?,
        "r2Key": name,
    }))
}

fn inventory_name(id: &str) -> String {
    format!("snapshots/{id}/inventory.ndjson")
}

/// Answers a request for a piece: whoever has its address may have it.
pub(crate) async fn download(app: &App, head: &request::Parts) -> Outcome {
    let path = head.uri.path();
    if head.method != Method::GET {
        return Err(ApiError::new(405, "method_not_allowed", "this path takes GET").allow("GET"));
    }
    signed::check(app, path, head.uri.query().unwrap_or_default())?;
    let gone = || ApiError::new(404, "not_found", "what was at this address is gone");
    let mut parts = path.strip_prefix(STORAGE).unwrap_or_default().split('/');
    let (Some("snapshots"), Some(id), Some(name), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(gone());
    };
    let snapshot: Snapshot = app.read(|tx| typed::get(tx, id))?.ok_or_else(gone)?;
    let file = match name.strip_suffix(".tar.zst").map(str::parse) {
        Some(Ok(index)) => app.shelf.piece(&snapshot.id, index),
        Some(Err(_)) => return Err(gone()),
        None => app.shelf.inventory(&snapshot.id),
    };
    let opened = tokio::task::spawn_blocking(move || {
        let file = File::open(file)?;
        let size = file.metadata()?.len();
        Ok::<_, std::io::Error>((file, size))
    });
    let (file, size) = opened.await.map_err(ApiError::internal)?.map_err(|_| gone())?;
    ranges::serve(&head.headers, file, size, &format!("\"{}\"", &ids::digest(path)[..32]), &[])
}
