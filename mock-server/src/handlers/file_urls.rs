//! Addresses for one file each, which let in whoever has them, and what is answered there.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    sync::Arc,
};

use axum::body::Body;
use http::{Method, header, request};
use http_body_util::BodyExt as _;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::{
    Call,
    file_tree::text,
    files::{change, file_error, look, open},
    not_ready, not_running,
    scenarios::cut_off,
};
use crate::{
    app::App,
    environment, ranges,
    reply::{Answer, ApiError, Outcome},
    router, signed,
    space::{self, Draft, FileError, Leaf},
    store::typed,
    world::{
        ids,
        sandboxes::{Sandbox, State},
        time,
    },
};

/// Where the files are on the server: what may be done, the sandbox and the path follow.
const TRANSFERS: &str = "/transfers/";

/// For how many seconds an address is good unless the call says otherwise.
const GOOD_FOR: i64 = 900;

/// What stands for itself in a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What an address is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Up => "upload",
            Self::Down => "download",
        }
    }

    fn method(self) -> Method {
        match self {
            Self::Up => Method::PUT,
            Self::Down => Method::GET,
        }
    }
}

pub(super) async fn create_upload(app: &Arc<App>, call: &Call) -> Outcome {
    create(app, call, Way::Up).await
}

pub(super) async fn create_download(app: &Arc<App>, call: &Call) -> Outcome {
    create(app, call, Way::Down).await
}

async fn create(app: &Arc<App>, call: &Call, way: Way) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let path = call.text("path").unwrap_or_default();
    let files = open(app, &sandbox, path, "path", Leaf::Followed).await?;
    let canonical = look(&files, path, "path", move |files, path| {
        let canonical = files.target_blocking(path)?;
        if way == Way::Down {
            files.open_exactly_blocking(&canonical)?;
        }
        Ok(canonical)
    });
    let canonical = canonical.await?;
    let good_for = call.body["ttlSeconds"].as_i64().unwrap_or(GOOD_FOR);
    let until = app.now() + good_for * 1000;
    let url = signed::address(app, &place(way, &sandbox.id, &canonical), until)?;
    let body = json!({
        "url": url,
        "method": way.method().as_str(),
        "path": text(&canonical),
        "expiresAt": time::iso(until),
    });
    Ok(Answer::ok(if way == Way::Up { "file.upload_url" } else { "file.download_url" }, body))
}

/// The path of an address on this server.
fn place(way: Way, sandbox: &str, path: &OsStr) -> String {
    format!("{TRANSFERS}{}/{sandbox}{}", way.name(), percent_encode(path.as_bytes(), PLAIN))
}

/// What the path of an address says.
fn read_place(path: &str) -> Option<(Way, &str, OsString)> {
    let (way, rest) = path.strip_prefix(TRANSFERS)?.split_once('/')?;
    let way = [Way::Up, Way::Down].into_iter().find(|known| known.name() == way)?;
    let (sandbox, path) = rest.split_at(rest.find('/')?);
    let path: Vec<u8> = percent_decode_str(path).collect();
    Some((way, sandbox, OsStr::from_bytes(&path).to_owned()))
}

/// Whether a path is that of an address.
pub(crate) fn is_at(path: &str) -> bool {
    path.starts_with(TRANSFERS)
}

/// Answers whoever comes to an address. The body is read as it comes; of one that is refused no more than that its sender
/// gets to read the answer.
pub(crate) async fn transfer(app: &Arc<App>, head: &request::Parts, mut body: Body) -> Outcome {
    let outcome = carry_out(app, head, &mut body).await;
    if outcome.is_err() {
        router::read_body(body, 0, || false).await;
    }
    outcome
}

async fn carry_out(app: &Arc<App>, head: &request::Parts, body: &mut Body) -> Outcome {
    let place = head.uri.path();
    let unknown = || ApiError::new(404, "not_found", "there is nothing at this path");
    let (way, sandbox, path) = read_place(place).ok_or_else(unknown)?;
    signed::check(app, place, head.uri.query().unwrap_or_default())?;
    if head.method != way.method() {
        let allowed = way.method();
        let problem = format!("this address takes {allowed}");
        return Err(ApiError::new(405, "method_not_allowed", problem).allow(allowed.as_str()));
    }
    let sandbox: Sandbox =
        app.read(|tx| typed::get(tx, sandbox))?.ok_or_else(|| ApiError::not_found("sandbox"))?;
    match way {
        Way::Up => upload(app, head, &sandbox, path, body).await,
        Way::Down => download(app, head, &sandbox, path).await,
    }
}

