//! Small files in and out, and artifacts.

use std::sync::Arc;

use axum::body::Body;
use base64::{Engine as _, engine::general_purpose};
use serde_json::json;

use super::{Call, hold_until_up, not_ready, not_running, scenarios::cut_off};
use crate::{
    app::App,
    environment,
    reply::{Answer, ApiError, Outcome},
    space::{self, ARTIFACT_LIMIT, FILE_LIMIT, FileError, Files, Leaf},
    store::typed,
    world::sandboxes::{Sandbox, State},
};

/// What went wrong with a file, in the service's words; `field` is the parameter that named it.
pub(super) fn file_error(error: FileError, field: &str) -> ApiError {
    match error {
        FileError::InvalidPath { reason } => {
            ApiError::new(400, "invalid_path", format!("{field} must lead into /home/user or /tmp: {reason}"))
                .detail("field", field)
        }
        FileError::NotFound => ApiError::new(404, "path_not_found", format!("there is no file at {field}")),
        FileError::IsDirectory => ApiError::invalid("invalid_path", field, "names a folder, not a file"),
        FileError::NotRegular => {
            ApiError::invalid("invalid_path", field, "names a pipe, socket or device, not a file")
        }
        FileError::NotFolder => ApiError::invalid("not_a_folder", field, "names something that is no folder"),
        FileError::Root => ApiError::invalid("invalid_path", field, "names /home/user or /tmp itself"),
        FileError::TooLarge { limit, size } => {
            ApiError::new(400, "file_too_large", format!("{size} bytes are more than the limit of {limit}"))
                .detail("limit", limit)
                .detail("size", size)
        }
        other => ApiError::new(502, "sandbox_direct_failed", other.to_string()).retryable(false),
    }
}

/// Waits until the files can be had. The path, which `field` names, is judged first, also when the sandbox is stopped.
pub(super) async fn open(
    app: &Arc<App>,
    sandbox: &Sandbox,
    path: &str,
    field: &str,
    leaf: Leaf,
) -> Result<Files, ApiError> {
    let outside = || file_error(FileError::InvalidPath { reason: "it leads outside" }, field);
    let live = app.live(sandbox);
    let state = *live.watch().borrow();
    if state.is_starting() {
        if is_outside(path) {
            return Err(outside());
        }
        hold_until_up(app, &live).await?;
        // While it was starting, no scenario came between.
        let sandbox: Option<Sandbox> = app.read(|tx| typed::get(tx, &sandbox.id))?;
        if let Some(error) = sandbox.and_then(|sandbox| cut_off(app, &sandbox)) {
            return Err(error);
        }
    }
    let files = match environment::files(app, &sandbox.id) {
        Ok(files) => Some(files),
        // A disk that was never made or is erased: only the path itself can be judged.
        Err(FileError::NotFound) => None,
        Err(error) => return Err(file_error(error, field)),
    };
    match &files {
        Some(files) => look(files, path, field, move |files, path| files.judge_blocking(path, leaf)).await?,
        None if is_outside(path) => return Err(outside()),
        None => {}
    }
    let state = *live.watch().borrow();
    match (state, files) {
        (state, Some(files)) if state.is_up() => Ok(files),
        (State::Archived | State::Archiving, _) => Err(not_running(state)),
        (state, _) => Err(not_ready(state)),
    }
}

/// Does something with a path, away from the async threads.
pub(super) async fn look<T: Send + 'static>(
    files: &Files,
    path: &str,
    field: &str,
    work: impl FnOnce(&Files, &str) -> Result<T, FileError> + Send + 'static,
) -> Result<T, ApiError> {
    let (files, path) = (files.clone(), path.to_owned());
    space::off_thread(move || work(&files, &path)).await.map_err(|error| file_error(error, field))
}

/// Changes the files of a sandbox that is up. Whoever stops it waits for this: what is written is on the disk that the stop
/// keeps.
pub(super) async fn change<T: Send + 'static>(
    app: &Arc<App>,
    sandbox: &Sandbox,
    work: impl FnOnce(&Files) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let (app, sandbox) = (app.clone(), sandbox.clone());
    let tasks = app.tasks.clone();
    // On its own: also if the caller goes away meanwhile, it has its turn until it is done.
    let done = tasks.spawn(async move {
        let live = app.live(&sandbox);
        let _turn = live.turn.read().await;
        let state = *live.watch().borrow();
        if !state.is_up() {
            return Err(not_running(state));
        }
        // Opened anew: since the path was judged the sandbox may have been brought back with another disk.
        let files = environment::files(&app, &sandbox.id).map_err(|error| file_error(error, "path"))?;
        let done = tokio::task::spawn_blocking(move || work(&files)).await;
        done.unwrap_or_else(|lost| Err(ApiError::internal(lost)))
    });
    done.await.unwrap_or_else(|lost| Err(ApiError::internal(lost)))
}

