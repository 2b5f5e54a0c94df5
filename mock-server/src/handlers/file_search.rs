//! Looking for files by name and for text in them, and replacing text.

use std::sync::Arc;

use memchr::memmem::Finder;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Call,
    file_tree::{folder, text},
    files::{change, file_error, look, open},
};
use crate::{
    app::App,
    patterns,
    reply::{Answer, ApiError, Outcome},
    space::{FILE_LIMIT, FileError, Files, Found, Leaf, SHOWN},
};

/// How many paths a search finds.
const PATHS: usize = 10_000;

/// How many lines are found.
const LINES: usize = 1_000;

/// Whether a line is one of those looked for.
type Fits = Box<dyn Fn(&[u8]) -> bool + Send>;

/// Tells a search on another thread when nobody waits for it any more.
fn leash(app: &App) -> (DropGuard, CancellationToken) {
    let token = app.closing.child_token();
    (token.clone().drop_guard(), token)
}

fn unreadable() -> ApiError {
    ApiError::invalid("invalid_pattern", "pattern", "cannot be read")
}

fn answer<T>(kind: &str, field: &str, found: Found<T>, view: impl Fn(T) -> Value) -> Answer {
    let answer = Answer::ok(kind, json!({"success": true, "truncated": found.is_cut}))
        .with(field, found.found.into_iter().map(view).collect::<Vec<_>>());
    match found.problems.is_empty() {
        true => answer,
        false => answer.with("errors", found.problems),
    }
}

pub(super) async fn search(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let path = folder(call);
    let glob = patterns::glob(call.query("pattern").unwrap_or_default()).ok_or_else(unreadable)?;
    let files = open(app, &sandbox, path, "path", Leaf::Followed).await?;
    let (_leash, token) = leash(app);
    let found = look(&files, path, "path", move |files, path| {
        let fits = |name: &[u8]| glob.is_match(&String::from_utf8_lossy(name));
        files.search_blocking(path, PATHS, fits, || token.is_cancelled())
    });
    Ok(answer("file.search", "files", found.await?, |path| text(&path).into()))
}

pub(super) async fn find(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let path = folder(call);
    let pattern = call.query("pattern").unwrap_or_default();
    let fits: Fits = match call.query("regex") {
        Some("true") => {
            let expression = patterns::extended(pattern).ok_or_else(unreadable)?;
            Box::new(move |line| expression.is_match(&String::from_utf8_lossy(line)))
        }
        _ => {
            let finder = Finder::new(pattern).into_owned();
            Box::new(move |line| finder.find(line).is_some())
        }
    };
    let files = open(app, &sandbox, path, "path", Leaf::Followed).await?;
    let (_leash, token) = leash(app);
    let found = look(&files, path, "path", move |files, path| {
        files.find_blocking(path, LINES, fits, || token.is_cancelled())
    });
    Ok(answer("file.find", "matches", found.await?, |line| {
        let content: String = String::from_utf8_lossy(&line.bytes).chars().take(SHOWN).collect();
        json!({"file": text(&line.file), "line": line.number, "content": content})
    }))
}

pub(super) async fn replace(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let paths: Vec<String> = call.body["paths"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|path| path.as_str().map(str::to_owned))
        .collect();
    let pattern = call.text("pattern").unwrap_or_default().to_owned();
    let new_value = call.text("newValue").unwrap_or_default().to_owned();
    // What is wrong with a path is told beside it; here only whether there is a disk to look at.
    open(app, &sandbox, ".", "paths", Leaf::Followed).await?;
    let results = change(app, &sandbox, move |files| {
        let finder = Finder::new(&pattern);
        let results = paths.into_iter().map(|path| match replace_in(files, &path, &finder, new_value.as_bytes()) {
            Ok(count) => json!({"file": path, "success": true, "replacements": count}),
            Err(error) => {
                let error = file_error(error, "the path");
                json!({"file": path, "success": false, "error": format!("{}: {}", error.code(), error.message())})
            }
        });
        Ok(results.collect::<Vec<_>>())
    });
    Ok(Answer::ok("file.replaced", json!({"success": true})).with("results", results.await?))
}

/// Replaces every occurrence in one file; tells how many there were.
fn replace_in(files: &Files, path: &str, finder: &Finder<'_>, new: &[u8]) -> Result<usize, FileError> {
    let old = files.read_blocking(path, FILE_LIMIT)?;
    let count = finder.find_iter(&old).count();
    if count == 0 {
        return Ok(0);
    }
    // Looked at before it is made: a short text that is replaced by a long one is soon too much for any memory.
    let kept = old.len() - count * finder.needle().len();
    let size = count.saturating_mul(new.len()).saturating_add(kept) as u64;
    if size > FILE_LIMIT {
        return Err(FileError::TooLarge { limit: FILE_LIMIT, size });
    }
    let mut whole = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    let mut from = 0;
    for at in finder.find_iter(&old) {
        whole.extend_from_slice(&old[from..at]);
        whole.extend_from_slice(new);
        from = at + finder.needle().len();
    }
    whole.extend_from_slice(&old[from..]);
    files.write_blocking(path, &whole, FILE_LIMIT)?;
    Ok(count)
}