/// The files of a sandbox that is up and can be reached.
fn files(app: &App, sandbox: &Sandbox) -> Result<space::Files, ApiError> {
    match *app.live(sandbox).watch().borrow() {
        state if state.is_up() => {
            if let Some(error) = cut_off(app, sandbox) {
                return Err(error);
            }
            environment::files(app, &sandbox.id).map_err(|error| file_error(error, "path"))
        }
        state @ (State::Archived | State::Archiving) => Err(not_running(state)),
        state => Err(not_ready(state)),
    }
}

async fn download(app: &Arc<App>, head: &request::Parts, sandbox: &Sandbox, path: OsString) -> Outcome {
    let files = files(app, sandbox)?;
    let opened = space::off_thread(move || files.open_exactly_blocking(&path)).await;
    let (file, size) = opened.map_err(|error| file_error(error, "path"))?;
    let tag = tag(&file).map_err(|error| file_error(error.into(), "path"))?;
    ranges::serve(&head.headers, file, size, &tag, &[])
}

/// The entity tag of a file, a weak one where the next change could still go unnoticed: the times of files have ticks.
fn tag(file: &File) -> std::io::Result<String> {
    const TICK: time::Millis = 100;
    let meta = file.metadata()?;
    let (seconds, nanoseconds) = (meta.ctime(), meta.ctime_nsec());
    let about = format!("{} {} {} {seconds} {nanoseconds}", meta.dev(), meta.ino(), meta.len());
    let changed = seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000);
    // By the clock of the disk, which no test moves.
    let now = time::now(&sandboxer::clock::SystemClock::new());
    let weak = if now.saturating_sub(changed) < TICK { "W/" } else { "" };
    Ok(format!("{weak}\"{}\"", &ids::digest(&about)[..32]))
}

async fn upload(
    app: &Arc<App>,
    head: &request::Parts,
    sandbox: &Sandbox,
    path: OsString,
    body: &mut Body,
) -> Outcome {
    if head.headers.contains_key(header::CONTENT_RANGE) {
        return Err(ApiError::invalid(
            "invalid_request",
            "Content-Range",
            "is not taken: a file comes as a whole",
        ));
    }
    let files = files(app, sandbox)?;
    let (target, scratch) = (path.clone(), app.scratch());
    let begun = space::off_thread(move || {
        files.check_target_blocking(&target)?;
        Ok::<_, FileError>(Draft::begin(&scratch)?)
    });
    let (draft, file) = begun.await.map_err(|error| file_error(error, "path"))?;
    let live = app.live(sandbox);
    let mut state = live.watch();
    let left = async {
        match state.wait_for(|state| !state.is_up()).await {
            Ok(state) => *state,
            Err(_) => State::Cancelled,
        }
    };
    let file = tokio::select! {
        received = receive(body, file) => received?,
        state = left => return Err(not_running(state)),
        () = app.closing.cancelled() => return Err(not_running(State::Archiving)),
    };
    // It may have gone out of reach while the body came.
    if let Some(error) = cut_off(app, sandbox) {
        return Err(error);
    }
    let target = path.clone();
    let written = change(app, sandbox, move |files| {
        files.place_blocking(draft, &file, &target).map_err(|error| file_error(error, "path"))
    });
    let written = written.await?;
    Ok(Answer::ok(
        "file.uploaded",
        json!({"success": true, "path": text(&written.path), "size": written.size}),
    ))
}

/// Writes a body into a file as it comes.
async fn receive(body: &mut Body, file: File) -> Result<File, ApiError> {
    let failed = |error: std::io::Error| file_error(error.into(), "path");
    let mut file = tokio::fs::File::from_std(file);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::new(400, "invalid_request", "the body ended early"))?;
        if let Ok(piece) = frame.into_data() {
            file.write_all(&piece).await.map_err(failed)?;
        }
    }
    file.flush().await.map_err(failed)?;
    Ok(file.into_std().await)
}