/// Whether a path leads outside by its text alone.
pub(super) fn is_outside(path: &str) -> bool {
    let full = if path.starts_with('/') { path.to_owned() } else { format!("/home/user/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in full.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    !(parts.starts_with(&["home", "user"]) || parts.starts_with(&["tmp"])) || path.contains('\0')
}

pub(super) async fn read(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let path = call.query("path").unwrap_or_default();
    let files = open(app, &sandbox, path, "path", Leaf::Followed).await?;
    let bytes = files.read(path, FILE_LIMIT).await.map_err(|error| file_error(error, "path"))?;
    let is_base64 = call.query("encoding") == Some("base64");
    let content = match is_base64 {
        true => general_purpose::STANDARD.encode(&bytes),
        false => String::from_utf8_lossy(&bytes).into_owned(),
    };
    let body = json!({
        "success": true,
        "path": path,
        "encoding": if is_base64 { "base64" } else { "utf8" },
        "size": bytes.len(),
        "content": content,
    });
    Ok(Answer::ok("file.read", body))
}

pub(super) async fn write(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let path = call.text("path").unwrap_or_default();
    let content = call.text("content").unwrap_or_default();
    let is_base64 = call.text("encoding") == Some("base64");
    let bytes = match is_base64 {
        true => general_purpose::STANDARD
            .decode(content)
            .map_err(|_| ApiError::invalid("invalid_request", "content", "is not base64"))?,
        false => content.as_bytes().to_vec(),
    };
    open(app, &sandbox, path, "path", Leaf::Followed).await?;
    let to = path.to_owned();
    let written = change(app, &sandbox, move |files| {
        files.write_blocking(&to, &bytes, FILE_LIMIT).map_err(|error| file_error(error, "path"))
    })
    .await?;
    let body = json!({
        "success": true,
        "path": path,
        "encoding": if is_base64 { "base64" } else { "utf8" },
        "size": written.size,
    });
    Ok(Answer::ok("file.written", body))
}

pub(super) async fn artifact(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let path = call.query("path").unwrap_or_default();
    let files = open(app, &sandbox, path, "path", Leaf::Followed).await?;
    let stream = files.stream(path, ARTIFACT_LIMIT).await.map_err(|error| file_error(error, "path"))?;
    let size = stream.size();
    Ok(Answer::Bytes(Body::from_stream(stream), size))
}

#[cfg(test)]
mod tests {
    use super::{change, is_outside};
    use crate::{
        testing::{Setting, guarded},
        world::sandboxes::State,
    };

    #[tokio::test]
    async fn a_change_has_its_turn_until_it_is_done_though_nobody_waits_for_it() {
        let set = Setting::new();
        let sandbox = set.sandbox(State::Ready).await;
        let (begun, at_work) = tokio::sync::oneshot::channel();
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let changing = change(&set.app, &sandbox, move |_| {
            let _ = begun.send(());
            let _ = wait.recv();
            Ok(())
        });
        tokio::select! {
            ended = changing => panic!("{:?}", ended.map_err(|error| error.message().to_owned())),
            at_work = at_work => at_work.unwrap(),
        }
        let live = set.app.live(&sandbox);
        assert!(live.turn.try_write().is_err());
        go_on.send(()).unwrap();
        drop(guarded(live.turn.write()).await);
    }

    #[test]
    fn paths_are_judged_by_their_text_when_there_is_no_disk() {
        for inside in ["a", "./a/../b", "/home/user", "/tmp/x", "../user/x", "/home/../tmp"] {
            assert!(!is_outside(inside), "{inside}");
        }
        for outside in ["/etc/passwd", "..", "../..", "/", "/home", "/home/user2", "/tmp/../etc", "a\0b"] {
            assert!(is_outside(outside), "{outside:?}");
        }
    }
}
